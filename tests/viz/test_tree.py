"""The tree of a step: one scale for a run, legible words, folds that open, and a root that stays."""

import pytest

from engine.trace import read_trace
from presets import trace_text
from tests.viz.builder import Toy
from tests.viz.conftest import SMALLEST

SCALE = "document.querySelector('#tree [data-root]').getCTM().a.toFixed(4)"
STEPS = (
    "Array.from({length: view.model.steps.length}, (_, i) => { view.goto(i); return [%s, %s]; })"
)


@pytest.mark.parametrize("toy", [{"budget": 6}, {"budget": 64, "depth": 8, "width": 4}])
def test_all_steps_have_one_scale_and_legible_words(replay, toy):
    page = replay(Toy(steps=12, **toy).ndjson())
    seen = page.evaluate(STEPS % (SCALE, SMALLEST))
    assert len({scale for scale, _ in seen}) == 1
    assert min(smallest for _, smallest in seen) >= 12


def test_a_fold_opens_and_closes_by_pointer_and_by_keys(replay):
    page = replay(Toy(steps=3, budget=64, depth=8, width=4).ndjson())
    nodes = page.locator("#tree g[data-node]")
    hidden = page.locator("#tree g[data-node][display=none]")
    before = hidden.count()
    assert nodes.count() == 64 and before > 0
    told = page.locator("#tree g[data-fold] text").all_text_contents()
    assert sum(int(words.removeprefix("+")) for words in told) == before
    fold = page.locator("#tree g[data-fold]").first
    assert "more guess" in fold.get_attribute("aria-label")
    fold.click()
    opened = page.locator("#tree g[data-fold][aria-expanded=true]")
    assert hidden.count() < before and opened.count() == 1
    opened.press("Enter")
    assert hidden.count() == before
    page.locator("#tree g[data-fold]").first.press(" ")
    assert hidden.count() < before
    page.evaluate("view.goto(1); view.goto(0)")
    assert hidden.count() < before, "the reader's choice stays"


def test_a_chosen_token_is_unfolded(replay):
    page = replay(Toy(steps=3, budget=64, depth=8, width=4).ndjson())
    node = page.locator("#tree g[data-node][display=none]").last.get_attribute("data-node")
    page.evaluate("node => view.select(node)", int(node))
    assert page.locator(f"#tree g[data-node='{node}']").get_attribute("display") is None
    assert page.locator("#tree [data-selected]").get_attribute("data-node") == node


def test_a_long_chain_scrolls_and_its_root_stays(replay):
    page = replay(Toy(steps=6, budget=24, depth=24, width=1).ndjson())
    seen = page.evaluate(
        """() => view.model.steps.map((_, i) => {
          view.goto(i);
          const box = (what) => document.querySelector(what).getBoundingClientRect();
          const frame = box('#tree svg'), root = box('#tree [data-root] .ds-shape'), shown = view.model.steps[i].view;
          const last = box(shown.final ? '#tree [data-final] .ds-shape' : `#tree [data-node='${shown.path.at(-1)}'] .ds-shape`);
          return root.left >= frame.left && root.right < frame.right && last.left >= frame.left && last.right <= frame.right + 1;
        })"""
    )
    assert all(seen)


@pytest.mark.parametrize(
    "rule, words", [("block", "coin failed, saved"), ("traversal", "kept with its branch")]
)
def test_tokens_that_later_ones_saved_say_so(replay, rule, words):
    """Under the chip once its verdict is shown, and in its name; nowhere else."""
    page, later = replay(trace_text(rule)), 0
    for number, step in enumerate(read_trace(trace_text(rule)).steps):
        saved = [one["node"] for one in step["judgements"] if one["rule"] in ("saved", "carried")]
        page.evaluate("number => view.goto(number)", number)
        noted = page.locator("#tree g[data-node]", has=page.get_by_text(words, exact=True))
        assert {int(one.get_attribute("data-node")) for one in noted.all()} == {*saved}
        assert all(f"({words})" in one.get_attribute("aria-label") for one in noted.all())
        later += len(saved)
    assert later
