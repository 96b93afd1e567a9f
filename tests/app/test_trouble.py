"""Mistakes of visitors, and attacks by malicious ones."""

import pytest

HOSTILE = (
    '<img src=x onerror="window.hit=1"> ${window.hit=2} {{window.hit}} </script><script>'
    "window.hit=3</script> `${alert(1)}` <svg onload=window.hit=4> javascript:window.hit=5"
)


def test_an_overlong_prompt_is_told_and_does_no_harm(visit):
    visitor = visit()
    assert visitor.run("dog " * 2000) == "error"
    assert "8,000 characters" in visitor.alarm
    # within the page's limit on characters, over the model's limit on tokens
    assert visitor.run("\u2603" * 3900) == "error"
    assert "tokens" in visitor.alarm
    assert visitor.run("Once upon a time") == "done"


@pytest.mark.journey
def test_mistakes_are_told_and_hostile_text_stays_text(visit, tabs, tmp_path):
    visitor = visit()
    assert visitor.run("   ") == "error"
    assert "prompt" in visitor.alarm.lower()
    full = {"status": 503, "json": {"detail": "Queue is full. Max size is 32."}}
    visitor.page.route("**/queue/join*", lambda route: route.fulfill(**full))
    assert visitor.run("Once upon a time") == "error"
    assert "server" in visitor.alarm
    visitor.page.unroute("**/queue/join*")
    assert visitor.run() == "done"
    assert visitor.alarm == ""
    visitor.pick("prompt_lookup")
    assert visitor.run(HOSTILE + " " + HOSTILE) == "done"
    page = visitor.page
    assert HOSTILE in page.inner_text("#text")
    page.wait_for_selector("#watch-figures .js-plotly-plot")
    assert page.evaluate("window.hit") is None
    assert page.locator("img[src=x], [onerror], [onload]").count() == 0
    with page.expect_download() as download:
        page.click("#save-page")
    file = tmp_path / "run.html"
    download.value.save_as(file)
    assert "<img src=x" not in file.read_text("utf-8")
    alone = tabs.open(offline=True)
    alone.goto(file.as_uri())
    alone.wait_for_selector("#tree g[data-node], #tree [data-final]", state="attached")
    assert alone.evaluate("window.hit") is None
    tabs.close(alone)
    with page.expect_download() as download:
        page.click("#save-trace")
    trace = download.value.path()
    page.set_input_files("#open-trace", trace)
    page.wait_for_function("document.querySelector('#watch-status').innerText.includes('Opened')")
    assert HOSTILE in page.inner_text("#text")
    assert page.evaluate("window.hit") is None


NO_TRACES = ["", "no trace at all\n", '{"kind":"run","schema":1}\n', '{"kind":"step"}\n' * 3]


def test_a_file_that_is_no_trace_is_told(visit, tmp_path):
    visitor = visit()
    for number, text in enumerate(NO_TRACES):
        file = tmp_path / f"run {number}.ndjson"
        file.write_text(text)
        visitor.page.set_input_files("#open-trace", file)
        visitor.wait_state("error")
        assert visitor.alarm, text
        assert visitor.page.locator("#tree g[data-node]").count(), "the picture is left as it was"
        visitor.page.evaluate("DraftscopePage.happen('watch', {kind: 'calmed', whole: false})")
        assert visitor.wait_state("done", "idle") and not visitor.alarm
