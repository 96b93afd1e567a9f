"""The search for a prompt that shows what an example promises."""

import pytest

from engine.errors import UserError
from presets import fitting as module
from presets.__main__ import main
from presets.fitting import fitting

TEXT = "Copy: the old cat and the small dog and the red fox sleep in the warm house\nOutput:"


@pytest.fixture
def two_prompts(monkeypatch):
    """Return two prompts: a text to copy, for which prompt lookup is made, and a story, in which it finds little."""
    entries = [{"id": "copy", "prompt": TEXT}, {"id": "story", "prompt": "One day, a fox"}]
    monkeypatch.setattr(module, "prompts", lambda kind: entries)


def test_a_prompt_fits_where_every_condition_holds(two_prompts):
    found = dict(fitting("copy-lookup"))
    assert found["copy"] == [] and "tokens_a_step >= 5" in found["story"]


def test_a_race_runs_all_its_lanes(two_prompts, monkeypatch):
    (race,) = (one for one in module.races() if one.name == "race-edit")
    asked = []
    monkeypatch.setattr(module, "holds", lambda condition, name, traces: asked.append([*traces]))
    assert next(fitting("race-edit")) == ("copy", list(race.holds))
    assert asked[0] == [lane.name for lane in race.lanes]


def test_an_unknown_example_and_a_workload_without_prompts_are_mistakes(capsys):
    with pytest.raises(UserError, match="soufflé"):
        next(fitting("soufflé"))
    assert main(["prompts", "picture"]) == 2
    assert "picture" in capsys.readouterr().err
