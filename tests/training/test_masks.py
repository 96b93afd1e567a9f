"""Drafters that read masks: what a mask may see, that they learn, and that drafts are counted as plain passes make them."""

import copy

import pytest
import torch
import torch.nn.functional as F

from engine.core.options import resolve
from engine.methods.parallel_eagle.recipe import ParallelEagleStudent
from engine.methods.pard.recipe import PardStudent
from engine.methods.shared.eagle_layout import read_cell
from engine.training.cell_training import eagle_config, new_cell
from engine.training.masked_rows import behind, dropped
from tests.training.lessons import (
    SMALL,
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
    target = tiny_target()
    torch.manual_seed(0)
    begun = new_cell(eagle_config(target.config, "eagle"), target).requires_grad_(False)
    options = {"tokens": TOKENS, "heads": 0, "inner": 0, **options}
    settings = resolve("x", ParallelEagleStudent.options, options)
    made = ParallelEagleStudent(target, settings, begun)
    made.mask = MASK
    return made


def pard():
    target = tiny_target()
    draft = copy.deepcopy(target)
    with torch.no_grad():
        for weight in draft.parameters():
            weight += 0.05 * torch.randn_like(weight)
    made = PardStudent(target, resolve("x", PardStudent.options, {"tokens": TOKENS}), None, draft)
    made.mask = MASK
    return made


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
def test_it_learns_and_drafts_are_counted_as_runs_make_them(student, guess, tmp_path):
    made = student()
    part = made.start()
    judged, held_out = lesson(made, greedy_text()[:6]), lesson(made, own_text()[40:], 99)
    with torch.no_grad():
        before = made.loss(part, held_out)
    learn_own_text(made, part, 60)
    with torch.no_grad():
        assert made.loss(part, held_out) < 0.9 * before
        found = made.accepted(part, judged)
        for row in range(2):
            text = judged.tokens[row].tolist()
            for root in range(1, 20):
                kept = 0
                for token, true in zip(
                    guess(made, part, judged, row, root), text[root + 1 :], strict=False
                ):
                    if token != true:
                        break
                    kept += 1
                assert found[row, root] == kept


@pytest.mark.parametrize(("heads", "inner"), [(0, 0), (1, 20)])
@torch.no_grad()
def test_a_new_cell_begins_as_the_one_that_it_is_made_of(heads, inner):
    """On the rows of the text, if it has all heads and units that add something."""
    made = parallel_eagle(heads=heads, inner=inner)
    begun = made._begun
    if heads:
        begun.layers[0].self_attn.o_proj.weight[:, : SMALL["head_dim"]] = 0
        begun.layers[0].mlp.down_proj.weight[:, ::2] = 0
        begun.layers[0].mlp.down_proj.weight[:, 1:9:2] = 0  # 20 of 48 are left
    part = made.start()
    given = lesson(made, greedy_text()[:2])
    rows = behind(given.tokens.shape[1] - 1, torch.tensor([2, 5]), TOKENS)
    wide = made._read(part, given, rows)[:, : given.tokens.shape[1] - 1]
    embedded = made.target.get_input_embeddings()(given.tokens[:, 1:])
    turn = begun.turn(torch.arange(embedded.shape[1]))
    alone = begun(given.features[:, :-1], embedded, turn, causally)
    torch.testing.assert_close(wide, alone, atol=1e-4, rtol=1e-4)


def test_the_files_of_a_trained_cell_are_read_again(tmp_path):
    made = parallel_eagle()
    part = made.start()
    made.save(part, tmp_path, {})
    again = read_cell(tmp_path, torch.float32, "cpu")
    assert again.config.mask_token == MASK and again.config.num_hidden_layers == 2
    begun = ParallelEagleStudent(made.target, made.settings, again).start()
    for name, weight in begun.state_dict().items():
        assert torch.equal(weight, part.state_dict()[name].bfloat16().float()), name
    assert all(weight.requires_grad for weight in begun.parameters())
