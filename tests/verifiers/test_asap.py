"""ASAp keeps exactly the law that earlier texts taught it, whatever is drafted, and that law nears the target's own."""

import copy
from dataclasses import replace
from itertools import pairwise

import pytest

from engine.core.memory import Memory
from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.errors import UserError
from engine.loops import run_loop
from engine.methods import drafters
from engine.methods.asap import prefixes
from engine.methods.asap.prefixes import Prefixes
from engine.methods.asap.rule import Asap
from engine.methods.awrs.rule import Awrs
from engine.methods.none.drafter import NoDrafter
from engine.proof import aligned_figures
from engine.proof.listed_texts import Laws, Listed, apart, every_text, written
from engine.run import RunRequest
from engine.run.run_plan import Plan
from presets import family
from tests.drafters.writing import built
from tests.verifiers.tiny import remembered_models

PROMPT = (1, 2, 0, 1, 2)
EXACT = 1e-5
TEXTS = [(1, 1), (2, 2), (2, 3), (3, 1), (3, 2), (3, 3)]


@pytest.fixture(scope="module")
def models():
    return remembered_models(4, 0)


@pytest.fixture(scope="module")
def laws(models):
    return Laws(models.target, PROMPT, TEXTS)


def text(models, key, rule, *given):
    drafter = built(drafters()[key], models, **({"length": 1} if key == "chain" else {}))
    return written(models.target, drafter, rule, PROMPT, Listed(TEXTS, 4), *given)


def law_of_a_text(models, key, memory, rule=Asap):
    def write(judge, chance):
        return text(models, key, judge, 0, copy.deepcopy(memory), chance)

    return every_text(write, rule)[0]


def taught(models, texts) -> tuple[Memory, dict]:
    """Return a memory after some texts, and the bounds that it holds."""
    memory = Memory()
    for seed in range(texts):
        rule = Asap()
        text(models, "chain", rule, seed, memory)
    return memory, rule.learned()


def weighed(laws, bounds):
    return laws.masked(lambda prefix: bounds.get(prefix, 1.0))


class OnlyDrafted(Asap):
    """A fault: it weighs the drafted tokens, and leaves the other tokens as they are."""

    def judge(self, case):
        self._tokens = {*case.tree.tokens}
        return super().judge(case)

    def _begin(self, *given):
        super()._begin(*given)
        below = self._weights.below
        self._weights.below = lambda prefix: {
            token: bound for token, bound in below(prefix).items() if token in self._tokens
        }


@pytest.mark.parametrize("key", ["none", "chain"])
def test_a_text_has_the_law_that_earlier_texts_taught(models, laws, key):
    first = law_of_a_text(models, key, Memory())
    assert apart(first, laws.masked()) < EXACT, "the first text is that of masked decoding"
    memory, bounds = taught(models, 3)
    expected = weighed(laws, bounds)
    assert apart(expected, laws.masked()) > 1000 * EXACT, "this would not show a fault"
    assert apart(law_of_a_text(models, key, memory), expected) < EXACT


def test_a_planted_bias_is_caught(models, laws):
    memory, bounds = taught(models, 3)
    expected = weighed(laws, bounds)
    assert apart(law_of_a_text(models, "chain", memory, OnlyDrafted), expected) > 100 * EXACT


def test_bounds_lie_above_the_truth_and_come_down_to_it(models, laws):
    _, few = taught(models, 2)
    _, many = taught(models, 40)
    for bounds in (few, many):
        assert all(
            bound > laws.valid(prefix) - EXACT
            for prefix, bound in bounds.items()
            if 0 not in prefix
        )
    assert many[()] < few[()]
    assert many[()] == pytest.approx(laws.valid(), abs=EXACT)


def test_the_law_falls_to_the_targets_own_and_faster_with_drafts():
    """Total variation to the global law, the mean over several memories; ``measured`` runs the real loop and rule."""
    figures = aligned_figures.measured()
    whole, masked = figures.laws["global"], figures.laws["masked"]
    plain, drafted = figures.apart.values()
    for line in (plain, drafted):
        assert line[0] == pytest.approx(apart(masked, whole))
        assert all(later <= earlier + EXACT for earlier, later in pairwise(line[::8]))
        assert line[-1] < line[0] / 4
    assert sum(drafted) < 0.9 * sum(plain)
    assert apart(figures.laws["ASAp 100"], whole) < EXACT
    for name in ("AWRS drawn", "AWRS weighed"):
        assert apart(figures.laws[name], masked if name == "AWRS drawn" else whole) < EXACT


def test_a_visitors_memory_stays_bounded(monkeypatch):
    monkeypatch.setattr(prefixes, "MOST_BYTES", 1000)
    store = Prefixes()
    for token in range(10):
        store.see((token,), 0.1, 0.5)
    assert len(store) == 3 and store.nbytes <= 1000
    assert store.bounds() == {(token,): 0.5 for token in range(3)}


@pytest.mark.parametrize("rule", [Asap, Awrs])
@pytest.mark.parametrize(
    "sampling, words",
    [
        (Sampling(0.0), "temperature above 0"),
        (Sampling(1.0, top_k=2), "leave out top-k"),
        (Sampling(1.0, top_p=0.5), "leave out top-k"),
    ],
)
def test_a_law_that_is_cut_is_refused(models, rule, sampling, words):
    request = TextRequest(NoDrafter({}), rule(), sampling, PROMPT, 4, constraint=Listed(TEXTS, 4))
    with pytest.raises(UserError, match=words):
        list(run_loop(models.target, request))


class Ends(Listed):
    """After a 1 no token may come."""

    def allowed(self, continuation):
        path = (*self.text, *continuation)
        if path == (1,):
            raise_at_once = not continuation
            if raise_at_once:
                raise UserError("No token may come next.")
            self.ended = True
            return None
        return super().allowed(continuation)

    def dead(self, continuation):
        return (*self.text, *continuation) == (1,)


def test_a_dead_end_is_avoided_once_it_was_seen(models):
    """A constraint that dies in the middle teaches as well."""
    memory, rule = Memory(), Asap()
    firsts = []
    for seed in range(12):
        constraint, rule = Ends(TEXTS, 4), Asap()
        try:
            drafter = built(drafters()["chain"], models)
            firsts.append(
                written(models.target, drafter, rule, PROMPT, constraint, seed, memory)[0]
            )
        except UserError as error:
            assert str(error) == "No token may come next."
            firsts.append(1)
    assert 1 in firsts and 1 not in firsts[firsts.index(1) + 1 :]
    assert rule.learned()[(1,)] == 0


def test_a_constraint_without_a_text_is_told_in_one_sentence(models):
    memory, rule = Memory(), Asap()
    text(models, "none", rule, 0, memory)
    rule._store.see((), 1.0, 0.0)
    with pytest.raises(UserError, match="No text that the constraint allows"):
        text(models, "none", Asap(), 1, memory)


def test_a_loop_without_bounds_is_refused():
    """Drafts that are judged before the target has read them have no p to be weighed."""
    request = RunRequest("Once", family(), drafter="pearl", verifier="asap", temperature=1.0)
    Plan.of(request)
    with pytest.raises(UserError, match="cannot judge pearl"):
        Plan.of(replace(request, json_schema="{}"))
