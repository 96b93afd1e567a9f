"""How fast a run is against plain decoding, from rounds of both."""

from random import Random
from statistics import median

import pytest

from presets import presets
from presets.checked import checked
from presets.conditions import finished
from presets.fetched import sources
from presets.machines import machines
from presets.speed import FEWEST, GPU, MOST, SHORTEST, Costs, settled, speed

PLAIN = Costs(token=2.0, draft=0.0, verify=1.9, rows=1, passes=1, gain=1)
RUN = Costs(token=1.0, draft=1.9, verify=3.8, rows=9, passes=1, gain=4)


def rounds(*ratios: float) -> list:
    return [(PLAIN, RUN._replace(token=2.0 / ratio)) for ratio in ratios]


def test_one_busy_moment_changes_nothing():
    told = speed(rounds(2, 2, 2, 2, 0.2))
    assert told["ratio"] == 2 and told["high"] == 2 and told["rounds"] == 5
    assert (told["verify"], told["one"], told["draft"], told["rows"]) == (3.8, 1.9, 1.9, 9)


def test_the_projection_takes_the_price_of_a_pass_from_the_data_sheet():
    """Nine rows are as dear as one where reading the weights decides; a draft costs a pass, as here."""
    assert speed(rounds(2, 2))["gpu"] == {"machine": GPU, "ratio": 2.0}
    assert GPU in {machine["name"] for machine in machines()}
    several = [(PLAIN, RUN._replace(passes=2))] * 2
    assert speed(several)["gpu"] is None, "no step of one pass over a draft"


def test_rounds_are_made_until_more_would_change_little():
    assert not settled(rounds(*[2] * (FEWEST - 1))) and settled(rounds(*[2] * FEWEST))
    noisy = rounds(*[1, 2] * MOST)
    assert not settled(noisy[:FEWEST]) and settled(noisy[:MOST])


def press(chance: Random) -> float:
    """Return the measured speedup, after rounds whose two halves vary by five percent, and of which other work disturbs
    some."""
    made: list = []
    while not settled(made):
        plain, run = (
            one.token
            * chance.lognormvariate(0, 0.05)
            * chance.choice([chance.uniform(1, 3)] + 9 * [1])
            for one in (PLAIN, RUN)
        )
        made.append((PLAIN._replace(token=plain), RUN._replace(token=run)))
    return speed(made)["ratio"]


def test_ten_presses_of_run_tell_the_same_within_ten_percent():
    for seed in range(30):
        chance = Random(seed)
        told = [press(chance) for _ in range(10)]
        assert max(abs(ratio / median(told) - 1) for ratio in told) < 0.1, seed


@pytest.mark.parametrize("name", [one.name for one in presets() if one.models not in sources()])
def test_every_example_of_the_strip_that_drafts_has_its_speed(name):
    trace = finished(name)[""]
    drafts = trace.run["drafter"]["family"] != "none" and trace.summary["new_tokens"] >= SHORTEST
    told = checked()[name].get("speed")
    assert bool(told) == drafts
    if told:
        assert told["low"] <= told["ratio"] <= told["high"] and told["machine"]
