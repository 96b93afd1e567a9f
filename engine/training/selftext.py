"""Lets the target write the text from which its drafters learn, because a drafter has to guess what its target writes.

The prompts are beginnings of stories in the corpora, and prompts of the generators, none of them held out. The target
continues them at temperatures 0, 0.7 and 1, in batches with left padding.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from engine.training.corpus import ANSWER_ONLY, make_vocabulary, read_corpora
from engine.training.generators import ALL_MAKERS, examples
from engine.training.packing import Encoded

SHARES = {
    "story": 0.38,
    "operations": 0.14,
    "edit": 0.12,
    "template": 0.12,
    "arithmetic": 0.10,
    "code": 0.08,
    "chat": 0.06,
}
NEW_TOKENS = {
    "story": 200,
    "operations": 120,
    "edit": 200,
    "template": 200,
    "arithmetic": 140,
    "code": 140,
    "chat": 160,
}
TEMPERATURES = [0.0, 0.0, 0.7, 1.0, 1.0]
OTHER_TOKENS = 160
LONGEST_PROMPT = 220
ROWS = 96  # texts written at once
TOLD_SECONDS = 60.0  # seconds between two lines about the progress


@dataclass
class SelfText:
    """M documents that a target wrote, each with its prompt.

    tokens: uint16 or uint32 [N], the tokens of all documents, one after another.
    starts: int [M + 1], the index in ``tokens`` at which each document begins, and N.
    prompts: int [M], how many tokens of each document are its prompt.
    noisy: bool [M], whether the prompt consists of random words, whose prediction is not learned.
    """

    tokens: np.ndarray
    starts: np.ndarray
    prompts: np.ndarray
    noisy: np.ndarray

    def documents(self, seed: int):
        """An endless stream of the documents for `packing.windows`, shuffled anew at every epoch."""
        rng = random.Random(seed)
        while True:
            for i in rng.sample(range(len(self.prompts)), len(self.prompts)):
                tokens = self.tokens[self.starts[i] : self.starts[i + 1]]
                counted = np.ones(len(tokens), dtype=bool)
                if self.noisy[i]:
                    counted[: self.prompts[i]] = False
                yield Encoded(tokens, counted, True)


def load(path: Path) -> SelfText:
    with np.load(path) as saved:
        return SelfText(**{name: saved[name] for name in ("tokens", "starts", "prompts", "noisy")})


def save(path: Path, documents: list[list[int]], given: list[int], noisy: list[bool]) -> None:
    """Write the documents to a file that ``load`` can open; if the write is interrupted, there is no file. documents:
    the tokens of each document. given: how many tokens of each document are its prompt. noisy: as in ``SelfText``."""
    tokens = np.array([t for d in documents for t in d], dtype=np.int64)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp.npz")
    np.savez(
        temporary,
        tokens=tokens.astype(np.uint16 if tokens.max(initial=0) < 1 << 16 else np.uint32),
        starts=np.cumsum([0, *map(len, documents)]),
        prompts=np.array(given, dtype=np.int64),
        noisy=np.array(noisy, dtype=bool),
    )
    temporary.replace(path)


def family_prompts(tokenizer, data: Path, seed: int) -> dict[str, Iterator[list[int]]]:
    """Workload -> an endless stream of prompts, as token ids. data: the folder of the corpora."""
    texts = read_corpora(data)
    return {w: prompt_stream(w, tokenizer, texts, seed) for w in SHARES}


def prompt_stream(workload: str, tokenizer, texts: dict[str, list[str]], seed: int):
    """An endless stream of a workload's prompts, as token ids. texts: workload -> the texts of its corpus."""
    rng = random.Random(f"self/{workload}/{seed}")
    if workload in ALL_MAKERS:
        for example in examples(workload, 1000 + seed, make_vocabulary(texts)):
            ids = tokenizer(example.prompt).input_ids
            if len(ids) <= LONGEST_PROMPT:
                yield ids
    stories = texts["story"] or texts["fairytale"]
    while True:
        yield tokenizer(rng.choice(stories)[:600]).input_ids[: rng.choice([4, 8, 12, 20, 40])]


def sampling_of(temperature: float) -> dict:
    """The sampling arguments for ``generate`` of transformers; temperature 0 is greedy."""
    if temperature:
        return {"do_sample": True, "temperature": temperature, "top_k": 0}
    return {"do_sample": False}


@torch.inference_mode()
def continue_batch(
    model, prompts: list[list[int]], new_tokens: int, temperature: float, eos: int
) -> list[list[int]]:
    """The continuations of all prompts, written in one batch. Each ends with its first end-of-text token ``eos``, or
    after ``new_tokens`` tokens."""
    width = max(map(len, prompts))
    device = model.device
    ids = torch.tensor([[eos] * (width - len(p)) + p for p in prompts], device=device)
    mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts], device=device)
    how = {"max_new_tokens": new_tokens, **sampling_of(temperature)}
    out = model.generate(ids, attention_mask=mask, **how)[:, width:].tolist()
    return [row[: row.index(eos) + 1] if eos in row else row for row in out]


def write(
    path: Path,
    model,
    eos: int,
    streams: Mapping[str, Iterator[list[int]]],
    tokens: int,
    seed: int,
    rows: int = ROWS,
    minutes: float = 1e9,
    say=print,
) -> None:
    """Let the target write about `tokens` tokens, and save them in one .npz file. streams: workload -> an endless
    stream of prompts. The tokens are divided between the workloads in proportion to `SHARES`, where a workload that is
    not in `SHARES` has the weight 1. minutes: the writing ends after this time at the latest."""
    torch.manual_seed(seed)
    rng = random.Random(seed)
    drawn = dict.fromkeys(streams, 0)
    documents: list[list[int]] = []
    prompt_lengths: list[int] = []
    noisy: list[bool] = []
    began = reported = time.monotonic()
    while sum(drawn.values()) < tokens and time.monotonic() - began < 60 * minutes:
        workload = min(streams, key=lambda w: drawn[w] / SHARES.get(w, 1.0))
        waiting = sorted(itertools.islice(streams[workload], 2 * rows), key=len)
        for prompts in (waiting[:rows], waiting[rows:]):
            answers = continue_batch(
                model,
                prompts,
                NEW_TOKENS.get(workload, OTHER_TOKENS),
                rng.choice(TEMPERATURES),
                eos,
            )
            documents += [p + a for p, a in zip(prompts, answers, strict=True)]
            prompt_lengths += map(len, prompts)
            noisy += [workload in ANSWER_ONLY] * len(prompts)
            drawn[workload] += sum(map(len, answers))
        if time.monotonic() - reported > TOLD_SECONDS:
            say(f"{sum(drawn.values())} of {tokens} tokens")
            reported = time.monotonic()
    written = sum(drawn.values())
    say(
        f"the target wrote {written} tokens in {len(documents)} texts, {written / (time.monotonic() - began):.0f} tokens/s"
    )
    save(path, documents, prompt_lengths, noisy)
