"""The teacher: the target from which parts (models that draft for it) learn. It is the target of the embedded family,
or one that the user names.

For a target that the user names, text, checkpoints and parts lie in a separate folder inside the folder of the
checkpoints.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from transformers import AutoTokenizer, PreTrainedModel

from engine.methods.shared.denoiser_part import open_denoiser
from engine.methods.shared.dflash_model import DFlashModel
from engine.methods.shared.draft_part import TOKENIZERS
from engine.model.generation import ends_of
from engine.model.language_model import refuse_unreadable
from engine.parts.digest import check_belongs, digest_of
from engine.parts.inspection import inspect
from engine.parts.opening import causal_model
from engine.parts.size_limits import free_bytes
from engine.training import alignment, selftext
from engine.training import family_figures as figures
from engine.training.common import UserError, need_data, need_file, place, usual_device
from engine.training.distill import MixedWindows
from engine.training.packing import Mixer, windows

WINDOWS = 10_000
HELD_OUT = 10  # one of so many prompts of a named target is held out for measuring
MOST_HELD_OUT = 16  # the most held-out prompts of a named target
MEASURED = 96  # the most texts read from a file of held-out texts
PER_WORKLOAD = 3  # held-out prompts per workload of the family
PROBED = 96  # tokens that the target writes after each held-out prompt


@dataclass(frozen=True)
class Teacher:
    """A target from which parts learn, with the folders and files of its training.

    folder: the target's folder. work: the folder of its text and checkpoints. parts: the folder to which parts are
    written. data: the folder of the corpora. prompts: for a target that the user names, a file with one prompt per
    line, or a folder of such files; None for the family's own target, which has corpora and generators. draft_folder,
    denoiser_folder: the folders of the draft model and the diffusion drafter, which some parts need, or None. start:
    the folder of a part from which the training goes on, or None. count: how many windows are made of the text; 0: as
    many as the text fills. text: the file of the target's text; None: selftext.npz in ``work``. held_out: a file of
    greedy texts of the target, on which parts are measured; None: the target writes some.
    """

    folder: Path
    work: Path
    parts: Path
    data: Path
    prompts: Path | None = None
    draft_folder: Path | None = None
    denoiser_folder: Path | None = None
    start: Path | None = None
    count: int = WINDOWS
    text: Path | None = None
    held_out: Path | None = None

    @classmethod
    def of(cls, args) -> Teacher:
        """The teacher that the command line names. Raises UserError if there is no such target, or too little memory
        for the target."""
        if args.target is None:
            need_data(args)
            folder = place(args, "target")
            if not (folder / "model.safetensors").exists():
                raise UserError(f"no model in {folder}: run the recipe that makes it first")
            parts, draft = args.models / "parts", args.draft or place(args, "draft")
            denoiser = args.diffusion or place(args, "diffusion")
            return cls(
                folder,
                args.checkpoints,
                parts,
                args.data,
                draft_folder=draft,
                denoiser_folder=denoiser,
                start=args.start,
                count=args.windows,
            )
        checkpoint = inspect(args.target)
        if checkpoint.nbytes > free_bytes():
            raise UserError(
                f"{checkpoint.folder.name} needs {checkpoint.nbytes / 1e9:,.1f} GB of memory; "
                f"{free_bytes() / 1e9:,.1f} GB are free."
            )
        work = args.checkpoints / "targets" / f"{args.target.name}-{digest_of(args.target)}"
        return cls(
            args.target,
            work,
            work / "parts",
            args.data,
            args.prompts,
            args.draft,
            args.diffusion,
            args.start,
            args.windows,
            args.text,
            args.held_out,
        )

    @property
    def text_file(self) -> Path:
        return self.text or self.work / "selftext.npz"

    @cached_property
    def tokenizer(self):
        return AutoTokenizer.from_pretrained(self.folder)

    @cached_property
    def module(self) -> PreTrainedModel:
        """The target, frozen, in fp32; on the GPU if there is one."""
        return _opened(self.folder)

    @cached_property
    def draft(self) -> PreTrainedModel:
        """The draft model, frozen, in fp32. Raises UserError if the command line names no draft model, or one whose
        tokenizer is not the target's."""
        if self.draft_folder is None:
            raise UserError("This part reads the states of a draft; name its folder (--draft).")
        folder = inspect(self.draft_folder).folder
        bare = not any((folder / name).is_file() for name in TOKENIZERS)
        if (
            not bare
            and AutoTokenizer.from_pretrained(folder).get_vocab() != self.tokenizer.get_vocab()
        ):
            raise UserError(
                f"The draft {folder.name} has another vocabulary than {self.folder.name}."
            )
        return _opened(folder)

    @property
    def denoiser(self) -> DFlashModel:
        """The diffusion drafter, frozen, in fp32, on the target's device. Raises UserError if the command line names
        no diffusion drafter, or one that belongs to another target."""
        if self.denoiser_folder is None:
            raise UserError(
                "This part reads the confidences of a diffusion drafter; name its folder (--diffusion)."
            )
        check_belongs(str(self.denoiser_folder), str(self.folder), "diffusion drafter")
        denoiser = open_denoiser(str(self.denoiser_folder), torch.float32, str(self.module.device))
        if (
            denoiser.config.hidden_size
            != self.module.config.get_text_config(decoder=True).hidden_size
        ):
            raise UserError(f"{self.denoiser_folder.name} does not fit {self.folder.name}.")
        return denoiser.requires_grad_(False)

    @property
    def end_token(self) -> int:
        """The token that ends a text. Raises UserError if neither the target's config nor its tokenizer names one."""
        ends = ends_of(self.module, self.tokenizer).tokens
        if not ends:
            raise UserError(f"{self.folder.name} names no token that ends a text.")
        own = self.tokenizer.eos_token_id
        return own if own in ends else min(ends)

    def prompt_streams(self, seed: int) -> dict[str, Iterator[list[int]]]:
        """Workload -> an endless stream of prompts, as token ids, after which the target writes the text to learn
        from."""
        if self.prompts is None:
            return selftext.family_prompts(self.tokenizer, self.data, seed)
        return {"given": self._own_prompts(seed)}

    def windows(
        self, length: int, seed: int, mixture: tuple[int, int] = (1, 1), rows: int = 1
    ) -> MixedWindows:
        """The training windows. For the family's own target, windows of its own text and windows of the corpora take
        turns; for any other target, all windows are of its own text.

        length: tokens of a window. mixture: (own, corpora), how many windows of each kind follow each other. rows:
        windows of a batch. If ``count`` is 0, the number of windows is a multiple of ``rows``, so that all batches are
        whole.
        """
        path = need_file(self.text_file, "text")
        corpora = (self.tokenizer, self.data) if self.prompts is None else None
        count = self.count or max(1, self.epoch // (rows * length)) * rows
        return text_windows(path, length, seed, count, corpora, mixture)

    @cached_property
    def epoch(self) -> int:
        """How many tokens a training reads while it goes through the target's own text once. If windows of the corpora
        take turns with it, this is twice the length of the text."""
        return len(selftext.load(self.text_file).tokens) * (2 if self.prompts is None else 1)

    def probes(self, seed: int = 0) -> list[alignment.Text]:
        """Greedy texts of the target, as (length of the prompt, tokens), after prompts from which its drafters have
        not learned. If the user names no file of such texts, the target writes them once, and they are stored."""
        if self.held_out is not None:
            held_out = selftext.load(need_file(self.held_out, "text"))
            ends = zip(held_out.starts[:-1], held_out.starts[1:], held_out.prompts, strict=True)
            texts = [(int(length), held_out.tokens[a:b].tolist()) for a, b, length in ends]
            return [(length, text) for length, text in texts if length < len(text)][:MEASURED]
        file = self.work / "probes.json"
        if not file.exists():
            texts = alignment.own_texts(self.module, self._held_out(), PROBED, 0.0, seed)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(texts))
        return [(start, tokens) for start, tokens in json.loads(file.read_text())]

    def _held_out(self) -> list[list[int]]:
        if self.prompts is None:
            prompts = figures.probe_prompts(self.tokenizer, self.data, PER_WORKLOAD)
            return [prompt for workload_prompts in prompts.values() for prompt in workload_prompts]
        return self._given_prompts()[::HELD_OUT][:MOST_HELD_OUT]

    def _own_prompts(self, seed: int) -> Iterator[list[int]]:
        """For a target that the user names: an endless stream of its prompts, without the held-out ones. Raises
        UserError if all prompts are held out."""
        prompts = self._given_prompts()
        held_out = {tuple(prompt) for prompt in prompts[::HELD_OUT]}
        rest = [prompt for prompt in prompts if tuple(prompt) not in held_out]
        if not rest:
            raise UserError(f"There are too few prompts in {self.prompts}.")
        rng = random.Random(seed)
        for _ in itertools.count():
            yield from rng.sample(rest, len(rest))

    def _given_prompts(self) -> list[list[int]]:
        """For a target that the user names: the token ids of all prompts. If the target has a chat template, each
        prompt is a user's turn."""
        texts = read_prompts(self.prompts)
        if self.tokenizer.chat_template:
            turns = ([{"role": "user", "content": text}] for text in texts)
            texts = [
                self.tokenizer.apply_chat_template(turn, tokenize=False, add_generation_prompt=True)
                for turn in turns
            ]
            ids_of_texts = self.tokenizer(texts, add_special_tokens=False).input_ids
        else:
            ids_of_texts = self.tokenizer(texts).input_ids
        return [ids[-selftext.LONGEST_PROMPT :] for ids in ids_of_texts if ids]


def _opened(folder: Path) -> PreTrainedModel:
    module = causal_model(str(folder), torch.float32)
    refuse_unreadable(module, folder.name)
    return module.to(usual_device()).eval().requires_grad_(False)


def text_windows(
    path: Path,
    length: int,
    seed: int,
    count: int,
    corpora: tuple | None = None,
    mixture: tuple[int, int] = (1, 1),
) -> MixedWindows:
    """Windows of a target's own text, from the file ``path``, in turn with windows of the corpora. corpora:
    (tokenizer, folder of the corpora); None: there are no windows of corpora. mixture: (own, corpora), how many
    windows of each kind follow each other."""
    own, from_corpora = (1, 0) if corpora is None else mixture
    streams = [windows(selftext.load(path).documents(seed).__next__, length, seed)] * own
    if from_corpora:
        streams += [windows(Mixer(*corpora, 500 + seed), length, seed)] * from_corpora
    return MixedWindows(streams, count)


def read_prompts(path: Path) -> list[str]:
    """The prompts in a file, or in all .jsonl files of a folder. In a .jsonl file, each line is a JSON object with a
    field "prompt"; in any other file, each line is a prompt. Raises UserError if there are no prompts, or if they
    cannot be read."""
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    prompts = []
    try:
        for file in files:
            lines = [line for line in file.read_text("utf-8").splitlines() if line.strip()]
            prompts += (
                [json.loads(line)["prompt"] for line in lines] if file.suffix == ".jsonl" else lines
            )
    except (OSError, ValueError, KeyError, TypeError):
        raise UserError(
            f"The prompts in {path} cannot be read: one a line, or JSON lines."
        ) from None
    if not prompts:
        raise UserError(f"There are no prompts in {path}.")
    return prompts
