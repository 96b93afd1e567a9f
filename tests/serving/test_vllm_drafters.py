"""Our drafters as vLLM calls them: requests come, stay, change places and go. In vLLM itself: `make serving-test`."""

import json
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from engine.serving import vllm as vllm_drafters
from presets import family
from tests.engine.family import tokens_of, trace_of
from tests.engine.small_engine import embedded_rows

PYTHON = os.environ.get("DRAFTSCOPE_VLLM")
CLASSES = ("Suffix", "SuffixHybrid", "TokenRecycling", "Aded", "Aggressive")
PROMPTS = (
    "Edit: change hill to library.\nText: One day, Clara carried an old spoon in the hill. Ivy liked it.\nOutput:",
    "1 2 3 4 1 2 3 4 1 2",
    "Once upon a time there was a little dog. Once upon a time there was a little",
)
LONGEST = 96


class Runner:
    """Calls a drafter as vLLM's V1 runner does. The target is the embedded one. lengths: prompt -> length of its
    text."""

    def __init__(self, name: str, lengths: dict[tuple, int]) -> None:
        config = SimpleNamespace(
            model_config=SimpleNamespace(
                model="target", max_model_len=LONGEST, get_vocab_size=lambda: 4096
            ),
            speculative_config=SimpleNamespace(num_speculative_tokens=6),
        )
        self.drafter = getattr(vllm_drafters, name)(config)
        self.target = SimpleNamespace(compute_logits=lambda rows: rows)
        self.drafter.load_model(self.target)
        self.lengths = lengths
        self.kept = 0

    def run(self, batches: list[list[list[int]]]) -> dict[tuple, list[int]]:
        """Run these batches of prompts, of which one more begins at each step. Returns the texts by prompt."""
        running: list[tuple[tuple, list[int], list[int]]] = []  # prompt, text, draft
        texts = {}
        while batches or running:
            if batches:
                running += [(tuple(prompt), list(prompt), []) for prompt in batches.pop(0)]
            running.reverse()  # vLLM moves requests within the batch
            logits, sampled = [], []
            for _, text, draft in running:
                rows = embedded_rows([*text, *draft])[len(text) - 1 :]
                logits.append(rows)
                likeliest = rows.argmax(-1).tolist()
                kept = 0
                while kept < len(draft) and draft[kept] == likeliest[kept]:
                    kept += 1
                self.kept += kept
                sampled.append([*draft[:kept], likeliest[kept]])
            self.target.compute_logits(torch.cat(logits))
            tokens = np.zeros((8, LONGEST), np.int32)
            sizes = np.zeros(8, np.int32)
            for row, ((_, text, _), new) in enumerate(zip(running, sampled, strict=True)):
                text += new
                tokens[row, : len(text)], sizes[row] = text, len(text)
            drafts = self.drafter.propose(sampled, sizes, tokens, slot_mappings=None)
            assert len(drafts) == len(running) and all(len(draft) <= 6 for draft in drafts)
            left = []
            for (prompt, text, _), draft in zip(running, drafts, strict=True):
                end = len(prompt) + self.lengths[prompt]
                if len(text) >= end:
                    texts[prompt] = text[len(prompt) : end]
                else:
                    left.append((prompt, text, draft))
            running = left
        return texts


@pytest.fixture(scope="module")
def written():
    """Return the target's own texts, by prompt."""
    traces = [trace_of(prompt, drafter="none", max_new_tokens=16) for prompt in PROMPTS]
    return {tuple(trace.run["prompt"]["tokens"]): tokens_of(trace) for trace in traces}


def lengths(written) -> dict[tuple, int]:
    return {prompt: len(text) for prompt, text in written.items()}


@pytest.mark.parametrize("name", CLASSES)
def test_requests_come_and_go(written, name):
    """Every request keeps its own drafter wherever it stands, and its memory is freed once it is gone."""
    runner, prompts = Runner(name, lengths(written)), [list(prompt) for prompt in written]
    assert runner.run([prompts[:1], prompts[1:], []]) == written
    assert runner.kept > 0
    begun = len(runner.drafter._requests)
    runner.drafter.propose([], np.zeros(8, np.int32), np.zeros((8, LONGEST), np.int32))
    assert begun and not runner.drafter._requests


def test_what_one_request_wrote_serves_the_next(written):
    """Suffix decoding looks into texts that have ended."""
    runner, prompt = Runner("Suffix", lengths(written)), list(list(written)[-1])
    runner.run([[prompt]])
    alone, runner.kept = runner.kept, 0
    runner.run([[prompt]])
    assert runner.kept > alone


def test_two_requests_with_one_text(written):
    prompt = list(next(iter(written)))
    assert (
        Runner("Suffix", lengths(written)).run([[prompt, prompt]])[tuple(prompt)]
        == written[tuple(prompt)]
    )


def test_logits_that_do_not_fit_teach_nothing(written):
    """vLLM may leave out drafted tokens, or compute the logits of a prompt in between."""
    runner, prompt = Runner("TokenRecycling", lengths(written)), list(next(iter(written)))
    heard = runner.target.compute_logits
    runner.target.compute_logits = lambda rows: heard(torch.cat([rows, rows]))
    assert runner.run([[prompt]])[tuple(prompt)] == written[tuple(prompt)] and runner.kept == 0


@pytest.mark.skipif(not PYTHON, reason="vLLM is not here; `make serving-test` installs it")
def test_vllm_writes_its_own_text_with_each(written):
    question = {
        "model": family().target,
        "prompts": [list(prompt) for prompt in written] * 4,
        "tokens": 48,
        "classes": ["", *CLASSES],
    }
    root = Path(__file__).resolve().parents[2]
    command, asked = [PYTHON, "-m", "tests.serving.vllm_drafting"], json.dumps(question)
    ran = subprocess.run(
        command, input=asked, capture_output=True, text=True, cwd=root, check=False
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    told = json.loads(ran.stdout.splitlines()[-1])
    plain = told.pop("")["texts"]
    for name, of_class in told.items():
        assert of_class["texts"] == plain, name
        assert of_class["kept"] > 0 and of_class["held"] <= 8, name
