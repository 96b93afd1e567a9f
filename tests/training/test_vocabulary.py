"""The recipe that counts what a target writes."""

import json

import numpy as np

from engine.parts.digest import FIELD, digest_of
from engine.training.__main__ import main
from engine.training.counted_parts import written
from engine.training.selftext import SelfText

TEXT = {  # two texts: 5 6 | 7 7 9, and 8 | 9
    "tokens": np.array([5, 6, 7, 7, 9, 8, 9], dtype=np.uint16),
    "starts": np.array([0, 5, 7]),
    "prompts": np.array([2, 1]),
    "noisy": np.array([False, True]),
}


def test_what_was_given_does_not_count():
    counts = written(SelfText(**TEXT), 12)
    assert counts.nonzero().flatten().tolist() == [7, 9] and counts[[7, 9]].tolist() == [2, 2]


def test_the_recipe_writes_a_part_of_this_target(places, capsys):
    path, given = places
    (path / "run").mkdir()
    assert main(["vocabulary", *given]) == 2
    assert "run the recipe `text` first" in capsys.readouterr().err
    np.savez(path / "run" / "selftext.npz", **TEXT)
    assert main(["vocabulary", *given]) == 0
    part = json.loads((path / "models" / "parts" / "vocabulary" / "config.json").read_text())
    assert part[FIELD] == digest_of(path / "models" / "target")
    assert (part["tokens"], part["counts"]) == ([7, 9], [2, 2])
    assert "4 tokens that the target wrote" in capsys.readouterr().out
