"""Chooses the drafter and the size for a step, or no drafter, by the cost of steps and by recent acceptance.

A bandit with a prior. Each pair of a drafter and a size promises a number of tokens and a time; the pair with the most
tokens in its time is chosen, pairs that were seldom seen lately with some hope. Two budgets bound what that may cost: the
time that drafts have lost beside plain decoding, and the time spent on pairs that are not expected to be the best. There
are no models and no clocks here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import sqrt

from engine.core.arm import Arm
from engine.core.load import Acceptance

ROW = 0.04
"""Cost of a row of a pass beyond the first, in passes over one row, where it was not measured: of a prompt's rows too."""
REGRET = 0.018
"""The time that drafts may have lost, as a share of the time of plain decoding."""
AHEAD, CREDIT = 0.4, 200
"""The share of that which may be lost before anything is written, and the most tokens asked for that count for it."""
LEAST = 1.0  # passes over one row that drafts may lose in any text
COPIES = 0.5
"""Passes over one row, of those that may be lost, that are left to copies: a refused one loses little, and a text may turn to
copying at any place."""
EXPLORED = 0.03  # share of the time that pairs may cost that are not expected to be the best
WORTH = 1.02  # times the speed of plain decoding from which on a draft is expected to pay
HOPE = 0.2
"""The share of a time that may be missing, and of the refusals, where little was seen lately."""
FIRST = 2  # smallest sizes of a drafter of which one is tried first
AGEING = 0.99  # weight of what was seen, per step
REFRESHED = 8  # steps after which the offers of an idle drafter are made again
HORIZON = 24  # steps over which a drafter that catches up with the text is expected to draft
USUAL = 8  # unread tokens up to which a time counts as that of a usual step
FORGETTING = 0.95  # weight of earlier steps in what a drafter wrote beside its promises, per step
HICCUP = 2.0  # times what was expected that a step with a draft counts for at most
KNOWN = 2  # steps after which a time counts as known
BELIEF = 3.0  # tokens that count for the promises, at all times


@dataclass
class Cost:
    """Milliseconds of a step of one kind: a moving mean that a busy moment of the machine moves little. sights: how many
    steps were seen."""

    milliseconds: float = 0.0
    sights: int = 0

    def see(self, milliseconds: float) -> None:
        # no step is shorter than possible, so a much longer time before it was a hiccup; the first one often is
        hiccup = 1.3 if self.sights == 1 else 3.0
        if not self.sights or hiccup * milliseconds < self.milliseconds:
            self.milliseconds = milliseconds
        else:
            change = min(milliseconds, 2 * self.milliseconds) - self.milliseconds
            self.milliseconds += max(0.1, 1 / (self.sights + 1)) * change
        self.sights += 1


@dataclass(frozen=True)
class Offer:
    """A drafter and a size. promise: tokens of the step, the final one included, by the chances of its tokens. tokens: the
    same, as earlier promises were kept. cost: its milliseconds. catch_up: those of reading the text first. hoped: the
    speed, with some hope, in tokens a millisecond."""

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
    """The cost of a pass over a draft of this size and its root, in passes over one row."""
    return 1 + ROW * size


class Source:
    """A drafter as the bandit sees it. behind: tokens of the text that it has not read."""

    def __init__(
        self,
        name: str,
        arm: Arm,
        costs: dict[int, Cost] | None = None,
        foresees: bool = False,
        a_pass: Callable[[int], float] = guessed_pass,
    ) -> None:
        """foresees: whether it is told at each step what its tokens' chances are. a_pass: see ``guessed_pass``."""
        self.foresees, self._a_pass = foresees, a_pass
        self.name, self.arm = name, arm
        self.costs = {} if costs is None else costs
        self._seen: tuple[int, float] | None = None  # the last size with a cost, and the cost
        for size, cost in self.costs.items():  # of earlier texts
            cost.sights = min(cost.sights, KNOWN)
            self._seen = size, cost.milliseconds
        self.acceptance = Acceptance(arm.chance)
        self.behind = 0
        self.offers: list[Offer] = []
        self._yielded = self._promised = BELIEF
        self._lately = 0.0

    @property
    def chance(self) -> float:
        """With which a drafted token is kept, if those before it are."""
        seen = self.acceptance
        return (seen.kept + BELIEF * seen.guess) / (seen.judged + BELIEF)

    def offer(self, plain: float, chances: Sequence[float] | None = None) -> None:
        """Make the offers anew. plain: milliseconds of a step without a draft. chances: with which each token is reached and
        kept, where the drafter knows that itself."""
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
        """How many of its sizes may be chosen; None: all."""
        return None if self._seen or self.foresees else FIRST

    def cost(self, size: int, plain: float) -> float:
        """Milliseconds of a step: as seen, else as guessed, beside another size that was seen."""
        known = self.costs.get(size)
        if known is not None and known.sights:
            return known.milliseconds
        guess = self._guess(size, plain)
        if self._seen is None:
            return guess
        other, milliseconds = self._seen
        return max(plain, guess * milliseconds / self._guess(other, plain))

    def _guess(self, size: int, plain: float) -> float:
        arm = self.arm
        return plain * (self._a_pass(size) + arm.start + arm.token * size)

    def see(self, offer: Offer, kept: int, judged: int, tokens: int) -> None:
        """Record the outcome of a step that used this offer."""
        self.acceptance.see(kept, judged)
        self._yielded = FORGETTING * self._yielded + (1 - FORGETTING) * BELIEF + tokens
        self._promised = FORGETTING * self._promised + (1 - FORGETTING) * BELIEF + offer.promise
        self._lately += 1

    def time(self, size: int, milliseconds: float) -> None:
        """Record a step's time. A step in which the drafter read much of the text is skipped: its time says nothing
        about later steps."""
        if self.behind <= USUAL:
            self.costs.setdefault(size, Cost()).see(milliseconds)
            self._seen = size, self.costs[size].milliseconds

    def age(self, steps: int) -> None:
        """So many steps have passed without this drafter."""
        weight = AGEING**steps
        self._lately *= weight
        self.acceptance.kept *= weight
        self.acceptance.judged *= weight
        self._yielded = BELIEF + weight * (self._yielded - BELIEF)
        self._promised = BELIEF + weight * (self._promised - BELIEF)


def geometric(chance: float, size: int) -> float:
    """Tokens of a step of this size, the final one included, where each drafted one is kept with this chance."""
    return size + 1.0 if chance >= 1 else (1 - chance ** (size + 1)) / (1 - chance)


@dataclass
class Bandit:
    """The choices of one text. plain: cost of a step without a draft, None where costs are the guesses, in passes over one
    row. asked: the most tokens to be written; prompt: its tokens. lost: time that drafts took beside plain decoding of the
    same tokens."""

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
        """The most time that drafts may have lost by now."""
        coming = min(self.asked, CREDIT) + ROW * self.prompt
        tokens = AHEAD * coming + (1 - AHEAD) * self.written
        return self.pass_time * max(LEAST, REGRET * tokens)

    @property
    def ready(self) -> bool:
        """Whether it is known what plain decoding costs."""
        return self.plain is None or self.plain.sights >= KNOWN

    def affords(self, milliseconds: float) -> bool:
        """Whether so much time may be lost now."""
        return self.lost + milliseconds <= self.allowed

    def choose(self, room: int, able: Sequence[Source]) -> Offer | None:
        """The offer to take, of these drafters; None: no draft. room: the most tokens that a draft may have."""
        if not self.ready:
            return None
        plain = self.pass_time
        if self.lost > self.allowed:
            return None
        for source in able:
            if not source.offers and not source.foresees:
                source.offer(plain)
        speed, best = WORTH / plain, None
        # what is lost is saved for the drafter with the most hope, though it may not be afforded yet
        saved = False
        hoped, hope = 1 / (plain * (1 - HOPE / sqrt(1 + self._plain_lately))), None
        spare = self.allowed - self.lost + plain
        left = COPIES * plain if any(source.foresees for source in self.sources) else 0.0
        for source in able:
            most = spare if source.foresees else spare - left
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
        """Take note of a step's time, and of the offer that it took. looked: milliseconds of looking for copies, which are
        not in that time."""
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
            # more than that is a hiccup of the machine, such as the very first call of a graph
            counted = min(milliseconds, HICCUP * (offer.cost + offer.catch_up))
            self.lost += counted - tokens * self.pass_time
            return
        self._plain_lately += 1
        if self.plain is not None:
            self.plain.see(milliseconds)
