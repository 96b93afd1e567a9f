"""The recipe that runs the others, tested with recipes that only record when they ran."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.training.__main__ import parser
from engine.training.common import UserError
from engine.training.family import Family, lanes, trunk, untrained
from engine.training.recipes import RECIPES
from engine.training.students import students

TRUNK = {"target": ["target"], "draft": ["draft"], "larger-draft": ["--larger", "draft"]}
LANES = [{"eagle": ["eagle"], "gto": ["gto"]}, {"medusa": ["medusa"]}]


@pytest.fixture
def ran():
    return []


def family_of(tmp_path, ran, failing=()):
    def run(command, log, environment):
        name = Path(log.name).stem
        ran.append((name, environment.get("OMP_NUM_THREADS")))
        log.write(f"{name} speaks\n")
        return 1 if name in failing else 0

    return Family(tmp_path, ["--data", "corpora"], run)


def test_every_line_is_a_command_of_a_recipe_that_exists():
    for lines in (trunk(40.0), *lanes(40.0)):
        for words in lines.values():
            assert parser().parse_args(words).recipe in RECIPES


def test_every_part_is_trained_after_the_one_that_it_starts_from():
    made = lanes(40.0)
    family = {key: cls for key, cls in students().items() if cls.of_family}
    assert {name for lane in made for name in lane} >= set(family)
    for key, cls in family.items():
        (lane,) = [[*lane] for lane in made if key in lane]
        if cls.after in students():
            assert lane.index(cls.after) < lane.index(key)
    assert abs(len(made[0]) - len(made[1])) <= 1, "the lanes take about as long"


def test_no_two_lines_share_a_mark():
    names = [name for lines in (trunk(40.0), *lanes(40.0)) for name in lines]
    assert len(set(names)) == len(names)


def test_the_trunk_runs_in_order_then_the_lanes_with_a_thread_each(tmp_path, ran, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    family_of(tmp_path, ran).run_all(TRUNK, LANES)
    assert ran[:3] == [("target", None), ("draft", None), ("larger-draft", None)]
    assert sorted(ran[3:]) == [("eagle", "1"), ("gto", "1"), ("medusa", "1")]
    assert ran.index(("eagle", "1")) < ran.index(("gto", "1"))
    assert (tmp_path / "logs" / "gto.log").read_text() == "gto speaks\n"


def test_a_stopped_family_goes_on_where_it_was(tmp_path, ran):
    with pytest.raises(UserError, match="draft failed"):
        family_of(tmp_path, ran, failing=["draft"]).run_all(TRUNK, LANES)
    assert [name for name, _ in ran] == ["target", "draft"]
    ran.clear()
    family_of(tmp_path, ran).run_all(TRUNK, LANES)
    assert [name for name, _ in ran][:2] == ["draft", "larger-draft"]


def test_a_part_that_fails_keeps_no_other_from_learning(tmp_path, ran):
    with pytest.raises(UserError, match="eagle"):
        family_of(tmp_path, ran, failing=["eagle"]).run_all(TRUNK, LANES)
    assert {name for name, _ in ran} >= {"gto", "medusa"}


def test_a_finished_target_is_not_trained_again(tmp_path):
    target = tmp_path / "target"
    assert untrained(TRUNK, target) == TRUNK
    target.mkdir()
    assert untrained(TRUNK, target) == TRUNK, "an empty folder is no target"
    (target / "model.safetensors").touch()
    assert list(untrained(TRUNK, target)) == ["draft", "larger-draft"]
