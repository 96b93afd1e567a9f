"""Is it faster? A visitor's finished run against plain decoding, measured in the background.

One thread measures, a run at a time, and only while no visitor's run takes turns; a round into which one came is thrown
away. What was measured is kept by what ran, so visitors who ask for the same share it. Nobody waits here: the page asks
again until there is an answer, and what nobody asks for any more, or what has been followed by another run, is not
measured.
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
"""Rounds that are made in any case; milliseconds of engine time after which there are no more."""
PATIENCE = 10.0
"""Seconds for which a visitor who has asked is taken to wait."""
ROOM = 64
"""Tokens beyond the end of a text that ended by itself, so that its last draft is not cut shorter than it was."""
KEPT, WAITING = 256, 32
"""Measurements that are kept, and visitors whose runs are measured or wait for it."""


@dataclass
class Measurement:
    """The rounds of one run. compared: see ``presets.checked.compare``. refused: no further round can be made."""

    rounds: list[Round] = field(default_factory=list)
    milliseconds: float = 0.0
    compared: dict | None = None
    refused: bool = False

    @property
    def over(self) -> bool:
        enough = len(self.rounds) >= LEAST and self.milliseconds > ENOUGH
        return self.refused or enough or settled(self.rounds)

    def told(self) -> dict:
        """{"measuring": whether more rounds follow, "checked": the figures so far}, for the page."""
        done = self.over and self.rounds
        checked = self.compared and {**self.compared, "speed": speed(self.rounds) if done else None}
        return {"measuring": not self.over, "checked": checked}


@dataclass(frozen=True)
class Wish:
    """A visitor waits for the measurement of the run in this seat. asked: the time of the page's last request."""

    session: str
    seat: Seat
    key: str
    asked: float

    @property
    def stands(self) -> bool:
        here = live.seats.get(self.session, "watch") is self.seat
        return here and time.monotonic() - self.asked < PATIENCE


class Speeds:
    """The measurements, by a digest of the run, and the visitors who wait for them."""

    def __init__(self, turns: Turns = TURNS) -> None:
        self._turns = turns
        self._known: OrderedDict[str, Measurement] = OrderedDict()
        self._wishes: dict[str, Wish] = {}
        self._at_work = False
        self._lock = threading.Lock()

    def ask(self, session: str, seat: Seat) -> dict:
        """The figures of the run in the visitor's seat, as ``Measurement.told``. Begins to measure a new run."""
        if seat is None or not (digest := _digest(seat)):
            return {"measuring": False, "checked": None}
        key = (
            f"{digest} {own.name_of(session)}"  # the speed depends on the visitor's own models, too
        )
        with self._lock:
            known = self._known.setdefault(key, Measurement())
            self._known.move_to_end(key)
            while len(self._known) > KEPT:
                self._known.popitem(last=False)
            if not known.over and (session in self._wishes or len(self._wishes) < WAITING):
                self._wishes[session] = Wish(session, seat, key, time.monotonic())
                if not self._at_work:
                    self._at_work = True
                    threading.Thread(target=self._work, name="speed", daemon=True).start()
            return known.told()

    def _work(self) -> None:
        """Measure, a round at a time, until nobody waits."""
        while (wish := self._next()) is not None:
            known = self._known.get(wish.key) or Measurement()
            try:
                self._round(wish, known)
            except UserError as refusal:
                log.warning("a speed is not measured: %s", refusal)
                # an opening also ends because the visitor has left
                known.refused = self._stands(wish)
            except Exception:
                log.exception("a speed could not be measured")
                known.refused = True

    def _next(self) -> Wish | None:
        """The wish whose run has the fewest rounds."""
        with self._lock:
            for wish in [*self._wishes.values()]:
                known = self._known.get(wish.key)
                if known is None or known.over or not wish.stands:
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
        """Plain decoding and the run once more, in turn first."""
        first = read_trace(wish.seat.text)
        room = ROOM if first.summary["stop"] == "eos" else 0
        asked = (first.run, first.summary["new_tokens"] + room, wish.session)
        wanted = (plainly(*asked), again(*asked))
        places = (1, 0) if len(known.rounds) % 2 else (0, 1)
        before, traces = self._turns.entered, {}
        for place in places:
            trace = self._written(wish, wanted[place], first)
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
        """The run, made while nobody else's goes on, or the beginning of one that takes too long. None: the visitor does
        not wait any more. Raises UserError, also where the visitor's models are not those of the run."""
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
        """Wait until no visitor's run takes turns; False once the visitor does not wait any more."""
        while self._stands(wish):
            if warm.ready.is_set() and self._turns.free(within=1.0):
                return True
            warm.ready.wait(1.0)
        return False


def _digest(seat: Seat) -> str:
    """A digest of the run line, the text and its end; "" unless this is a run that was made here, is over, wrote enough, and
    was not plain. A GPU that is lent for a visitor's call measures nothing in the background, and an engine elsewhere is not
    asked for it."""
    if seat.state != "done" or not isinstance(seat.job, Made) or zero.on_zero():
        return ""
    if seat.job.elsewhere:
        return ""
    if seat not in _DIGESTS:
        trace = read_trace(seat.text)
        end = [trace.summary[part] for part in ("text", "new_tokens", "stop")]
        told = json.dumps([trace.run, end], sort_keys=True)
        plain = trace.run["drafter"]["family"] == "none"
        worth = not plain and trace.summary["new_tokens"] >= SHORTEST
        _DIGESTS[seat] = sha256(told.encode()).hexdigest() if worth else ""
    return _DIGESTS[seat]


_DIGESTS: WeakKeyDictionary[Seat, str] = WeakKeyDictionary()
"""Of finished runs: pages ask again and again until there is an answer."""


SPEEDS = Speeds()
