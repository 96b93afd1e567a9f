"""The cards of the methods: one file per method, checked when it is read, with the figures of its runs."""

import re
from dataclasses import replace

import pytest

from engine.errors import UserError
from engine.finding import folders
from engine.methods import drafters
from engine.rules import verifiers
from presets import cards, examples, methods, preset, presets, trace_file, trace_text
from presets.conditions import finished
from presets.finished import FIGURE, PRICE, TRACE, beside_card, unpacked
from presets.methods import HERE, card_files, read_cards
from presets.methods.measuring import LARGEST, measure
from presets.recording import record, request_of

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
        return read_cards(card_files(tmp_path))["toy"]

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
    for card in cards().values():
        if card.example:
            steps = finished(card.example)[""].steps
            written = sum(len(step["output"]["tokens"]) for step in steps)
            measured = {"new_tokens": written, "steps": len(steps)}
            assert measured.items() <= card.measured.items()
            assert card.measured["tokens_per_step"] == round(written / len(steps), 2)


def test_a_recipes_figures_stand_in_its_card(read):
    card = read(CARD.replace('"drafter"', '"recipe"') + "[measured]\nbefore = 2.1\nafter = 2.5")
    assert card.measured == {"before": 2.1, "after": 2.5}
    with pytest.raises(UserError, match=r"\[measured\], has an unknown field 'twice'"):
        read(CARD + "[measured]\ntwice = 2")


def test_no_result_is_left_without_a_card():
    own = {name for name, example in examples().items() if example not in presets()}
    drawn = {key for key, card in cards().items() if card.drawn_by}
    priced = {key for key, card in cards().items() if card.price}
    for result, keys in ((TRACE, own), (FIGURE, drawn), (PRICE, priced)):
        beside = [folder / result for folder in folders().values()]
        files = {*HERE.glob(f"*.{result}"), *(file for file in beside if file.exists())}
        assert files == {beside_card(key, result) for key in keys}
    assert all(shown["kind"] and shown["title"] for key in drawn for shown in cards()[key].figure)


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
    assert card.measured == {}, "it was not recorded"
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


def test_a_run_is_recorded_outside_the_folder_of_the_presets_too(tmp_path, capsys):
    """As the examples of methods are, which lie in the methods' folders."""
    path = tmp_path / "own.ndjson.gz"
    record(request_of(replace(examples()["none"], max_new_tokens=2)), path)
    assert "own.ndjson.gz" in capsys.readouterr().out
    assert unpacked(path).count("\n") == 4
