"""What a text on Watch is held to: the healed end of its prompt, and the names of its Python."""

import json
from urllib.parse import urlencode, urljoin

import pytest

from app.again import again
from app.example_menu import preset_menu
from app.link import read, wish_of
from app.menu import offer
from engine.trace import read_trace
from tests.app.visitor import clear, covered, wait_address
from tests.engine.family import trace_of

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
def test_the_end_of_a_prompt_is_healed_and_names_exist(visit):
    visitor = visit(address(prompt=PROMPT))
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
    written = read_trace(visitor.trace()).summary["text"]
    shown = " ".join(page.inner_text("#text").split())
    whole = " ".join((run["prompt"]["text"] + written).split())
    assert shown.startswith(whole[:60]), "nothing twice"
    assert "the law of the target’s own texts that begin so" in page.inner_text("#watch-view")
    wait_address(page, heal=1, prompt=PROMPT)
    link = page.evaluate("location.search")
    visitor.go(address(prompt=CODE, t=1.5, seed=2, names=1))
    covered(page, "which names may be used")
    assert not page.is_checked("#heal input")
    assert visitor.run() == "done"
    clear(page)
    told = {"key": "python_names", "text": "", "law": "masked decoding"}
    assert run_line(page)["constraint"] == told
    assert "the law of masked decoding" in page.inner_text("#watch-view")
    page.uncheck("#python-names input")
    covered(page, "which names may be used")
    page.check("#python-names input")
    page.check("#heal input")
    visitor.click("run")
    page.locator("#watch-status [role=alert]").get_by_text("either to a JSON schema or").wait_for()
    page.goto(urljoin(page.url, link))
    page.wait_for_function(
        "() => globalThis.DraftscopePage && JSON.parse(DraftscopePage.trace('watch').split('\\n')[0] || '{}').constraint?.key === 'heal'"
        " && DraftscopePage.agrees('watch')"
    )
    visitor.change()
    page.click("#advanced button")
    assert page.is_checked("#heal input")
