"""Known faults of drafter checkpoints, by name: entries that engines read differently, and tables that contradict each
other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from engine.bridges.checkpoint_files import Described
from engine.bridges.drafter_kinds import SPECULATORS
from engine.parts.mtp_fields import mtp_layers
from engine.printable import one_line

EAGLES = ("eagle", "eagle3", "eagle4", "peagle")
BLOCKS = ("dflash", "dflash2", "dspark", "domino", "lilicorr", "xpress")
AUX = "eagle_aux_hidden_state_layer_ids"
MASKS = ("mask_token_id", "pard_token", "ptd_token_id")
BLOCK_AUX = ("aux_hidden_state_layer_ids", "target_layer_ids")


class Trap(NamedTuple):
    """A fault of a checkpoint. name: the entry or table concerned. wrong: True if the checkpoint cannot be used
    unchanged; False for a warning."""

    name: str
    sentence: str
    wrong: bool = False


def traps(files: Described, kind: str) -> Iterator[Trap]:
    """Yields the traps that the checkpoint's own files show, whatever the target is. kind: the kind of drafter."""
    yield from _pickled(files)
    yield from _vocabulary(files, kind)
    if kind == "eagle":
        yield from _eagle(files)
    if kind in ("eagle3", "peagle"):
        yield from _eagle3(files, kind)
    if kind in BLOCKS:
        yield from _block(files, kind)
    yield from _mtp(files, kind)


def _pickled(files: Described) -> Iterator[Trap]:
    if files.pickled:
        first = one_line(files.pickled[0], 80)
        alone = "its only weights" if not files.shapes else "beside safetensors"
        yield Trap(
            "pickled weights",
            f"{first} ({alone}) may hold a program that runs when it is opened; Draftscope opens safetensors only.",
            wrong=not files.shapes,
        )
    elif not files.shapes:
        yield Trap("no weights", "There is no file of weights (.safetensors) in it.", wrong=True)


def _vocabulary(files: Described, kind: str) -> Iterator[Trap]:
    if kind not in (*EAGLES, *BLOCKS):
        return
    whole, own = files.number("vocab_size"), files.number("draft_vocab_size")
    table, mask, head = (files.shapes.get(key) for key in ("d2t", "t2d", "lm_head.weight"))
    small = own is not None and whole is not None and own < whole
    if small and table is None and mask is None and files.shapes:
        yield Trap(
            "d2t",
            f"It drafts {own:,} of {whole:,} tokens and has no table d2t, so nobody knows which ones.",
            wrong=True,
        )
    if table is not None:
        yield Trap(
            "d2t",
            "The table d2t holds offsets: draft token i is the target’s token i + d2t[i]. Read as ids, it gives nonsense without an error.",
        )
        if own is not None and table[:1] != (own,):
            yield Trap(
                "d2t",
                f"d2t has {_size(table)} entries, and draft_vocab_size is {own:,}.",
                wrong=True,
            )
    if mask is not None and whole is not None and mask[:1] != (whole,):
        yield Trap(
            "t2d", f"t2d has {_size(mask)} entries, and vocab_size is {whole:,}.", wrong=True
        )
    if head is not None and table is not None and head[:1] != table[:1]:
        yield Trap(
            "lm_head",
            f"lm_head has {_size(head)} rows, and d2t has {_size(table)} entries.",
            wrong=True,
        )


def _size(shape: tuple[int, ...]) -> str:
    return f"{shape[0]:,}" if shape else "no"


def _eagle(files: Described) -> Iterator[Trap]:
    named = files.config.get("architectures")
    first = named[0] if isinstance(named, list) and named else None
    if isinstance(first, str) and first.endswith("Eagle"):
        plain = first.removesuffix("Eagle")
        yield Trap(
            "architectures",
            f"{one_line(first, 80)} is SGLang’s name; vLLM wants {one_line(plain, 80)}, or Eagle{one_line(plain, 80)}.",
        )


def _eagle3(files: Described, kind: str) -> Iterator[Trap]:
    config, nested = files.config, files.config.get("eagle_config")
    if kind == "eagle3" and SPECULATORS in config and "norm_before_residual" not in config:
        yield Trap(
            "norm_before_residual",
            "The entry is missing: in this layout vLLM takes it as true, speculators and Draftscope as false. Read wrongly, acceptance "
            "falls without an error, so write it down.",
        )
    if kind == "peagle" and config.get("norm_before_residual") is True:
        yield Trap("norm_before_residual", "It is true; speculators trains P-EAGLE with false.")
    if config.get("norm_before_fc") and config.get("fc_norm"):
        yield Trap(
            "fc_norm",
            "norm_before_fc and fc_norm exclude each other, and both are set.",
            wrong=True,
        )
    if kind == "peagle" and files.number(*MASKS) is None:
        yield Trap(
            "mask_token_id",
            "It drafts from mask tokens, and does not say which token that is.",
            wrong=True,
        )
    if config.get(AUX):
        yield Trap(
            "aux layer ids",
            f"{AUX} = {one_line(str(config[AUX]), 80)} counts hidden states, of which 0 is the embedding; the same numbers in eagle_config "
            "would be one layer later for SGLang.",
        )
    elif isinstance(nested, dict) and nested.get(AUX):
        yield Trap(
            "aux layer ids",
            f"eagle_config.{AUX} = {one_line(str(nested[AUX]), 80)}: SGLang and Draftscope read the outputs of these layers, vLLM takes the "
            "numbers as hidden states, one layer earlier. One of them is wrong for this drafter, and acceptance falls without an error.",
        )
    else:
        yield Trap(
            "aux layer ids",
            "It does not say which layers it reads, so engines take 2, L ÷ 2 and L − 3 of L layers; another training needs the entry.",
        )


def _block(files: Described, kind: str) -> Iterator[Trap]:
    config = files.config
    nested = config.get("dflash_config")
    entries = {**config, **(nested if isinstance(nested, dict) else {})}
    ids = next((entries[key] for key in BLOCK_AUX if entries.get(key)), None)
    if ids is None:
        yield Trap(
            "aux layer ids", "It does not say which layers of the target it reads.", wrong=True
        )
    elif entries.get(BLOCK_AUX[0]):
        yield Trap(
            "aux layer ids",
            f"{BLOCK_AUX[0]} = {one_line(str(ids), 80)} counts hidden states; {BLOCK_AUX[1]}, the authors’ entry, counts layers, one less each.",
        )
    if entries.get("mask_token_id") is None:
        yield Trap(
            "mask_token_id", "It fills masks, and does not say which token the mask is.", wrong=True
        )
    if config.get("model_type") == "dflash":
        yield Trap(
            "model_type",
            "It is dflash, which vLLM refuses, because transformers has no such model; published drafters name their target’s, qwen3 for "
            "instance.",
        )
    if any("_conv." in key for key in files.shapes):
        yield Trap("convolutions", "Its layers have convolutions, which Draftscope does not build.")
    head = config.get("markov_head_type", "vanilla")
    if kind == "dspark" and head != "vanilla":
        yield Trap(
            "markov_head_type",
            f"It is {one_line(str(head), 80)}; Draftscope reads vanilla Markov heads only.",
        )
    anchor, size = entries.get("sample_from_anchor"), files.number("block_size")
    if kind == "dspark" and anchor is None and SPECULATORS in config:
        yield Trap(
            "sample_from_anchor",
            "The entry is missing: speculators takes it as true (a block of B drafts B tokens), vLLM’s loader as false (B − 1).",
        )
        return
    if kind == "dflash" and anchor is True:
        yield Trap("sample_from_anchor", "It is true, which vLLM refuses for DFlash.")
    if size is not None:
        whole = anchor is True or (kind == "dspark" and anchor is None)
        drafts = size if whole else size - 1
        yield Trap(
            "block size", f"A block of {size} drafts {drafts} tokens, the number to give as K."
        )


def _mtp(files: Described, kind: str) -> Iterator[Trap]:
    layers = mtp_layers(files.config, files.shapes)
    if layers is None:
        return
    if kind == "mtp" and layers.layers != 1:
        yield Trap(
            "MTP layers",
            f"{layers.field} is {layers.layers}; speculators knows 1 only.",
            wrong=True,
        )
    if kind != "causal":
        return
    model = str(files.config.get("model_type") or "")
    yield Trap(
        "MTP layers",
        f"It brings {layers.layers} of its own for drafting ({layers.field}): `mtp` in vLLM, NEXTN in SGLang, draft-mtp in llama.cpp, "
        "use_mtp in transformers. Draftscope drafts with the first of them where it is like a layer of Llama: --part mtp=DIR --drafter mtp.",
    )
    if layers.there is False:
        yield Trap(
            "MTP weights",
            f"{layers.field} promises them, and the files hold none; copies that were quantised or converted often leave them out.",
        )
    if layers.layers > 1:
        yield Trap(
            "MTP layers",
            f"vLLM wants a K above {layers.layers} to be a multiple of {layers.layers}.",
        )
    if model == "deepseek_v41":
        yield Trap(
            "MTP layers",
            "DeepSeek-V4.1 keeps a DSpark drafter under mtp.*, so vLLM’s method is dspark.",
        )
    if model.startswith("mimo_v2"):
        yield Trap("MTP layers", "vLLM uses the first MTP layer of MiMo-V2 only.")
