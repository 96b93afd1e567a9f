"""What if: a finished run is made again with a change and shown beside the first."""

import json

import pytest

from presets import opening_trace
from tests.app.test_page import PHONE
from tests.axe import violations

SAME = "The same text, token for token."


def lines(trace: str) -> list[dict]:
    return [json.loads(line) for line in trace.splitlines()]


def open_form(visitor) -> None:
    visitor.page.click("#whatif summary")


def change(visitor, thing: str) -> None:
    visitor.page.check(f"#whatif-change-{thing}")


def ask(visitor) -> str:
    """Run it. Returns the state in which it ended."""
    page = visitor.page
    page.click("#whatif-run")
    page.wait_for_function("['done', 'error'].includes(DraftscopePage.stateOf('whatif'))")
    return page.evaluate("DraftscopePage.stateOf('whatif')")


def second(visitor) -> list[dict]:
    return lines(visitor.page.evaluate("DraftscopePage.trace('whatif')"))


def test_with_nothing_changed_nothing_differs(visit):
    """Not even the last draft before the end of the text differs; a limit on the text's length would cut it."""
    visitor = visit("/?preset=template-diffusion")
    assert lines(visitor.trace())[-1]["stop"] == "eos"
    open_form(visitor)
    assert ask(visitor) == "done"
    first, again = (
        [step["nodes"]["token"] for step in trace[1:-1]]
        for trace in (lines(visitor.trace()), second(visitor))
    )
    assert again == first


@pytest.mark.journey
def test_another_drafter_writes_the_same_text(visit):
    visitor = visit()
    page = visitor.page
    assert visitor.run() == "done"
    before = visitor.trace()
    first, *_, summary = lines(before)
    open_form(visitor)
    drafter = page.input_value("#whatif-drafter input")
    assert drafter.endswith(f"({first['drafter']['key']})"), "as it ran"
    visitor.pick("chain", "#whatif-drafter")
    page.fill("[data-what-option=length]", "2")
    assert ask(visitor) == "done"
    run, *_, again = second(visitor)
    assert (run["drafter"]["key"], run["drafter"]["options"]["length"]) == ("chain", 2)
    assert (run["prompt"], run["sampling"]) == (first["prompt"], first["sampling"])
    assert again["text"] == summary["text"]
    assert page.inner_text("#whatif-view .ds-same") == SAME
    for lane in ("first", "what-if"):
        tokens = page.locator(f"#whatif-view [data-run={lane}] .text [data-index]")
        assert tokens.count() == summary["new_tokens"]
    assert visitor.trace() == before, "the first run stays as it is"
    assert "×" in page.inner_text("#whatif-view .ds-outcome")
    # a new run removes the comparison
    assert visitor.run() == "done"
    assert not page.locator("#whatif-view .ds-beside").is_visible()


def test_the_opening_trace_can_be_asked_about_and_stopped(visit):
    visitor = visit()
    page = visitor.page
    first = lines(opening_trace().read_text("utf-8"))
    open_form(visitor)
    change(visitor, "temperature")
    page.fill("#whatif-temperature", "0.9")
    assert ask(visitor) == "done"
    run, *_, summary = second(visitor)
    assert run["sampling"]["temperature"] == 0.9
    assert run["drafter"]["options"] == first[0]["drafter"]["options"]
    assert run["prompt"] == first[0]["prompt"]
    assert summary["new_tokens"] <= first[-1]["new_tokens"] + 64
    assert "timed elsewhere" in page.inner_text("#whatif-view .ds-outcome")
    # and again, stopped before its end
    change(visitor, "drafter")
    visitor.pick("none", "#whatif-drafter")
    page.evaluate(
        """() => {
          const tree = document.querySelector('#whatif-view [data-run=what-if] .text');
          const stop = document.querySelector('#whatif-stop');
          new MutationObserver((_, watcher) => {
            if (stop.disabled || !tree.querySelector('[data-index]')) return;
            watcher.disconnect();
            stop.click();
          }).observe(tree, {childList: true, subtree: true});
        }"""
    )
    assert ask(visitor) == "done"
    assert second(visitor)[-1]["stop"] == "cancelled"
    assert page.locator("#whatif-view .ds-outcome").is_visible()


def test_one_thing_changes_at_a_time_and_what_comes_with_it_is_said(visit):
    visitor = visit("/", reduced_motion="reduce")
    page = visitor.page
    open_form(visitor)
    says = page.locator(".pg-what-says")
    assert page.is_enabled("#whatif-drafter input") and page.is_disabled("#whatif-temperature")
    change(visitor, "temperature")
    assert page.is_disabled("#whatif-drafter input") and page.is_disabled("#whatif-rule")
    page.fill("#whatif-temperature", "0.8")
    for said in ("The rule has to change with it", "do nothing: sharpness", "the temperature"):
        assert said in says.inner_text()
    change(visitor, "rule")
    assert page.input_value("#whatif-temperature") == "0", "as it was"
    page.select_option("#whatif-rule", "sampler_match")
    assert says.inner_text().startswith("Changed: the rule. All else stays")


def test_a_trace_of_other_models_is_told(visit, tmp_path):
    visitor = visit()
    run, *rest = opening_trace().read_text("utf-8").splitlines(keepends=True)
    run = json.loads(run)
    run["target"]["parameters"] += 1
    file = tmp_path / "other.ndjson"
    file.write_text("".join([json.dumps(run) + "\n", *rest]), "utf-8")
    visitor.page.set_input_files("#open-trace", file)
    visitor.page.wait_for_selector("#watch-figures .js-plotly-plot")
    open_form(visitor)
    assert ask(visitor) == "error"
    assert "other models" in visitor.page.inner_text("#whatif-status [role=alert]")


def test_it_waits_for_the_end_of_the_run(visit):
    visitor = visit()
    open_form(visitor)
    visitor.click("step")
    visitor.wait_state("paused")
    assert visitor.page.is_disabled("#whatif-run")
    assert "come to its end" in visitor.page.inner_text("#whatif")
    visitor.click("stop")
    visitor.wait_state("done")
    visitor.page.wait_for_function("!document.querySelector('#whatif-run').disabled")
    visitor.page.wait_for_function(
        "!document.querySelector('#whatif-run').closest('fieldset').disabled"
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_keyboard_is_enough_and_axe_finds_nothing(visit, scheme):
    path = f"/?n=8&__theme={scheme}"
    visitor = visit(path, color_scheme=scheme, reduced_motion="reduce", **PHONE)
    page = visitor.page
    page.focus("#whatif summary")
    page.keyboard.press("Enter")
    page.focus("#whatif-drafter input")
    page.keyboard.type("lookup")
    page.keyboard.press("Enter")
    page.focus("#whatif-run")
    page.keyboard.press("Enter")
    page.wait_for_function("DraftscopePage.stateOf('whatif') == 'done'")
    assert second(visitor)[0]["drafter"]["key"] == "prompt_lookup"
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert violations(page) == []
