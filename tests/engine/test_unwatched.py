"""Runs that nobody watches: judged within the target's pass, drafted on the device, the same text."""

import copy

import pytest
import torch

from engine.block_context import StaticContext, slots_of
from engine.decode import decode
from engine.drafters import drafters
from engine.drafters.base import Drafter
from engine.drafters.none import NoDrafter
from engine.kernels.flat_tree import Places
from engine.language_model import LanguageModel
from engine.models import Models
from engine.options import resolve
from engine.sampling import Sampling
from engine.static.inputs import Rows, Size
from engine.static.question import Law, Question
from engine.static.text_slot import TextSlot
from engine.static.unwatched import unwatched
from engine.static.verdict import JudgedInputs
from engine.together import decode_together
from engine.tree import DraftTree
from engine.verifiers import verifier
from engine.writing import Wanted
from tests.engine.tiny import CONFIGS, VOCABULARY, tiny_hf_model
from tests.verifiers.tiny import tiny_models

PROMPT = [3, 5, 7, 3, 5]
OPTIONS = {
    "none": {},
    "chain": {"length": 3},
    "dyspec": {"budget": 7, "depth": 3, "width": 2},
    "prompt_lookup": {"length": 4, "max_ngram": 2},
    "dflash": {"length": 3},
    "ddtree": {"length": 3, "budget": 9},
}
RULES = [
    ("greedy", Sampling()),
    ("rejection", Sampling(0.9, seed=3)),
    ("rejection", Sampling(1.1, top_k=9, top_p=0.8, seed=4)),
    ("sampler_match", Sampling(0.9, seed=5)),
]


def test_every_drafter_is_here():
    assert OPTIONS.keys() == drafters().keys()


@pytest.fixture(scope="module")
def models() -> Models:
    """The draft is the target with a little noise on it."""
    found = tiny_models(16)
    near = copy.deepcopy(found.target.model)
    torch.manual_seed(0)
    for weight in near.parameters():
        weight += 0.1 * torch.randn_like(weight)
    target, draft = (
        LanguageModel(one, None, "tiny", lean=False, static=True)
        for one in (found.target.model, near)
    )
    return Models(target, draft, found.diffusion)


@pytest.fixture
def static_blocks(models, monkeypatch):
    slots = slots_of(models.diffusion)
    monkeypatch.setattr("engine.drafters.marginals.block_context", lambda _: StaticContext(slots))


@pytest.fixture
def judged(monkeypatch) -> list[bool]:
    """Of each step, whether the target's pass judged it."""
    seen, judge = [], TextSlot.judge

    def call(*arguments):
        found = judge(*arguments)
        seen.append(found is not None)
        return found

    monkeypatch.setattr(TextSlot, "judge", call)
    return seen


def built(key: str, models: Models) -> Drafter:
    cls = drafters()[key]
    return cls.build(resolve(key, cls.options, OPTIONS[key]), models)


def steps_of(models, drafter, rule, sampling, watched, prompt=PROMPT, count=30) -> list:
    given = verifier(rule), sampling, prompt, count
    return list(decode(models.target, drafter, *given, watched))


def texts(steps) -> list[list[int]]:
    return [step.output for step in steps]


def assert_same(found: list, expected: list) -> None:
    """Texts and trees, as far as an unwatched step knows its tokens."""
    assert texts(found) == texts(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.tree.parents == theirs.tree.parents
        assert (ours.verdict.status, ours.final) == (theirs.verdict.status, theirs.final)
        for one, other in zip(ours.tree.tokens, theirs.tree.tokens, strict=True):
            assert one in (-1, other)
        assert ours.p is None and ours.logits is None and not ours.verdict.judgements


@pytest.mark.parametrize("key", OPTIONS)
@pytest.mark.parametrize(("rule", "sampling"), RULES)
def test_the_text_is_that_of_a_watched_run(key, rule, sampling, models, static_blocks, judged):
    expected = steps_of(models, built(key, models), rule, sampling, True)
    assert not judged
    found = steps_of(models, built(key, models), rule, sampling, False)
    assert_same(found, expected)
    assert judged == [True] * len(found)
    assert key == "none" or max(len(step.output) for step in found) > 1


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(0.9, seed=3)])
def test_where_no_block_is_captured_the_module_drafts_the_same(sampling, models):
    """Its forward is that of the CPU here: lean."""
    for key in ("dflash", "ddtree"):
        rule = "greedy" if sampling.greedy else "rejection"
        expected = steps_of(models, built(key, models), rule, sampling, True)
        assert_same(steps_of(models, built(key, models), rule, sampling, False), expected)


@pytest.mark.parametrize("key", ["chain", "dflash"])
def test_chains_do_not_leave_the_device(key, models, static_blocks):
    for rule, sampling in RULES[:2]:
        for step in steps_of(models, built(key, models), rule, sampling, False):
            assert (step.tree.ids is None) == (not len(step.tree))
            for node, token in enumerate(step.tree.tokens):
                assert (token >= 0) == (node in step.verdict.accepted)


class Wide(NoDrafter):
    """Every token, and one under each: what is kept never stands where it will be."""

    @classmethod
    def kinds(cls, sampling):
        return frozenset({"one_hot"})

    def propose(self, context, max_depth):
        tree = DraftTree()
        for token in reversed(range(VOCABULARY)):
            child = tree.child(-1, "one_hot", token, "wide", None)
            tree.child(child, "one_hot", (7 * token + len(context)) % VOCABULARY, "wide", None)
        return tree


@pytest.mark.parametrize("architecture", sorted(CONFIGS))
def test_rows_are_moved_within_the_pass(architecture, judged):
    """Trees under windows, caps and sinks, against passes that only read."""
    plain, static = (
        LanguageModel(tiny_hf_model(architecture), None, "t", lean=False, static=static)
        for static in (False, True)
    )
    prompt = list(range(2, 20))
    for rule, sampling in RULES:
        ours, theirs = (
            steps_of(Models(one), Wide({}), rule, sampling, watched, prompt)
            for one, watched in ((static, False), (plain, True))
        )
        assert_same(ours, theirs)
        assert any(step.verdict.accepted[:1] > [0] for step in ours)
    assert judged and all(judged)


@pytest.mark.parametrize(("rule", "sampling"), RULES)
def test_several_texts(rule, sampling, models, static_blocks, judged):
    """Of different lengths, so that some have ended while others go on."""
    prompts = [[*PROMPT, index] for index in range(len(OPTIONS))]
    expected = [
        steps_of(models, built(key, models), rule, sampling, True, prompt, 8 + 3 * index)
        for index, (key, prompt) in enumerate(zip(OPTIONS, prompts, strict=True))
    ]
    several = [
        Wanted(built(key, models), verifier(rule), sampling, prompt, 8 + 3 * index)
        for index, (key, prompt) in enumerate(zip(OPTIONS, prompts, strict=True))
    ]
    found = [[] for _ in several]
    for index, step in decode_together(models.target, several, watched=False):
        found[index].append(step)
    for ours, theirs in zip(found, expected, strict=True):
        assert_same(ours, theirs)
    assert judged == [True] * max(len(steps) for steps in found)


class Fixed(NoDrafter):
    """The same tree whenever it fits, drawn from a flat q."""

    def __init__(self, draws, kinds):
        super().__init__({})
        self.draws, self.said = draws, frozenset(kinds)

    def kinds(self, sampling):
        return self.said

    def propose(self, context, max_depth):
        tree = DraftTree()
        for token in self.draws:
            tree.child(-1, "iid", token, "fixed", torch.full((16,), 1 / 16))
        return tree


@pytest.mark.parametrize(
    ("drafter", "prompt", "inside"),
    [
        (Fixed([3, 4, 5], {"iid"}), PROMPT, True),
        (Fixed([3, 3, 3, 4, 3, 4], {"iid"}), PROMPT, False),  # more draws than rows
        (Fixed([3, 4, 5], {"one_hot"}), PROMPT, False),  # there is a q, and no room for it
        (Fixed([3, 4, 5], {"iid"}), [7], None),  # the first pass makes the buffers
    ],
)
def test_what_does_not_fit_is_judged_after_the_pass(drafter, prompt, inside, models, judged):
    assert unwatched(drafter) is drafter
    target = LanguageModel(models.target.model, None, "t", lean=False, static=True)
    given = Models(target), drafter, "rejection", Sampling(0.9, seed=3)
    found = steps_of(*given, False, prompt)
    assert_same(found, steps_of(*given, True, prompt))
    if inside is None:
        assert not judged[0] and all(judged[1:])
    else:
        # with no room for a draft nothing is in its way
        drafted = [bool(len(step.tree)) for step in found]
        assert [one for one, had in zip(judged, drafted, strict=True) if had].count(inside) == sum(
            drafted
        )


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("chain", "no buffers yet"),
        ("ddtree", "no buffers yet"),
        ("chain", "no capture"),
        ("ddtree", "no capture"),
        ("ddtree", "too large"),
    ],
)
def test_what_is_on_the_device_only_is_fetched_then(key, why, models, static_blocks, judged):
    target = LanguageModel(models.target.model, None, "t", lean=False, static=True)
    given = Models(target, models.draft, models.diffusion)
    if why == "no capture":
        target.slots.usable = False

    def steps(given, watched):
        drafter = built(key, given)
        if why == "too large":
            drafter.settings["budget"] = 200
        prompt = [7] if why == "no buffers yet" else PROMPT
        return steps_of(given, drafter, "rejection", Sampling(0.9, seed=3), watched, prompt, 12)

    assert_same(steps(given, False), steps(models, True))
    assert judged[0] is False


def test_a_q_of_fewer_tokens_is_filled_up():
    law = Law("rejection", Sampling(1.0), frozenset({"iid"}))
    inputs = JudgedInputs(Size(3, 1), torch.device("cpu"), [law], 9)
    tree = DraftTree()
    for q in (torch.full((9,), 1 / 9), torch.full((6,), 1 / 6)):
        tree = DraftTree()
        tree.child(-1, "iid", 2, "test", q)
        question = Question(law, Places.of(tree), [0.5], torch.full((2, 9), 2.0))
        inputs.load(Rows([1, 2], 4, [0, 1], [1, 3], question=question))
        expected = torch.nn.functional.pad(q, (0, 9 - len(q)))
        assert torch.equal(inputs.tree(0).q[0], expected)
    found = inputs.tree(0)
    assert found.first.tolist() == [0, 1, 1, 1] and found.draws.tolist() == [0, 0, 0]
    assert found.q_row.tolist()[:2] == [0, -1] and inputs.coins[0].tolist() == [0.5, 0, 0]
