"""The cards of the methods: one file per method, checked when it is read, with the figures of its runs."""

import json
import re
import sys

import pytest

from engine.errors import UserError
from engine.finding import folders
from engine.methods import drafters
from engine.parts.files import write_part
from engine.rules import verifiers
from engine.training.students.cell_student import AFTER, BEFORE
from engine.training.students.draft_students import KEPT
from presets import cards, examples, methods, preset, presets, trace_file, trace_text
from presets.conditions import finished
from presets.methods import HERE, MEASURED, card_files, measuring, own_trace, read_cards
from presets.methods.measuring import LARGEST, measure, measured

CARD = """
title = "A method"
family = "chain"
kind = "drafter"
exactness = "exact"
needs_training = false
mechanism = "It drafts. It is judged."
watch = "Look."
"""


@pytest.fixture
def read(tmp_path):
    """Return read(text), which returns the card in this text, read from a file named toy."""

    def one(text: str):
        (tmp_path / "toy.toml").write_text(text, "utf-8")
        return read_cards(card_files(tmp_path), {"toy": {"steps": 3}})["toy"]

    return one


def test_a_card_may_say_why_its_method_loses(read):
    assert read(CARD).loses == ""
    assert read(CARD + 'loses = "It is large."').loses == "It is large."
    with pytest.raises(UserError, match="loses"):
        read(CARD + "loses = 3")


def test_every_drafter_and_rule_has_a_card_and_every_card_its_method():
    """A drafter and a rule of one key are one method, with one card."""
    assert set(cards()) >= set(drafters()) | set(verifiers())
    registered = {"drafter": drafters(), "rule": verifiers()}
    for card in cards().values():
        assert card.kind not in registered or card.key in registered[card.kind], card.key


def test_a_card_is_read_on_the_page_so_it_names_no_flag_or_key_of_the_command_line():
    for card in cards().values():
        told = [card.title, card.mechanism, card.watch, card.loses, *card.claim.values()]
        assert not re.search(r"`|--\w", " ".join(told)), card.key


def test_a_cards_run_says_what_the_card_says():
    for key, card in cards().items():
        if not card.example:
            continue
        file = trace_file(card.example)
        assert file.exists(), f"python -m presets methods {key}"
        assert len(trace_text(card.example)) <= LARGEST, file.name
        trace, example = finished(card.example)[""], preset(card.example)
        taken = trace.run["constraint"]["text"] if example.heal else ""
        assert trace.run["prompt"]["text"] + taken == example.prompt
        assert trace.run["drafter"]["key"] == example.drafter
        shows = {"drafter": "drafter", "rule": "verifier"}.get(card.kind)
        if shows:
            assert trace.run[shows]["key"] == key
        if shows and card.exactness != "both":
            assert trace.run["verifier"]["lossless"] == (card.exactness == "exact")


def test_the_figures_are_those_of_the_runs():
    written = json.loads(MEASURED.read_text("utf-8"))
    assert written == {key: found for key, card in cards().items() if (found := measured(card))}


def test_a_recipes_figures_are_its_parts(read, tmp_path, monkeypatch):
    card = read(CARD.replace('"drafter"', '"recipe"') + '[part]\nname = "toy"\nrecipe = "toy"')
    for module in (sys.modules["presets.methods"], measuring):
        monkeypatch.setattr(module, "PRESETS", tmp_path)
    assert measured(card) == card.measured == {"steps": 3}, "it is not shipped: as recorded"
    write_part(tmp_path / "models" / "parts" / "toy", {}, {BEFORE: 2.123, AFTER: 2.5})
    assert measured(card) == {"before": 2.12, "after": 2.5}
    sides = {"before": {KEPT: 0.61234}, "after": {KEPT: 0.7}}
    write_part(tmp_path / "models" / "parts" / "toy", {}, sides)
    assert measured(card) == {"kept_before": 0.612, "kept_after": 0.7}, "the recipe of a draft"


def test_no_trace_is_left_without_a_card():
    own = {name for name, example in examples().items() if example not in presets()}
    assert {path.name.split(".")[0] for path in own_trace("none").parent.iterdir()} == own


def test_every_figure_belongs_to_a_card():
    drawn = {path.stem for path in (HERE / "figures").glob("*.json")}
    assert drawn == {key for key, card in cards().items() if card.figure}
    assert drawn == {key for key, card in cards().items() if card.drawn_by}
    assert all(one["kind"] and one["title"] for key in drawn for one in cards()[key].figure)


def test_the_list_for_programs():
    listed = {entry["key"]: entry for entry in methods()}
    assert set(listed) == {path.stem for path in HERE.glob("*.toml")} | set(folders())
    for key, entry in listed.items():
        assert entry["available"] or cards()[key].part or cards()[key].kind in ("drafter", "rule")
        assert entry["preset"] is None or entry["preset"] in examples()


def test_a_card_may_bring_its_own_example(read):
    card = read(CARD + '[example]\ndrafter = "chain"\nprompt = "Once"\ntemperature = 0.5')
    assert (card.example, card.own_example.prompt) == ("toy", "Once")
    assert card.own_example.look_for == "Look."
    assert card.measured == {"steps": 3}
    assert not card.available, "no drafter of this name"
    assert read(CARD + f'[example]\npreset = "{presets()[0].name}"').own_example is None


def test_a_part_that_is_not_shipped_names_its_recipe(read):
    card = read(CARD.replace('"drafter"', '"loop"') + '[part]\nname = "gone"\nrecipe = "heads"')
    assert not card.available and card.part["recipe"] == "heads"
    assert read(
        CARD.replace('"drafter"', '"loop"') + '[part]\nname = "draft"\nrecipe = "d"'
    ).available


@pytest.mark.parametrize(
    "bad",
    [
        "title = ",
        CARD.replace('watch = "Look."', ""),
        CARD.replace('watch = "Look."', 'watch = " "'),
        CARD.replace("needs_training = false", "needs_training = 0"),
        CARD.replace('"chain"', '"shrub"'),
        CARD.replace('"exact"', '"perhaps"'),
        CARD + "colour = 3",
        "paper = 3\n" + CARD,
        CARD + '[paper]\ntitle = "T"',
        CARD + '[claim]\ntext = "fast"\nsetting = "here"\nyear = 1',
        CARD + '[paper]\ntitle = "T"\nauthors = "A"\nvenue = "V"\nyear = true',
        CARD + '[example]\npreset = "nowhere"',
        CARD + '[example]\ndrafter = "chain"',
        CARD + '[example]\nprompt = "Once"',
        CARD + '[example]\ndrafter = "chain"\nworkload = "poem"\nprompt_id = "poem-01"',
        CARD + '[example]\ndrafter = "chain"\nprompt_id = "story-99"',
        CARD + '[example]\ndrafter = "chain"\nprompt = "x"\noptions = 3',
    ],
)
def test_a_bad_card_is_told_in_one_sentence(read, bad):
    with pytest.raises(UserError) as told:
        read(bad)
    assert str(told.value).endswith(".") and "\n" not in str(told.value)


def test_an_unknown_key_measures_nothing():
    with pytest.raises(UserError, match="no method card 'nobody'"):
        measure(["nobody"])
