"""SpecDec++: where it stops, what its head reads, what is shown, and which heads are refused."""

import json
import math

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.core.sampling import Sampling
from engine.errors import UserError
from engine.methods.specdec_pp.calibration_curve import CalibrationCurve
from engine.methods.specdec_pp.drafter import SpecDecPlusPlusDrafter
from engine.methods.specdec_pp.part import DRAFT, AcceptanceHead, check_draft
from engine.parts.digest import digest_of
from engine.parts.kinds import kind_of
from engine.parts.loading import Models
from tests.drafters.writing import steps_of
from tests.engine.tiny import tiny_hf_model, tiny_model

PROMPT = [3, 5, 7, 3, 5]
WIDTH = 32


@pytest.fixture(scope="module")
def pair():
    """The draft differs from the target, so that some tokens are refused."""
    return tiny_model(), tiny_model(seed=3)


def models(pair, head):
    return Models(pair[0], {"draft": pair[1], "specdec_pp": head})


def sure(chance: float) -> AcceptanceHead:
    """Return a head that gives every token this chance."""
    head = AcceptanceHead(0, WIDTH)
    with torch.no_grad():
        head.out.weight.zero_()
        head.out.bias.copy_(torch.tensor([0.0, math.log(chance / (1 - chance))]))
    return head


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(1.0, seed=1)])
@pytest.mark.parametrize(
    ("chance", "threshold", "length"), [(0.8, 0.5, 4), (0.8, 0.0, 1), (0.5, 0.7, 2), (0.99, 0.7, 9)]
)
def test_it_stops_once_a_refusal_is_likely_and_keeps_the_token(
    pair, sampling, chance, threshold, length
):
    """0.8^3 = 0.51, 0.8^4 = 0.41; 0.5^2 = 0.25; the last case reaches the maximum length."""
    found = models(pair, sure(chance))
    for step in steps_of(found, "specdec_pp", PROMPT, 30, sampling, threshold=threshold, length=9):
        room = 30 + len(PROMPT) - step.position - 1
        assert len(step.tree) == min(length, room)


def test_the_head_reads_the_state_behind_each_drafted_token(pair):
    head = AcceptanceHead.random(WIDTH, layers=2)
    steps = steps_of(models(pair, head), "specdec_pp", PROMPT, 12, threshold=1.0, length=4)
    step = steps[0]
    rows = step.tree.exhibits[0].to_dict(str)["rows"]
    assert len(rows) == 4 and rows[-1][1] is None
    tokens = [*PROMPT, *step.tree.tokens]
    states = tiny_hf_model(seed=3)(torch.tensor([tokens]), output_hidden_states=True).hidden_states[
        -1
    ][0]
    all_kept = 1.0
    for row, state in zip(rows[:-1], states[len(PROMPT) :], strict=False):
        expected = float(head(state.detach()).sigmoid())
        all_kept *= expected
        assert row[1] == pytest.approx(expected, abs=1e-3)
        assert row[2] == pytest.approx(1 - all_kept, abs=2e-3)
    assert len({row[1] for row in rows}) == 4


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(1.0, seed=5)])
def test_what_happened_stands_beside_what_was_predicted(pair, sampling):
    head, judged, curve = AcceptanceHead.random(WIDTH), 0, None
    for step in steps_of(models(pair, head), "specdec_pp", PROMPT, 40, sampling, length=5):
        if not len(step.tree):
            continue
        table, curve = (exhibit.to_dict(str) for exhibit in step.tree.exhibits)
        words = {"accepted": "kept", "rejected": "refused", "ignored": "not judged"}
        assert [row[3] for row in table["rows"]] == [words[one] for one in step.verdict.status]
        seen = [row for row in table["rows"] if row[1] is not None and row[3] != "not judged"]
        judged += len(seen)
    assert judged > 5 and curve["note"].startswith(f"{judged} tokens")


def test_the_curve_is_the_share_that_came_true():
    curve = CalibrationCurve()
    curve.see([(0.05, 0), (0.99, 1), (1.0, 0), (0.42, 0.5), (0.47, 1.0)])
    before = curve.snapshot()
    curve.see([(0.0, 1)])
    expected = [0.0, None, None, None, 0.75, None, None, None, None, 0.5]
    assert before.shares() == expected
    assert curve.shares()[0] == 0.5 and before.shown().series[0].y == expected


def saved(folder, head, **about):
    head.save(folder, about)
    return str(folder)


def load(path):
    return kind_of("acceptance_head").load(path, None, None, "cpu")


def test_a_head_is_read_as_it_was_written(tmp_path):
    head = AcceptanceHead.random(WIDTH, layers=2)
    head.rejected_weight = 3.0
    path = saved(tmp_path / "head", head, **{DRAFT: "0123"})
    names = load_file(tmp_path / "head" / "model.safetensors")
    assert names["model.1.linear.weight"].shape == (WIDTH, WIDTH)
    assert names["model.2.weight"].shape == (2, WIDTH), "as published"
    found, state = load(path), torch.randn(WIDTH)
    assert (found.rejected_weight, found.draft_digest) == (3.0, "0123")
    assert found.chance(state) == pytest.approx(head.chance(state), abs=0.05)  # bf16


@pytest.mark.parametrize("layers", [0, 1, 3])
def test_its_chance_is_that_of_its_log_odds(layers):
    head = AcceptanceHead.random(WIDTH, layers=layers).eval()
    for state in torch.randn(20, WIDTH) * 4:
        assert head.chance(state) == pytest.approx(float(head(state).sigmoid()), abs=1e-6)


def test_a_head_of_another_draft_is_refused(tmp_path):
    save_file({"w": torch.zeros(1)}, tmp_path / "model.safetensors")
    own = digest_of(tmp_path)
    head = AcceptanceHead.random(WIDTH)
    check_draft(head, WIDTH, "draft", str(tmp_path))
    head.draft_digest = own
    check_draft(head, WIDTH, "draft", str(tmp_path))
    for digest, width in (("f" * 16, WIDTH), (own, WIDTH + 1)):
        head.draft_digest = digest
        with pytest.raises(UserError, match="trained for another draft than little"):
            check_draft(head, width, "little", str(tmp_path))


def test_the_drafter_checks_its_draft(pair):
    with pytest.raises(UserError, match="another draft"):
        settings = {"length": 2, "threshold": 0.5}
        SpecDecPlusPlusDrafter.build(settings, models(pair, AcceptanceHead.random(WIDTH + 1)))


def test_a_weight_that_is_none_is_one_sentence(tmp_path):
    path = tmp_path / "head"
    saved(path, AcceptanceHead.random(WIDTH))
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps(config | {"rejected_weight": "much"}))
    with pytest.raises(UserError, match="cannot be opened"):
        load(str(path))
