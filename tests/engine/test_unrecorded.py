"""Unrecorded runs: judged within the target's pass, drafted on the device, with the same text."""

import pytest
import torch
from torch.overrides import TorchFunctionMode

from engine.batch.together import decode_together
from engine.core import sampling as sampled
from engine.core.chance import JudgeChance
from engine.core.decode import decode
from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.core.tree import DraftTree
from engine.fast.gpu import verdict
from engine.fast.gpu.device_tree import DeviceTree
from engine.fast.gpu.inputs import DeviceRows, Size
from engine.fast.gpu.judge import DeviceJudge
from engine.fast.gpu.question import JudgingKey, Question
from engine.fast.gpu.verdict import JudgedInputs
from engine.fast.kernels.flat_tree import Places
from engine.fast.kernels.position_noise import noise_rows
from engine.methods import drafters
from engine.methods.none.drafter import NoDrafter
from engine.parts.loading import Models
from engine.parts.opening import language_model
from engine.rules import verifier
from tests.drafters.writing import built
from tests.engine.tiny import CONFIGS, VOCABULARY, tiny_hf_model
from tests.engine.unrecorded import JUDGED, PROMPT, RULES, assert_same, steps_of, texts
from tests.grids import some


def with_rules(keys: list[str]) -> list:
    """Return every drafter with every rule. ``make test`` takes one of the rules for each drafter, in turns."""
    cases = [(key, *rule) for key in keys for rule in RULES]
    few = [(key, *RULES[place % len(RULES)]) for place, key in enumerate(keys)]
    return some(cases, few.__contains__)


UNJUDGED = [key for key, cls in drafters().items() if key not in JUDGED and cls.loop != "searching"]
"""Drafters whose drafts are not judged within a pass. A decoder's texts are judged by nobody."""


@pytest.mark.parametrize(("key", "rule", "sampling"), with_rules(UNJUDGED))
def test_what_the_device_cannot_judge_is_judged_as_ever(
    key, rule, sampling, static_models, static_blocks, judged
):
    expected = steps_of(static_models, built(key, static_models), rule, sampling, True)
    found = steps_of(static_models, built(key, static_models), rule, sampling, False)
    assert texts(found) == texts(expected) and not judged


def has_room(tree) -> bool:
    """Return whether the tree's draws, including repeated ones, fit in a pass that judges it."""
    return sum(map(len, tree.draws.values())) <= Size.of(1 + len(tree), 0).rows


def is_plain(draft) -> bool:
    """Return whether a pass over only the root and the tree reads it. Other passes do not judge."""
    return draft.probes is None and draft.begun is None


@pytest.mark.parametrize(("key", "rule", "sampling"), with_rules(JUDGED))
def test_the_text_is_that_of_a_recorded_run(
    key, rule, sampling, static_models, static_blocks, judged
):
    expected = steps_of(static_models, built(key, static_models), rule, sampling, True)
    assert not judged
    found = steps_of(static_models, built(key, static_models), rule, sampling, False)
    assert_same(found, expected)
    assert judged == [has_room(step.tree) for step in found if is_plain(step.draft)]
    lucky = not drafters()[key].needs  # without a model it may guess nothing right
    assert lucky or max(len(step.output) for step in found) > 1


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(0.9, seed=3)])
def test_where_no_block_is_captured_the_module_drafts_the_same(sampling, static_models):
    """The module's forward is the lean one here, as on a CPU."""
    for key in ("dflash", "ddtree"):
        rule = "greedy" if sampling.greedy else "rejection"
        expected = steps_of(static_models, built(key, static_models), rule, sampling, True)
        assert_same(
            steps_of(static_models, built(key, static_models), rule, sampling, False), expected
        )


@pytest.mark.parametrize("key", ["chain", "dflash"])
def test_chains_do_not_leave_the_device(key, static_models, static_blocks):
    for rule, sampling in RULES[:2]:
        for step in steps_of(static_models, built(key, static_models), rule, sampling, False):
            device_twin = isinstance(step.tree, DeviceTree) and step.tree.ids is not None
            assert device_twin == bool(len(step.tree))
            for node, token in enumerate(step.tree.tokens):
                assert (token >= 0) == (node in step.verdict.accepted)


class Wide(NoDrafter):
    """A drafter that drafts every token with one child each, so that accepted rows never stand where they must end
    up."""

    draw_kinds = ("one_hot",)

    def propose(self, context, max_depth):
        tree = DraftTree()
        for token in reversed(range(VOCABULARY)):
            child = tree.draw(-1, token, source="wide")
            tree.draw(child, (7 * token + len(context)) % VOCABULARY, source="wide")
        return tree


@pytest.mark.parametrize("architecture", sorted(CONFIGS))
def test_rows_are_moved_within_the_pass(architecture, judged):
    """Trees under windows, caps and sinks, against passes that only read. The prompt is longer than the windows."""
    plain, static = (
        language_model(tiny_hf_model(architecture), None, "t", lean=False, static=static)
        for static in (False, True)
    )
    prompt = list(range(2, 20))
    for rule, sampling in RULES[:2]:
        ours, theirs = (
            steps_of(Models(one), Wide({}), rule, sampling, recorded, prompt, 8)
            for one, recorded in ((static, False), (plain, True))
        )
        assert_same(ours, theirs)
        assert any(step.verdict.accepted[:1] > [0] for step in ours)
    assert judged and all(judged)


@pytest.mark.parametrize(("rule", "sampling"), some(RULES, RULES[:2].__contains__))
def test_several_texts(rule, sampling, static_models, static_blocks, judged):
    """The texts have different lengths, so that some have ended while others go on.

    Left out: SmartSpec, which drafts by the texts in its pass; a draft that learns, whose copy is read in
    another order; and trees with probe rows or rows that were begun, which the host judges.
    """
    apart = {"smartspec", "online", "omnidraft", "del", "kangaroo"}
    apart |= {"lud", "ppd", "hidden_transfer", "lookahead", "reflective"}
    keys = [key for key in JUDGED if key not in apart]
    prompts = [[*PROMPT, index % 16] for index in range(len(keys))]
    expected = [
        steps_of(
            static_models, built(key, static_models), rule, sampling, True, prompt, 4 + index % 6
        )
        for index, (key, prompt) in enumerate(zip(keys, prompts, strict=True))
    ]
    several = [
        TextRequest(built(key, static_models), verifier(rule), sampling, prompt, 4 + index % 6)
        for index, (key, prompt) in enumerate(zip(keys, prompts, strict=True))
    ]
    found = [[] for _ in several]
    for index, step in decode_together(static_models.target, several, recorded=False):
        found[index].append(step)
    for ours, theirs in zip(found, expected, strict=True):
        assert_same(ours, theirs)
    assert judged == [True] * max(len(steps) for steps in found)


FLAT = torch.full((16,), 1 / 16)


class Fixed(NoDrafter):
    """A drafter of the same tree whenever it fits, drawn from a flat q."""

    def __init__(self, draws, kinds):
        super().__init__({})
        self.draws, self.said = draws, frozenset(kinds)

    def kinds(self, sampling):
        return self.said

    def propose(self, context, max_depth):
        tree = DraftTree()
        for token in self.draws:
            tree.draw(-1, token, "iid", FLAT, "fixed")
        return tree


@pytest.mark.parametrize(
    ("drafter", "prompt", "inside"),
    [
        (Fixed([3, 4, 5], {"iid"}), PROMPT, True),
        (Fixed([3, 3, 3, 4, 3, 4], {"iid"}), PROMPT, False),  # more draws than rows
        (Fixed([3, 4, 5], {"one_hot"}), PROMPT, False),  # a q is given, but there is no room for it
        (Fixed([3, 4, 5], {"iid"}), [7], None),  # the first pass makes the buffers
    ],
)
def test_what_does_not_fit_is_judged_after_the_pass(drafter, prompt, inside, static_models, judged):
    assert drafter.device_twin() is drafter
    target = language_model(static_models.target.model, None, "t", lean=False, static=True)
    given = Models(target), drafter, "rejection", Sampling(0.9, seed=3)
    found = steps_of(*given, False, prompt)
    assert_same(found, steps_of(*given, True, prompt))
    if inside is None:
        assert not judged[0] and all(judged[1:])
    else:
        # a step without room for a draft can always be judged in the pass
        drafted = [bool(len(step.tree)) for step in found]
        assert [one for one, had in zip(judged, drafted, strict=True) if had].count(inside) == sum(
            drafted
        )


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("chain", "no buffers yet"),
        ("chain", "no capture"),
        ("ddtree", "too large"),
    ],
)
def test_what_is_on_the_device_only_is_fetched_then(key, why, static_models, static_blocks, judged):
    target = language_model(static_models.target.model, None, "t", lean=False, static=True)
    given = Models(target, static_models.parts)
    if why == "no capture":
        target.buffer_sets.usable = False

    def steps(given, recorded):
        drafter = built(key, given)
        if why == "too large":
            drafter.settings["budget"] = 200
        prompt = [7] if why == "no buffers yet" else PROMPT
        return steps_of(given, drafter, "rejection", Sampling(0.9, seed=3), recorded, prompt, 12)

    assert_same(steps(given, False), steps(static_models, True))
    assert judged[0] is False


def test_noise_is_made_once_and_while_the_device_works(static_models, monkeypatch):
    order = []

    def noted(seed, first, count, vocabulary, device):
        order.extend(range(first, first + count))
        return noise_rows(seed, first, count, vocabulary, device)

    def arrived(numbers):
        order.append("verdict")
        return numbers()

    monkeypatch.setattr("engine.fast.gpu.judge.noise_rows", noted)
    monkeypatch.setattr(DeviceJudge, "arrived", staticmethod(arrived))
    found = steps_of(
        static_models, built("chain", static_models), "rejection", Sampling(0.9, seed=3), False
    )
    made = [place for place in order if place != "verdict"]
    assert made == list(range(len(PROMPT), len(PROMPT) + len(made)))
    before_first = order[: order.index("verdict")]
    assert len(before_first) == 2 * (1 + len(found[0].tree))
    assert order.count("verdict") == len(found)


def test_a_q_of_fewer_tokens_is_filled_up():
    key = JudgingKey("rejection", Sampling(1.0), frozenset({"iid"}))
    inputs = JudgedInputs(Size(3, 1), torch.device("cpu"), [key], 9)
    tree = DraftTree()
    for q in (torch.full((9,), 1 / 9), torch.full((6,), 1 / 6)):
        tree = DraftTree()
        tree.draw(-1, 2, "iid", q, "test")
        question = Question(key, Places.of(tree), [0.5], torch.full((2, 9), 2.0))
        inputs.load(DeviceRows([1, 2], 4, [0, 1], [1, 3], question=question))
        expected = torch.nn.functional.pad(q, (0, 9 - len(q)))
        assert torch.equal(inputs.tree(0).q[0], expected)
    found = inputs.tree(0)
    assert found.first.tolist() == [0, 1, 1, 1] and found.draws.tolist() == [0, 0, 0]
    assert found.q_row.tolist()[:2] == [0, -1] and inputs.coins[0].tolist() == [0.5, 0, 0]


READING = {"tolist", "item", "cpu", "numpy", "__int__", "__float__", "__bool__", "__index__"}


class Reads(TorchFunctionMode):
    """Counts the calls that would wait for a device if the tensors were on one."""

    def __init__(self) -> None:
        super().__init__()
        self.count, self.looking = 0, True

    def __torch_function__(self, function, types, arguments=(), named=None):
        self.count += self.looking and getattr(function, "__name__", "") in READING
        return function(*arguments, **(named or {}))

    def without(self, function):
        """Return the function with its reads left uncounted: on a GPU it is a kernel, or its numbers never leave the
        host."""

        def call(*arguments, **named):
            self.looking = False
            try:
                return function(*arguments, **named)
            finally:
                self.looking = True

        return call


SHAPES = ["chain", "dflash", "prompt_lookup", "none"]
"""Drafts from a model's chain, from a block, from the host, and none. With the first, every rule is asked; with each
other one, a rule of its own."""
WAITING = some(
    [(key, *rule) for key in SHAPES for rule in RULES],
    lambda case: case[0] == "chain" or case[1:] == RULES[SHAPES.index(case[0])],
)


@pytest.mark.parametrize(("key", "rule", "sampling"), WAITING)
def test_the_verdict_is_all_it_waits_for(
    key, rule, sampling, static_models, static_blocks, monkeypatch
):
    reads = Reads()
    for owner, name in ((verdict, "verify_tree"), (JudgeChance, "toss"), (sampled, "_nucleus")):
        monkeypatch.setattr(owner, name, reads.without(getattr(owner, name)))
    request = TextRequest(built(key, static_models), verifier(rule), sampling, PROMPT, 12)
    with reads:
        for _ in decode(static_models.target, request, recorded=False):
            assert reads.count == 1
            reads.count = 0
