"""The bench of aligned drafts: what is expected of a draft, and by what it is judged."""

import re

import pytest
import torch

from engine.bench import aligned_suite as aligned
from engine.cli.flags import parser
from engine.errors import UserError
from engine.training.divergences import DIVERGENCES

P = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1]])
Q = torch.tensor([[0.2, 0.2, 0.6], [0.1, 0.8, 0.1]])


def test_the_expected_acceptance_is_the_overlap_of_both_laws():
    found = aligned.expected({"story": (P.log(), Q.log()), "edit": (P[1:].log(), Q[1:].log())})
    assert found == pytest.approx({"story": (0.6 + 1.0) / 2, "edit": 1.0})


def test_distances_are_means_over_the_positions_of_all_workloads():
    found = aligned.distances({"story": (P.log(), Q.log()), "edit": (P[1:].log(), Q[1:].log())})
    assert found["total_variation"] == pytest.approx(0.4 / 3)


def test_without_drafts_to_compare_it_names_a_flag_that_the_bench_has(tiny_paths, tmp_path):
    with pytest.raises(UserError, match="There is nothing to compare") as told:
        aligned.measure(tiny_paths, {"story": [{"id": "a", "prompt": "a b c"}]}, True)
    (flag,) = re.findall(r"--\S+ \S+=\S+(?=\))", str(told.value))
    name, given = flag.replace("DIR", str(tmp_path)).split()
    asked = parser(id, id, id, str).parse_args(["bench", "--suite", "aligned", name, given])
    assert asked.part == [f"{aligned.recipes()[0]}={tmp_path}"]


@pytest.mark.parametrize("gained, told", [(0.031, "met"), (0.029, "missed")])
def test_a_recipe_is_judged_by_what_is_expected_and_not_by_its_own_runs(gained, told):
    distances = dict.fromkeys(DIVERGENCES, 0.0)

    def row(draft, expected, kept):
        kinds = ("story", "edit", "code")
        shares = {"expected": dict.fromkeys(kinds, expected), "kept": dict.fromkeys(kinds, kept)}
        return {"draft": draft, **shares, "tokens_per_step": 2, "distances": distances}

    recipe = aligned.recipes()[0]
    shown = aligned.report_text([row("start", 0.5, 0.4), row(recipe, 0.5 + gained, 0.4)])
    won = 3 if told == "met" else 0
    assert f"{recipe}: 0.03 or more above the start on {won} of 3 workloads ({told}: 3)" in shown
    assert "kept in runs" in shown and "0.400" in shown
