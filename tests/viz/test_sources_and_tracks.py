"""The source of each node in a merged tree, and work that overlaps."""

import pytest

from tests.viz.builder import Toy
from tests.viz.exhibited import SOURCES, merged, ndjson, overlapped

TOY = {"steps": 6, "budget": 14, "seed": 2}


def test_each_node_of_a_merged_tree_wears_the_mark_of_its_source(replay):
    lines = merged(Toy(**TOY).lines())
    page = replay(ndjson(lines))
    legend = page.locator(".ds-sources")
    assert legend.locator("button").all_inner_texts() == ["draft model", "context", "matrix"]
    folds = page.locator("#tree g[data-fold][aria-expanded=false]")
    while folds.count():
        folds.first.dispatch_event("click")
    marks = page.evaluate(
        "[...document.querySelectorAll('#tree [data-node]')].map((g) => [Number(g.dataset.node), g.querySelector('.ds-source-mark').getAttribute('d')])"
    )
    shapes = [
        button.locator("path").get_attribute("d") for button in legend.locator("button").all()
    ]
    assert len(set(shapes)) == 3
    assert len(marks) == len(lines[1]["nodes"]["token"])
    for node, shape in marks:
        assert shape == shapes[node % len(SOURCES)]
    name = page.locator("#tree [data-node='1']").get_attribute("aria-label")
    assert name.endswith(", from context")


@pytest.mark.parametrize("mode", ["Tree", "Icicle"])
def test_a_chosen_source_dims_the_others(replay, mode):
    page = replay(ndjson(merged(Toy(**TOY).lines())))
    page.get_by_role("button", name=mode, exact=True).click()
    dimmed = "[...document.querySelectorAll('#tree .ds-node[data-node][data-dim]')].filter((g) => g.getClientRects().length).map((g) => Number(g.dataset.node) % 3)"
    context = page.locator(".ds-source", has_text="context")
    context.click()
    assert context.get_attribute("aria-pressed") == "true"
    assert set(page.evaluate(dimmed)) == {0, 2}
    page.evaluate("view.goto(3)")
    assert set(page.evaluate(dimmed)) == {0, 2}, "the choice holds for every step"
    context.click()
    assert page.evaluate(dimmed) == []


def test_one_source_a_tree_needs_no_legend(replay):
    lines = Toy(**TOY).lines()
    for step in lines[1:-1]:
        step["nodes"]["source"] = [f"block {depth}" for depth in step["nodes"]["depth"]]
    page = replay(ndjson(lines))
    assert page.locator(".ds-sources").is_hidden()
    assert page.locator("#tree .ds-source-mark").count() == 0


def test_more_sources_than_marks_share_the_last(replay):
    lines = merged(Toy(**TOY).lines(), [f"kind {chr(97 + n)}" for n in range(9)])
    page = replay(ndjson(lines))
    names = page.locator(".ds-sources button").all_inner_texts()
    assert len(names) == 6 and names[-1] == "4 others"


def test_tracks_show_the_overlap_and_say_it(replay):
    lines = overlapped(Toy(**TOY).lines())
    page = replay(ndjson(lines))
    spans = lines[3]["spans"]
    both = min(span["end"] for span in spans) - max(span["start"] for span in spans)
    whole = max(span["end"] for span in spans) - min(span["start"] for span in spans)
    page.evaluate("view.goto(2)")
    words = page.locator(".ds-track-words").inner_text()
    assert words.startswith(f"In this step {both:.2f} ms of {whole:.2f} ms overlapped; up to here")
    assert page.locator(".ds-track-names span").all_inner_texts() == ["draft", "verify"]
    assert page.locator(".ds-track-bars [data-now]").count() == 2
    shade = page.locator(".ds-overlap")
    assert float(shade.get_attribute("width")) == pytest.approx(both)
    rows = {bar.get_attribute("y") for bar in page.locator(".ds-track-bars [data-now]").all()}
    assert len(rows) == 2


def test_drafting_ahead_for_the_next_step_overlaps_with_this_one(replay):
    lines = Toy(**TOY).lines()
    for step in lines[1:-1]:
        at = 10.0 * step["index"]
        step["spans"] = [
            {"lane": "verify", "what": "verify", "start": at, "end": at + 8},
            {"lane": "draft", "what": "draft", "start": at - 3, "end": at - 1},
        ]
    lines[1]["spans"].pop()
    page = replay(ndjson(lines))
    page.evaluate("view.goto(2)")
    words = page.locator(".ds-track-words").inner_text()
    assert words.startswith("In this step 2.00 ms of 11.0 ms overlapped"), (
        "17 to 18 and 27 to 28, of 17 to 28"
    )


def test_without_an_overlap_there_are_no_tracks(replay):
    assert replay(Toy(**TOY).ndjson()).locator(".ds-tracks").is_hidden()
    lines = overlapped(Toy(**TOY).lines())
    for step in lines[1:-1]:
        step["spans"][1]["start"] = step["spans"][0]["end"]
        step["spans"][1]["end"] = step["spans"][0]["end"] + 1
    assert replay(ndjson(lines)).locator(".ds-tracks").is_hidden()


def test_time_on_the_clock_counts_where_stages_overlap(replay):
    lines = overlapped(Toy(**TOY).lines())
    page = replay(ndjson(lines))
    read = lines[-1]["milliseconds"]["prefill"]
    clock = read + sum(step["milliseconds"]["total"] for step in lines[1:-1])
    assert page.evaluate("view.model.milliseconds") == pytest.approx(clock)


def test_the_marks_go_with_their_run(replay):
    """The next run drafts little at first, so that most chips of the run before are not drawn by its first step."""
    page = replay(ndjson(merged(Toy(**TOY).lines())))
    most = page.locator("#tree .ds-source-mark").count()
    small, large = Toy(steps=1, budget=2).lines(), Toy(steps=1, budget=14).lines()
    assert len(large[1]["nodes"]["token"]) > len(small[1]["nodes"]["token"]) and most > 2
    for lines in (small, large):
        page.evaluate("(text) => { view.feed(text); view.goto(0); }", ndjson(lines))
        assert page.locator("#tree [data-node]").count() == len(lines[1]["nodes"]["token"])
        assert page.locator("#tree .ds-source-mark").count() == 0


def test_the_compute_time_of_a_run_is_that_of_its_summary(replay, script):
    lines = Toy(steps=3).lines()
    page = replay(ndjson(lines))
    page.evaluate("view.goto(2)")
    shown = page.locator(".ds-run-numbers dd").last.inner_text()
    assert shown == script.evaluate(
        "(ms) => Draftscope.duration(ms)", lines[-1]["milliseconds"]["total"]
    )
