"""The recipes, in the order in which they are run. Each reads its inputs from folders and writes its output to one,
so each can run alone; those that train resume where they were stopped.

    tokenizer    shipped target, or corpora -> <checkpoints>/tokenizer, with the tokens of the chat template
    windows      corpora -> <checkpoints>/windows-*.npz: all that the target reads
    target       windows -> <models>/target
    export       the target's last checkpoint -> <models>/target, to look at before it is done
    text         target -> <checkpoints>/selftext.npz: what the target writes by itself (also of --target DIR)
    conversations  corpora and generators -> <checkpoints>/conversations.jsonl: what people ask, and some of it held out
    chat-text    conversations -> the answers of --target DIR, hundreds at once: selftext.npz, held-out.npz
    vocabulary   text -> <models>/parts/vocabulary: how often the target writes each token (also of --target DIR)
    draft        windows -> <models>/draft (with --larger: <models>/parts/draft-3m)
    divergences  which divergence aligns the draft best -> screen, <checkpoints>/divergences.json
    align        the target's distributions and hidden states -> the drafters of --students
    gains        what each draft size gains -> gains.json beside the models (--needs: of some models only)
    evaluate     held-out figures of the family -> screen, <checkpoints>/figures.json, <models>/README.md
    prompts      held-out prompts of the generators, in no text seen so far -> presets/prompts
    datastore    texts of the generators -> <models>/parts/datastore, the datastore of the drafter rasd
    hybrid       corpora -> <models>/families/hybrid: a target with state-space layers and its draft, for the drafter stree
    experts      corpora and draft -> <models>/families/experts, experts-topk: targets of which a pass computes some experts
    captions     scenes drawn by the recipe -> <models>/families/captions: a target that sees pictures, and its draft
    family       all recipes from the windows on, in order; a stopped one goes on
    image        pictures of digits, drawn by the recipe -> <models>/families/image, five minutes of one thread
    halve        the part of --name, or diffusion -> the same with its matrices in 8 bits, half the bytes
    scylla       text -> <models>/parts/scylla: ten small drafts, the law of their acceptance, a prediction (also of --target DIR)

Parts that learn from what the target writes -> <models>/parts/NAME (`--target DIR`: of any other target). Memory and time
are told first; a table shows loss and accepted length during training; NAME=VALUE are the options:
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

from engine.parts.files import halve
from engine.training import (
    chat_text,
    counted_parts,
    drafting_recipes,
    measuring_recipes,
    pretraining_recipes,
)
from engine.training.caption_parts import captions
from engine.training.common import UserError, place, say
from engine.training.expert_targets import experts
from engine.training.family import family
from engine.training.hybrid_pair import hybrid
from engine.training.part_recipe import train_part
from engine.training.pictures.recipe import image
from engine.training.scylla import scylla
from engine.training.students import other_recipes, outside_students, student_class, students

Recipe = Callable[[argparse.Namespace], None]


def halve_part(args) -> None:
    if not args.name:
        raise UserError("the recipe `halve` needs the name of a part (--name)")
    own = args.models / "parts" / args.name
    before, after = halve(place(args, args.name) if args.name == "diffusion" else own)
    say(f"{args.name}: {before / 1e6:.2f} MB before, {after / 1e6:.2f} MB now")


BUILT_IN: dict[str, Recipe] = {
    "tokenizer": pretraining_recipes.tokenizer,
    "windows": pretraining_recipes.windows,
    "target": pretraining_recipes.target,
    "export": pretraining_recipes.export,
    "text": drafting_recipes.text,
    "conversations": chat_text.write_conversations,
    "chat-text": chat_text.write_chat_text,
    "vocabulary": counted_parts.vocabulary,
    "draft": pretraining_recipes.draft,
    "divergences": drafting_recipes.divergences,
    "align": drafting_recipes.align,
    "gains": measuring_recipes.write_gains,
    "evaluate": measuring_recipes.evaluate_all,
    "prompts": measuring_recipes.write_prompts,
    "datastore": counted_parts.datastore,
    "family": family,
    "hybrid": hybrid,
    "experts": experts,
    "captions": captions,
    "halve": halve_part,
    "image": image,
    "scylla": scylla,
    **other_recipes(),
    **{key: partial(train_part, key=key) for key in students()},
}


def _outside() -> tuple[dict[str, Recipe], dict[str, str]]:
    """The recipes of methods that are installed from outside this repository; and, for those that cannot be used,
    method -> a sentence that says why."""
    try:
        usable, reasons = outside_students()
    except UserError as error:
        return {}, {"": str(error)}
    occupied = usable.keys() & BUILT_IN.keys()
    reasons = reasons | {
        key: f"The method {key} has a recipe, and another one has that name already."
        for key in occupied
    }
    return {key: partial(train_part, key=key) for key in usable.keys() - occupied}, reasons


OUTSIDE, LEFT_OUT = _outside()
RECIPES = OUTSIDE | BUILT_IN


def described() -> str:
    """The help text: a line for each recipe, with its options."""
    general, of_parts = __doc__.rstrip().split("\n\nParts")
    lines = [
        general,
        *(f"    {key:<12} {recipe.__doc__}" for key, recipe in other_recipes().items()),
    ]
    lines.append(f"\nParts{of_parts}")
    for key in [*students(), *OUTSIDE]:
        cls = student_class(key)
        options = ", ".join(f"{option.name}={option.default}" for option in cls.options)
        lines.append(f"    {key:<12} {cls.summary}" + (f" [{options}]" if options else ""))
    return "\n".join(lines) + "\n"
