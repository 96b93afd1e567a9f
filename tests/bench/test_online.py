"""The bench of a draft that learns: its requests, what is judged, and that an emptied memory has learned nothing."""

import json

import pytest

from engine.bench import online
from engine.bench.online import Drafted, Result
from engine.parts import opening


@pytest.fixture
def paths(tiny_paths, monkeypatch):
    """Compiling takes longer than the rest of the test."""
    monkeypatch.setattr(opening, "compiled_model", lambda *_: None)
    return tiny_paths


def test_the_requests_are_of_one_kind_and_the_same_every_time():
    requests = online.records(20)
    assert requests == online.records(20) and len(set(requests)) == 20
    heads = {line.split()[0] for one in requests for line in one.split("\n")}
    assert len(heads) == 1, "all records have the same fields"


@pytest.mark.exhaustive
def test_a_small_bench(paths, monkeypatch, tmp_path, capsys):
    """With a fast rate, tiny models learn within a few requests."""
    monkeypatch.setitem(online.OPTIONS, "online", online.OPTIONS["online"] | {"rate": 0.02})
    out = tmp_path / "online.json"
    requests = ["a b c w5", "w9 b w6", "w1 w8 w2"] * 4
    result = online.run_online(paths, requests, str(out))
    assert [one.tokens for one in result.online] == [one.tokens for one in result.chain]
    assert result.chain[:3] * 4 == result.chain, "the control learns nothing"
    assert result.gain > 0 and result.forgotten
    assert result.again == result.online[0]
    told = capsys.readouterr().out
    assert "first 6" in told and "not judged with 12 requests" in told
    assert "12 of 12 texts written alike by both" in told
    assert "the same as at the beginning" in told and "NOT" not in told
    written = json.loads(out.read_text("utf-8"))
    assert written["gain"] == result.gain and len(written["online"]) == 12
    assert written["options"]["online"]["milliseconds"] == 0.0, "no clock decides"


def asked(kept, steps=4):
    return Drafted(kept, 100, steps, ())


@pytest.mark.parametrize(("last", "verdict"), [(61, "met"), (59, "missed")])
def test_the_climb_is_judged_beside_that_of_the_control(last, verdict):
    own = [asked(40)] * 10 + [asked(90)] * 30 + [asked(last)] * 10
    control = [asked(20)] * 10 + [asked(90)] * 30 + [asked(30)] * 10
    result = Result(own, control, asked(40))
    assert result.gain == pytest.approx(last / 100 - 0.5) and result.verdict == verdict
    assert f"goal: 0.1 or more; {verdict}" in online.table(result)


@pytest.mark.parametrize("again", [asked(41), asked(40, steps=5)])
def test_what_is_left_in_the_memory_is_told(again):
    result = Result([asked(40)] * 2, [asked(40)] * 2, again)
    assert not result.forgotten and "NOT the same as at the beginning" in online.table(result)
