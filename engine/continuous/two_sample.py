"""Tests whether two clouds of points come from one law: by energy distance, compared with permutations of the points.

Székely and Rizzo, Energy statistics (2013). If both clouds have one law, the p-value is at most alpha with probability
at most alpha, for any numbers of points and permutations.
"""

import torch
from torch import Tensor


def p_value(one: Tensor, other: Tensor, permutations: int = 499, seed: int = 0) -> float:
    """one: [N, D], other: [M, D] -> the share of permutations whose energy distance is at least as large as that of the
    clouds as they are, which count among the permutations."""
    points = torch.cat([one, other])
    gaps = torch.cdist(points, points)
    sizes = len(one), len(other)
    # The energy distance is -w' G w, with w = 1/N on one cloud and -1/M on the other.
    signed = torch.cat(
        [torch.full((sizes[0],), 1 / sizes[0]), torch.full((sizes[1],), -1 / sizes[1])]
    )
    signed = signed.to(points.dtype)
    generator = torch.Generator().manual_seed(seed)
    orders = torch.rand(permutations, len(points), generator=generator).argsort(-1)
    weights = torch.cat([signed[None], signed[orders]])
    energies = -((weights @ gaps) * weights).sum(-1)
    return float((energies >= energies[0] - 1e-12).double().mean())
