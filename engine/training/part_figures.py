"""Measures how many drafted tokens match held-out greedy texts of the target, for a part in training (a model that
drafts for the target). The part drafts after each token of the finished texts (teacher forcing), so no text is
written."""

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
    """For each text, and for each of its tokens as the root, how many drafted tokens are right. probes: greedy texts
    of the target, as (length of the prompt, tokens). lessons: the lessons of these texts, in the same order."""
    part.eval()
    return [
        student.accepted(part, lesson)[0].tolist()[: len(text)]
        for lesson, (_, text) in zip(lessons, probes, strict=True)
    ]


def accepted_length(student: Student, part: nn.Module, lessons, probes: list[Text]) -> float:
    """The mean number of tokens that a step writes in greedy runs with this part, if the runs write these texts. The
    number counts the step's final token, too. lessons, probes: as in ``kept_lengths``."""
    kept = kept_lengths(student, part, lessons, probes)
    return sum(
        walked(lengths, start) for lengths, (start, _) in zip(kept, probes, strict=True)
    ) / len(kept)


def figures(kept: list[list[int]], probes: list[Text]) -> dict:
    """The figures of a part, from the result of ``kept_lengths``. texts: the number of texts. by_depth: for each
    depth, the share of drafts whose token at this depth is right, among drafts that are right up to the depth before.
    tokens_a_step: the mean number of tokens per step with chains of 1, 2, ... drafted tokens."""
    rows = [(row[start - 1 : -1], start, row) for row, (start, _) in zip(kept, probes, strict=True)]
    places = [length for answer, _, _ in rows for length in answer]
    deepest = max(places, default=0)
    reached = [sum(length >= depth for length in places) for depth in range(deepest + 1)]
    steps = [
        sum(walked([min(length, most) for length in lengths], start) for _, start, lengths in rows)
        / len(rows)
        for most in range(1, deepest + 1)
    ]
    return {
        "texts": len(rows),
        "by_depth": [round(b / a, 4) for a, b in pairwise(reached)],
        "tokens_a_step": [round(mean, 3) for mean in steps],
    }
