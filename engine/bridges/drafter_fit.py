"""Whether a drafter fits a target, judged by their descriptions: sizes, vocabularies, tokens, layers."""

from __future__ import annotations

from collections.abc import Iterator

from engine.bridges.checkpoint_files import Described
from engine.bridges.drafter_traps import AUX, BLOCK_AUX, BLOCKS, EAGLES, Trap
from engine.printable import one_line

READING = (*EAGLES, *BLOCKS, "medusa", "hydra", "mtp")
"""Kinds of drafters that take the target's hidden states as input."""


def fit(files: Described, kind: str, target: Described) -> Iterator[Trap]:
    """Yields the misfits between checkpoint and target; those with ``wrong`` make the pair unusable."""
    if kind in READING:
        yield from _width(files, kind, target)
    yield from _tokens(files, kind, target)
    if kind in (*EAGLES, *BLOCKS):
        yield from _layers(files, kind, target)
    speculators = files.config.get("speculators_config")
    trained = speculators.get("verifier") if isinstance(speculators, dict) else None
    named = trained.get("name_or_path") if isinstance(trained, dict) else None
    if isinstance(named, str) and named.split("/")[-1] != target.name.split("/")[-1]:
        yield Trap(
            "trained for",
            f"It was trained for {one_line(named, 80)}; the target here is {target.name}.",
        )


def _width(files: Described, kind: str, target: Described) -> Iterator[Trap]:
    theirs = target.number("hidden_size", "n_embd")
    if kind in ("medusa", "hydra"):
        first = next(
            (shape for key, shape in files.shapes.items() if key.endswith("0.linear.bias")), ()
        )
        reads = first[0] if first else None
    else:
        reads = files.number("target_hidden_size") or files.number("hidden_size")
    if reads is not None and theirs is not None and reads != theirs:
        yield Trap(
            "hidden size",
            f"It reads states of {reads:,} numbers, and the target’s have {theirs:,}.",
            wrong=True,
        )


def _tokens(files: Described, kind: str, target: Described) -> Iterator[Trap]:
    own, theirs = files.number("vocab_size"), target.number("vocab_size")
    comparable = files.tokens and target.tokens
    same = comparable and files.tokens == target.tokens
    if comparable and not same:
        words = f"the digests of all tokens and ids are {files.tokenizer_digest} and {target.tokenizer_digest}"
        if kind == "causal":
            yield Trap(
                "tokenizer",
                f"Draft and target have different tokens ({words}). Draftscope drafts across them with `omnidraft`, transformers with "
                "assistant_tokenizer, vLLM with use_heterogeneous_vocab; nothing else here does.",
                wrong=True,
            )
        else:
            yield Trap(
                "tokenizer", f"It comes with other tokens than the target’s: {words}.", wrong=True
            )
    if own is None or theirs is None or own == theirs or kind not in (*READING, "causal"):
        return
    sizes = f"vocab_size is {own:,} here and {theirs:,} in the target"
    if same:
        yield Trap(
            "vocabularies",
            f"{sizes}, though the tokens are the same: one of them is padded. vLLM and transformers refuse such a pair or treat it as "
            "two vocabularies; Draftscope takes it.",
        )
    else:
        needed = len(target.tokens or ()) or theirs
        yield Trap(
            "vocabularies", f"{sizes}.", wrong=own < needed if kind in READING else not comparable
        )


def _layers(files: Described, kind: str, target: Described) -> Iterator[Trap]:
    count = target.number("num_hidden_layers", "n_layer")
    nested = files.config.get("dflash_config" if kind in BLOCKS else "eagle_config")
    entries = {**files.config, **(nested if isinstance(nested, dict) else {})}
    ids = next((entries[key] for key in (AUX, *BLOCK_AUX) if entries.get(key)), None)
    if ids is None or count is None:
        return
    whole = isinstance(ids, list) and all(type(layer) is int for layer in ids)
    if not whole or not all(0 <= layer <= count for layer in ids):
        yield Trap(
            "aux layer ids",
            f"It reads the layers {one_line(str(ids), 80)}, and the target has {count}.",
            wrong=True,
        )
