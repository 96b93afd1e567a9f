"""Generators: the same seed gives the same text, and the shipped prompts never occur in training text."""

from __future__ import annotations

import itertools
import json

import pytest

from engine.training import prompts
from engine.training.corpus import (
    FINISHING_MIX,
    PROMPTS,
    available_mix,
    documents,
    read_corpora,
    shipped_prompts,
)
from engine.training.generators import ALL_MAKERS, DRILLS, MAKERS, Example, examples, is_held_out
from engine.training.generators.words import Vocabulary

FILES = sorted(PROMPTS.glob("*.jsonl"))


def first(workload: str, seed: int, count: int = 200, **options) -> list:
    return list(itertools.islice(examples(workload, seed, Vocabulary(), **options), count))


@pytest.mark.parametrize("workload", ALL_MAKERS)
def test_same_seed_same_text(workload):
    assert first(workload, 5) == first(workload, 5)
    assert first(workload, 5) != first(workload, 6)


@pytest.mark.parametrize("workload", ALL_MAKERS)
def test_training_and_held_out_never_meet(workload):
    assert not any(is_held_out(e.prompt) for e in first(workload, 0))
    assert all(is_held_out(e.prompt) for e in first(workload, 0, 20, held_out=True))


def test_answers_are_right():
    for example in first("operations", 9, 400):
        if example.prompt.startswith("Copy: "):
            assert example.prompt == f"Copy:{example.answer}\nOutput:"
        if example.prompt.startswith("Reverse: "):
            given = example.prompt.removeprefix("Reverse: ").split("\n")[0].split()
            assert example.answer.split() == given[::-1]
    for example in first("code", 9, 200):
        compile(example.text, "generated", "exec")


def test_an_added_sentence_holds_no_quotation_mark():
    """It stands between two of them in the instruction."""
    for example in first("append", 3, 300):
        instruction = example.prompt.split("\n")[0]
        assert instruction.count('"') == 2, instruction


def test_prompt_files_are_sound():
    assert {p.stem for p in FILES} == {"story", *MAKERS}
    seen = set()
    for path in FILES:
        rows = [json.loads(line) for line in path.open(encoding="utf-8")]
        assert len(rows) >= 40
        for row in rows:
            assert (
                set(row) <= {"id", "prompt", "note", "expected"}
                and row["prompt"].strip()
                and row["note"]
            )
            assert row["id"] not in seen
            seen.add(row["id"])


def test_shipped_prompts_are_held_out():
    for workload in MAKERS:
        for line in (PROMPTS / f"{workload}.jsonl").open(encoding="utf-8"):
            assert is_held_out(json.loads(line)["prompt"])


def test_no_shipped_prompt_in_generated_training_text():
    text = "\n".join(
        d.text for w in MAKERS for d in itertools.islice(documents(w, {}, Vocabulary(), 0), 1500)
    )
    assert not [p for p in shipped_prompts() if p in text]


def test_prompts_are_made_again_from_the_same_seed():
    assert [e.prompt for e in prompts.choose("template", 5)] == [
        e.prompt for e in prompts.choose("template", 5)
    ]


def test_mix_without_corpora():
    shares, finishing = available_mix({}), available_mix({}, FINISHING_MIX)
    assert set(shares) == set(ALL_MAKERS) - set(DRILLS) and set(finishing) == set(ALL_MAKERS)
    assert all(abs(sum(some.values()) - 1) < 1e-9 for some in (shares, finishing))
    assert isinstance(next(documents("code", {}, Vocabulary(), 0)), Example)


def test_no_shipped_prompt_in_the_corpora(tmp_path):
    prompt = json.loads((PROMPTS / "story.jsonl").open(encoding="utf-8").readline())["prompt"]
    clean = "Tom had a red ball. He lost it in the park, and he looked for it all day long."
    separator = "\n<|endoftext|>\n"
    (tmp_path / "tinystories_train.txt").write_text(separator.join([clean, f"{prompt} went home."]))
    (tmp_path / "fairytales.txt").write_text(separator.join([f"Once more. {prompt}", clean]))
    texts = read_corpora(tmp_path)
    assert texts["story"] == [clean] and texts["fairytale"] == [clean]
