"""The control Model: a chat model that is fetched from the page, opened in the background, and talked to."""

import json
import os
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from app.fetching import Fetching
from engine.trace import read_trace
from presets import fetched
from tests.app.serving import serving
from tests.app.visitor import Visitor
from tests.app.wire import Wire
from tests.engine.tiny_gguf import source_toml, write_wheel

FAMILY = "smollm2"
TITLE = "A real chat model"


@pytest.fixture(scope="module")
def fetching_host(tmp_path_factory):
    """A server with a cache of its own, whose real chat model is a tiny one."""
    folder = tmp_path_factory.mktemp("host")
    with serving(
        program=("-m", "tests.app.tiny_family", str(families_in(folder))),
        DRAFTSCOPE_CACHE=str(folder / "cache"),
        **pip(folder),
    ) as running:
        yield running


def families_in(folder: Path, **changed: str) -> Path:
    """A folder of families in this one: the real chat model's, whose wheel lies in ``shop``. changed: what is told of the
    wheel otherwise."""
    shop, family = folder / "shop", folder / "families" / FAMILY
    shop.mkdir()
    family.mkdir(parents=True)
    source = write_wheel(shop)
    told = replace(source, wheel=replace(source.wheel, **changed))
    (family / "source.toml").write_text(source_toml(told))
    return family.parent


def pip(folder: Path) -> dict[str, str]:
    """Settings with which pip looks in the shop of this folder alone."""
    shop = str(folder / "shop")
    return {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": shop}


@pytest.fixture
def arrive(tabs):
    found = []

    def go(server, path: str = "/?n=12&drafter=prompt_lookup") -> Visitor:
        found.append(Visitor(tabs, server.url, path, {}))
        return found[-1]

    yield go
    for visitor in found:
        visitor.leave()
        assert visitor.failures == [] and visitor.foreign == []


def choose(page, title: str) -> None:
    page.locator("#models").get_by_label(title, exact=True).check()


@pytest.mark.journey
def test_it_is_fetched_and_answers(fetching_host, arrive):
    visitor = arrive(fetching_host)
    page, note = visitor.page, visitor.page.locator("#models-note")
    visitor.change()
    choose(page, TITLE)
    page.wait_for_selector("#own-system")  # a conversation
    page.locator("#own-chat").wait_for(state="hidden")  # it always is one
    button = note.locator("[data-model=fetch]")
    button.wait_for()
    assert "Tiny-Chat" in button.inner_text() and " MB)" in button.inner_text(), "told beforehand"
    assert "of memory" in note.inner_text() and "Apache-2.0" in note.inner_text()
    assert visitor.run("the thin the") == "error"
    assert "not on this machine yet" in visitor.alarm, "never without being asked"
    button.click()
    button.wait_for(state="hidden")
    page.wait_for_function(
        "!document.querySelector('#models-note').textContent.includes('not on this machine')"
    )
    for turn, said in enumerate(["the thin the", "in 12"], start=1):
        assert visitor.run(said) == "done", visitor.alarm
        trace = read_trace(visitor.trace())
        asked = trace.run["prompt"]["messages"]
        assert trace.run["family"] == FAMILY and trace.run["target"]["name"] == "Tiny-Chat"
        assert len(asked) == 2 * turn - 1 and asked[-1] == {"role": "user", "content": said}
        assert trace.run["prompt"]["text"].endswith(
            f"<|im_start|>user\n{said}<|im_end|>\n<|im_start|>assistant\n"
        )
        page.wait_for_function(f"document.querySelectorAll('.pg-own-turn').length === {2 * turn}")
    assert page.locator(".pg-cover").count() == 0
    page.click("#copy-link")
    page.wait_for_function(f"location.search.includes('models={FAMILY}')")
    choose(page, "Small, instant")
    page.wait_for_function("document.querySelector('.pg-cover')?.textContent.includes('the model')")
    assert visitor.run("Once upon a time") == "done", visitor.alarm
    run = read_trace(visitor.trace()).run
    assert "family" not in run and "messages" not in run["prompt"]
    again = arrive(fetching_host, f"/?models={FAMILY}&prompt=the+tin&n=8&drafter=none")
    again.page.wait_for_selector(  # from the link
        f"#models input[value={FAMILY}]:checked", state="attached"
    )
    assert again.run() == "done", again.alarm
    asked = read_trace(again.trace()).run["prompt"]["messages"]
    assert asked == [{"role": "user", "content": "the tin"}], "another visitor's conversation"


def test_drafters_without_their_part_are_disabled_with_the_reason(fetching_host, arrive):
    visitor = arrive(fetching_host)
    visitor.change()
    choose(visitor.page, TITLE)
    visitor.page.locator("#drafter").get_by_role("combobox").click()
    lacking = visitor.page.locator("#drafter [role=option][data-key=medusa]")
    assert lacking.get_attribute("aria-disabled") == "true"
    assert (
        f"needs a set of Medusa heads, which this page does not have for “{TITLE}”"
        in lacking.inner_text()
    )


def looked(wire: Wire, event: str) -> dict:
    told, *_ = wire.at_once("models-note", event, {"models": FAMILY})
    return json.loads(told)


def test_a_wheel_with_another_digest_is_told_and_nothing_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(fetched, "FAMILIES", families_in(tmp_path, sha256="0" * 64))
    for name, value in {"DRAFTSCOPE_CACHE": str(tmp_path / "cache"), **pip(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    fetched.sources.cache_clear()
    try:
        fetching = Fetching()
        assert fetching.told(FAMILY)["here"] is False
        fetching.fetch(FAMILY, "somebody")
        while (told := fetching.told(FAMILY))["task"]:
            time.sleep(0.1)
    finally:
        fetched.sources.cache_clear()
    assert "SHA-256" in told["problem"] and told["here"] is False
    models = tmp_path / "cache" / "models"
    assert [one for one in models.rglob("*") if one.is_file() and one.name != "lock"] == []


def test_a_host_can_switch_it_off(host):
    assert TITLE not in httpx.get(f"{host.url}/config", timeout=60).text
    with wired(host) as wire:
        for event in ("fetch", "look"):
            assert looked(wire, event).keys() == {"models", "n"}, "nor can anybody ask for it"


@contextmanager
def wired(server):
    wire = Wire(server.url)
    try:
        yield wire
    finally:
        wire.leave()
