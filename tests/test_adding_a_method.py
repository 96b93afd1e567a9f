"""The files in docs/adding-a-method.md are registered and run as written there."""

import json
import re
import tomllib
from functools import partial
from pathlib import Path

import pytest

from engine.catalogue import catalogue
from engine.core.sampling import Sampling
from engine.errors import UserError
from engine.methods import drafter
from engine.parts.kinds import kind_of
from engine.proof.memo import remembering
from engine.rules import verifier, verifiers
from tests.engine.family import trace_of
from tests.outside import outside_methods
from tests.verifiers.step_errors import step_error
from tests.verifiers.tiny import tiny_models

PAGE = Path(__file__).parents[1] / "docs" / "adding-a-method.md"
BLOCK = re.compile(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", re.DOTALL)


@pytest.fixture(scope="module")
def files():
    return dict(BLOCK.findall(PAGE.read_text("utf-8")))


@pytest.fixture
def registered(files, tmp_path, monkeypatch):
    """Register the drafter and the rule of that page as methods from outside, and yield both."""
    for name, text in files.items():
        place = tmp_path / name
        place.parent.mkdir(exist_ok=True)
        place.write_text(text, "utf-8")
    with outside_methods(tmp_path, monkeypatch):
        yield drafter("bigram"), verifiers()["near_best"]


def test_the_catalogue_tells_of_both(registered):
    found = catalogue()
    drafter = next(one for one in found["drafters"] if one["key"] == "bigram")
    rule = next(one for one in found["verifiers"] if one["key"] == "near_best")
    assert drafter["lossless"] and rule["kind"] == "lossy"
    assert rule["options"][0]["name"] == "share"


def test_the_drafter_is_exact(registered):
    models = remembering(tiny_models(4))
    found = step_error(
        models,
        lambda: registered[0].build(dict(registered[0].trial), models),
        verifier("rejection"),
        Sampling(1.0),
        (1, 2, 0, 1, 2),
    )
    assert found < 1e-5


def test_a_run_with_both_leaves_a_trace(registered):
    trace = partial(trace_of, "The cat sat. The cat", max_new_tokens=24)

    plain = trace(drafter="none")
    exact = trace(drafter="bigram")
    assert exact.summary["text"] == plain.summary["text"]
    assert any(step["drafter"]["exhibits"][0]["kind"] == "table" for step in exact.steps)
    loose = trace(drafter="bigram", verifier="near_best", rule_options={"share": 0})
    assert loose.run["verifier"]["lossless"] is False
    assert loose.run["verifier"]["options"] == {"share": 0.0}
    drafted = [status for step in loose.steps for status in step["nodes"]["status"]]
    assert drafted and set(drafted) == {"accepted"}


def test_the_part_opens_or_is_refused(registered, tmp_path):
    target = tiny_models(4).target
    (tmp_path / "table.json").write_text(json.dumps([1, 2, 3, 0]))
    assert kind_of("bigram_table").load(str(tmp_path), target, None, "cpu") == [1, 2, 3, 0]
    (tmp_path / "table.json").write_text(json.dumps([9]))
    with pytest.raises(UserError, match="does not fit the vocabulary"):
        kind_of("bigram_table").load(str(tmp_path), target, None, "cpu")
    with pytest.raises(UserError, match="no successor table"):
        kind_of("bigram_table").load(str(tmp_path / "nowhere"), target, None, "cpu")


def test_the_card_is_whole(files):
    card = tomllib.loads(files["bigram/card.toml"])
    assert card["kind"] == "drafter" and card["mechanism"].count(".") >= 2
