"""Constraints: which tokens a mask excludes, and how forced tokens are drafted and kept."""

from itertools import pairwise

import pytest
import torch

from engine.core.constraint import Constraint, DeadEnds, masked, masked_tree
from engine.core.decode import decode
from engine.core.drafter import Drafter
from engine.core.load import GUESS
from engine.core.proposal import Proposal
from engine.core.sampling import Sampling
from engine.core.seen import Begun, Join, Probes
from engine.core.text import TextRequest
from engine.core.tree import ROOT, DraftTree
from engine.errors import UserError
from engine.loops import run_loop
from engine.methods import drafter, drafters
from engine.methods.none.drafter import NoDrafter
from engine.model.session import Session
from engine.parts.opening import language_model
from engine.proof.tiny_parts import tiny_parts
from engine.rules import verifier
from engine.trace.recording import Totals
from tests.drafters.writing import built
from tests.engine.tiny import VOCABULARY, tiny_model
from tests.soundness import assert_sound
from tests.verifiers.tiny import tiny_models

LOW = float("-inf")
PROMPT = [3, 14, 15, 9, 2, 6]


class Cycle(Constraint):
    """After each multiple of EVERY, 11, 12 and 13 must follow; elsewhere any token from 0 to 30 may."""

    FORCED = (11, 12, 13)
    EVERY = 5

    def __init__(self) -> None:
        self.text: list[int] = []

    def _due(self, continuation) -> list[int]:
        """Return the rest of the forced run after this continuation."""
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
    """The constraint ``Cycle``, which forces no tokens: the text is the same, one token at a time."""

    def forced(self, continuation, most):
        return []


def test_what_is_not_allowed_has_no_probability():
    logits = torch.tensor([1.0, 2.0, 3.0])
    assert masked(logits, None) is logits
    assert masked(logits, torch.tensor([True, False, True])).tolist() == [1.0, LOW, 3.0]
    assert masked(logits, torch.tensor([True])).tolist() == [1.0, LOW, LOW], "padding"
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


def test_a_text_may_end_where_no_token_may_follow():
    ends = DeadEnds()
    for text in ([1], [1, 2], [1, 3, 4]):
        ends.add((1, 2), "Nothing may follow.")
        ends.commit(text)
    ends.add((1, 2), "Nothing may follow.")
    with pytest.raises(UserError, match="Nothing may follow"):
        ends.commit([1, 2, 3])


class Guess(Drafter):
    """A drafter that drafts 16 siblings with a child each, and records its calls."""

    key, family, summary = "guess", "tree", ""
    draw_kinds = ("one_hot",)

    def __init__(self) -> None:
        super().__init__({})
        self.asked, self.told = [], []

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
    for drafting in (NoDrafter({}), Guess()):
        steps = written(model, drafting, Cycle(), sampling, rule)
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
    model, drafting = tiny_model("llama"), Guess()
    steps = written(model, drafting, Cycle(), Sampling(), "greedy")
    text = list(PROMPT)
    forced_ones = 0
    asked = iter(drafting.asked)
    for step, kept in zip(steps, drafting.told, strict=True):
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
    proposal = Proposal.of(own)
    assert proposal.behind([]).tree is own and own.forced == 0
    below = proposal.behind([8, 9]).tree
    assert below.tokens == [8, 9, 1, 2] and below.parents == [-1, 0, 1, 2]
    assert below.forced == 2 and own.tokens == [1, 2]


def test_probes_and_rows_that_were_read_stay_with_the_tree_behind_forced_tokens():
    own = DraftTree()
    law = torch.tensor([0.5, 0.25, 0.25])
    first = own.draw(ROOT, 1, "iid", law)
    own.draw(own.draw(first, 2, "iid", law), 0, "iid", law)
    own.draw(ROOT, 2, "iid", law)  # a sibling that was drawn after its nephews
    states = torch.arange(4.0)[:, None]
    probes = Probes([Join(0, 2, lambda rows: rows[[1, 3]])], [ROOT, 2, 4], [4, 4, 4, 5, 6])
    proposal = Proposal(own, probes, Begun(1, states))
    behind = proposal.behind([8, 9])
    tree = behind.tree
    assert_sound(tree)
    assert tree.tokens == [8, 9, *own.tokens] and tree.parents == [-1, 0, 1, 2, 3, 1]
    assert [[draw.node for draw in tree.draws[place]] for place in (1, 2, 3)] == [[2, 5], [3], [4]]
    assert behind.begun is proposal.begun
    assert behind.probes.parents == [1, 4, 6], "the root, a node, the first probe"
    assert behind.probes.again == [4, 4, 4, 4, 4, 5, 6]
    (join,) = behind.probes.joins
    assert torch.equal(join.made(torch.arange(7.0)), torch.tensor([3.0, 5.0]))


@pytest.fixture(scope="module")
def parts():
    """Return a target of many tokens and every part for it."""
    return tiny_parts(
        tiny_model("llama"), drafters().values(), lambda m: language_model(m, None, "t", lean=False)
    )


@pytest.mark.parametrize("key", ["kangaroo", "del", "ppd", "hidden_transfer", "lookahead"])
def test_passes_behind_forced_tokens_have_probes_and_go_on_from_rows_already_read(
    parts, key, monkeypatch
):
    has = "begun" if key in ("kangaroo", "del") else "probes"
    model, found, look = parts.target, [], Session.look

    def looked(session, draft):
        if draft.tree.forced and (has == "probes" or len(draft.tree) > draft.tree.forced):
            found.append(getattr(draft, has) is not None)
        return look(session, draft)

    monkeypatch.setattr(Session, "look", looked)
    plain = written(model, NoDrafter({}), Unforced(), Sampling(), "greedy")
    drafted = written(model, built(drafter(key), parts), Cycle(), Sampling(), "greedy")
    assert [t for step in drafted for t in step.output] == [t for s in plain for t in s.output]
    assert found and all(found)


def test_a_draft_behind_forced_tokens_is_reflected_on(parts):
    """With no weight on the reflection, the text is the target's own."""
    plain = written(parts.target, NoDrafter({}), Unforced(), Sampling(), "greedy")
    drafting = built(drafter("reflective"), parts)
    for weight in (0.0, 0.3):
        rule = verifier("reflective", {"weight": weight})
        request = TextRequest(drafting, rule, Sampling(), PROMPT, 40, constraint=Cycle())
        steps = list(decode(parts.target, request))
        behind = [step for step in steps if 0 < step.tree.forced < len(step.tree)]
        assert behind and all(step.draft.probes is not None for step in behind)
        for step in behind:
            assert step.verdict.accepted[: step.tree.forced] == [*range(step.tree.forced)]
        if not weight:
            assert [t for s in steps for t in s.output] == [t for s in plain for t in s.output]


class Wrong(Guess):
    """Drafts a token that the constraint never allows, and so is never kept."""

    def propose(self, context, max_depth):
        tree = DraftTree()
        tree.chain([50, 51][:max_depth], "wrong")
        return tree


def test_forced_tokens_are_no_drafts_that_were_kept():
    """Neither in a text's estimate, which other texts learn from, nor in the summary of a trace."""
    drafting, totals = Wrong(), Totals()
    steps = written(tiny_model("llama"), drafting, Cycle(), Sampling(), "greedy")
    assert sum(step.tree.forced for step in steps) > 6
    chances = [kept.load.chances[0] for kept in drafting.told]
    assert chances[0] == GUESS and all(a >= b for a, b in pairwise(chances)) and chances[-1] < 0.3
    for step in steps:
        totals.add(step)
    found = totals.summary("length", "")
    assert found["acceptance_rate"] == 0 and found["accepted_histogram"] == [len(steps)]
    drafted = sum(len(step.tree) > step.tree.forced for step in steps)
    row = {"depth": 1, "reached": drafted, "judged": drafted, "accepted": 0}
    assert found["acceptance_by_depth"] == [row]
    assert found["mean_accepted"] == 40 / len(steps), "they are tokens of the text all the same"


def test_forced_tokens_alone_say_nothing_about_acceptance():
    class Told(NoDrafter):
        def observe(self, kept):
            chances.append(kept.load.chances[0])

    chances: list[float] = []
    totals = Totals()
    for step in written(tiny_model("llama"), Told({}), Cycle(), Sampling(), "greedy"):
        totals.add(step)
    assert set(chances) == {GUESS}
    found = totals.summary("length", "")
    assert found["acceptance_rate"] is None and found["acceptance_by_depth"] == []


class Long(Cycle):
    FORCED = tuple(range(11, 30)) * 2


def bounded(drafting, constraint, most):
    given = drafting, verifier("greedy"), Sampling(), PROMPT, 100
    request = TextRequest(*given, constraint=constraint, most_nodes=most)
    return list(decode(tiny_model("llama"), request))


class Few(Guess):
    """A drafter of three nodes, whose number no option gives."""

    def propose(self, context, max_depth):
        tree = DraftTree()
        for token in (1, 2, 3):
            tree.draw(ROOT, token, source="few")
        return tree


@pytest.mark.parametrize("drafting", [lambda: NoDrafter({}), Few])
def test_the_limit_on_nodes_holds_for_forced_tokens_too(drafting):
    free, steps = (bounded(drafting(), Long(), most) for most in (None, 8))
    assert max(len(step.tree) for step in free) > 8, "the test would see nothing"
    assert max(len(step.tree) for step in steps) <= 8
    assert max(step.tree.forced for step in steps) >= 5
    assert [t for step in steps for t in step.output] == [t for step in free for t in step.output]


class Sized(Few):
    """A drafter that drafts its three nodes only behind so many forced tokens that just these nodes fit."""

    def propose(self, context, max_depth):
        forced = tuple(context[-5:]) == Long.FORCED[:5]
        return super().propose(context, max_depth) if forced else self.elsewhere()

    def elsewhere(self):
        return DraftTree()


class AsItsOptionsSay(Sized):
    size_option = "nodes"

    def __init__(self):
        Drafter.__init__(self, {"nodes": 3})
        self.asked, self.told = [], []


class AsOnceBefore(Sized):
    drafted = 0

    def elsewhere(self):
        tree = DraftTree()
        tree.chain([1, 2, 3][: 1 if self.drafted else 3], "few")
        self.drafted += 1
        return tree


@pytest.mark.parametrize("drafting", [AsItsOptionsSay, AsOnceBefore])
def test_forced_tokens_leave_room_for_the_largest_tree_that_is_known(drafting):
    steps = bounded(drafting(), Long(), 8)
    largest = max(steps, key=lambda step: step.tree.forced)
    assert (largest.tree.forced, len(largest.tree)) == (5, 8)


class Late(Few):
    """Drafts nothing until many tokens are forced at once."""

    title = "Late"

    def propose(self, context, max_depth):
        forced = tuple(context[-6:]) == Long.FORCED[2:8]
        return super().propose(context, max_depth) if forced else DraftTree()


def test_a_tree_too_large_with_its_forced_tokens_is_refused():
    told = "drafts 3 nodes in a step behind 8 forced tokens; at most 8"
    with pytest.raises(UserError, match=told):
        bounded(Late(), Long(), 8)


@pytest.mark.parametrize("most", [3, 5])
def test_the_limit_holds_where_tokens_wait_for_the_next_step(most):
    """In the overlapped loop a step holds the tokens that wait and those that are being drafted."""
    models = tiny_models(4)
    tokens = []
    for limit in (None, most):
        made = drafter("pearl").build({"length": 3}, models)
        request = TextRequest(made, verifier("greedy"), Sampling(), [1, 2], 40, most_nodes=limit)
        steps = list(run_loop(models.target, request))
        tokens.append([token for step in steps for token in step.output])
        largest = max(len(step.tree) for step in steps)
        assert largest <= limit if limit else largest == 5
    assert tokens[0] == tokens[1]
