"""The files in docs/adding-a-method.md are registered and run as written there."""

import importlib.util
import json
import re
import sys
import tomllib
from pathlib import Path

import pytest

import engine.methods
import engine.parts.kinds
import engine.rules
from engine.catalogue import catalogue
from engine.core.sampling import Sampling
from engine.errors import UserError
from engine.parts.kinds import kind_of
from engine.proof.memo import remembering
from engine.proof.step_law import step_error
from engine.proof.tiny_models import tiny_models
from engine.rules import verifier
from engine.run import RunRequest, open_run
from engine.trace import read_trace
from presets import family

PAGE = Path(__file__).parents[1] / "docs" / "adding-a-method.md"
BLOCK = re.compile(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", re.DOTALL)


@pytest.fixture(scope="module")
def files():
    return dict(BLOCK.findall(PAGE.read_text("utf-8")))


@pytest.fixture
def module(files, tmp_path, monkeypatch):
    """Imports a file from that page under the name that it would have in the repository."""

    def load(path):
        place = tmp_path / Path(path).name
        place.write_text(files[path], "utf-8")
        name = path.removesuffix(".py").replace("/", ".")
        spec = importlib.util.spec_from_file_location(name, place)
        found = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, found)
        spec.loader.exec_module(found)
        return found

    return load


@pytest.fixture
def registered(module, monkeypatch):
    drafter = module("engine/methods/bigram.py").BigramDrafter
    rule = module("engine/rules/near_best.py").NearBest
    monkeypatch.setattr(engine.methods, "_ALL", (*engine.methods._ALL, drafter))
    monkeypatch.setattr(engine.rules, "RULES", [*engine.rules.RULES, rule])
    return drafter, rule


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
        lambda: registered[0](dict(registered[0].trial)),
        verifier("rejection"),
        Sampling(1.0),
        (1, 2, 0, 1, 2),
    )
    assert found < 1e-5


def test_a_run_with_both_leaves_a_trace(registered):
    def trace(**changes):
        request = RunRequest("The cat sat. The cat", family(), max_new_tokens=24, **changes)
        run = open_run(request)
        return read_trace("".join([run.header(), *run.steps(), run.summary()]))

    plain = trace(drafter="none")
    exact = trace(drafter="bigram")
    assert exact.summary["text"] == plain.summary["text"]
    assert any(step["drafter"]["exhibits"][0]["kind"] == "table" for step in exact.steps)
    loose = trace(drafter="bigram", verifier="near_best", rule_options={"share": 0})
    assert loose.run["verifier"]["lossless"] is False
    assert loose.run["verifier"]["options"] == {"share": 0.0}
    drafted = [status for step in loose.steps for status in step["nodes"]["status"]]
    assert drafted and set(drafted) == {"accepted"}


def test_the_part_opens_or_is_refused(module, monkeypatch, tmp_path):
    part = module("engine/parts/bigram_table.py")
    monkeypatch.setitem(engine.parts.kinds.MODULES, "bigram_table", part.__name__)
    target = tiny_models(4).target
    (tmp_path / "table.json").write_text(json.dumps([1, 2, 3, 0]))
    assert kind_of("bigram_table").load(str(tmp_path), target, None, "cpu") == [1, 2, 3, 0]
    (tmp_path / "table.json").write_text(json.dumps([9]))
    with pytest.raises(UserError, match="does not fit the vocabulary"):
        kind_of("bigram_table").load(str(tmp_path), target, None, "cpu")
    with pytest.raises(UserError, match="no successor table"):
        kind_of("bigram_table").load(str(tmp_path / "nowhere"), target, None, "cpu")


def test_the_card_is_whole(files):
    card = tomllib.loads(files["presets/methods/bigram.toml"])
    assert card["kind"] == "drafter" and card["mechanism"].count(".") >= 2
