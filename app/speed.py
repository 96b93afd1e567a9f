"""Measures in the background whether a visitor's finished run is faster than plain decoding.

One thread measures one run at a time, and only while no visitor's run takes turns; if a visitor's run begins during a
round, the round is thrown away. A measurement is kept by a digest of its run, so visitors with the same run share it.
No event waits for it: the page asks again until there is a result. A run is no longer measured once its page has
stopped asking, or its visitor has made another run.
"""

import json
import logging
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from hashlib import sha256
from weakref import WeakKeyDictionary

from app import live, warm, zero
from app.again import again, plainly
from app.made import Made, asked_by
from app.own import own
from app.seats import Seat
from app.settings import LIMITS
from app.turns import TURNS, Turns
from engine.errors import UserError
from engine.run import RunRequest
from engine.trace import Trace, read_run_line, read_trace
from presets.checked import compare
from presets.speed import SHORTEST, Round, costs, settled, speed

log = logging.getLogger("draftscope")

LEAST, ENOUGH = 3, 20000.0
"""The fewest rounds, and the milliseconds of engine time after which no further round is made."""
PATIENCE = 10.0
"""Seconds after a page's last request for which its visitor counts as waiting."""
ROOM = 64
"""Further new tokens that are allowed when the text ended by itself, so that its last draft is not cut shorter."""
KEPT, WAITING = 256, 32
"""Most measurements that are kept, and most visitors who wait for a measurement."""


@dataclass
class Measurement:
    """The rounds of one run. milliseconds: the engine time of all rounds. compared: see ``presets.checked.compare``.
    refused: whether no further round can be made."""

    rounds: list[Round] = field(default_factory=list)
    milliseconds: float = 0.0
    compared: dict | None = None
    refused: bool = False

    @property
    def over(self) -> bool:
        enough = len(self.rounds) >= LEAST and self.milliseconds > ENOUGH
        return self.refused or enough or settled(self.rounds)

    def told(self) -> dict:
        """Return {"measuring": whether more rounds follow, "checked": the figures so far}, for the page."""
        done = self.over and self.rounds
        checked = self.compared and {**self.compared, "speed": speed(self.rounds) if done else None}
        return {"measuring": not self.over, "checked": checked}


@dataclass(frozen=True)
class Wish:
    """A visitor who waits for the measurement of a run. seat: the seat that holds the run. key: the key of the
    measurement. asked: when the visitor's page last asked for the result, on the monotonic clock."""

    session: str
    seat: Seat
    key: str
    asked: float

    @property
    def stands(self) -> bool:
        here = live.seats.get(self.session, "watch") is self.seat
        return here and time.monotonic() - self.asked < PATIENCE


class Speeds:
    """The measurements, by a digest of their run, and the wishes of visitors who wait for them."""

    def __init__(self, turns: Turns = TURNS) -> None:
        self._turns = turns
        self._known: OrderedDict[str, Measurement] = OrderedDict()
        self._wishes: dict[str, Wish] = {}
        self._at_work = False
        self._lock = threading.Lock()

    def ask(self, session: str, seat: Seat) -> dict:
        """Return the result of ``Measurement.told`` for the run in the visitor's seat. If the measurement needs further
        rounds, the visitor's wish for them is kept, and a thread measures in the background."""
        if seat is None or not (digest := _digest(seat)):
            return {"measuring": False, "checked": None}
        key = (
            f"{digest} {own.name_of(session)}"  # the speed depends on the visitor's own models, too
        )
        with self._lock:
            measurement = self._known.setdefault(key, Measurement())
            self._known.move_to_end(key)
            while len(self._known) > KEPT:
                self._known.popitem(last=False)
            if not measurement.over and (session in self._wishes or len(self._wishes) < WAITING):
                self._wishes[session] = Wish(session, seat, key, time.monotonic())
                if not self._at_work:
                    self._at_work = True
                    threading.Thread(target=self._work, name="speed", daemon=True).start()
            return measurement.told()

    def _work(self) -> None:
        """Measure, one round at a time, until no visitor waits."""
        while (wish := self._next()) is not None:
            measurement = self._known.get(wish.key) or Measurement()
            try:
                self._round(wish, measurement)
            except UserError as refusal:
                log.warning("a speed is not measured: %s", refusal)
                # an opening also ends because the visitor has left
                measurement.refused = self._stands(wish)
            except Exception:
                log.exception("a speed could not be measured")
                measurement.refused = True

    def _next(self) -> Wish | None:
        """Return the wish whose run has the fewest rounds, or None if no visitor waits."""
        with self._lock:
            for wish in [*self._wishes.values()]:
                measurement = self._known.get(wish.key)
                if measurement is None or measurement.over or not wish.stands:
                    del self._wishes[wish.session]
            if not self._wishes:
                self._at_work = False
                return None
            return min(self._wishes.values(), key=lambda wish: len(self._known[wish.key].rounds))

    def _stands(self, wish: Wish) -> bool:
        with self._lock:
            latest = self._wishes.get(wish.session, wish)
        return latest.key == wish.key and latest.stands

    def _round(self, wish: Wish, known: Measurement) -> None:
        """Measure one round: plain decoding and the run once more. Each of them goes first in every other round."""
        first = read_trace(wish.seat.text)
        room = ROOM if first.summary["stop"] == "eos" else 0
        arguments = (first.run, first.summary["new_tokens"] + room, wish.session)
        requests = (plainly(*arguments), again(*arguments))
        places = (1, 0) if len(known.rounds) % 2 else (0, 1)
        before, traces = self._turns.entered, {}
        for place in places:
            trace = self._written(wish, requests[place], first)
            if trace is None:
                return
            known.milliseconds += trace.summary["milliseconds"]["total"]
            traces[place] = trace
        if not all(trace.summary["steps"] for trace in traces.values()):
            known.refused = True
        elif self._turns.entered == before:
            known.rounds.append((costs(traces[0]), costs(traces[1])))
            known.compared = known.compared or compare(first, traces[0])

    def _written(self, wish: Wish, request: RunRequest, first: Trace) -> Trace | None:
        """Return the trace of this request, made while no visitor's run goes on; a run that takes too long is cut
        short. Returns None if the visitor no longer waits. Raises UserError, also if the visitor's models are not those
        of the run."""
        if not self._rest(wish):
            return None
        with asked_by(wish.session):
            (run,) = live.opened([request])
        lines = [run.header()]
        try:
            ours = read_run_line(lines[0])
            if any(ours[part] != first.run[part] for part in ("target", "prompt")):
                raise UserError("the run was made with other models")
            while run.milliseconds < LIMITS.plain_milliseconds:
                if not self._rest(wish):
                    return None
                line = self._turns.aside(run.step)
                if line is None:
                    break
                lines.append(line)
        finally:
            run.cancel()
        return read_trace("".join(lines) + run.summary())

    def _rest(self, wish: Wish) -> bool:
        """Wait until no visitor's run takes turns. Returns False if the visitor of this wish no longer waits."""
        while self._stands(wish):
            if warm.ready.is_set() and self._turns.free(within=1.0):
                return True
            warm.ready.wait(1.0)
        return False


def _digest(seat: Seat) -> str:
    """Return a digest of the run line, the text and its end; "" if the run is not to be measured.

    A run is measured if it was made here, is over, wrote enough, and was not plain decoding. Nothing is measured on a
    GPU that is lent for one call, or with an engine on another machine.
    """
    if seat.state != "done" or not isinstance(seat.job, Made) or zero.on_zero():
        return ""
    if seat.job.elsewhere:
        return ""
    if seat not in _DIGESTS:
        trace = read_trace(seat.text)
        end = [trace.summary[part] for part in ("text", "new_tokens", "stop")]
        text = json.dumps([trace.run, end], sort_keys=True)
        plain = trace.run["drafter"]["family"] == "none"
        worth = not plain and trace.summary["new_tokens"] >= SHORTEST
        _DIGESTS[seat] = sha256(text.encode()).hexdigest() if worth else ""
    return _DIGESTS[seat]


_DIGESTS: WeakKeyDictionary[Seat, str] = WeakKeyDictionary()
"""The digests of finished runs, kept because pages ask again and again until there is a result."""


SPEEDS = Speeds()
