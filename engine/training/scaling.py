"""A log-linear law: acceptance = a + sum over factors of b_f log10(f), fitted by least squares.

Yan et al., Scaling Laws for Speculative Decoding (2025) find acceptance log-linear in the draft's size and in the
number of tokens that it was trained on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

FACTORS = ("parameters", "tokens", "batch")
"""parameters: the draft's. tokens: how many it was trained on. batch: tokens per step of the training."""


@dataclass(frozen=True)
class Law:
    """intercept, slopes: of acceptance; a slope is the change per factor of ten. r2: on the points of the fit."""

    intercept: float
    slopes: Mapping[str, float]
    r2: float

    def at(self, point: Mapping[str, float]) -> float:
        """The acceptance that the law expects of a draft with these factors."""
        return self.intercept + sum(
            slope * math.log10(point[name]) for name, slope in self.slopes.items()
        )

    def told(self) -> str:
        terms = " ".join(f"{slope:+.4f} log10({name})" for name, slope in self.slopes.items())
        return f"acceptance = {self.intercept:.4f} {terms}, R² = {self.r2:.3f}"


def fitted(points: Sequence[Mapping[str, float]]) -> Law:
    """points: each with all ``FACTORS`` and "acceptance". Raises ValueError for fewer points than unknowns, or where
    the factors do not vary independently."""
    rows = np.array([[1.0, *(math.log10(point[name]) for name in FACTORS)] for point in points])
    truth = np.array([point["acceptance"] for point in points])
    if len(rows) < rows.shape[1] or np.linalg.matrix_rank(rows) < rows.shape[1]:
        raise ValueError("these points do not determine a law")
    found, *_ = np.linalg.lstsq(rows, truth, rcond=None)
    missed = float(((truth - rows @ found) ** 2).sum())
    spread = float(((truth - truth.mean()) ** 2).sum())
    r2 = 1 - missed / spread if spread else 1.0
    slopes = dict(zip(FACTORS, map(float, found[1:]), strict=True))
    return Law(float(found[0]), slopes, r2)
