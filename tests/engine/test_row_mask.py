"""Which columns the rows of a pass may see."""

from itertools import product

import torch

from engine.model.row_mask import RowMask

DEPTHS, ANCESTORS = [0, 1, 1, 2], [0b0001, 0b0011, 0b0101, 0b1011]


def test_a_row_sees_the_text_its_ancestors_and_itself_as_far_as_the_window_reaches():
    for committed, window, before in product(range(6), [None, *range(1, 9)], range(4)):
        mask = RowMask(committed, DEPTHS, ANCESTORS[before:], torch.device("cpu"))
        places = [*range(committed), *(committed + depth for depth in DEPTHS)]
        expected = [
            [
                (column < committed or bool(seen >> (column - committed) & 1))
                and (window is None or committed + depth - place < window)
                for column, place in enumerate(places)
            ]
            for depth, seen in zip(DEPTHS[before:], ANCESTORS[before:], strict=True)
        ]
        found = mask.within(window)
        assert found.tolist() == expected, (committed, window, before)


def test_a_chain_needs_no_mask_until_it_is_longer_than_the_window():
    for committed in range(6):
        mask = RowMask(committed, [0], [0b1], torch.device("cpu"))
        assert mask.within(None) is None and mask.within(committed + 1) is None
        if committed:
            assert mask.within(committed).tolist() == [[False, *[True] * committed]]
