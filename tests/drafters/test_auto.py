"""The drafter that picks a drafter at every step: what it leaves, what it finds, what it may lose, and that it is exact."""

from dataclasses import dataclass
from functools import cache
from random import Random

import pytest

from engine.core.arm import Arm
from engine.core.exhibits import Gauge, Later, Matrix
from engine.core.sampling import Sampling
from engine.methods import drafters
from engine.methods.auto.bandit import REGRET, Bandit, Cost, Source, geometric
from engine.methods.auto.drafter import armed
from tests.drafters.writing import steps_of, text_of
from tests.verifiers.tiny import shared_models

KEY = "auto"
TEXT = [1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3]
GUESSED = Arm((2, 4, 8), 0.7, token=0.1)


@dataclass
class Planted:
    """The planted truth about a drafter: the chance that each drafted token is accepted, and the milliseconds of a
    step, which depend on its size."""

    chance: float
    start: float
    token: float
    arm: Arm = GUESSED


PLAIN = 10.0


def played(*planted: Planted, tokens: int = 200, seed: int = 0) -> tuple[Bandit, float, list]:
    """Write a text on a scripted clock. Returns the bandit, the milliseconds spent, and for each step the number of its
    drafter, or None."""
    chance, spent, chosen = Random(seed), 0.0, []
    sources = [Source(str(number), each.arm) for number, each in enumerate(planted)]
    bandit = Bandit(sources, Cost(), tokens, 20)
    while bandit.written < tokens:
        offer = bandit.choose(tokens - bandit.written, sources)
        number = kept = size = 0
        milliseconds = PLAIN * chance.uniform(0.97, 1.03)
        if offer is not None:
            number, size = sources.index(offer.source), offer.size
            nature = planted[number]
            milliseconds += nature.start + nature.token * size
            while kept < size and chance.random() < nature.chance:
                kept += 1
            offer.source.see(offer, kept, min(kept + 1, size), kept + 1)
        bandit.passed(milliseconds, kept + 1, offer)
        spent += milliseconds
        chosen.append(None if offer is None else number)
    return bandit, spent, chosen


GOOD, USELESS, DEAR = Planted(0.85, 1.0, 0.7), Planted(0.0, 3.0, 1.0), Planted(0.3, 6.0, 1.5)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("useless", [USELESS, DEAR], ids=["refused", "dear"])
def test_a_useless_drafter_is_left(useless, seed):
    _, _, chosen = played(useless, seed=seed)
    assert 0 in chosen[:10], "it is tried"
    assert chosen[100:].count(0) <= 10, "and left"


@pytest.mark.parametrize("seed", range(5))
def test_a_good_drafter_is_found_among_useless_ones(seed):
    """It is guessed to be the worst of three."""
    shy = Planted(GOOD.chance, GOOD.start, GOOD.token, Arm((2, 4, 8), 0.5, token=0.1))
    _, _, chosen = played(USELESS, shy, DEAR, tokens=400, seed=seed)
    assert chosen[-20:].count(1) >= 15


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("chance", [0.0, 0.2, 0.4])
def test_drafts_lose_no_more_than_their_share(chance, seed):
    """Whatever is planted: one step may overstep what is allowed by what its size was not known to cost."""
    planted = [Planted(chance, 2.0, 2.0), Planted(chance, 8.0, 0.5), Planted(chance, 1.0, 4.0)]
    bandit, spent, chosen = played(*planted, seed=seed)
    assert any(number is not None for number in chosen)
    assert bandit.lost <= bandit.allowed + PLAIN
    assert spent <= (1 + REGRET) * PLAIN * 200 * 1.01 + PLAIN


def test_the_size_follows_what_is_kept():
    sizes = {}
    for chance in (0.5, 0.97):
        source = Source("one", GUESSED)
        source.acceptance.judged, source.acceptance.kept = 20, 20 * chance
        source.offer(1.0)
        sizes[chance] = max(source.offers, key=lambda offer: offer.speed).size
    assert sizes[0.5] < sizes[0.97] == 8


def test_a_drafter_that_may_lose_much_leaves_some_of_it_to_copies():
    """It is tried at once where nothing copies, and else as soon as enough was written."""
    tried = {}
    for copies in (False, True):
        drafting = Source("drafts", Arm((4,), 0.7, token=0.12, catch_up=0.008))
        drafting.behind = 60
        sources = [drafting, Source("copies", Arm((4,), 0.6), foresees=True)][: 1 + copies]
        bandit = Bandit(sources, Cost(PLAIN, 2), 200, 20)
        while (offer := bandit.choose(16, sources)) is None:
            bandit.passed(PLAIN, 1, None)
        tried[copies] = bandit.written
        assert offer.source is drafting
    assert tried[False] == 0 and 10 < tried[True] < 100


def test_reading_what_was_missed_is_part_of_the_price():
    source = Source("one", Arm((4,), 0.7, catch_up=0.1))
    source.offer(1.0)
    fresh = source.offers[0]
    source.behind = 100
    source.offer(1.0)
    assert source.offers[0].speed < fresh.speed and source.offers[0].catch_up == pytest.approx(10.0)
    assert geometric(1.0, 4) == 5 and geometric(0.0, 4) == 1


def test_the_drafters_between_which_is_chosen_are_exact_and_have_a_size():
    assert {"suffix", "chain", "eagle", "dflash"} <= set(armed())
    for cls in armed().values():
        assert cls.size_option and cls.kinds(Sampling()) <= {"one_hot"} and not cls.uses_target


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=1.0, seed=3)])
@pytest.mark.parametrize("measured", [False, True])
def test_the_text_is_that_of_plain_decoding_whatever_is_chosen(sampling, measured):
    """Several drafters draft in one text; with measured times another choice may be made each time."""
    models = shared_models(16)
    rule = drafters()[KEY].own_rule(sampling)
    plain = text_of(steps_of(models, "none", TEXT, 40, sampling, rule))
    for _ in range(2 if measured else 1):
        steps = steps_of(models, KEY, TEXT, 40, sampling, rule, measured=measured, length=4)
        assert text_of(steps) == plain
    assert measured or any(len(step.tree) for step in steps)


@cache
def unmeasured():
    return steps_of(shared_models(16), KEY, TEXT, 40)


def test_without_measured_times_choices_are_repeated():
    runs = [unmeasured(), steps_of(shared_models(16), KEY, TEXT, 40)]
    first, second = ([(s.tree.tokens, s.tree.sources) for s in steps] for steps in runs)
    assert first == second and len({source for _, some in first for source in some}) > 1


def test_it_shows_why_it_chose():
    """The recorder makes these exhibits of any step, with a draft or without."""
    for step in unmeasured()[:-1]:
        made = [each.make() if isinstance(each, Later) else each for each in step.tree.exhibits]
        (speeds,) = (each for each in made if isinstance(each, Matrix))
        assert len(speeds.values) == len(speeds.rows) and "Chosen" in speeds.note
        assert any(isinstance(each, Gauge) and each.mark > 0 for each in made)
