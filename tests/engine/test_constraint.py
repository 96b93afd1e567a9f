"""Constraints: which tokens a mask excludes, and how forced tokens are drafted and kept."""

import pytest
import torch

from engine.constraint import Constraint, masked, masked_tree
from engine.decode import decode
from engine.drafters.base import Drafter
from engine.drafters.none import NoDrafter
from engine.proposal import Proposal
from engine.sampling import Sampling
from engine.text import TextRequest
from engine.tree import ROOT, DraftTree
from engine.verifiers import verifier
from tests.engine.tiny import VOCABULARY, tiny_model
from tests.soundness import assert_sound

LOW = float("-inf")
PROMPT = [3, 14, 15, 9, 2, 6]


class Cycle(Constraint):
    """After each multiple of EVERY, 11, 12 and 13 must follow; elsewhere any token from 0 to 30 may."""

    FORCED = (11, 12, 13)
    EVERY = 5

    def __init__(self) -> None:
        self.text: list[int] = []

    def _due(self, continuation) -> list[int]:
        """The rest of the forced run after this continuation."""
        tokens = [*self.text, *continuation]
        due: list[int] = []
        for token in tokens:
            due = due[1:] if due else list(self.FORCED) * (token % self.EVERY == 0)
        return due

    def allowed(self, continuation):
        found = torch.zeros(VOCABULARY, dtype=torch.bool)
        due = self._due(continuation)
        found[due[:1] or slice(0, 31)] = True
        return found

    def forced(self, continuation, most):
        return self._due(continuation)[:most]

    def commit(self, tokens):
        self.text += tokens


class Unforced(Cycle):
    """The same text, one token at a time."""

    def forced(self, continuation, most):
        return []


def test_what_is_not_allowed_has_no_probability():
    logits = torch.tensor([1.0, 2.0, 3.0])
    assert masked(logits, None) is logits
    assert masked(logits, torch.tensor([True, False, True])).tolist() == [1.0, LOW, 3.0]
    assert masked(logits, torch.tensor([True])).tolist() == [1.0, LOW, LOW], (
        "padding is not allowed"
    )
    assert masked(logits, torch.tensor([True] * 5)).tolist() == [1.0, 2.0, 3.0]
    assert logits.tolist() == [1.0, 2.0, 3.0]


def test_each_row_of_a_tree_is_masked_by_its_own_path():
    tree = DraftTree()
    forcing = tree.draw(ROOT, 10, source="test")
    free = tree.draw(ROOT, 1, source="test")
    below = tree.draw(forcing, 11, source="test")
    impossible = tree.draw(forcing, 1, source="test")
    under_it = tree.draw(impossible, 2, source="test")
    logits = torch.randn(len(tree) + 1, VOCABULARY)
    assert masked_tree(logits, tree, None) is logits
    found = masked_tree(logits, tree, Cycle())
    expected = {
        ROOT: range(31), forcing: [11], free: range(31), below: [12],
        impossible: range(VOCABULARY), under_it: range(VOCABULARY),
    }  # fmt: skip
    for node, tokens in expected.items():
        row = found[node + 1]
        assert row.isfinite().nonzero().flatten().tolist() == list(tokens)
        assert torch.equal(row[list(tokens)], logits[node + 1, list(tokens)])


class Guess(Drafter):
    """Drafts 16 siblings with a child each, and remembers what it was asked and told."""

    key, family, summary = "guess", "tree", ""

    def __init__(self) -> None:
        super().__init__({})
        self.asked, self.told = [], []

    @classmethod
    def kinds(cls, sampling):
        return frozenset({"one_hot"})

    def propose(self, context, max_depth):
        self.asked.append(list(context))
        tree = DraftTree()
        for token in range(16):
            child = tree.draw(ROOT, token, source="guess")
            if max_depth > 1:
                tree.draw(child, (token + len(context)) % 31, source="guess")
        return tree

    def observe(self, kept):
        self.told.append(kept)


def written(model, drafter, constraint, sampling, rule, count=40):
    request = TextRequest(drafter, verifier(rule), sampling, PROMPT, count, constraint=constraint)
    return list(decode(model, request))


@pytest.mark.parametrize(
    ("rule", "sampling"),
    [("greedy", Sampling()), ("sampler_match", Sampling(1.0, seed=4))],
)
def test_forced_tokens_are_drafted_and_kept_and_the_text_is_that_of_plain_decoding(rule, sampling):
    model = tiny_model("llama")
    plain = written(model, NoDrafter({}), Unforced(), sampling, rule)
    expected = [token for step in plain for token in step.output]
    assert set(Cycle.FORCED) <= set(expected), "nothing was forced; the test would see nothing"
    for drafter in (NoDrafter({}), Guess()):
        steps = written(model, drafter, Cycle(), sampling, rule)
        assert [token for step in steps for token in step.output] == expected
        assert len(steps) < len(plain)
        forced = [forced_nodes(step) for step in steps]
        assert any(forced)
        for step, nodes in zip(steps, forced, strict=True):
            assert_sound(step.tree)
            assert step.verdict.accepted[: len(nodes)] == nodes
            assert [step.tree.q[node] for node in nodes] == [None] * len(nodes)


def forced_nodes(step) -> list[int]:
    found = [node for node, source in enumerate(step.tree.sources) if source == "forced"]
    for node in found:
        (drawn,) = step.tree.draws[step.tree.parents[node]]
        assert (drawn.kind, drawn.law) == ("one_hot", None)
    return found


def test_the_drafter_sees_its_own_tree_below_the_forced_tokens():
    model, drafter = tiny_model("llama"), Guess()
    steps = written(model, drafter, Cycle(), Sampling(), "greedy")
    text = list(PROMPT)
    forced_ones = 0
    asked = iter(drafter.asked)
    for step, kept in zip(steps, drafter.told, strict=True):
        forced = [step.tree.tokens[node] for node in forced_nodes(step)]
        if len(kept.tree):
            assert next(asked) == text + forced
        forced_ones += bool(forced and len(kept.tree))
        assert kept.position == len(text) + len(forced)
        assert kept.root == [*text, *forced][-1]
        assert forced + kept.tokens == step.output
        assert [kept.tree.tokens[node] for node in kept.path] == kept.tokens[: len(kept.path)]
        assert kept.logits.shape == (len(kept.tree) + 1, VOCABULARY)
        shown = step.logits[len(forced)]  # constrained logits; a drafter gets the target's own
        assert torch.equal(kept.logits[0][shown.isfinite()], shown[shown.isfinite()])
        text += step.output
    assert forced_ones, "the drafter never drafted below a forced token"


def test_a_proposal_without_forced_tokens_is_the_drafters_tree():
    own = DraftTree()
    own.chain([1, 2], "own")
    found = Proposal.of(own, [])
    assert found.tree is own and found.forced == 0
    below = Proposal.of(own, [8, 9])
    assert below.tree.tokens == [8, 9, 1, 2] and below.tree.parents == [-1, 0, 1, 2]
    assert below.node_of == {2: 0, 3: 1} and own.tokens == [1, 2]
