"""The answer of a tuning: one sentence that recommends a drafter or plain decoding, with the speeds that support the
recommendation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.tune.candidates import Candidate, Key
from engine.tune.speed_prediction import PAYS, TOO_GOOD, Speed, why

Speeds = Mapping[tuple[Key, int], Speed]
"""(key of a candidate, number of texts written at a time) -> the candidate's speed."""
TIE = 0.02
"""Of one drafter's sizes, a larger one is recommended only if it is faster than a smaller one by more than this share
of the speed."""


def ranked(candidates: Sequence[Candidate], speeds: Speeds, texts: int) -> list[Candidate]:
    """The candidates whose speeds for ``texts`` texts at a time are known, the fastest first."""
    known = [candidate for candidate in candidates if (candidate.key, texts) in speeds]
    return sorted(known, key=lambda candidate: speeds[candidate.key, texts].ratio, reverse=True)


def near(
    candidates: Sequence[Candidate], speeds: Speeds, texts: int, margin: float
) -> list[Candidate]:
    """The fastest candidate, and after it all candidates that are slower by at most the share ``margin`` of its
    speed."""
    known = ranked(candidates, speeds, texts)
    return [
        candidate
        for candidate in known
        if speeds[candidate.key, texts].ratio >= (1 - margin) * speeds[known[0].key, texts].ratio
    ]


def best(candidates: Sequence[Candidate], speeds: Speeds, texts: int) -> Candidate | None:
    """The recommended candidate: the fastest one, or a smaller size of the same drafter and rule that is nearly as
    fast (``TIE``). Candidates with only a predicted speed are considered only if no candidate has a checked one. None
    if no speed is known."""
    known = ranked(candidates, speeds, texts)
    known = [
        candidate for candidate in known if speeds[candidate.key, texts].checked is not None
    ] or known
    if not known:
        return None
    first = known[0]
    tied = [
        candidate
        for candidate in near(known, speeds, texts, TIE)
        if (candidate.cls, candidate.rule) == (first.cls, first.rule)
    ]
    return min(tied, key=lambda candidate: candidate.size)


def crossing(ratios: Mapping[int, float]) -> list[int]:
    """The two measured numbers of texts between which drafting stops paying, as [last at which it pays, next].

    ratios: number of texts -> speed as a multiple of plain decoding's. If drafting pays at all numbers, the result has
    only the largest number. If drafting does not even pay at the smallest number, the result has only this one.
    Without ratios it is empty.
    """
    before: list[int] = []
    for count in sorted(ratios):
        if ratios[count] < 1:
            return [*before, count]
        before = [count]
    return before


def off_above(candidate: Candidate, speeds: Speeds, texts: Sequence[int]) -> int | None:
    """The most texts at a time for which the candidate is still faster than plain decoding, interpolated linearly
    between two measured numbers of texts. None if it is faster at every measured number; 0 if it is faster at none."""
    known = [count for count in texts if (candidate.key, count) in speeds]
    ratios = {count: speeds[candidate.key, count].ratio for count in known}
    *before, last = crossing(ratios) or [None]
    if last is None or ratios[last] >= 1:
        return None
    if not before:
        return 0
    (place,) = before
    above, below = ratios[place] - 1, 1 - ratios[last]
    return int(place + (last - place) * above / (above + below))


def answer(
    candidates: Sequence[Candidate],
    plain: Candidate,
    speeds: Speeds,
    texts: Sequence[int],
    link: Mapping,
) -> dict | None:
    """The ``answer`` line, which recommends a candidate for one text at a time; None if no speed of a candidate is
    known. link: prompt, temperature and seed of an example run with the recommended drafter."""
    first = best(candidates, speeds, texts=1)
    if first is None:
        return None
    ratio = speeds[first.key, 1].ratio
    reason = why(first, plain, ratio)
    shown = {"drafter": first.cls.key, "options": first.options, **link}
    told = first.named | {"ratio": round(ratio, 3)}
    if ratio < PAYS:
        spoken = f"{ratio:.2f} times" if ratio < 1 else "as fast as"
        sentence = f"Plain decoding: nothing tried here is faster; the best, {_named(first)}, is {spoken} plain decoding."
        plainly = plain.named | {"ratio": 1.0, "off_above": None, "best_tried": told}
        return {
            "kind": "answer",
            "sentence": sentence,
            **plainly,
            "why": reason,
            "preset_link": shown,
        }
    limit, tokens = off_above(first, speeds, texts), first.all.tokens_a_step
    sentence = f"{_named(first)}: {ratio:.1f} times plain decoding for one text"
    if ratio > TOO_GOOD * tokens:
        limit, reason = None, None
        sentence = (
            f"The machine was too busy to measure speeds: {_named(first)} came out at {ratio:.1f} times plain decoding, and writes "
            f"{tokens:.2f} tokens a step. Measure again while nothing else computes."
        )
    elif limit is not None:
        sentence += f"; switch it off above {limit} text{'s' if limit > 1 else ''}."
    else:
        most = max(count for key, count in speeds if key == first.key)
        sentence += (
            "."
            if most == 1
            else f", and faster than it up to {most} texts at a time, the most tried."
        )
    return {
        "kind": "answer",
        "sentence": sentence,
        **told,
        "off_above": limit,
        "why": reason,
        "preset_link": shown,
    }


def _named(candidate: Candidate) -> str:
    """The candidate in words: its title, its key and its size. Where drafts are shorter than the size in the mean, as
    those of a chain that ends where its draft model is unsure, both are told."""
    named, size, counts = (
        f"{candidate.cls.title} (`{candidate.cls.key}`)",
        candidate.size,
        candidate.all,
    )
    if not size:
        return named
    noun = f"{'token' if candidate.cls.shape == 'chain' else 'node'}{'s' if size != 1 else ''}"
    mean = counts.drafted / counts.steps if counts.steps else size
    if mean > size - 0.5:
        return f"{named}, {size} {noun}"
    return f"{named}, drafts of up to {size} {noun}, {mean:.1f} on average"
