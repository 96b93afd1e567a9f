"""Speeds, causes and answers against numbers made by hand."""

from dataclasses import replace
from itertools import product

import pytest

from engine.core.sampling import Sampling
from engine.errors import UserError
from engine.methods import drafter
from engine.tune.answering import answer, best, crossing, off_above
from engine.tune.candidates import ALL, Candidate, plain, worth_trying
from engine.tune.cost_table import CostTable, interpolated
from engine.tune.kept_counts import Counts, steady_sum
from engine.tune.narrowing import still_in
from engine.tune.other_machines import Sizes, estimates, pasted
from engine.tune.remaining_time import RemainingTime
from engine.tune.speed_prediction import Speed, longest_of, speed_of, tokens_a_second, why
from engine.tune.tuning_request import OtherMachine
from presets import family
from presets.tuning import machine_named


def times(draft=0.0, verify=0.0, judge=0.0, commit=0.0) -> dict[str, float]:
    return {"draft": draft, "verify": verify, "judge": judge, "commit": commit}


def chain(size: int, counts: Counts) -> Candidate:
    return Candidate(drafter("chain"), size, "greedy", 1, {ALL: counts}, beside=(100, 1100.0))


PLAIN = plain(Sampling())
PLAIN.counts[ALL] = Counts(100, 100, 0, 0, [], [100], times(verify=1000, commit=100))
"""10 ms a pass, 11 ms a token."""
TWO = chain(2, Counts(10, 22, 20, 20, [[10, 8], [8, 4]], [0, 0, 10], times(20, 120, 10, 10)))
"""Two tokens a step, 1.2 of them kept; 2 ms of drafting, 12 ms of the pass, 2 ms of the rest."""


def test_a_step_that_waits_once_is_a_long_step_and_no_more():
    usual = [10.0, 12.0, 11.0, 14.0, 10.0, 13.0, 12.0, 11.0, 10.0, 14.0, 12.0, 11.0]
    assert steady_sum(usual) == sum(usual)
    assert steady_sum([*usual[:6], 1500.0, *usual[6:]]) == sum(usual) + 2 * 14
    assert steady_sum([9.0, 9.0, 2000.0]) == 9 + 9 + 2 * 9
    assert steady_sum([3.0, 40.0]) == 43.0, "of two steps nobody can tell which is unusual"
    assert steady_sum([]) == 0.0


def test_the_longest_of_several_drafts_by_enumeration():
    lengths = [1, 0, 3, 2]
    drafts = [length for length, count in enumerate(lengths) for _ in range(count)]
    expected = [0.0] * 4
    for triple in product(drafts, repeat=3):
        expected[max(triple)] += 1 / len(drafts) ** 3
    assert longest_of(lengths, 3) == pytest.approx(expected)


def test_speed_by_hand():
    costs = CostTable(64, {("target", 4, 64): {1: 20.0, 2: 22.0, 4: 30.0}})
    assert tokens_a_second(TWO, PLAIN, 1, costs) == pytest.approx(2.2 / 16e-3)
    # four texts: three rows each: 26 ms, and four times 3 ms (a millisecond is plain decoding's)
    assert tokens_a_second(TWO, PLAIN, 4, costs) == pytest.approx(4 * 2.2 / 38e-3)
    assert tokens_a_second(PLAIN, PLAIN, 4, costs) == pytest.approx(4 * 1 / 20e-3)
    assert tokens_a_second(TWO, PLAIN, 8, costs) is None
    mixed = chain(2, Counts(10, 22, 20, 20, [[10, 8], [8, 4]], [5, 0, 5], times(20, 120, 10, 10)))
    # two rows each in the mean, whatever the longest draft has
    assert tokens_a_second(mixed, PLAIN, 4, costs) == pytest.approx(4 * 2.2 / 34e-3)


def test_padded_passes_by_hand():
    """Every text has the buffers of the longest and the rows of the longest draft, padded to a measured number."""
    padded = CostTable(64, {("target", 4, 90): {1: 20.0, 2: 22.0, 4: 30.0}}, longest=90)
    assert tokens_a_second(TWO, PLAIN, 4, padded) == pytest.approx(4 * 2.2 / 42e-3)
    mixed = chain(2, Counts(10, 22, 20, 20, [[10, 8], [8, 4]], [5, 0, 5], times(20, 120, 10, 10)))
    pass_ms = 20 / 16 + 30 * 15 / 16
    assert tokens_a_second(mixed, PLAIN, 4, padded) == pytest.approx(4 * 2.2e3 / (pass_ms + 12))
    beyond = CostTable(64, {("target", 4, 90): {1: 20.0, 2: 22.0}}, longest=90)
    assert beyond.milliseconds(3, 4) == pytest.approx(20 + 3 * 2)


def test_a_gain_for_several_texts_that_no_step_allows_is_not_known():
    def four_texts(single: float) -> Speed | None:
        costs = CostTable(64, {("target", 4, 64): {1: single, 2: 22.0, 4: 30.0}})
        return speed_of(TWO, PLAIN, 4, costs)

    # a step takes 38 ms and writes 2.2 tokens of each text
    assert four_texts(30.0).ratio == pytest.approx(2.2 * 30 / 38)
    assert four_texts(60.0) is None
    slow = plain(Sampling())
    slow.counts[ALL] = PLAIN.all
    candidate = chain(2, TWO.all)
    candidate.beside = (100, 11000.0)
    assert speed_of(candidate, slow, 1, CostTable(64)).ratio > 6, "one text is told in the answer"


def test_costs_lie_on_lines_between_the_measured_ones():
    known = {1: 10.0, 4: 16.0, 8: 40.0}
    assert [interpolated(known, at) for at in (0.5, 1, 2, 8)] == [10, 10, 12, 40]
    assert interpolated(known, 15) == pytest.approx(10 + 30 * 2)


@pytest.mark.parametrize(
    ("cause", "counts"),
    [
        ("draft too slow", Counts(10, 30, 40, 40, [[10, 8]] * 4, [0] * 4 + [10], times(400, 110))),
        ("too seldom kept", Counts(10, 12, 40, 40, [[10, 2]] * 4, [0] * 4 + [10], times(20, 110))),
        (
            "verification not free",
            Counts(10, 30, 40, 40, [[10, 8]] * 4, [0] * 4 + [10], times(20, 450)),
        ),
    ],
)
def test_the_cause_is_what_would_gain_most(cause, counts):
    assert why(chain(4, counts), PLAIN, 0.8)["cause"] == cause
    told = why(chain(4, counts), PLAIN, 1.5)
    tokens = counts.tokens_a_step
    assert told["cause"] == "pays"
    assert told["sentence"].startswith(
        f"A step writes {tokens:.2f} tokens in the time in which plain decoding writes {tokens / 1.5:.2f}. "
    )
    assert " ms" not in told["sentence"], "a second clock may contradict the ratio"


def test_the_share_that_is_done_never_falls():
    left = RemainingTime()
    for _ in range(2):
        left.wrote()
    before = left.line("Writing")["done"]
    left.other = 1000.0
    line = left.line("Writing")
    assert 0 < before <= line["done"] and line["seconds_left"] >= 1000


def speeds_of(candidate: Candidate, ratios: dict[int, float]) -> dict:
    return {(candidate.key, texts): Speed(100 * ratio, 100) for texts, ratio in ratios.items()}


def test_the_crossing_lies_between_two_measured_numbers_of_texts():
    texts = (1, 2, 4, 8)
    assert off_above(TWO, speeds_of(TWO, {1: 2, 2: 1.5, 4: 1.2, 8: 0.8}), texts) == 6
    assert off_above(TWO, speeds_of(TWO, {1: 2, 2: 1.5, 4: 1.2, 8: 1.1}), texts) is None
    assert off_above(TWO, speeds_of(TWO, {1: 0.9}), texts) == 0
    where = [crossing(each) for each in ({8: 0.8, 1: 2, 2: 1.5}, {1: 2, 2: 1}, {1: 0.9, 2: 2}, {})]
    assert where == [[2, 8], [2], [1], []], "what is checked: there the answer turns"


def test_of_sizes_that_are_as_fast_the_smaller_is_best_and_a_checked_one_goes_first():
    four, seven = (Candidate(drafter("chain"), size, "greedy") for size in (4, 7))
    speeds = {(four.key, 1): Speed(99, 50), (seven.key, 1): Speed(100, 50)}
    assert best([four, seven], speeds, 1) is four
    speeds[seven.key, 1] = Speed(100, 50, 90)
    assert best([four, seven], speeds, 1) is seven


def test_what_falls_behind_by_more_than_chance_explains_writes_no_more():
    fast, near, behind, slow = (
        Candidate(drafter("chain"), size, "greedy") for size in (7, 11, 4, 1)
    )
    speeds = speeds_of(fast, {1: 2.0, 8: 1.0}) | speeds_of(near, {1: 1.75, 8: 0.9})
    speeds |= speeds_of(behind, {1: 1.6, 8: 0.8}) | speeds_of(slow, {1: 1.0, 8: 1.3})
    everyone = [slow, behind, near, fast]
    # after four prompts a gain strays by 0.35 / 2: what may not reach 2.06 for one text, and
    # what is below 1.0725 for eight, has lost
    assert still_in(everyone, speeds, (1,), 4) == [fast, near]
    assert still_in(everyone, speeds, (1, 8), 4) == [fast, near, slow]
    assert still_in(everyone, speeds | speeds_of(near, {1: 1.75, 8: 1.1}), (1, 8), 4) == [
        fast,
        near,
    ]
    # another size may be faster by 0.3: what is below 1.11 has lost
    assert still_in(everyone, speeds, (1,), 4, slack=0.3) == [fast, near, behind]


@pytest.mark.parametrize(("prompts", "left"), [(2, 2), (6, 1)])
def test_a_difference_that_every_prompt_shows_is_no_chance(prompts, left):
    """Gains between 1 and 3 that another size shares, but for a tenth less on each prompt: after six, that is enough,
    though a gain alone may stray by more. On uneven prompts, or where a prompt's counts are not known, it is not. Who
    is as fast on every prompt need not go on, either."""
    gains = [1.0, 3.0, 1.5, 2.5, 1.2, 2.8][:prompts]
    fast, behind = written(7, gains), written(11, [0.9 * gain for gain in gains])
    uneven, alike = written(4, [0.9 * gain for gain in gains[::-1]]), written(9, gains)
    unknown = replace(behind, size=2, earlier={})
    for other, stay in ((behind, left), (alike, left), (uneven, 2), (unknown, 2)):
        speeds = speeds_of(fast, {1: 2.0}) | speeds_of(other, {1: 1.8})
        assert still_in([other, fast], speeds, (1,), prompts) == [fast, other][:stay]


def written(size: int, gains: list[float]) -> Candidate:
    """A candidate whose texts of ten tokens had these gains, and plain decoding ten milliseconds a token."""
    candidate = Candidate(drafter("chain"), size, "greedy")
    for gain in gains:
        counts, plainly = (Counts(10, 10, milliseconds=times(100 / each)) for each in (gain, 1))
        candidate.add("stories", counts, plainly)
    return candidate


def test_the_answer_is_a_sentence():
    link = {"prompt": "p", "temperature": 0.0, "seed": 0}
    speeds = speeds_of(TWO, {1: 2.13, 2: 1.5, 4: 0.5})
    told = answer([TWO], PLAIN, speeds, (1, 2, 4), link)
    assert told["sentence"] == (
        "Chain (`chain`), 2 tokens: 2.1 times plain decoding for one text; switch it off above 3 texts."
    )
    assert told["preset_link"] == {"drafter": "chain", "options": {"length": 2}, **link}
    early = replace(TWO, size=9)
    told = answer([early], PLAIN, speeds_of(early, {1: 1.5}), (1,), link)
    assert told["sentence"].startswith(
        "Chain (`chain`), drafts of up to 9 tokens, 2.0 on average: 1.5 times plain"
    )
    slow = answer([TWO], PLAIN, speeds_of(TWO, {1: 0.7}), (1,), link)
    assert slow["drafter"] == "none" and slow["best_tried"]["drafter"] == "chain"
    assert slow["sentence"].startswith("Plain decoding: ") and slow["why"]["cause"] != "pays"


def test_an_estimate_by_hand():
    (machine,) = (OtherMachine("m", bandwidth=100, arithmetic=1000),)
    # a pass: 1e9 parameters of 2 bytes at 100 GB/s are 20 ms; 2e9 operations a row at 1000 GFLOP/s are 2 ms
    sizes = Sizes(1_000_000_000, 50_000_000)  # the draft's pass: 1 ms
    one, sixteen = estimates(machine, [TWO], PLAIN, (1, 16), sizes)
    assert (one["kind"], one["machine"], one["checked"]) == ("estimate", "m", None)
    assert one["predicted"] == pytest.approx(2.2 / 22e-3) and one["plain"] == pytest.approx(50)
    # 48 rows are 96 ms, and the draft's pass over 16 rows is 1.6 ms
    assert sixteen["predicted"] == pytest.approx(16 * 2.2 / (96 + 2 * 1.6) * 1e3, rel=1e-4)
    assert sixteen["plain"] == pytest.approx(16 / 32e-3)


def test_pasted_costs_are_used_as_far_as_they_reach():
    machine = pasted("1:20, 4:23,8:30")
    (one,) = estimates(machine, [TWO], PLAIN, (1, 8), Sizes(1))
    # three rows: 22 ms; drafting costs a fifth of a pass here, so 4 ms there
    assert one["texts"] == 1 and one["predicted"] == pytest.approx(2.2 / 26e-3, rel=1e-4)
    for wrong in ("", "1", "2:20", "1:x", "0:3,1:2", "1:-1", "1:inf", "1:nan"):
        with pytest.raises(UserError, match="Costs"):
            pasted(wrong)


def test_a_machine_is_named_by_a_part_of_its_name():
    assert machine_named("l4").name == "NVIDIA L4"
    for wrong in ("nvidia", "", "abacus"):
        with pytest.raises(UserError, match="known are"):
            machine_named(wrong)


def test_worth_trying_is_what_keeps_the_text_and_has_a_size():
    found = {cls.key for cls in worth_trying(family(), Sampling(temperature=1.0))}
    assert {"chain", "eagle", "prompt_lookup"} <= found and not {
        "none",
        "auto",
        "bild",
        "pearl",
        "specvlm_video",  # the prompts hold no pictures
    } & found
    alone = worth_trying(type(family())(family().target), Sampling())
    assert alone and not any(cls.needs for cls in alone)


def test_a_gain_that_no_step_allows_is_told_as_a_busy_machine():
    tokens = TWO.all.tokens_a_step
    link = {"prompt": "p", "temperature": 0.0, "seed": 0}
    told = answer([TWO], PLAIN, speeds_of(TWO, {1: 1.2 * tokens, 2: 1.5, 4: 0.5}), (1, 2, 4), link)
    assert told["sentence"].startswith("The machine was too busy") and told["why"] is None
    assert told["off_above"] is None
    usual = answer([TWO], PLAIN, speeds_of(TWO, {1: 0.9 * tokens}), (1,), link)
    assert "too busy" not in usual["sentence"] and usual["why"]
