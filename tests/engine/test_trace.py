"""Traces of every drafter: the schema, the statuses, the ids, the greedy texts; and texts that are no traces."""

import copy
import json
from collections import Counter

import fastjsonschema
import jsonschema
import pytest
import torch

from engine.errors import UserError
from engine.run import open_run
from engine.trace import SCHEMA_PATH, read_trace, to_line
from engine.trace.reading import _checks
from tests.engine.family import (
    embedded_module,
    embedded_tokenizer,
    lines_of,
    offered,
    request,
    tokens_of,
    trace_of,
)
from tests.engine.test_family import EXACT, GREEDILY_TRACED, assert_same, plain
from tests.grids import some

SCHEMA = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
COUNT = 16
PROMPT = 'Copy: "The dog ran to the café 🐕 <b>${x}</b>." The dog ran to the'
CASES = some(
    [(key, temperature) for key in offered() for temperature in (0.0, 0.9)],
    lambda case: (case[0] in GREEDILY_TRACED) == (case[1] == 0),
    whole=True,
)


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{case[0]}-{case[1]}")
def trace(request):
    key, temperature = request.param
    return trace_of(PROMPT, drafter=key, temperature=temperature, top_p=0.95, max_new_tokens=COUNT)


def test_a_greedy_text_is_that_of_generate(trace):
    """So ``test_family.py`` need not run these drafters greedily once more."""
    tokens, rule = tuple(tokens_of(trace)), trace.run["verifier"]
    assert 0 < len(tokens) <= COUNT
    if trace.run["sampling"]["temperature"] == 0 and trace.run["drafter"]["key"] in EXACT:
        assert (rule["key"], rule["lossless"], rule["options"]) == ("greedy", True, {})
        assert_same(PROMPT, plain(PROMPT)[:COUNT], tokens)


def test_the_schema_is_one():
    VALIDATOR.check_schema(SCHEMA)


def shortened(value):
    """Return the value with at most the first two places and the last one of each list. The reader has checked all of
    them, ten times as fast."""
    if isinstance(value, dict):
        return {name: shortened(inner) for name, inner in value.items()}
    if not isinstance(value, list):
        return value
    return [shortened(inner) for inner in (value if len(value) <= 3 else [*value[:2], value[-1]])]


def test_every_line_fits_the_schema(trace):
    for line in lines_of(trace):
        VALIDATOR.validate(shortened(line))


def test_statuses_are_consistent(trace):
    for step in trace.steps:
        nodes = step["nodes"]
        accepted = [n for n, status in enumerate(nodes["status"]) if status == "accepted"]
        assert [nodes["depth"][n] for n in accepted] == list(range(1, len(accepted) + 1))
        assert [nodes["parent"][n] for n in accepted] == [-1, *accepted][: len(accepted)]
        judged = {entry["node"] for entry in step["judgements"]}
        if trace.run["drafter"]["family"] == "decoder":
            assert not judged and set(nodes["p"]) <= {None}
            continue  # its own choice decides; a text may be given up below tokens that another one keeps
        for node, status in enumerate(nodes["status"]):
            parent = nodes["parent"][node]
            if parent >= 0 and nodes["status"][parent] != "accepted":
                assert status == "ignored"
            unseen = "target" not in step["passes"]  # then drafted tokens are kept unseen
            assert (status == "ignored") == (node not in judged and not unseen)


def test_kept_exactly_when_the_coin_fell_below(trace):
    for step in trace.steps:
        last = {entry["node"]: entry for entry in step["judgements"]}
        for node, entry in last.items():
            kept = step["nodes"]["status"][node] == "accepted"
            if entry["coin"] is None:
                assert entry["accept"] == (1 if kept else 0)
            else:
                assert kept == (entry["coin"] < entry["accept"])


def test_ids_concatenate_to_the_text(trace):
    tokens, tokenizer = tokens_of(trace), embedded_tokenizer()
    assert tokenizer.decode(tokens, clean_up_tokenization_spaces=False) == trace.summary["text"]
    assert len(tokens) == trace.summary["new_tokens"]
    assert trace.run["prompt"]["tokens"] == tokenizer(PROMPT)["input_ids"]


@pytest.fixture(scope="module")
def known() -> dict[tuple[int, ...], torch.Tensor]:
    """Return a dict for the logits after a text, which drafters that write the same text have in common."""
    return {}


def test_p_is_the_targets_after_temperature_and_truncation(trace, known):
    """Recomputed with transformers and a naive operator, node by node, for the first steps."""
    text = list(trace.run["prompt"]["tokens"])
    for step in trace.steps[:3]:
        nodes = step["nodes"]
        for node, parent in reversed(list(enumerate(nodes["parent"][:6]))):
            path = []
            while parent >= 0:
                path.insert(0, nodes["token"][parent])
                parent = nodes["parent"][parent]
            if (*text, *path) not in known:
                with torch.no_grad():
                    rows = embedded_module()(
                        torch.tensor([text + path]), logits_to_keep=1 + len(path)
                    )
                for depth, row in enumerate(rows.logits[0]):
                    known[(*text, *path[:depth])] = row
            expected = naive(known[(*text, *path)], trace.run["sampling"])[nodes["token"][node]]
            if nodes["p"][node] is None:
                unjudged = nodes["status"][node] == "ignored"  # the target has not read it yet
                assert unjudged or not trace.run["verifier"]["lossless"]
                continue
            assert nodes["p"][node] == pytest.approx(float(expected), abs=2e-4)
        text += step["output"]["tokens"]


def naive(logits, sampling):
    if sampling["temperature"] == 0:
        return torch.softmax(logits.double(), -1)
    p = torch.softmax(logits.double() / sampling["temperature"], -1)
    order = p.argsort(descending=True)
    mass = 0.0
    for rank, token in enumerate(order.tolist()):
        if mass >= sampling["top_p"]:
            p[order[rank:]] = 0
            break
        mass += float(p[token])
    return p / p.sum()


def reached_by_depth(steps: list[dict]) -> Counter[int]:
    """Return the most steps in which the judge can have come to a drafted token at each depth: a child of the root, or
    of an accepted node."""
    found = Counter()
    for step in steps:
        nodes = step["nodes"]
        if {"accepted", "rejected"} & {*nodes["status"]}:
            found.update(
                {
                    depth
                    for parent, depth in zip(nodes["parent"], nodes["depth"], strict=True)
                    if parent < 0 or nodes["status"][parent] == "accepted"
                }
            )
    return found


def test_the_summary_adds_up(trace):
    summary, steps = trace.summary, trace.steps
    counts = [sum(s == "accepted" for s in step["nodes"]["status"]) for step in steps]
    histogram = summary["accepted_histogram"]
    assert sum(histogram) == len(steps)
    assert sum(i * n for i, n in enumerate(histogram)) == sum(counts)
    assert summary["mean_accepted"] == pytest.approx(summary["new_tokens"] / len(steps))
    rows = summary["acceptance_by_depth"]
    reached = sum(row["reached"] for row in rows)
    rate = sum(row["accepted"] for row in rows) / reached if reached else None
    assert summary["acceptance_rate"] == (None if rate is None else pytest.approx(rate))
    most = reached_by_depth(steps)
    assert all(row["reached"] <= most[row["depth"]] for row in rows)
    times = summary["milliseconds"]
    for stage in ("draft", "verify", "judge", "commit"):
        assert times[stage] == pytest.approx(
            sum(step["milliseconds"][stage] for step in steps), abs=0.01
        )
    parts = sum(value for name, value in times.items() if name != "total")
    assert times["total"] == pytest.approx(parts, abs=0.01)
    read = [step.get("prefill", 0) for step in steps]
    assert read[0] == pytest.approx(times["prefill"], abs=0.01) and not any(read[1:])


def test_a_cancelled_run_has_a_summary_and_is_a_trace():
    run = open_run(request(PROMPT, drafter="chain", max_new_tokens=40))
    lines = [run.header(), run.step()]
    run.cancel()
    run.cancel()
    assert run.step() is None
    trace = read_trace("".join([*lines, run.summary()]))
    assert trace.summary["stop"] == "cancelled"
    assert trace.summary["steps"] == 1


def test_pausing_changes_nothing():
    def tokens(pause: bool):
        run = open_run(request(PROMPT, drafter="dyspec", temperature=0.8, max_new_tokens=20))
        lines = [run.step()] if pause else []
        lines += run.steps()
        return [json.loads(line)["output"]["tokens"] for line in lines]

    assert tokens(pause=True) == tokens(pause=False)


@pytest.fixture(scope="module")
def good():
    return trace_of("The cat", drafter="chain", max_new_tokens=12)


def broken(trace, change) -> str:
    lines = copy.deepcopy(lines_of(trace))
    change(lines)
    return "".join(map(to_line, lines))


def set_in(lines, number, *path_and_value):
    *path, last, value = path_and_value
    entry = lines[number]
    for key in path:
        entry = entry[key]
    entry[last] = value


ODD = [None, True, -1, 2, 0.5, 10**30, "odd", "x" * 5000, [], [[1, "a", 0.5]], [[1, "a"]], {}, {"a": 1}]  # fmt: skip


def changed(value):
    """Yield the value with one place odd or left out: each place of an object, the first and the last place of a
    list."""
    yield from ODD
    if isinstance(value, dict):
        for name in value:
            for odd in changed(value[name]):
                yield {**value, name: odd}
            yield {key: kept for key, kept in value.items() if key != name}
        yield {**value, "unknown": 1}
    elif isinstance(value, list) and value:
        for place in {0, len(value) - 1}:
            for odd in changed(value[place]):
                yield [*value[:place], odd, *value[place + 1 :]]
        yield [*value, *value]


def reader_takes(line) -> bool:
    try:
        _checks(line["kind"])(line)
    except fastjsonschema.JsonSchemaValueException:
        return False
    return True


def test_the_reader_refuses_what_the_schema_refuses(good):
    """Another library compiles the reader's checks from the schema; the reference is a validator for this draft. The
    kind of a line is a constant of its schema, so no other kind's can take it."""
    told = Counter()
    for line in (good.run, next(step for step in good.steps if step["judgements"]), good.summary):
        kind = line["kind"]
        reference = jsonschema.Draft202012Validator(
            {"$ref": f"#/$defs/{kind}", "$defs": SCHEMA["$defs"]}
        )
        for odd in changed(shortened(line)):
            if isinstance(odd, dict) and odd.get("kind") == kind:
                fits = reference.is_valid(odd)
                assert reader_takes(odd) == fits, odd
                told[fits] += 1
    assert min(told[True], told[False]) > 100


FAULTS = {
    "no summary": lambda lines: lines.pop(),
    "no run line": lambda lines: lines.pop(0),
    "a step missing": lambda lines: lines.pop(1),
    "steps swapped": lambda lines: lines.insert(1, lines.pop(2)),
    "unknown status": lambda lines: set_in(lines, 1, "nodes", "status", 0, "fine"),
    "short column": lambda lines: lines[1]["nodes"]["p"].pop(),
    "parent after child": lambda lines: set_in(lines, 1, "nodes", "parent", 0, 3),
    "a position behind": lambda lines: set_in(lines, 1, "position", 0),
    "a position ahead": lambda lines: set_in(lines, 1, "position", 900),
    "wrong depth": lambda lines: set_in(lines, 1, "nodes", "depth", 0, 4),
    "wrong output": lambda lines: set_in(lines, 1, "output", "tokens", -1, []),
    "another version": lambda lines: set_in(lines, 0, "schema", 2),
    "probability above one": lambda lines: set_in(lines, 1, "nodes", "p", 0, 1.5),
    "judges a stranger": lambda lines: set_in(lines, 1, "judgements", 0, "node", 99),
    "miscounted": lambda lines: set_in(lines, -1, "new_tokens", 3),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_trace_is_refused_in_a_sentence(good, fault):
    assert read_trace(good.to_ndjson()) == good
    with pytest.raises(UserError) as caught:
        read_trace(broken(good, FAULTS[fault]))
    message = str(caught.value)
    assert message.endswith((".", "?")) and "\n" not in message


def test_a_trace_that_a_program_on_windows_saved_is_read(good, tmp_path):
    saved = "\ufeff" + good.to_ndjson().replace("\n", "\r\n")
    (tmp_path / "t.ndjson").write_bytes(saved.encode())
    assert read_trace(tmp_path / "t.ndjson") == read_trace(saved) == good


def nested(levels: int) -> list:
    value: list = []
    for _ in range(levels):
        value = [value]
    return value


def exhibit(**more) -> dict:
    return {"kind": "table", "title": "t", **more}


SPAN = {"lane": "a", "what": "draft", "start": 0, "end": 1.5}
GROWN = {
    "exhibits": lambda lines: set_in(lines, 1, "drafter", "exhibits", [exhibit(rows=nested(5))]),
    "an unknown kind": lambda lines: set_in(lines, 1, "drafter", "exhibits", [exhibit(kind="x")]),
    "spans": lambda lines: set_in(lines, 1, "spans", [SPAN]),
    "the clock": lambda lines: set_in(lines, 1, "milliseconds", "total", 1.5),
    "no look": lambda lines: set_in(lines, 1, "nodes", "p", 0, None),
    "sentences": lambda lines: set_in(lines, 0, "verifier", "sentences", {"bonus": "{final}"}),
    "one text": lambda lines: set_in(lines, 0, "verifier", "same_text", False),
    "titles": lambda lines: set_in(lines, 0, "drafter", "title", "A chain"),
    "a loop": lambda lines: set_in(lines, 0, "loop", "overlapped"),
    "parts": lambda lines: set_in(lines, 0, "parts", {"draft": "small"}),
    "passes": lambda lines: set_in(lines, -1, "passes", {"target": 4, "draft": 12}),
}


@pytest.mark.parametrize("change", GROWN)
def test_the_schema_has_room_for_more(good, change):
    text = broken(good, GROWN[change])
    assert read_trace(text).to_ndjson() == text != good.to_ndjson()


HOSTILE = {
    "a deep exhibit": [exhibit(rows=nested(50))],
    "a deeper one": [exhibit(rows=nested(700))],
    "a long text": [exhibit(lines=["x" * 4000])],
    "a long name": [exhibit(**{"x" * 4000: 1})],
    "too many values": [exhibit(rows=[[0] * 60_000])],
    "too large a number": [exhibit(value=10**400)],
    "too small a number": [exhibit(value=-(10**400))],
    "too many": [exhibit()] * 17,
    "no kind": [{"title": "t"}],
    "no title": [{"kind": "table"}],
    "no object": [3],
    "no list": {"kind": "table", "title": "t"},
    "a long title": [exhibit(title="x" * 300)],
}


@pytest.mark.parametrize("exhibits", HOSTILE.values(), ids=HOSTILE)
def test_hostile_exhibits_are_refused_in_a_sentence(good, exhibits):
    with pytest.raises(UserError) as caught:
        read_trace(broken(good, lambda lines: set_in(lines, 1, "drafter", "exhibits", exhibits)))
    message = str(caught.value)
    assert message.startswith("Line 2 of the trace") and message.endswith((".", "?"))
    assert len(message) < 200 and "\n" not in message


@pytest.mark.parametrize("text", ["", "\n", "{}\n", "[]\n", "NaN\n", "hello\nworld\n", "[" * 9999])
def test_what_is_no_trace_is_refused(text):
    with pytest.raises(UserError):
        read_trace(text + "\n")


def test_a_trace_cut_anywhere_is_refused(good):
    text = good.to_ndjson()
    for cut in range(1, len(text) - 1, max(1, len(text) // 60)):
        with pytest.raises(UserError):
            read_trace(text[:cut] + "\n")


def test_what_could_not_be_written_again_is_refused(good):
    for odd in ("NaN", "1e999", "-1e999", '"\\ud800"'):
        text = good.to_ndjson().replace('"drafter":{', f'"drafter":{{"odd":{odd},', 2)
        with pytest.raises(UserError, match="not valid JSON"):
            read_trace(text)
    with pytest.raises(ValueError):
        to_line({"x": float("nan")})
