"""A server tries drafters before its first visitors do: all, those of the examples, or none, as its host sets it."""

import gc
import json
import threading
import urllib.request

import pytest

from app import warm
from app.settings import tried_ahead
from engine.errors import UserError
from presets import presets, races
from tests.engine.family import offered


@pytest.fixture
def ready(monkeypatch):
    event = threading.Event()
    monkeypatch.setattr(warm, "ready", event)
    return event


def test_the_setting_says_how_much():
    assert tried_ahead({}) == tried_ahead({"DRAFTSCOPE_AHEAD": ""}) == "all"
    assert tried_ahead({"DRAFTSCOPE_AHEAD": " Examples "}) == "examples"
    with pytest.raises(UserError, match=r"all, examples, none, not 'some'\.$"):
        tried_ahead({"DRAFTSCOPE_AHEAD": "some"})


def test_all_of_them_those_of_the_examples_or_none():
    assert warm.chosen("all") == offered()
    shown = warm.chosen("examples")
    assert {one.drafter for one in presets() if not one.models} <= set(shown) < set(offered())
    assert {lane.drafter for race in races() if not race.models for lane in race.lanes} <= set(
        shown
    )
    assert warm.chosen("none") == []


def test_it_is_ready_once_everything_was_tried(ready, monkeypatch):
    tried = []
    monkeypatch.setattr(warm, "_try", lambda key: tried.append((key, ready.is_set())))
    monkeypatch.setattr(warm, "keep_for_good", lambda: tried.append(("kept", ready.is_set())))
    warm._load(0.0, ["chain", "dyspec"])
    assert tried == [("chain", False), ("dyspec", False), ("kept", False)] and ready.is_set()


def test_what_exists_then_is_not_looked_through_again():
    kept = [[]]
    kept.append(kept)  # a circle, which the collector would follow
    try:
        warm.keep_for_good()
        assert not any(each is kept for each in gc.get_objects())
        fresh = [kept]
        assert any(each is fresh for each in gc.get_objects())
    finally:
        gc.unfreeze()


def test_trying_goes_through_both_temperatures_without_a_word(monkeypatch, caplog):
    asked, opened = [], warm.open_run
    monkeypatch.setattr(warm, "open_run", lambda one: asked.append(one) or opened(one))
    warm._try("prompt_lookup")
    assert [one.temperature for one in asked] == [0.0, 0.8]
    assert not [one for one in caplog.records if one.name == "draftscope"]


def test_a_drafter_that_cannot_be_tried_is_logged_and_the_next_one_is_tried(
    ready, monkeypatch, caplog
):
    monkeypatch.setattr(warm, "keep_for_good", lambda: None)
    warm._load(0.0, ["oracle", "none"])
    assert ready.is_set() and "oracle" in caplog.text


def test_a_server_that_tries_nothing_is_ready_at_once(server):
    with urllib.request.urlopen(f"{server.url}/health", timeout=30) as answer:
        assert json.load(answer)["status"] == "ready"
