"""The number of rows in the passes of a session: enough rows, few of them spare, and few changes."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from engine.fast.cpu.row_shape import FEW, MANY, SWITCH, RowShape, change_in_rows, rounded

WANTED = st.lists(st.integers(1, 60), min_size=1, max_size=80)


@given(WANTED, st.floats(0, 40))
def test_there_is_room_for_every_row(wanted, change):
    shape = RowShape(change)
    assert all(shape.of(rows) >= rows for rows in wanted)


@given(WANTED, st.floats(0, 40))
def test_spare_rows_after_a_full_pass_cost_no_more_than_two_changes(wanted, change):
    """After a full pass, spare rows may cost as much as a change before the rows are counted anew, and then as much again."""
    shape, before, spared = RowShape(change), 0, 0
    for rows in wanted:
        found = shape.of(rows)
        spared = spared + found - rows if found == before and found > rows else 0
        before = found
        if rows <= FEW and found <= FEW:
            assert spared <= 2 * (change + FEW)  # FEW: of the pass that exceeded the limit


@given(WANTED, st.floats(1, 40))
def test_every_change_to_fewer_rows_was_paid_for(wanted, change):
    shape = RowShape(change)
    found = [shape.of(rows) for rows in wanted]
    fewer = sum(after < before for before, after in itertools.pairwise(found))
    wasted = sum(max(0, each - rows) for each, rows in zip(found, wanted, strict=True))
    saved = sum(max(0, one - other) for one, other in itertools.pairwise(found))
    assert fewer * change <= wasted + saved


@given(WANTED, st.floats(0, 40))
def test_with_usual_numbers_every_number_is_one_of_them_as_far_as_they_go(wanted, change):
    sizes = (1, 5, 9)
    shape = RowShape(change, sizes)
    for rows in wanted:
        found = shape.of(rows)
        assert found >= rounded(rows, sizes) >= rows
        assert found in sizes or found > sizes[-1]


SIZES = (1, 5, 9)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=80))
def test_passes_keep_the_last_graph_until_its_spare_rows_have_cost_as_much_as_another(wanted):
    shape, before, spared = RowShape(0, SIZES), 0, 0
    for rows in wanted:
        found, fitting = shape.of(rows), rounded(rows, SIZES)
        spared = spared + before - fitting if fitting < before else 0
        if fitting < before and spared <= SWITCH:
            assert found == before
        else:
            assert found == fitting
            spared = 0
        before = found


def test_a_row_more_or_less_changes_nothing():
    shape = RowShape(16)
    assert {shape.of(3 - place % 2) for place in range(200)} == {3}


def test_after_a_prompt_the_number_is_that_of_the_steps():
    shape = RowShape(16)
    assert shape.of(100) % MANY == 0
    assert shape.of(3) == 3


def test_models_whose_rows_are_dear_spare_none():
    assert change_in_rows(6, 11_000_000) > 8
    assert change_in_rows(24, 1_000_000_000) < 1
