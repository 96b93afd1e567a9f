"""SmartSpec: the time it predicts, the length it chooses, what it knows of other texts, and that no text changes."""

import itertools
import math
import time
from dataclasses import dataclass

import pytest
import torch

from engine.batch.together import decode_together
from engine.core.load import Acceptance, Load
from engine.core.options import resolve
from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.loops import run_loop
from engine.methods.none.drafter import NoDrafter
from engine.methods.smartspec import drafter as smartspec
from engine.methods.smartspec.drafter import ALONE, FIRST, SHARED, UNTIMED, SmartSpecDrafter
from engine.methods.smartspec.goodput import Round, best_length, expected_tokens, goodputs
from engine.methods.smartspec.round_costs import WAIT, FixedCosts, MeasuredCosts
from engine.model.language_model import LanguageModel
from engine.rules import verifier
from tests.drafters.writing import built, text_of
from tests.engine.tiny import VOCABULARY, tiny_hf_model, tiny_model

PROMPTS = [[3, 5, 7, 3, 5], [9, 2, 6, 5], [1, 8, 2]]


def test_expected_tokens_are_those_of_independent_coins():
    chance = 0.6
    for length, found in enumerate(expected_tokens(chance, 4)):
        truth = 0.0
        for coins in itertools.product([True, False], repeat=length):
            kept = len(list(itertools.takewhile(bool, coins)))
            truth += math.prod(chance if coin else 1 - chance for coin in coins) * (kept + 1)
        assert found == pytest.approx(truth)


def costs(draft, row, start=2.0):
    """Return costs measured in rounds at these prices. draft: milliseconds of a drafted token. row: of a row of a pass.
    start: of a pass itself."""
    found = MeasuredCosts()
    for step in range(80):
        length = step % 6
        times = {"draft": draft * length, "verify": start + row * (length + 1), "judge": 0.1}
        found.see(times, length, Load(rows=length + 1))
    return found


def chosen(chance, prices, coming=None):
    return best_length(goodputs(chance, 8, prices, coming or Round()))


def test_the_length_follows_acceptance_price_and_load():
    cheap, dear = costs(0.05, 0.05), costs(1.5, 0.8)
    by_chance = [chosen(chance, cheap) for chance in (0.05, 0.5, 0.7, 0.95)]
    assert by_chance == sorted(by_chance) and by_chance[0] <= 1 and by_chance[-1] == 8
    assert chosen(0.7, dear) == 0
    by_load = [chosen(0.7, costs(0.1, 0.3), Round(n)) for n in (1, 2, 4, 8, 16, 32)]
    assert by_load == sorted(by_load, reverse=True) and by_load[0] >= 2 and by_load[-1] == 0


@dataclass(eq=False)
class Prices:
    """Known prices, in place of measured costs."""

    drafted: float
    row: float
    start, rest, version = 2.0, 0.1, 0

    def draft(self, length):
        return self.drafted * length

    def verify(self, rows, context):
        return self.start + self.row * rows


def padded(asked):
    """Return the number of rows of a padded pass: every text has as many rows as the longest, in sizes of 1, 2, 4 and
    8."""
    return len(asked) * next(size for size in (1, 2, 4, 8) if size >= max(asked))


@pytest.mark.parametrize("rows_of", [sum, padded])
@pytest.mark.parametrize(("draft", "row"), [(0.05, 0.05), (0.3, 0.2), (0.2, 1.0), (1.0, 0.1)])
def test_texts_choose_about_as_well_as_one_mind(draft, row, rows_of):
    """Each text chooses for itself. Texts of three kinds, equally many and equally long, are written in about the time
    that the best of all combinations of lengths would take."""
    prices, most, start, rest = Prices(draft, row), 5, Prices.start, Prices.rest
    for chances in itertools.product((0.2, 0.6, 0.95), repeat=3):
        coming = Round(3, 0.0, chances, rows_of)
        tokens = [expected_tokens(chance, most) for chance in chances]

        def time(lengths, tokens=tokens):
            """Of a token of each kind."""
            total = 0.0
            for own, n in zip(tokens, lengths, strict=True):
                rows = 1 + n if rows_of is sum else padded([1 + max(lengths)])
                total += (start / 3 + row * rows + draft * n + rest) / own[n]
            return total

        ours = [best_length(goodputs(chance, most, prices, coming)) for chance in chances]
        best = min(map(time, itertools.product(range(most + 1), repeat=3)))
        assert time(ours) <= 1.1 * best, (chances, ours)


def test_measured_costs_predict_rounds_of_several_texts():
    """Three texts, each of which sees its own drafting time and a third of every pass."""
    found = MeasuredCosts()
    for step in range(80):
        length, rows = step % 4, 3 + step % 10
        verify = (5.0 + 0.5 * rows) / 3
        times = {"draft": 0.4 * length, "verify": verify, "judge": 0.2}
        for _ in range(3):
            found.see(times, length, Load(3, rows, 300, (0.5,) * 3))
    assert found.reading.sights == 80 - 10, "a pass counts once, and the first of a size not at all"
    coming = Round.after(Load(3, 9, 300, (0.5, 0.5, 0.5)), asked=0)
    own = goodputs(0.5, 2, found, coming)
    common = best_length(own)
    for length, goodput in enumerate(own):
        rows = 3 + 2 * common + length
        time = 0.4 * (2 * common + length) + 5.0 + 0.5 * rows + 3 * 0.2
        tokens = 2 * sum(0.5**n for n in range(common + 1)) + sum(0.5**n for n in range(length + 1))
        assert goodput == pytest.approx(tokens / time, rel=0.1)


@pytest.fixture(scope="module")
def target():
    return tiny_model()


def drafting(target, noise, **options):
    """Return SmartSpec whose draft is the target with this much noise."""
    torch.manual_seed(1)
    module = tiny_hf_model()
    with torch.no_grad():
        for weight in module.parameters():
            weight += noise * torch.randn_like(weight)
    settings = resolve("smartspec", SmartSpecDrafter.options, options)
    return SmartSpecDrafter(settings, LanguageModel(module, None, "draft"), VOCABULARY)


def request(drafter, prompt, count=40):
    return TextRequest(drafter, verifier("greedy"), Sampling(), prompt, count)


def test_each_text_of_a_round_has_its_own_length():
    """One draft is always right, the other never: where each text pays for its own rows, only the first keeps drafting."""
    target = LanguageModel(tiny_hf_model(), None, "t")
    given = [drafting(target, noise, row_cost=0.3) for noise in (0.0, 3.0)]
    steps = [[], []]
    for index, step in decode_together(target, [request(d, PROMPTS[0]) for d in given]):
        steps[index].append(len(step.tree))
    assert steps[0][-2] >= 6 and sum(steps[1][4:]) <= len(steps[1]) // 4


def test_a_text_that_drafts_nothing_tries_again_now_and_then(target):
    lengths = [
        len(step.tree)
        for step in run_loop(target, request(drafting(target, 3.0, row_cost=0.85), PROMPTS[0], 80))
    ]
    tries = [place for place, length in enumerate(lengths) if length]
    assert tries == [WAIT, 3 * WAIT + 1, 7 * WAIT + 2]
    assert {lengths[place] for place in tries} == {1}


def test_where_even_kept_tokens_would_not_pay_nothing_is_tried(target):
    steps = run_loop(target, request(drafting(target, 0.0, row_cost=1.2), PROMPTS[0], 40))
    assert not any(len(step.tree) for step in steps)


class Fixed(MeasuredCosts):
    """Fixed prices, in place of measured costs. With three texts, drafts for all of them seem not to pay while 0.85 of
    the tokens are accepted, and would pay at 0.925. Drafts for one text would not pay even if all were accepted."""

    known, price = True, 0.05
    rest = property(lambda self: 0.0, lambda self, value: None)

    def draft(self, length):
        return self.price * length

    def verify(self, rows, context):
        return {3: 1.0, 6: 1.8, 12: 2.8, 24: 4.0, 48: 8.0}[rows]


class Dear(Fixed):
    price = 1.0


@pytest.mark.parametrize("prices", [Fixed, Dear])
def test_texts_of_a_pass_try_again_in_the_same_round(target, prices):
    first = drafting(target, 3.0)
    given = [first] + [SmartSpecDrafter(first.settings, first.draft, VOCABULARY) for _ in range(2)]
    smartspec._COSTS[first.draft] = prices()
    rounds: dict[int, set[int]] = {}
    for _, step in decode_together(target, [request(d, p) for d, p in zip(given, PROMPTS)]):
        rounds.setdefault(step.index, set()).add(len(step.tree))
    tries = [index for index, lengths in rounds.items() if lengths != {0}]
    # the first round, in which prompts are read, does not count; a text learns of the others' refusals a round later
    assert tries == ([1 + WAIT, 2 + WAIT] if prices is Fixed else [])
    assert all(rounds[n] == {FIRST} for n in tries)


def test_what_texts_with_shared_passes_learned_of_costs_serves_the_next(target):
    first = drafting(target, 0.05)
    opened = []
    for _ in range(2):
        pair = [SmartSpecDrafter(first.settings, first.draft, VOCABULARY) for _ in range(2)]
        shown = [[], []]
        for index, step in decode_together(target, [request(d, PROMPTS[0], 20) for d in pair]):
            shown[index].append(bool(step.tree.exhibits))
        opened.append(shown[0][: len(SHARED)])
    assert opened == [[False] * len(SHARED), [True] * len(SHARED)]


def test_slow_first_drafts_do_not_end_drafting(target, monkeypatch):
    """The timed draft of the opening takes 0.3 seconds, as a draft does for which something is compiled."""
    chain = SmartSpecDrafter._chain

    def slow(self, *given):
        if self._steps == UNTIMED:
            time.sleep(0.3)
        return chain(self, *given)

    monkeypatch.setattr(SmartSpecDrafter, "_chain", slow)
    first = drafting(target, 0.0)
    steps = list(run_loop(target, request(first, PROMPTS[0], 60)))
    assert any(len(step.tree) for step in steps[len(ALONE) : len(ALONE) + WAIT + 1])
    again = SmartSpecDrafter(first.settings, first.draft, VOCABULARY)
    lengths = [len(step.tree) for step in run_loop(target, request(again, PROMPTS[0], 20))]
    assert lengths[: len(ALONE)] == [*ALONE], "one text's slow start is its own"


class Watching(NoDrafter):
    """A drafter that drafts nothing, and records what it learns about the passes."""

    def begin(self, start):
        super().begin(start)
        self.loads = []

    def observe(self, kept):
        self.loads.append((kept.load, kept.milliseconds["verify"]))


def test_a_drafter_is_told_what_shared_its_pass(target):
    watching = Watching({})
    requests = [
        request(watching, PROMPTS[0], 6),
        request(built(SmartSpecDrafter, _models(target)), PROMPTS[1], 30),
        request(NoDrafter({}), PROMPTS[2], 3),
    ]
    rounds = {}
    for index, step in decode_together(target, requests):
        rounds.setdefault(step.index, {})[index] = step
    assert [load.texts for load, _ in watching.loads] == [3, 3, 3, 2, 2, 2]
    shares = [Acceptance() for _ in requests]
    for index, (load, share) in enumerate(watching.loads):
        steps = rounds[index]
        rows = [1 + len(step.tree) for step in steps.values()]
        assert load.rows == 3 * padded(rows) // len(rows), "ended texts have rows, too"
        assert load.context == sum(step.position for step in steps.values())
        assert load.chances == tuple(shares[text].chance for text in steps)
        assert all(step.milliseconds["verify"] == share for step in steps.values())
        for text, step in steps.items():
            kept = len(step.verdict.accepted)
            shares[text].see(kept, min(kept + 1, len(step.tree)))

    alone = Watching({})
    positions = [step.position for step in run_loop(target, request(alone, PROMPTS[0], 4))]
    assert [load for load, _ in alone.loads] == [
        Load(1, 1, position, (Acceptance().chance,)) for position in positions
    ]


def _models(target):
    from engine.proof.tiny_parts import tiny_parts

    return tiny_parts(
        target, [SmartSpecDrafter], lambda module: LanguageModel(module, None, "part")
    )


@pytest.mark.parametrize(("load", "opening"), [(0, ALONE), (5, SHARED)])
def test_lengths_by_the_clock_leave_the_greedy_text_as_it_is(target, load, opening):
    plain = text_of(run_loop(target, request(NoDrafter({}), PROMPTS[0])))
    steps = list(run_loop(target, request(drafting(target, 0.05, load=load), PROMPTS[0])))
    assert text_of(steps) == plain
    assert [len(step.tree) for step in steps[: len(opening)]] == [*opening]


def test_what_it_shows_is_what_it_chose_by(target):
    steps = list(run_loop(target, request(drafting(target, 0.1, row_cost=0.1), PROMPTS[0])))
    for step in steps:
        by_length, by_load, share = (e.to_dict(str) for e in step.tree.exhibits)
        best = max(by_length["series"][0]["y"])
        assert by_length["series"][0]["y"][len(step.tree)] == best
        assert by_length["mark"] == len(step.tree) and 0 <= share["value"] <= 1
        with_draft, without = (series["y"] for series in by_load["series"])
        assert all(one >= other for one, other in zip(with_draft, without, strict=True))
    assert len({len(step.tree) for step in steps}) > 1


def test_the_share_that_is_kept_moves():
    found = Acceptance()
    for _ in range(40):
        found.see(3, 3)
    assert found.chance > 0.95
    for _ in range(40):
        found.see(0, 1)
    assert found.chance < 0.4
    assert chosen(0.9, FixedCosts(0.1)) > chosen(0.4, FixedCosts(0.1))
