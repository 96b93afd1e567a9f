"""Compare: lanes that race on one prompt."""

import json

LANES = ["none", "chain", "dyspec", "prompt_lookup", "ddtree"]


def test_the_lanes_finish_and_agree(visit):
    visitor = visit()
    visitor.open_compare()
    page = visitor.page
    page.fill("#race-prompt textarea", "Once upon a time there was a little dog")
    page.click("#race-more button")
    field = page.locator("#race-max_new_tokens input[type=number]")
    field.fill("24")
    field.press("Tab")
    page.click("#race")
    page.wait_for_function(
        "document.querySelectorAll('[data-lane] .tree[data-state=done]').length == 5"
    )
    assert [lane.get_attribute("data-lane") for lane in page.locator("[data-lane]").all()] == LANES
    summaries = [
        entry
        for entry in map(json.loads, page.evaluate("DraftscopePage.trace('compare')").splitlines())
        if entry["kind"] == "summary"
    ]
    assert (
        len({summary["text"] for summary in summaries})
        == 1
        == len({summary["new_tokens"] for summary in summaries})
    )
    assert "same text, token for token" in page.inner_text("#compare-view")
    for lane in LANES:
        inside = page.locator(f"[data-lane={lane}]")
        assert inside.locator(".text [data-index]").count() == summaries[0]["new_tokens"]
        assert inside.locator(".timeline").count() == 1
    assert page.locator("#compare-view table tbody tr").count() >= 5
    page.wait_for_selector("#compare-figures .js-plotly-plot")


def test_too_few_lanes_are_told(visit):
    visitor = visit()
    visitor.open_compare()
    for box in visitor.page.locator("#race-lanes input").all()[1:]:
        box.uncheck()
    visitor.page.click("#race")
    visitor.page.wait_for_selector("#compare-status [role=alert]:not(:empty)")
    assert "two" in visitor.page.inner_text("#compare-status [role=alert]")
