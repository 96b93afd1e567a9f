"""The setting of a tuning record that is exported to an engine: its answer or, if the engine cannot express that, the
best measured setting that the engine can express."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace

from engine.bridges.exporting import expressible
from engine.bridges.recommended import PLAIN, Recommended, read_setting, recommended
from engine.bridges.step_counts import whole
from engine.errors import UserError

PAYS = 1.02
"""From this multiple of plain decoding's speed on, a setting may take the answer's place. The same number as
``speed_prediction.PAYS``, which belongs to a room beside this one."""
BROKEN = (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""The errors that reading a stranger's line may raise."""


def exportable(lines: Iterable[Mapping], name: str, engine: str) -> Recommended:
    """The setting to export. Its ``instead_of`` is the answer if it takes the answer's place. name: the name of the
    record. Raises UserError, one sentence, as ``recommended`` does, and for an unknown engine."""
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
    """The ``setting`` line with the largest gain for one text, of those that the engine can express and that were
    tried on the most prompts, or on one less; None if there is none."""
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
    """The same text for lines of the same setting."""
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
    """The most texts at a time for which the setting was faster than plain decoding, before the first number for which
    it was slower; None if it was slower for none."""
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
