"""A bandit that chooses for each step a drafter and a draft size, or no draft, by the cost of steps and recent
acceptance.

Each pair of a drafter and a size has an expected number of tokens and an expected time. The pair with the most tokens
per time is chosen; the estimate of a pair that was seldom used lately is raised by some hope. Two budgets bound the
cost of trying: the time that drafts have lost against plain decoding, and the time spent on pairs that are not expected
to be the best. This module has no models and no clocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import sqrt

from engine.core.arm import Arm
from engine.core.load import Acceptance

ROW = 0.04
"""Where no measurement exists: the cost of each further row of a pass, and of a row of the prompt, in passes over one
row."""
REGRET = 0.018
"""The time that drafts may lose in all, as a share of the time of plain decoding."""
AHEAD, CREDIT = 0.4, 200
"""AHEAD: the share of the time allowed by REGRET that is granted in advance, for tokens that are requested but not yet
written. CREDIT: the most such tokens."""
LEAST = 1.0  # time that drafts may lose in any text, in passes over one row
COPIES = 0.5
"""Time that may be lost only by copies, in passes over one row. It is reserved for them because a refused copy loses
little, and a text may turn to copying anywhere."""
EXPLORED = 0.03  # share of the time that may go to pairs that are not expected to be the best
WORTH = 1.02  # a draft is expected to pay from this many times the speed of plain decoding on
HOPE = 0.2
"""How much better a pair that was never used may prove than expected: the share by which its time, and its rate of
rejections, may be lower. The share falls with use."""
FIRST = 2  # a drafter without measured times may only use this many of its smallest sizes
AGEING = 0.99  # an observation keeps this share of its weight per step
REFRESHED = 8  # the offers of an idle drafter are made again after this many steps
HORIZON = 24  # steps over which the cost of catching up with the text is spread
USUAL = 8  # a step's time is recorded only if its drafter had at most this many tokens to read
FORGETTING = 0.95  # weight of earlier steps in the promised and the written tokens, per step
HICCUP = 2.0  # a step with a draft counts for at most this many times its expected cost
KNOWN = 2  # steps after which a measured time is trusted
BELIEF = 3.0  # tokens by which the first guess counts beside the observations


@dataclass
class Cost:
    """The time of one kind of step: a moving mean that a busy moment of the machine changes only a little. sights: the
    number of steps that were timed."""

    milliseconds: float = 0.0
    sights: int = 0

    def see(self, milliseconds: float) -> None:
        # noise only lengthens a step, so a much longer mean before it was a hiccup; the first step often is one
        hiccup = 1.3 if self.sights == 1 else 3.0
        if not self.sights or hiccup * milliseconds < self.milliseconds:
            self.milliseconds = milliseconds
        else:
            change = min(milliseconds, 2 * self.milliseconds) - self.milliseconds
            self.milliseconds += max(0.1, 1 / (self.sights + 1)) * change
        self.sights += 1


@dataclass(frozen=True)
class Offer:
    """One drafter with one draft size, and what a step with them is expected to yield. promise: expected tokens of the
    step, the final token included. tokens: ``promise``, corrected by how well the drafter's earlier promises were kept.
    cost: milliseconds of the step. catch_up: milliseconds in which the drafter first reads the text that it has missed.
    hoped: tokens per millisecond, with some hope."""

    source: Source
    size: int
    promise: float
    tokens: float
    cost: float
    catch_up: float
    hoped: float

    @property
    def speed(self) -> float:
        return self.tokens / (self.cost + self.catch_up / HORIZON)


def guessed_pass(size: int) -> float:
    """Return the guessed cost of a pass over a draft of this size and its root, in passes over one row."""
    return 1 + ROW * size


class Source:
    """A drafter as the bandit sees it. behind: the number of tokens of the text that the drafter has not read yet."""

    def __init__(
        self,
        name: str,
        arm: Arm,
        costs: dict[int, Cost] | None = None,
        foresees: bool = False,
        a_pass: Callable[[int], float] = guessed_pass,
    ) -> None:
        """foresees: whether the drafter knows before each step how likely each of its tokens is to be kept. a_pass: the
        cost of a pass by draft size, as ``guessed_pass``. costs: measured costs of steps in earlier texts, by size."""
        self.foresees, self._a_pass = foresees, a_pass
        self.name, self.arm = name, arm
        self.costs = {} if costs is None else costs
        self._seen: tuple[int, float] | None = None  # the size timed last, and its cost
        for size, cost in self.costs.items():  # costs of earlier texts
            cost.sights = min(cost.sights, KNOWN)
            self._seen = size, cost.milliseconds
        self.acceptance = Acceptance(arm.chance)
        self.behind = 0
        self.offers: list[Offer] = []
        self._yielded = self._promised = BELIEF
        self._lately = 0.0

    @property
    def chance(self) -> float:
        """The chance that a drafted token is kept, given that the tokens before it are kept."""
        seen = self.acceptance
        return (seen.kept + BELIEF * seen.guess) / (seen.judged + BELIEF)

    def offer(self, plain: float, chances: Sequence[float] | None = None) -> None:
        """Replace the drafter's offers by new ones. plain: milliseconds of a step without a draft. chances: for each
        token, the chance that the token is reached and kept; None if the drafter does not know these chances."""
        doubt = HOPE / sqrt(1 + self._lately)
        share = self._yielded / self._promised
        catch_up = self.arm.catch_up * self.behind * plain
        self.offers = []
        for size in self.arm.sizes:
            if chances is None:
                chance = self.chance
                promise = geometric(chance, size)
                best = geometric(chance + (1 - chance) * doubt, size)
            else:
                promise = best = 1 + sum(chances[:size])
            cost = self.cost(size, plain)
            hoped = best * share / ((cost + catch_up / HORIZON) * (1 - doubt))
            tokens = max(1.0, promise * share)
            self.offers.append(Offer(self, size, promise, tokens, cost, catch_up, hoped))
            if chances is not None and size >= len(chances):
                break

    @property
    def open_sizes(self) -> int | None:
        """How many of the drafter's sizes, from the smallest on, may be chosen; None if all may be."""
        return None if self._seen or self.foresees else FIRST

    def cost(self, size: int, plain: float) -> float:
        """Return the milliseconds of a step with this size, measured or guessed. A guess is scaled by the measured time
        of another size if there is one."""
        measured = self.costs.get(size)
        if measured is not None and measured.sights:
            return measured.milliseconds
        guess = self._guess(size, plain)
        if self._seen is None:
            return guess
        timed_size, milliseconds = self._seen
        return max(plain, guess * milliseconds / self._guess(timed_size, plain))

    def _guess(self, size: int, plain: float) -> float:
        arm = self.arm
        return plain * (self._a_pass(size) + arm.start + arm.token * size)

    def see(self, offer: Offer, kept: int, judged: int, tokens: int) -> None:
        """Record the outcome of a step that used this offer. kept, judged: numbers of drafted tokens. tokens: all
        tokens of the step."""
        self.acceptance.see(kept, judged)
        self._yielded = FORGETTING * self._yielded + (1 - FORGETTING) * BELIEF + tokens
        self._promised = FORGETTING * self._promised + (1 - FORGETTING) * BELIEF + offer.promise
        self._lately += 1

    def time(self, size: int, milliseconds: float) -> None:
        """Record the time of a step. If the drafter had much of the text to read first, the time is skipped, because it
        does not predict the times of later steps."""
        if self.behind <= USUAL:
            self.costs.setdefault(size, Cost()).see(milliseconds)
            self._seen = size, self.costs[size].milliseconds

    def age(self, steps: int) -> None:
        """Lower the weight of all observations, because this many steps have passed without this drafter."""
        weight = AGEING**steps
        self._lately *= weight
        self.acceptance.kept *= weight
        self.acceptance.judged *= weight
        self._yielded = BELIEF + weight * (self._yielded - BELIEF)
        self._promised = BELIEF + weight * (self._promised - BELIEF)


def geometric(chance: float, size: int) -> float:
    """Return the expected tokens of a step of this size, the final token included, if each drafted token is kept with
    this chance."""
    return size + 1.0 if chance >= 1 else (1 - chance ** (size + 1)) / (1 - chance)


@dataclass
class Bandit:
    """The choices for one text. plain: the cost of a step without a draft; None if costs are not measured but guessed,
    in passes over one row. asked: the most tokens to be written. prompt: the number of the prompt's tokens. lost: how
    much longer the steps with drafts took than plain decoding of the same tokens."""

    sources: list[Source]
    plain: Cost | None
    asked: int
    prompt: int
    lost: float = 0.0
    written: int = 0
    _spent: float = 0.0
    _explored: float = 0.0
    _steps: int = 0
    _plain_lately: float = field(default=1.0)

    @property
    def pass_time(self) -> float:
        return 1.0 if self.plain is None else self.plain.milliseconds

    @property
    def allowed(self) -> float:
        """The most time that drafts may have lost up to now."""
        coming = min(self.asked, CREDIT) + ROW * self.prompt
        tokens = AHEAD * coming + (1 - AHEAD) * self.written
        return self.pass_time * max(LEAST, REGRET * tokens)

    @property
    def ready(self) -> bool:
        """Whether the cost of plain decoding is known."""
        return self.plain is None or self.plain.sights >= KNOWN

    def affords(self, milliseconds: float) -> bool:
        """Whether drafts may lose this much more time now."""
        return self.lost + milliseconds <= self.allowed

    def choose(self, room: int, able: Sequence[Source]) -> Offer | None:
        """Return the offer to take, or None for a step without a draft. room: the most tokens that a draft may have.
        able: the drafters that can draft now."""
        if not self.ready:
            return None
        plain = self.pass_time
        if self.lost > self.allowed:
            return None
        for source in able:
            if not source.offers and not source.foresees:
                source.offer(plain)
        speed, best = WORTH / plain, None
        # the time that may be lost is saved for the offer with the most hope, even if it cannot be afforded yet
        saved = False
        hoped, hope = 1 / (plain * (1 - HOPE / sqrt(1 + self._plain_lately))), None
        spare = self.allowed - self.lost + plain
        reserved = COPIES * plain if any(source.foresees for source in self.sources) else 0.0
        for source in able:
            most = spare if source.foresees else spare - reserved
            for number, offer in enumerate(source.offers[: source.open_sizes]):
                if number and offer.size > room:
                    break
                affordable = offer.cost + offer.catch_up <= most
                if affordable and offer.speed > speed:
                    speed, best = offer.speed, offer
                if offer.hoped > hoped:
                    hoped, hope, saved = offer.hoped, offer, not affordable
        if saved or hope is best:
            return best
        cost, tokens = (plain, 1.0) if hope is None else (hope.cost + hope.catch_up, hope.tokens)
        price = max(0.0, cost - tokens / speed)
        if self._explored + price > EXPLORED * self._spent + LEAST * plain:
            return best
        self._explored += price
        return hope

    def passed(
        self, milliseconds: float, tokens: int, offer: Offer | None, looked: float = 0.0
    ) -> None:
        """Record a step: its time, its tokens, and the offer that it used, if it had a draft. looked: milliseconds
        spent on looking for copies, which ``milliseconds`` does not include."""
        self._steps += 1
        self.written += tokens
        self._spent += milliseconds + looked
        self.lost += looked
        self._plain_lately *= AGEING
        for number, source in enumerate(self.sources):
            if offer is not None and offer.source is source:
                if self.plain is not None:
                    source.time(offer.size, milliseconds)
                source.offers = []
            elif (self._steps + number) % REFRESHED == 0:
                source.age(REFRESHED)
                source.offers = []
        if offer is not None:
            # a longer time is a hiccup of the machine, such as the very first call of a graph
            counted = min(milliseconds, HICCUP * (offer.cost + offer.catch_up))
            self.lost += counted - tokens * self.pass_time
            return
        self._plain_lately += 1
        if self.plain is not None:
            self.plain.see(milliseconds)
