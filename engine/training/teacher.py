"""The target that parts learn from: the family's own, or any other that the user names.

The text, checkpoints and parts of a named target lie in a folder of their own under the checkpoints.
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
HELD_OUT = 10  # every tenth prompt of a named target is kept for measuring
MOST_HELD_OUT = 16
MEASURED = 96  # texts of a file of held-out ones
PER_WORKLOAD = 3  # held-out prompts of the family
PROBED = 96  # tokens written after each of them


@dataclass(frozen=True)
class Teacher:
    """folder: the target's. work: the folder of its text and checkpoints. parts: the folder of the results. data: the
    folder of the corpora. prompts: a file or a folder of files, one prompt per line, for a named target; None for the
    family's own target, which has corpora and generators. draft_folder: the folder of the draft that some parts read,
    or None. start: the folder of a part to continue from, or None. count: how many windows are made of the text; 0: as
    many as it fills. text: the file of the target's text, None for the usual one. held_out: a file of greedy texts of the
    target to measure on; None: it writes some."""

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
        """The teacher that the command line names. Raises UserError where there is no such target, or no memory for
        it."""
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
        """The target, frozen, in fp32; on the GPU if the machine has a GPU."""
        return _opened(self.folder)

    @cached_property
    def draft(self) -> PreTrainedModel:
        """The draft model, frozen, in fp32. Raises UserError if no draft model was named, or if its tokenizer is not the
        target's."""
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
        """Frozen, in fp32, on the target's device. Raises UserError where none was named, or one of another target."""
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
        """The token that ends a text; raises UserError where neither model nor tokenizer names one."""
        ends = ends_of(self.module, self.tokenizer).tokens
        if not ends:
            raise UserError(f"{self.folder.name} names no token that ends a text.")
        own = self.tokenizer.eos_token_id
        return own if own in ends else min(ends)

    def prompt_streams(self, seed: int) -> dict[str, Iterator[list[int]]]:
        """Workload -> an endless stream of prompts, after which the target writes."""
        if self.prompts is None:
            return selftext.family_prompts(self.tokenizer, self.data, seed)
        return {"given": self._own_prompts(seed)}

    def windows(
        self, length: int, seed: int, mixture: tuple[int, int] = (1, 1), rows: int = 1
    ) -> MixedWindows:
        """Text to learn from: the target's own text; for the family's own target, in turn with the corpora.

        mixture: how many windows of each come in turn. A target without corpora has only its own text. rows: of a batch;
        where the text decides how many windows there are, they are whole batches."""
        path = need_file(self.text_file, "text")
        corpora = (self.tokenizer, self.data) if self.prompts is None else None
        count = self.count or max(1, self.epoch // (rows * length)) * rows
        return text_windows(path, length, seed, count, corpora, mixture)

    @cached_property
    def epoch(self) -> int:
        """Tokens that are read while the target's own text is read once: in turn with the corpora, if there are any."""
        return len(selftext.load(self.text_file).tokens) * (2 if self.prompts is None else 1)

    def probes(self, seed: int = 0) -> list[alignment.Text]:
        """Greedy texts of the target after prompts that its drafters have not learned from; written once."""
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
            return [prompt for some in prompts.values() for prompt in some]
        return self._given_prompts()[::HELD_OUT][:MOST_HELD_OUT]

    def _own_prompts(self, seed: int) -> Iterator[list[int]]:
        """Endless prompts for a named target to write after, the held-out ones left out."""
        prompts = self._given_prompts()
        held_out = {tuple(prompt) for prompt in prompts[::HELD_OUT]}
        rest = [prompt for prompt in prompts if tuple(prompt) not in held_out]
        if not rest:
            raise UserError(f"There are too few prompts in {self.prompts}.")
        rng = random.Random(seed)
        for _ in itertools.count():
            yield from rng.sample(rest, len(rest))

    def _given_prompts(self) -> list[list[int]]:
        """Token ids, as a user's turn where the target has a chat template."""
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
    """Windows of the text that a target wrote (path), in turn with windows of the corpora, given as a tokenizer and a
    folder. mixture: how many of each come in turn."""
    own, other = (1, 0) if corpora is None else mixture
    streams = [windows(selftext.load(path).documents(seed).__next__, length, seed)] * own
    if other:
        streams += [windows(Mixer(*corpora, 500 + seed), length, seed)] * other
    return MixedWindows(streams, count)


def read_prompts(path: Path) -> list[str]:
    """The prompts of a file, or of a folder's files: lines of text, or of JSON with a field "prompt".
    Raises UserError where there are none."""
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
