"""The recipes `tokenizer`, `windows`, `target`, `draft` and `export`, which learn from plain text."""

from __future__ import annotations

import torch

from engine.training.checkpoint import export_model, export_tokenizer, load_checkpoint
from engine.training.common import (
    folder_tokenizer,
    need_data,
    need_file,
    place,
    say,
    usual_device,
)
from engine.training.corpus import available_mix, documents, make_vocabulary, read_corpora
from engine.training.new_models import draft_config, larger_draft_config, target_config
from engine.training.plan import DRAFT_PLAN, LARGER_DRAFT_PLAN, TARGET_PLAN
from engine.training.pretraining import as_model, train
from engine.training.tokenizer import load_tokenizer, train_tokenizer, with_chat
from engine.training.window_files import path_of, write_files

CONFIGS = {"target": target_config, "draft": draft_config, "larger-draft": larger_draft_config}
PLANS = {"target": TARGET_PLAN, "draft": DRAFT_PLAN, "larger-draft": LARGER_DRAFT_PLAN}


def tokenizer(args) -> None:
    """The recipe `tokenizer`: writes the shipped target's tokenizer, with a chat template added if it has none. If no
    target was shipped, it trains a new tokenizer."""
    shipped = args.start or place(args, "target")
    if (shipped / "tokenizer.json").exists():
        tok = load_tokenizer(shipped)
        tok = tok if tok.chat_template else with_chat(tok)
    else:
        need_data(args)
        tok = with_chat(train_tokenizer(_tokenizer_sample(args)))
    export_tokenizer(tok, args.checkpoints / "tokenizer")


def _tokenizer_sample(args) -> list[str]:
    texts = read_corpora(args.data)
    vocabulary, sample = make_vocabulary(texts), []
    for workload, share in available_mix(texts).items():
        characters = 0
        for document in documents(workload, texts, vocabulary, args.seed):
            sample.append(document.text)
            characters += len(document.text)
            if characters > share * 9e6:
                break
    return sample


def windows(args) -> None:
    need_data(args)
    write_files(args.checkpoints, folder_tokenizer(args), args.data, TARGET_PLAN, args.seed, say)


def _train(args, name: str) -> None:
    need_data(args)
    tok = folder_tokenizer(args)
    plan = PLANS[name]
    need_file(path_of(args.checkpoints, plan.files[0].number), "windows")
    config = CONFIGS[name](len(tok), tok.eos_token_id)
    torch.set_num_threads(args.processes)
    state = train(
        config,
        plan,
        args.checkpoints,
        args.checkpoints / f"{name}.pt",
        args.until,
        args.seed,
        usual_device(),
        say,
    )
    if state["index"] == plan.steps:
        _export(args, name, tok, mean=False)


def _export(args, name: str, tok, mean: bool) -> None:
    saved = load_checkpoint(need_file(args.checkpoints / f"{name}.pt", name))
    config = CONFIGS[name](len(tok), tok.eos_token_id)
    export_model(as_model(config, saved, mean), place(args, name), tok)
    steps = PLANS[name].steps
    say(
        f"{place(args, name)}: {'mean of the ' if mean else ''}weights after step {saved['index']} of {steps}"
    )


def target(args) -> None:
    _train(args, "target")


def draft(args) -> None:
    """The recipe `draft`: trains the draft model (with --larger, the larger one) on plain text, like the target. The
    recipe `align` later trains it on the target's laws."""
    _train(args, "larger-draft" if args.larger else "draft")


def export(args) -> None:
    """The recipe `export`: writes a target whose training is not finished. It uses the running mean of the weights,
    because the last weights are only good once the learning rates have decayed."""
    _export(args, "target", folder_tokenizer(args), mean=True)
