"""Pictures on Watch: the example's finished run, a visitor's own run, and what the controls say about both."""

import json

import pytest

from presets import preset, trace_text


@pytest.mark.journey
def test_a_picture_is_watched_and_drawn(visit):
    visitor = visit("/?preset=picture", reduced_motion="reduce")
    page, example = visitor.page, preset("picture")
    recorded = trace_text("picture")
    page.wait_for_function("t => DraftscopePage.trace('watch') === t", arg=recorded)
    page.wait_for_selector("#text .ds-picture [data-index]")
    assert page.get_by_label("Pictures", exact=True).is_checked()
    page.click("#copy-link")
    page.wait_for_function("location.search.includes('models=image')")
    assert visitor.run() == "done"
    made = [json.loads(line) for line in visitor.trace().splitlines()]
    assert made[0]["family"] == example.models and made[0]["picture"]["width"] == 16
    page.wait_for_function(
        "n => document.querySelectorAll('#text [data-index]').length === n",
        arg=made[-1]["new_tokens"],
    )
    assert page.locator(".pg-cover").count() == 0
    visitor.change()
    page.get_by_role("radio", name="Small, instant", exact=True).check()
    page.wait_for_function("document.querySelector('.pg-cover')?.textContent.includes('the model')")
