"""Unrecorded runs: judged within the target's pass, drafted on the device, with the same text."""

import pytest

from engine.batch.together import decode_together
from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.core.tree import DraftTree
from engine.fast.gpu.device_tree import DeviceTree
from engine.fast.gpu.inputs import Size
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
    """Every drafter with every rule; ``make test`` takes one of the rules for each drafter, in turns."""
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
    """Whether the tree's draws, including repeated ones, fit in a pass that judges it."""
    return sum(map(len, tree.draws.values())) <= Size.of(1 + len(tree), 0).rows


def is_plain(draft) -> bool:
    """Whether a pass over only the root and the tree reads it; other passes do not judge."""
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
    """Drafts every token with one child each, so that kept rows never stand where they must end up."""

    draw_kinds = ("one_hot",)

    def propose(self, context, max_depth):
        tree = DraftTree()
        for token in reversed(range(VOCABULARY)):
            child = tree.draw(-1, token, source="wide")
            tree.draw(child, (7 * token + len(context)) % VOCABULARY, source="wide")
        return tree


@pytest.mark.parametrize("architecture", sorted(CONFIGS))
def test_rows_are_moved_within_the_pass(architecture, judged):
    """Trees under windows, caps and sinks, against passes that only read."""
    plain, static = (
        language_model(tiny_hf_model(architecture), None, "t", lean=False, static=static)
        for static in (False, True)
    )
    prompt = list(range(2, 20))
    for rule, sampling in RULES[:2]:
        ours, theirs = (
            steps_of(Models(one), Wide({}), rule, sampling, recorded, prompt)
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
            static_models, built(key, static_models), rule, sampling, True, prompt, 8 + index % 9
        )
        for index, (key, prompt) in enumerate(zip(keys, prompts, strict=True))
    ]
    several = [
        TextRequest(built(key, static_models), verifier(rule), sampling, prompt, 8 + index % 9)
        for index, (key, prompt) in enumerate(zip(keys, prompts, strict=True))
    ]
    found = [[] for _ in several]
    for index, step in decode_together(static_models.target, several, recorded=False):
        found[index].append(step)
    for ours, theirs in zip(found, expected, strict=True):
        assert_same(ours, theirs)
    assert judged == [True] * max(len(steps) for steps in found)
