"""The Tune tab in a browser: prompts are pasted, measured and stopped; the answer comes first, leads to Watch, and stays
in a link."""

import json

import pytest

from tests.app.test_page import PHONE
from tests.axe import violations

TRACE = "DraftscopePage.trace('tune')"
PASTED = "<img src=x onerror=alert(1)> Once upon a time\n1 + 1 ="


def sentence(record: str) -> str:
    """Return the sentence of a record's last line as the page shows it."""
    return json.loads(record.splitlines()[-1])["sentence"].replace("`", "")


@pytest.mark.journey
def test_prompts_of_ones_own_are_measured_and_the_answer_leads_to_its_run(visit):
    page = visit("/?tab=tune").page
    page.get_by_text("Measured earlier").wait_for()
    earlier = page.evaluate(TRACE)
    assert page.inner_text("#tune-answer") == sentence(earlier)
    page = visit("/?tab=tune&n=8").page
    page.click("#tune-more button")
    page.wait_for_function(  # until then the values of the address would replace what is typed
        "document.querySelector('#tune-max_new_tokens input')?.value === '8'"
    )
    page.get_by_label("Paste your own").check()
    page.get_by_label("Your prompts").fill(PASTED)
    page.wait_for_function("new URLSearchParams(location.search).get('prompts')?.length > 9")
    page.locator("#measure").press("Enter")
    page.wait_for_function(f'{TRACE}.includes(\'"kind":"setting"\')')
    assert page.locator("#tune-view progress").is_visible()
    page.locator("#tune-stop").press("Enter")
    page.wait_for_function("DraftscopePage.stateOf('tune') === 'done'")
    page.locator("#tune-answer").wait_for()
    lines = [json.loads(line) for line in page.evaluate(TRACE).splitlines()]
    assert lines[0]["prompts"]["given"] == 2 and lines[0]["new_tokens"] == 8
    assert page.inner_text("#tune-answer") == sentence(page.evaluate(TRACE))
    assert not page.get_by_text("Measured earlier").count()
    page.locator("[data-figure=acceptance-all]").wait_for()
    assert violations(page, "#rooms") == []
    page.set_viewport_size(PHONE["viewport"])
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_text("Five numbers are called acceptance").click()
    page.get_by_role("button", name="Convert").click()
    page.locator(".tn-five dt").nth(4).wait_for()
    page.get_by_role("button", name="Estimate").click()
    page.locator("[data-figure=estimate]").wait_for()
    address = page.evaluate("location.search")
    page.get_by_role("link", name="Watch this run, step by step").click()
    shown = lines[-1]["preset_link"]
    page.wait_for_function(
        "([key, prompt]) => { const run = JSON.parse(DraftscopePage.trace('watch').split('\\n')[0] || '{}');"
        " return run.drafter?.key === key && run.prompt.text === prompt && DraftscopePage.stateOf('watch') === 'done'; }",
        arg=[shown["drafter"], shown["prompt"]],
    )
    page.go_back()
    page.wait_for_function("address => location.search === address", arg=address)
    assert page.locator("#tune-answer").is_visible()
    page = visit(f"/{address}", **PHONE).page
    page.wait_for_function(
        "text => document.querySelector('#tune-prompts')?.value === text", arg=PASTED
    )
    line = {"kind": "acceptance", "drafter": "<b>x</b>", "prompt_kind": "all", "size": 2}
    line["positions"] = [{"position": 1, "reached": 10, "accepted": 8}]
    files = {"name": "a.ndjson", "mimeType": "text/plain", "buffer": json.dumps(line).encode()}
    page.set_input_files("#open-tuning", files)
    page.locator("[data-figure=acceptance-all]").wait_for()
    assert "<b>x</b>, 2" in page.inner_text("[data-figure=acceptance-all]"), (
        "another engine's record"
    )
    page.set_input_files("#open-tuning", {**files, "buffer": b"nonsense"})
    page.locator("#tune-tools [role=status]").get_by_text("a.ndjson").wait_for()
    assert violations(page) == []
