"""The bench of a draft that learns: its requests, what is judged, and that an emptied memory has learned nothing."""

import pytest

online = pytest.importorskip("engine.methods.online.online_suite")


def test_the_requests_are_of_one_kind_and_the_same_every_time():
    requests = online.records(20)
    assert requests == online.records(20) and len(set(requests)) == 20
    heads = {line.split()[0] for one in requests for line in one.split("\n")}
    assert len(heads) == 1, "all records have the same fields"


@pytest.mark.exhaustive
def test_a_small_bench(quick, tiny_paths, monkeypatch):
    """With a fast rate, tiny models learn within a few requests."""
    monkeypatch.setitem(online.OPTIONS, "online", online.OPTIONS["online"] | {"rate": 0.02})
    requests = ["a b c w5", "w9 b w6", "w1 w8 w2"] * 4
    monkeypatch.setattr(online, "records", lambda count: requests)
    report = online.measure(tiny_paths, {}, True)
    found = report.data
    own, control = found["online"], found["chain"]
    assert [one["tokens"] for one in own] == [one["tokens"] for one in control]
    assert control[:3] * 4 == control, "the control learns nothing"
    assert found["gain"] > 0 and found["forgotten"]
    assert found["again"] == own[0] and len(own) == 12
    assert "first 6" in report.text and "not judged with 12 requests" in report.text
    assert "12 of 12 texts written alike by both" in report.text
    assert "the same as at the beginning" in report.text and "NOT" not in report.text
    assert found["options"]["online"]["milliseconds"] == 0.0, "no clock decides"


def asked(kept, steps=4):
    return {"kept": kept, "judged": 100, "steps": steps}


@pytest.mark.parametrize(("last", "verdict"), [(61, "met"), (59, "missed")])
def test_the_climb_is_judged_beside_that_of_the_control(last, verdict):
    own = [asked(40)] * 10 + [asked(90)] * 30 + [asked(last)] * 10
    control = [asked(20)] * 10 + [asked(90)] * 30 + [asked(30)] * 10
    result = online.Learning(own, control, asked(40))
    assert result.gain == pytest.approx(last / 100 - 0.5) and result.verdict == verdict
    assert f"goal: 0.1 or more; {verdict}" in online.report_text(result)


@pytest.mark.parametrize("again", [asked(41), asked(40, steps=5)])
def test_what_is_left_in_the_memory_is_told(again):
    result = online.Learning([asked(40)] * 2, [asked(40)] * 2, again)
    assert not result.forgotten and "NOT the same as at the beginning" in online.report_text(result)
