"""Keeps the draft sizes that this page picked for a visitor, so that the same settings make the same run again.

The engine picks a size by what a pass costs on this machine (``engine.sizes.draft_size``), and learns from every run
what passes cost now. So its choice may change between two runs. Within a visit the first size that was picked stays.
"""

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping

from app.visitors import anyone, first_to_go
from engine.methods import drafters

MOST_VISITORS = 500
MOST_SIZES = 200
"""Sizes kept for one visitor."""


class Sizes:
    """The draft sizes that were picked for each visitor: one for each drafter with its other options."""

    def __init__(self, here: Callable[[str], bool] = anyone) -> None:
        """here: returns whether a visitor has the page open."""
        self._here = here
        self._visitors: OrderedDict[str, dict[str, int]] = OrderedDict()
        self._lock = threading.Lock()

    def settled(
        self, session: str, models: str, values: Mapping[str, object]
    ) -> Mapping[str, object]:
        """Return the control values with the sizes that were picked before, in place of sizes that are left to the
        page.

        models: identifies the models of the run, because other models have other sizes."""
        pairs = _pairs(values)
        with self._lock:
            sizes = self._visitors.get(session, {})
            for place, option in _left_to_us(pairs):
                size = sizes.get(_key(models, values, pairs[place], option))
                if size is not None:
                    pairs[place]["options"] = {**_options(pairs[place]), option: size}
        return _with_pairs(values, pairs)

    def keep(self, session: str, models: str, values: Mapping[str, object], header: str) -> None:
        """Keep the sizes in these run lines, whose runs were made from these control values."""
        pairs = _pairs(values)
        runs = [json.loads(line) for line in header.split("\n") if line]
        if len(runs) != len(pairs):
            return
        with self._lock:
            sizes = self._visitors.setdefault(session, {})
            self._visitors.move_to_end(session)
            for place, option in _left_to_us(pairs):
                size = runs[place]["drafter"]["options"].get(option)
                if size and len(sizes) < MOST_SIZES:
                    sizes.setdefault(_key(models, values, pairs[place], option), size)
            while len(self._visitors) > MOST_VISITORS:
                del self._visitors[first_to_go(self._visitors, session, self._here, self._settled)]

    def _settled(self, session: str) -> bool:
        return bool(self._visitors[session])


def _pairs(values: Mapping[str, object]) -> list:
    """Return the pair, or the pairs of the lanes, in these control values; [] if they cannot be read."""
    try:
        if "lanes" in values:
            return list(json.loads(values["lanes"]))  # type: ignore[arg-type]
        return [json.loads(values["pair"])]  # type: ignore[arg-type]
    except (TypeError, ValueError, KeyError, RecursionError):
        return []


def _with_pairs(values: Mapping[str, object], pairs: list) -> Mapping[str, object]:
    if not pairs:
        return values
    held = {"lanes": json.dumps(pairs)} if "lanes" in values else {"pair": json.dumps(pairs[0])}
    return {**values, **held}


def _options(pair: Mapping) -> dict:
    options = pair.get("options")
    return options if isinstance(options, dict) else {}


def _left_to_us(pairs: list) -> Iterator[tuple[int, str]]:
    """Yield (index of the pair, name of its size option) for each pair whose size is left to the page."""
    for place, pair in enumerate(pairs):
        key = pair.get("drafter") if isinstance(pair, dict) else None
        cls = drafters().get(key) if isinstance(key, str) else None
        if cls is None or cls.size_option is None:
            continue
        if not isinstance(pair.get("options") or {}, dict):
            continue  # refused by the checks that follow
        usual = next(
            declared.default for declared in cls.options if declared.name == cls.size_option
        )
        if _options(pair).get(cls.size_option, usual) == 0:
            yield place, cls.size_option


def _key(models: str, values: Mapping[str, object], pair: Mapping, option: str) -> str:
    others = {name: value for name, value in _options(pair).items() if name != option}
    sampled = bool(values.get("temperature"))
    parts = [models, values.get("models") or "", pair["drafter"], others, sampled]
    return json.dumps(parts, sort_keys=True, default=str)
