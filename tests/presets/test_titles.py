"""The titles of examples and races say what their finished runs show."""

import re

import pytest

from engine.rules import verifiers
from engine.trace.reading import read_run_line
from presets import examples, presets, race_traces, races, trace_names, trace_text
from presets.conditions import finished, holds

SHOWN = {
    # name: (what the prompt begins with or holds, conditions on the finished run)
    "letter-tree": (r"^Letter", ["forks_saved >= 2"]),
    "story-tree": (r"^[A-Z][^:]+", ["forks_saved >= 1"]),
    "story-chain": (r"^[A-Z][^:]+", ["forks_saved == 0"]),
    "edit-lookup": (r"^Edit: change \w+ to \w+\.", ["kept_in_context > 0.5"]),
    "shuffle-block": (r"^Repeat", ["doubled >= 1"]),
    "story-cold": (r"^[A-Z][^:]+", []),
    "story-coin": (r"^[A-Z][^:]+", ["forks_saved == 0"]),
    "story-sampled": (r"^[A-Z][^:]+", []),
    "story-hot": (r"^[A-Z][^:]+", []),
    "bad-draft": (r"^Once", ["nothing_kept > 0.5"]),
    "template-diffusion": (r"JSON records", []),
    "code-block": (r"\bdef ", ["whole_drafts > 0.5"]),
    "arithmetic-chain": (r"^Add", ["forks_saved == 0"]),
    "copy-lookup": (r"^Copy: ", ["kept_in_context > 0.5"]),
    "picture": (r"^\d$", []),
    "caption": (r"^describe the picture", []),
    "chat-turns": (r"capital of France", []),
    "chat-code": (r"Write a Python function", []),
    "chat-edit": (r"recieved", ["longest_kept >= 8"]),
    "chat-summary": (r"in one sentence", ["longest_kept >= 5"]),
    "chat-json": (r"as JSON", []),
    "chat-sum": (r"step by step", []),
    "chat-japanese": (r"keep the emoji", []),
    "chat-story": (r"short story", []),
    "race-edit": (r"^Edit: ", []),
    "race-story": (r"^Once", []),
    "race-budget": (
        r"^Once",
        ["dyspec.most_drafted == 4", "dyspec-2.most_drafted == 16", "dyspec-3.most_drafted == 64"],
    ),
    "race-drafts": (r"^Once", []),
    "race-shuffle": (r"^Shuffle: ", []),
    "race-reverse": (r"^Reverse: ", []),
    "race-loss": (r"^Once", []),
    "race-template": (r"JSON records", []),
    "race-code": (r"\bdef ", []),
    "race-arithmetic": (r"^Add", []),
    "race-operations": (r"^Sort: [\d ]+\n", []),
    "race-retrieval": (r"^Edit: ", []),
    "race-diffusion": (r"^[A-Z][^:]+", []),
    "race-vocabularies": (r"\bdef ", []),
    "race-laws": (r"^Mia has", []),
    "race-heads": (r".", []),
    "race-picture": (r"^\d$", []),
    "race-caption": (r"^describe the picture", []),
    "race-film": (r"^describe the film", []),
    "race-chat-code": (r"Write a Python function", []),
    "race-chat-list": (r"as a list", []),
    "race-chat-story": (r"short story", []),
}
LANES = {
    "four drafters": lambda families: len(families) == 5,
    "three ways": lambda families: len(families) == 3,
    "diffusion": lambda families: "diffusion" in families,
    "Diffusion against diffusion": lambda families: set(families) == {"none", "diffusion"},
    "Retrieval against retrieval": lambda families: set(families) == {"none", "retrieval"},
    "Heads": lambda families: set(families) <= {"none", "heads"},
    "looked up": lambda families: families == ["retrieval"],
    "by tree": lambda families: families == ["tree"],
    "by chain": lambda families: families == ["chain"],
    "by a guessed state": lambda families: families == ["heads"],
}
"""Words of a title, and what they say of the families of its lanes."""
WORDS = {
    "Shuffl": "Shuffle: ",
    "Revers": "Reverse: ",
    "repeated": "Repeat",
    "copy": "Copy: ",
    "put in order": "Sort: ",
    "changed": "change ",
    "JSON": "JSON",
    "function": "def ",
    "Addition": "Add ",
    "edit": "Edit: ",
    "code": "Python function",
    "spelling": "Correct the spelling",
    "summary": "Summarize",
    "emoji": "🍣",
    "step by step": "step by step",
    "tale": "story",
    "tells a story": "story",
    "lists points": "points of this text as a list",
}
"""Words of a title that name a task, and how the prompt names it."""
COST = "milliseconds_a_token"
VERDICTS = {
    "diffusion works": lambda lanes: [f"dflash.{COST} < none.{COST}"],
    "diffusion fails": lambda lanes: [
        f"{lane}.{COST} > chain.{COST}" for lane in ("dflash", "ddtree") if lane in lanes
    ],
    "no drafter pays": lambda lanes: _slower(lanes),
    "slower than plain": lambda lanes: _slower(lanes),
}
"""Words of a title that judge, and the conditions that make them true. All of them compare compute times."""
ALL = [*presets(), *races()]


def _slower(lanes) -> list[str]:
    return [f"{lane}.{COST} > none.{COST}" for lane in lanes if lane != "none"]


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.name)
def test_the_prompt_and_the_finished_run_are_what_the_title_says(one):
    prompt, conditions = SHOWN[one.name]
    for trace in finished(one.name).values():
        assert re.search(prompt, trace.run["prompt"]["text"])
    for condition in conditions:
        assert holds(condition, one.name), condition


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.name)
def test_the_words_of_the_title_fit(one):
    lanes = finished(one.name)
    traces = list(lanes.values())
    families = [trace.run["drafter"]["family"] for trace in traces]
    for words, fits in LANES.items():
        if words.lower() in one.title.lower():
            assert fits(families), (one.title, families)
    for words, asked in WORDS.items():
        if words.lower() in one.title.lower():
            assert asked in traces[0].run["prompt"]["text"], one.title
    for degree in re.findall(r"[Tt]emperature (\d\.?\d*)", one.title):
        assert {trace.run["sampling"]["temperature"] for trace in traces} == {float(degree)}
    for words, verdict in VERDICTS.items():
        if words.lower() in one.title.lower():
            for condition in verdict(lanes):
                assert holds(condition, one.name), (one.title, condition)


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.name)
def test_what_else_a_title_says_of_the_run(one):
    for trace in finished(one.name).values():
        if "chat model" in one.title or one.name.startswith("chat-"):
            assert trace.run["family"] == "smollm2" and trace.run["prompt"]["messages"]
        if "second question" in one.title:
            assert [turn["role"] for turn in trace.run["prompt"]["messages"]][::2] == ["user"] * 2
        if "schema" in one.title:
            assert trace.run["constraint"]["key"] == "json_schema"


def test_every_example_has_its_title_checked():
    assert {one.name for one in ALL} == set(SHOWN)
    assert {one.name for one in presets()} <= examples().keys()


def test_finished_runs_are_told_in_the_sentences_that_their_rules_have_now():
    traces = [trace_text(name) for name in trace_names()]
    traces += [trace for race in races() for trace in race_traces(race.name).values()]
    rules = [read_run_line(trace.partition("\n")[0])["verifier"] for trace in traces]
    assert len(rules) > 100
    assert [rule["sentences"] for rule in rules] == [
        verifiers()[rule["key"]].sentences for rule in rules
    ]
