"""Policies that fill a canvas: at least one place a pass, surest first, everything in the end."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.policies.unmasking import AllAtOnce, Canvas, Confident


def rows(confidences):
    """[L, 3], the likeliest token of each place with this probability."""
    rest = [(1 - c) / 2 for c in confidences]
    return torch.tensor([[c, r, r] for c, r in zip(confidences, rest, strict=True)])


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    confidences=st.lists(st.floats(0.4, 1.0), min_size=1, max_size=8),
    threshold=st.floats(0, 1),
    last=st.integers(0, 5),
)
def test_every_place_is_filled_once(confidences, threshold, last):
    for policy in (AllAtOnce(), Confident(threshold, last)):
        canvas = Canvas(len(confidences))
        while canvas.open:
            chosen = policy.choose(rows(confidences), canvas)
            assert chosen and set(chosen) <= set(canvas.open)
            if isinstance(policy, Confident) and canvas.turns < last:
                left = set(canvas.open) - set(chosen)
                worst = min(confidences[place] for place in chosen)
                assert all(confidences[place] <= worst or worst >= threshold for place in left)
            canvas.fill(rows(confidences), chosen)
        assert canvas.turns <= min(last + 1, len(confidences)) or isinstance(policy, AllAtOnce)
        assert canvas.tokens == dict.fromkeys(range(len(confidences)), 0)
