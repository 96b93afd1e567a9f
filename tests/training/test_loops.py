"""Training: a run that was stopped and resumed ends where an uninterrupted one ends; growth; packing; the losses."""

from __future__ import annotations

import math

import pytest
import torch
from transformers import LlamaForCausalLM

from engine.methods.shared.dflash_model import DFlashModel
from engine.training import alignment, loop
from engine.training import counted_acceptance as acceptance
from engine.training.checkpoint import export_model
from engine.training.diffusion import diffusion_config, diffusion_loss, features_of, random_anchors
from engine.training.distill import divergence_loss, read
from engine.training.divergences import DIVERGENCES, LOSSES, tvd_plus_plus
from engine.training.loop import Budget, rate_scale
from engine.training.new_models import (
    draft_config,
    larger_draft_config,
    parameter_count,
    target_config,
)
from engine.training.optim import orthogonalize
from engine.training.packing import Mixer, windows
from tests.training.lessons import SMALL


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_resumed_loop_equals_uninterrupted(tmp_path, monkeypatch, precision):
    """Tested in both number formats, because a measurement would otherwise choose the format in each run."""
    monkeypatch.setattr(loop, "pick_precision", lambda device: precision)

    def run(folder: str, stops: list[float]) -> torch.Tensor:
        for stop in stops:
            torch.manual_seed(0)
            model = torch.nn.Linear(4, 3)

            def loss_of(index: int, model=model):
                x = torch.randn(8, 4, generator=torch.Generator().manual_seed(index))
                return model(x).square().mean(), 8

            loop.fit(model, loss_of, Budget(tokens=160), tmp_path / folder / "x.pt", stop_at=stop)
        return model.weight

    assert torch.equal(run("a", [1.0]), run("b", [0.4, 1.0]))


@pytest.mark.parametrize(
    "half, picked, timed",
    [(100.0, torch.float32, 1), (0.9, torch.float32, 12), (0.5, torch.bfloat16, 12)],
)
def test_half_precision_is_timed_only_as_long_as_it_may_pay(monkeypatch, half, picked, timed):
    clock, products = [0.0], []

    def product(a, b):
        products.append(a.dtype)
        clock[0] += half if a.dtype == torch.bfloat16 else 1.0

    monkeypatch.setattr(torch, "mm", product)
    monkeypatch.setattr(loop.time, "perf_counter", lambda: clock[0])
    assert loop.pick_precision.__wrapped__("cpu") == picked
    assert products.count(torch.bfloat16) == timed


def test_a_gradient_that_overflows_changes_nothing_and_ten_in_a_row_end_the_training(tmp_path):
    def trained(overflows: set[int], tokens: int = 160) -> torch.Tensor:
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 3)

        def loss_of(index: int):
            x = torch.randn(8, 4, generator=torch.Generator().manual_seed(min(index, 18)))
            scale = float("inf") if index in overflows else 1.0
            return scale * model(x).square().mean(), 8

        path = tmp_path / f"{len(overflows)}.pt"
        loop.fit(model, loss_of, Budget(tokens=tokens), path, rate=lambda progress: 1.0)
        return model.weight

    assert torch.equal(trained({19}), trained(set(), 152)), "the last of twenty steps is lost"
    with pytest.raises(FloatingPointError, match="10 gradients in a row, up to step 14"):
        trained(set(range(5, 20)))


def test_a_budget_with_an_end_reaches_it_whatever_else_took_time(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(loop.time, "monotonic", lambda: clock.append(clock[-1] + 0.01) or clock[-1])
    budget = Budget(minutes=1.0, until=clock[-1] + 40, _since=clock[-1])
    assert budget.progress() < 0.01
    clock.append(clock[-1] + 20)
    assert budget.progress() == pytest.approx(0.5, abs=0.01)
    budget.load_state_dict({"spent_seconds": 10.0, "spent_tokens": 5})
    clock.append(clock[-1] + 10)
    assert budget.progress() == pytest.approx(2 / 3, abs=0.01), "10 of the 20 did not count"
    clock.append(clock[-1] + 10)
    assert budget.progress() == 1.0


def test_sizes():
    target = parameter_count(LlamaForCausalLM(target_config(4096, 0)))
    assert 12e6 < target < 16e6
    assert 3e6 < parameter_count(LlamaForCausalLM(larger_draft_config(4096, 0))) < 4e6
    assert parameter_count(LlamaForCausalLM(draft_config(4096, 0))) * 10 < target


def test_windows_are_full_and_short_documents_whole(tokenizer, tmp_path):
    stream = windows(Mixer(tokenizer, tmp_path, 0), 64, 0)
    for _ in range(20):
        tokens, counted = next(stream)
        assert tokens.shape == counted.shape == (64,)


def test_another_mix_counts_from_now_on(tokenizer, tmp_path):
    mixer = Mixer(tokenizer, tmp_path, 0)
    for _ in range(100):
        mixer()
    before = mixer.drawn.copy()
    assert before["template"] and not before["append"]
    mixer.draw_by({"append": 0.75, "template": 0.25})
    for _ in range(400):
        mixer()
    drawn = mixer.drawn - before
    assert set(drawn) == {"append", "template"}
    assert abs(drawn["append"] / drawn.total() - 0.75) < 0.02


def test_orthogonalize():
    singular = torch.linalg.svdvals(orthogonalize(torch.randn(2, 24, 48), steps=8))
    assert singular.min() > 0.5 and singular.max() < 1.5


def test_schedule():
    assert rate_scale(0.01) < 1 and rate_scale(0.3) == 1 and rate_scale(1.0) < 0.05


@pytest.mark.parametrize("divergence", DIVERGENCES.values(), ids=DIVERGENCES)
def test_divergence_is_zero_only_for_the_same(divergence):
    teacher = torch.randn(5, 7)
    assert divergence_loss(teacher + 3, teacher, torch.ones(5), divergence).abs() < 1e-6
    assert divergence_loss(torch.zeros(5, 7), teacher, torch.ones(5), divergence) > 0.01


def test_divergences_are_their_textbook_values():
    p, q = torch.tensor([[0.5, 0.25, 0.25]]), torch.tensor([[0.25, 0.5, 0.25]])
    values = {n: d(q.log(), p.log()).item() for n, d in DIVERGENCES.items()}
    assert values["total_variation"] == pytest.approx(0.25)
    assert values["forward_kl"] == pytest.approx(0.25 * math.log(2))
    assert values["reverse_kl"] == pytest.approx(0.25 * math.log(2))
    middle = 0.5 * math.log(4 / 3) + 0.25 * math.log(2 / 3)
    assert values["jensen_shannon"] == pytest.approx(middle)
    skewed = torch.tensor([[0.98, 0.01, 0.01]])
    reverse, forward = (DIVERGENCES[n](skewed.log(), p.log()) for n in ("reverse_kl", "forward_kl"))
    assert reverse < forward  # the draft leaves out tokens that the target may say


def test_tvd_plus_plus_points_where_the_total_variation_does_with_less_noise():
    """The gradient of TVD++ is the total variation's times one number; without normalisation the two are equal."""
    torch.manual_seed(0)
    logits = torch.randn(6, 5, requires_grad=True)
    log_p = torch.randn(6, 5).log_softmax(-1)

    def gradient(loss):
        (found,) = torch.autograd.grad(loss.mean(), logits)
        return found.flatten()

    def estimates(draws, count, **how):
        noise = torch.Generator().manual_seed(1)
        many = (
            tvd_plus_plus(logits.log_softmax(-1), log_p, noise, draws, **how) for _ in range(count)
        )
        return torch.stack([gradient(one) for one in many])

    exact = gradient(DIVERGENCES["total_variation"](logits.log_softmax(-1), log_p))
    torch.testing.assert_close(estimates(40_000, 1, reduced=False)[0], exact, atol=2e-3, rtol=0.05)
    normed = estimates(40_000, 1)[0]
    assert torch.cosine_similarity(normed, exact, dim=0) > 0.999

    def noise_of(found):
        return float(found.var(0).sum() / found.mean(0).square().sum())

    assert noise_of(estimates(4, 300)) < 0.9 * noise_of(estimates(4, 300, reduced=False))


def test_diffusion_loss_falls(tokenizer):
    torch.manual_seed(0)
    target = LlamaForCausalLM(target_config(64, 0, 4, **SMALL)).eval()
    drafter = DFlashModel(
        diffusion_config(target.config, 1, layers=1, block_size=4, feature_layers=(0, 2))
    )
    tokens, counted = torch.randint(0, 64, (2, 24)), torch.ones(2, 24, dtype=torch.bool)
    anchors = random_anchors(2, 24, 5, 4, seed=0)
    assert anchors.max() <= 20
    taught = read(target, tokens)
    optimizer = torch.optim.Adam(drafter.parameters(), 1e-2)
    losses = []
    for _ in range(15):
        loss = diffusion_loss(
            drafter,
            target.get_input_embeddings(),
            target.get_output_embeddings(),
            features_of(taught.hidden_states, drafter.config.target_layer_ids),
            taught.logits,
            tokens,
            counted,
            anchors,
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


def test_chain_matches_are_right_for_the_target_itself():
    torch.manual_seed(0)
    target = LlamaForCausalLM(target_config(64, 63, 2, **SMALL)).eval()
    ((_, text),) = alignment.own_texts(target, [[5, 6, 7]], 12, 0.0, 0)
    matches = acceptance.chain_matches(target, text, 3, 4)
    assert matches[0] == 4 and acceptance.mean_accepted(matches) == len(matches) / -(
        -len(matches) // 5
    )


def test_export_loads_as_float32(tmp_path, tokenizer):
    export_model(LlamaForCausalLM(target_config(64, 0, 1, **SMALL)), tmp_path, tokenizer)
    assert LlamaForCausalLM.from_pretrained(tmp_path).dtype == torch.float32
    assert (tmp_path / "tokenizer.json").exists() and (tmp_path / "generation_config.json").exists()


def test_every_divergence_is_tried_on_the_same_batches(tokenizer, tmp_path):
    torch.manual_seed(0)
    target = LlamaForCausalLM(target_config(64, 63, 2, **SMALL)).eval().requires_grad_(False)
    start = LlamaForCausalLM(target_config(64, 63, 1, **SMALL))
    before = {n: t.clone() for n, t in start.state_dict().items()}
    seen: list[int] = []

    def batch(index: int):
        seen.append(index)
        generator = torch.Generator().manual_seed(index)
        tokens = torch.randint(0, 64, (4, 32), generator=generator)
        return tokens, torch.ones_like(tokens, dtype=torch.bool)

    texts = alignment.own_texts(target, [[5, 6], [7, 8]], 24, 0.0, 0)
    judged = alignment.measure(target, target, texts, texts)
    assert judged["kept at temperature 1"] == pytest.approx(1, abs=1e-5)
    assert judged["same favourite, greedy text"] == 1
    rows = alignment.compare(
        start,
        target,
        batch,
        lambda d: alignment.measure(d, target, texts, texts),
        1280,
        tmp_path,
        say=lambda _: None,
    )
    found = {name: (draft, figures) for name, draft, figures in rows}
    assert list(found) == list(LOSSES) and seen == list(range(10)) * len(LOSSES)
    assert all(torch.equal(t, start.state_dict()[n]) for n, t in before.items())
    untrained = alignment.overlap(start, target, texts)
    assert all(f["kept at temperature 1"] > untrained for _, f in found.values())
