"""SWIFT: what it searches for, that it drafts, and that it leaves no mark on the target's session."""

from itertools import takewhile
from types import SimpleNamespace

import pytest
import torch

from engine.core.chance import Chance
from engine.core.constraint import Constraint
from engine.core.drafter import Kept, Start
from engine.core.memory import Memory
from engine.core.options import resolve
from engine.core.sampling import Sampling
from engine.methods.swift.drafter import SwiftDrafter
from engine.methods.swift.skipping import SkipSearch, candidates
from engine.model.layers import ATTENTION, MLP, Layers, cost_share
from engine.parts.loading import Models
from engine.parts.opening import language_model
from tests.drafters.writing import built, text_of
from tests.drafters.writing import steps_of as written
from tests.engine.tiny import tiny_hf_model

PROMPT = [5, 9, 2, 40, 7, 7, 12, 5, 9, 2]


def test_only_middle_layers_may_be_skipped():
    assert candidates(2) == []
    assert candidates(4) == [(1, ATTENTION), (1, MLP), (2, ATTENTION), (2, MLP)]


def test_the_search_finds_a_planted_skip_set():
    """Matchness falls with every sublayer that differs from a hidden set; the search does better than chance."""
    generator = torch.Generator().manual_seed(3)

    def uniforms(count):
        return torch.rand(count, generator=generator, dtype=torch.float64)

    sublayers = candidates(8)
    hidden = torch.zeros(len(sublayers), dtype=torch.float64)
    hidden[[0, 3, 4, 7, 8, 11]] = 1
    search, chance = SkipSearch(sublayers, 6), SkipSearch(sublayers, 6)
    for _ in range(30):
        for one in (search, chance):
            skipped = one.proposal(uniforms) if one is search else one._random(uniforms)
            one.learn(skipped, 1 - float((skipped - hidden).abs().sum()) / 12)
    assert search.best[1] > chance.best[1] or search.best[1] == 1
    assert sum(search.scores[-10:]) > sum(chance.scores[-10:])
    assert search.nbytes == 8 * 13 * 30


def test_the_search_begins_with_equal_distances_and_asks_the_process_now_and_then():
    asked = []

    class Watched(SkipSearch):
        def _expected_improvement(self, pool):
            asked.append(len(self.scores))
            return super()._expected_improvement(pool)

    sublayers = candidates(6)
    search = Watched(sublayers, 4)
    first, score = search.best
    assert first == {(1, ATTENTION), (2, ATTENTION), (3, ATTENTION), (4, ATTENTION)} and score == 0
    generator = torch.Generator().manual_seed(1)
    for trial in range(24):
        proposal = search.proposal(lambda count: torch.rand(count, generator=generator), 5)
        assert int(proposal.sum()) == 4
        assert trial or search.named(proposal) == first
        search.learn(proposal, 0.5)
    assert asked == [4, 9, 14, 19]


def test_the_less_it_is_sure_the_more_it_verifies():
    target = language_model(tiny_hf_model("llama", num_hidden_layers=3), None, "tiny", lean=False)
    settings = resolve("swift", SwiftDrafter.options, {"width": 10})
    drafter = SwiftDrafter.build(settings, Models(target))
    assert [drafter._width(sure) for sure in (0.99, 0.9, 0.6, 0.2)] == [3, 5, 8, 10]
    drafter.begin(Start(PROMPT, Sampling(0.8), Chance.of(1).drafting, memory=Memory()))
    law = torch.tensor([0.0, 0.5, 0.3, 0.2])
    drawn = [tuple(drafter._candidates(law, 4)) for _ in range(2000)]
    assert all(sorted(tokens) == [1, 2, 3] for tokens in drawn), (
        "no token twice, none that q excludes"
    )
    share = drawn.count((2, 1, 3)) / len(drawn)
    assert share == pytest.approx(0.3 * 0.5 / 0.7, abs=0.04)


def test_cost_share_counts_weights():
    model = tiny_hf_model("llama")
    assert cost_share(model, Layers()) == 1
    nothing = Layers(skipped=frozenset((n, part) for n in range(3) for part in (ATTENTION, MLP)))
    weights = sum(p.numel() for p in model.model.layers.parameters() if p.dim() == 2)
    head = model.lm_head.weight.numel()
    assert cost_share(model, nothing) == pytest.approx(head / (head + weights))


@pytest.mark.parametrize("architecture", ["llama", "gemma2", "gpt2"])
def test_the_text_of_plain_decoding(architecture):
    target = language_model(tiny_hf_model(architecture, num_hidden_layers=3), None, "tiny")
    memory, models, sampling = Memory(), Models(target), Sampling(0.8, seed=4)
    steps, plain = (
        written(models, cls, PROMPT, 24, sampling, "sampler_match", memory=memory)
        for cls in (SwiftDrafter, Never)
    )
    assert text_of(steps) == text_of(plain)
    assert sum(len(step.tree) for step in steps) > 10 and max(len(step.tree) for step in steps) >= 2
    assert memory.nbytes > 0


class Never(SwiftDrafter):
    def propose(self, context, max_depth):
        return super().propose(context, max_depth).truncated(0)


def steps_of(when, cost, count=1500):
    """Run SWIFT at given times: a plain step takes 4 ms, a draft pass ``cost`` of that, and a trial 8 ms. A draft is
    accepted as a whole if ``cost`` is below 0.1, and otherwise rejected. Returns (time relative to plain decoding, the
    drafter)."""
    target = language_model(tiny_hf_model("llama", num_hidden_layers=4), None, "tiny", lean=False)
    drafter = built(SwiftDrafter, Models(target), when=when, length=4)
    session = SimpleNamespace(length=0)
    drafter.begin(Start(PROMPT, Sampling(), Chance.of(1).drafting, target=session, memory=Memory()))
    drafter._matchness = lambda *_: 0.9
    drafter._draft = lambda tree, *_: tree.chain([1, 2, 3, 4], "own layers")
    written, spent = list(PROMPT), 0.0
    kept = 4 if cost < 0.1 else 0
    while len(written) < count:
        session.length = len(written) - 1
        tree = drafter.propose(written, 100)
        nodes = len(tree)
        times = {"draft": 4 * cost * nodes + 8.0 * drafter._tried, "verify": 4.0}
        spent += sum(times.values())
        path = list(range(min(kept, nodes)))
        drafter.observe(Kept(tree, path, [5] * (len(path) + 1), None, milliseconds=times))
        written += [5] * (len(path) + 1)
    return spent / (4.0 * (len(written) - len(PROMPT))), drafter


def test_where_skipping_does_not_pay_little_time_is_lost():
    ratio, drafter = steps_of("pays", 0.8)
    assert ratio < 1.015 and drafter._search.scores, "it tried, and gave up soon"
    assert steps_of("always", 0.8)[0] > 3


def test_where_skipping_pays_it_drafts_and_a_text_of_usual_length_is_long_enough_to_try():
    """The credit pays for a trial and a draft; without it, the first trial would wait for 200 steps."""
    assert steps_of("pays", 0.02)[0] < 0.5
    count = len(PROMPT) + 128
    ratio, drafter = steps_of("pays", 0.8, count)
    assert len(drafter._search.scores) == 1 and ratio < 1.05
    assert steps_of("pays", 0.02, count)[0] < 0.7


class Then(Constraint):
    """A constraint that forces these tokens behind the first ``length`` tokens, and allows everything elsewhere."""

    def __init__(self, length, tokens):
        self.places = {length + place: token for place, token in enumerate(tokens)}
        self.committed = len(PROMPT)

    def allowed(self, continuation):
        mask = torch.ones(99, dtype=torch.bool)
        token = self.places.get(self.committed + len(continuation))
        return mask if token is None else torch.arange(99) == token

    def forced(self, continuation, most):
        return [
            *takewhile(bool, (self.places.get(self.committed + place) for place in range(most)))
        ]

    def commit(self, tokens):
        self.committed += len(tokens)


def test_forced_tokens_are_read_before_the_draft_and_never_scored(monkeypatch):
    """With nothing skipped a draft is the target's own text, also behind more forced tokens than the window has."""
    target = language_model(tiny_hf_model("llama", num_hidden_layers=3), None, "tiny", lean=False)
    monkeypatch.setattr(SkipSearch, "best", property(lambda own: (frozenset({(9, MLP)}), 0.5)))
    scored, matchness = [], SwiftDrafter._matchness

    def noted(own, context, *others):
        scored.append(len(context) - 1 - own.start.target.length)
        return matchness(own, context, *others)

    monkeypatch.setattr(SwiftDrafter, "_matchness", noted)
    forced = [11, 12, 13, 14, 15, 16, 17]
    rules = Then(len(PROMPT), forced)
    steps = written(Models(target), SwiftDrafter, PROMPT, 20, constraint=rules)
    behind = [step for step in steps if "forced" in step.tree.sources]
    assert [step.tree.tokens[:7] for step in behind] == [forced]
    assert all(len(step.verdict.accepted) == step.tree.deepest for step in steps[:-1])
    assert scored and set(scored) == {0}
