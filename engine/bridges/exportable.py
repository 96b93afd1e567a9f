"""Chooses the setting that is exported from a tuning record to a serving engine. This is the setting in the record's
answer. If the serving engine has no way to express that setting, the best measured setting that it can express is
exported instead."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace

from engine.bridges.exporting import expressible
from engine.bridges.recommended import PLAIN, Recommended, read_setting, recommended
from engine.bridges.step_counts import whole
from engine.errors import UserError

PAYS = 1.02
"""From this multiple of plain decoding's speed on, a setting may take the answer's place. The number is that of
``engine.tune.speed_prediction.PAYS``, which this package may not import."""
BROKEN = (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""The errors that reading a stranger's line may raise."""


def exportable(lines: Iterable[Mapping], name: str, engine: str) -> Recommended:
    """The setting to export. If it takes the place of the answer's setting, its ``instead_of`` is the answer's setting.
    If no measured setting can take that place, the answer's setting itself is returned. name: the name of the record.
    engine: the name of the serving engine. Raises UserError, one sentence, as ``recommended`` does, and for an unknown
    engine."""
    lines = list(lines)
    answer = recommended(lines, name)
    if expressible(answer, engine):
        return answer
    line = _best(lines, engine)
    if line is None:
        return answer
    try:
        setting = read_setting({**line, "off_above": _off_above(lines, line)}, lines, name)
    except BROKEN:
        raise UserError(f"A setting in {name} is broken.") from None
    return replace(setting, instead_of=answer)


def _best(lines: list[Mapping], engine: str) -> Mapping | None:
    """The ``setting`` line with the largest gain for one text; None if there is none. A line is considered if drafting
    pays with it, if the engine can express it, and if it was tried on the most prompts of all such lines, or on one
    less."""
    head = [line for line in lines if line.get("kind") == "tuning"][:1]
    latest: dict[str, Mapping] = {}
    for line in lines:
        if line.get("kind") == "setting" and line.get("texts") == 1:
            latest[_key(line)] = line
    able = [line for line in latest.values() if _pays(line) and _fits(line, head, engine)]
    most = max(map(_prompts, able), default=0.0)
    known = [line for line in able if _prompts(line) >= most - 1]
    return max(known, key=lambda line: line["ratio"], default=None)


def _key(line: Mapping) -> str:
    """A text that is the same for all lines of one setting."""
    names = ("drafter", "options", "size", "verifier")
    try:
        return json.dumps([line.get(name) for name in names], sort_keys=True)
    except RecursionError:
        return ""


def _number(value: object) -> float | None:
    number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e9
    return float(value) if number else None


def _pays(line: Mapping) -> bool:
    ratio = _number(line.get("ratio"))
    return ratio is not None and ratio > PAYS and line.get("drafter") != PLAIN


def _prompts(line: Mapping) -> float:
    return _number(line.get("prompts")) or 0.0


def _fits(line: Mapping, head: list[Mapping], engine: str) -> bool:
    """Whether the line can be read, and expressed for the engine. head: the ``tuning`` line of the record, if any."""
    try:
        return expressible(read_setting({**line, "off_above": None}, head, ""), engine)
    except (*BROKEN, UserError):
        return False


def _off_above(lines: list[Mapping], chosen: Mapping) -> int | None:
    """The largest measured number of texts at a time up to which the setting was always at least as fast as plain
    decoding; None if it was slower with none of them, or already with the smallest."""
    ratios: dict[int, float] = {}
    key, last = _key(chosen), None
    for line in lines:
        if line.get("kind") == "setting" and _key(line) == key:
            ratio = _number(line.get("ratio"))
            if ratio is not None:
                ratios[whole(line.get("texts"))] = ratio
    for texts in sorted(ratios):
        if ratios[texts] < 1:
            return last
        last = texts
    return None
