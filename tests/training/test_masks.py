"""Drafters that read masks: what a mask may see, that they learn, and that drafts are counted as plain passes make them."""

import copy

import pytest
import torch
import torch.nn.functional as F

from engine.training.masked_rows import behind, dropped
from tests.training.lessons import (
    SMALL,
    agreeing,
    begun,
    greedy_text,
    learn_own_text,
    lesson,
    own_text,
    tiny_target,
)

TOKENS, MASK = 4, 0


def test_a_mask_sees_the_text_before_it_and_its_own_run():
    rows = dropped(9, 5, 3, "cpu")
    text = rows.depths == 0
    assert rows.anchors[text].tolist() == list(range(9)) and int(rows.places.max()) < 9
    runs = {}
    for anchor, depth in zip(rows.anchors.tolist(), rows.depths.tolist(), strict=True):
        runs.setdefault(anchor, []).append(depth)
    assert all(depths == list(range(len(depths))) for depths in runs.values())
    assert max(map(len, runs.values())) > min(map(len, runs.values())), "some runs are cut"
    for row, seen in enumerate(rows.sees):
        anchor, depth = int(rows.anchors[row]), int(rows.depths[row])
        for other, sees in enumerate(seen.tolist()):
            a, d = int(rows.anchors[other]), int(rows.depths[other])
            assert sees == ((d == 0 and a <= anchor) or (a == anchor and d <= depth))


def causally(_, *parts):
    return F.scaled_dot_product_attention(*parts, is_causal=True, enable_gqa=True)


def parallel_eagle(**options):
    cell = begun()[1].requires_grad_(False)
    return begun("parallel_eagle", cell, **{"tokens": TOKENS, "heads": 0, "inner": 0, **options})


def pard():
    torch.manual_seed(0)
    draft = copy.deepcopy(tiny_target())
    with torch.no_grad():
        for weight in draft.parameters():
            weight += 0.05 * torch.randn_like(weight)
    return begun("pard", None, draft, tokens=TOKENS)


def cells_guess(made, part, given, row, root):
    """The likeliest tokens of a plain causal pass over the text up to the root, and masks."""
    tokens, masks = given.tokens[row, : root + 1], [MASK] * (TOKENS - 1)
    states = torch.cat([given.features[row, :root], part.mask_hidden[0].expand(TOKENS - 1, -1)])
    embedded = made.target.get_input_embeddings()(torch.tensor([*tokens[1:].tolist(), *masks]))
    turn = part.turn(torch.arange(len(states)))
    found = part(states[None], embedded[None], turn, causally)[0, -TOKENS:]
    return made.target.get_output_embeddings()(found).argmax(-1).tolist()


def drafts_guess(made, part, given, row, root):
    tokens = [*given.tokens[row, : root + 1].tolist(), *[MASK] * (TOKENS - 1)]
    return part(input_ids=torch.tensor([tokens])).logits[0, -TOKENS:].argmax(-1).tolist()


@pytest.mark.parametrize(
    ("student", "guess"), [(parallel_eagle, cells_guess), (pard, drafts_guess)]
)
def test_it_learns_and_drafts_are_counted_as_runs_make_them(student, guess):
    made, part = student()
    judged, held_out = lesson(made, greedy_text()[:6]), lesson(made, own_text()[40:], 99)
    with torch.no_grad():
        before = made.loss(part, held_out)
    learn_own_text(made, part, 40)
    with torch.no_grad():
        assert made.loss(part, held_out) < 0.9 * before
        found = made.accepted(part, judged)
        for row in range(2):
            text = judged.tokens[row].tolist()
            for root in range(1, 20):
                drafted = guess(made, part, judged, row, root)
                assert found[row, root] == agreeing(drafted, text[root + 1 :])


@pytest.mark.parametrize(("heads", "inner"), [(0, 0), (1, 20)])
@torch.no_grad()
def test_a_new_cell_begins_as_the_one_that_it_is_made_of(heads, inner):
    """On the rows of the text, if it has all heads and units that add something."""
    made, _ = parallel_eagle(heads=heads, inner=inner)
    cell = made._begun
    if heads:
        cell.layers[0].self_attn.o_proj.weight[:, : SMALL["head_dim"]] = 0
        cell.layers[0].mlp.down_proj.weight[:, ::2] = 0
        cell.layers[0].mlp.down_proj.weight[:, 1:9:2] = 0  # 20 of 48 are left
    part = made.start()
    given = lesson(made, greedy_text()[:2])
    rows = behind(given.tokens.shape[1] - 1, torch.tensor([2, 5]), TOKENS)
    wide = made._read(part, given, rows)[:, : given.tokens.shape[1] - 1]
    embedded = made.target.get_input_embeddings()(given.tokens[:, 1:])
    turn = cell.turn(torch.arange(embedded.shape[1]))
    alone = cell(given.features[:, :-1], embedded, turn, causally)
    torch.testing.assert_close(wide, alone, atol=1e-4, rtol=1e-4)
