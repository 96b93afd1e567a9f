"""How many drafted tokens agree with held-out texts of the target, by teacher forcing."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import torch
from torch import nn

from engine.training.alignment import Text
from engine.training.counted_acceptance import walked
from engine.training.student import Lesson, Student


@torch.inference_mode()
def kept_lengths(
    student: Student, part: nn.Module, lessons: Iterable[Lesson], probes: list[Text]
) -> list[list[int]]:
    """For each greedy text of the target (start, tokens): how many drafted tokens are right with each of its tokens as the
    root. lessons: of the same texts."""
    part.eval()
    return [
        student.accepted(part, lesson)[0].tolist()[: len(text)]
        for lesson, (_, text) in zip(lessons, probes, strict=True)
    ]


def accepted_length(student: Student, part: nn.Module, lessons, probes: list[Text]) -> float:
    """Mean tokens per step, the target's own included: each text is walked as a run would."""
    kept = kept_lengths(student, part, lessons, probes)
    return sum(walked(one, start) for one, (start, _) in zip(kept, probes, strict=True)) / len(kept)


def figures(kept: list[list[int]], probes: list[Text]) -> dict:
    """texts; by_depth: the share of the drafts right up to a depth that are right at it; tokens_a_step: of chains of 1, 2, ...
    tokens, each text walked as a run would."""
    rows = [(one[start - 1 : -1], start, one) for one, (start, _) in zip(kept, probes, strict=True)]
    places = [length for answer, _, _ in rows for length in answer]
    deepest = max(places, default=0)
    reached = [sum(length >= depth for length in places) for depth in range(deepest + 1)]
    steps = [
        sum(walked([min(length, most) for length in one], start) for _, start, one in rows)
        / len(rows)
        for most in range(1, deepest + 1)
    ]
    return {
        "texts": len(rows),
        "by_depth": [round(b / a, 4) for a, b in pairwise(reached)],
        "tokens_a_step": [round(one, 3) for one in steps],
    }
