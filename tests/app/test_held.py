"""What a text on Watch is held to: the healed end of its prompt, and the names of its Python."""

import json
from urllib.parse import urlencode

import pytest

from app.again import again
from app.link import read, wish_of
from app.menu import offer, preset_menu
from engine.trace import read_trace
from tests.app.test_address import wait_address
from tests.app.test_agreement import clear, covered
from tests.engine.family import trace_of

STILL = {"reduced_motion": "reduce"}
PROMPT = "Once upon a ti"
CODE = "# Return the sum of the columns.\ndef add(rows, columns):\n    return "


def run_line(page) -> dict:
    return json.loads(page.evaluate("DraftscopePage.trace('watch')").splitlines()[0])


def address(**more: object) -> str:
    return "/?" + urlencode({"drafter": "chain", "n": 12, **more})


@pytest.mark.parametrize("held", [{"heal": True}, {"python_names": True}, {}])
def test_a_finished_run_asks_for_the_same_again(held):
    trace = trace_of(PROMPT, drafter="chain", max_new_tokens=4, **held)
    values = read(wish_of(trace, offer()), preset_menu(), offer())
    assert values["prompt"] == PROMPT and not values.get("json_schema")
    for name in ("heal", "python_names"):
        assert bool(values.get(name)) == bool(held.get(name))
    wanted = again(trace.run, 4)
    assert wanted.prompt == PROMPT
    assert {"heal": wanted.heal, "python_names": wanted.python_names} == {
        **dict.fromkeys(("heal", "python_names"), False),
        **held,
    }


@pytest.mark.journey
def test_the_end_of_a_prompt_is_healed(visit):
    visitor = visit(address(prompt=PROMPT), **STILL)
    page = visitor.page
    assert visitor.run() == "done"
    clear(page)
    visitor.change()
    page.click("#advanced button")
    page.check("#heal input")
    covered(page, "whether the prompt’s end is healed")
    assert visitor.run() == "done"
    clear(page)
    run = run_line(page)
    taken = run["constraint"]["text"]
    assert taken and run["prompt"]["text"] + taken == PROMPT
    written = read_trace(page.evaluate("DraftscopePage.trace('watch')")).summary["text"]
    shown = " ".join(page.inner_text("#text").split())
    assert shown.startswith(" ".join((run["prompt"]["text"] + written).split())[:60]), (
        "nothing twice"
    )
    assert "the law of the target’s own texts that begin so" in page.inner_text("#watch-view")
    wait_address(page, heal=1, prompt=PROMPT)
    page.click("#copy-link")
    other = visit("/" + page.evaluate("location.search"), **STILL).page
    other.wait_for_function(
        "() => JSON.parse(DraftscopePage.trace('watch').split('\\n')[0] || '{}').constraint?.key === 'heal'"
        " && DraftscopePage.agrees('watch')"
    )
    other.click("#change")
    other.click("#advanced button")
    assert other.is_checked("#heal input")


@pytest.mark.journey
def test_names_that_exist(visit):
    visitor = visit(address(prompt=CODE, t=1.5, seed=2, names=1), **STILL)
    page = visitor.page
    assert visitor.run() == "done"
    clear(page)
    assert run_line(page)["constraint"] == {
        "key": "python_names",
        "text": "",
        "law": "masked decoding",
    }
    assert "the law of masked decoding" in page.inner_text("#watch-view")
    visitor.change()
    page.click("#advanced button")
    page.uncheck("#python-names input")
    covered(page, "which names may be used")
    page.check("#python-names input")
    page.check("#heal input")
    visitor.click("run")
    page.locator("#watch-status [role=alert]").get_by_text("either to a JSON schema or").wait_for()
