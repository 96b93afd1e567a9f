"""A fixed number of malformed calls, settings, addresses and uploads.

Each is refused in one sentence, the server goes on, and no answer shows anything of its files.
"""

import json
import random

import httpx
import pytest

from app import controls, link, traces
from app.example_menu import preset_menu, race_menu
from app.menu import offer
from app.own_models import shown
from engine.errors import UserError
from engine.trace import read_trace
from presets import trace_names, trace_text
from tests.app.wire import PREFIX, Wire

BUDGET, SEED = 600, 13
ODD_WORDS = [
    "", " ", "\x00", "\ud800", "a" * 100_000, "\u202e" * 500, "\u0301" * 500, "\u200b" * 500, "\U0001f469\u200d" * 99,
    "../../../etc/passwd", "/etc/passwd", "file:///etc/passwd", "http://127.0.0.1:1/", "%2e%2e%2f", "~root", "NaN",
    "Infinity", "-1", "1e999", "0x10", "١٢", "null", "[]", "{}", "[" * 5000, '{"a":' * 5000, "<script>alert(1)</script>",
    "${7*7}", "{{7*7}}", "__proto__", "constructor", "'; drop table", "\x1b[2J\x07",
]  # fmt: skip
ODD_NUMBERS = [-1, 0, 10**30, -(10**30), 1.5, float("1e308"), 2**63, True, False]
NO_NUMBERS = [float("nan"), float("inf"), float("-inf")]
SECRETS = ("root:x:0:0", "Traceback (most recent", 'File "/', "site-packages")


class Odd:
    """Nonsensical values from one seeded stream."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def value(self, depth: int = 0) -> object:
        kind = self.chance.randrange(7 if depth < 3 else 4)
        if kind == 0:
            return self.chance.choice(ODD_WORDS)
        if kind == 1:
            return self.chance.choice(ODD_NUMBERS)
        if kind == 2:
            return self.chance.choice(NO_NUMBERS)
        if kind == 3:
            return None
        if kind == 4:
            return [self.value(depth + 1) for _ in range(self.chance.randrange(4))]
        if kind == 5:
            return {
                str(self.chance.choice(ODD_WORDS))[:40]: self.value(depth + 1) for _ in range(3)
            }
        return json.dumps({"drafter": self.value(3), "options": self.value(3)})

    def spoiled(self, values: list) -> list:
        """The values with one or two replaced by odd ones, and sometimes one value too many or too few."""
        values = list(values)
        for _ in range(self.chance.randint(1, 2)):
            values[self.chance.randrange(len(values))] = self.value()
        if self.chance.random() < 0.1:
            values = values[:-1] if self.chance.random() < 0.5 else [*values, self.value()]
        return values


def encoded(body: object) -> bytes:
    """JSON as a stranger may send it: with NaN, with half a surrogate pair."""
    return json.dumps(body).encode("utf-8", "surrogatepass")


def harmless(text: str) -> None:
    for secret in SECRETS:
        assert secret not in text


@pytest.fixture(scope="module")
def wire(server):
    found = Wire(server.url)
    found.ready()
    yield found
    assert list(found.run("Once upon a time", "none", 2))[-1][1] == "done", "the server goes on"
    found.leave()


def test_odd_calls_of_every_endpoint(wire, server):
    """Raw calls, which bypass the checks of the page's own script."""
    odd, events = Odd(SEED), wire._config["dependencies"]
    http = httpx.Client(
        base_url=server.url + PREFIX,
        timeout=120,
        headers={"content-type": "application/json"},
        transport=httpx.HTTPTransport(retries=2),
        limits=httpx.Limits(max_keepalive_connections=0),  # one connection per call
    )
    instant = [event for event in events if not event["queue"] and event["backend_fn"]]
    for turn in range(BUDGET // 2):
        event = instant[turn % len(instant)]
        count = len(event["inputs"])
        body = {
            "fn_index": odd.value() if turn % 10 == 9 else event["id"],
            "data": odd.spoiled([None] * count) if count else odd.value() if turn % 3 == 0 else [],
            "session_hash": odd.value() if turn % 5 == 4 else wire.session,
            "event_data": odd.value(),
        }
        answer = http.post(f"/run/{event['api_name']}", content=encoded(body))
        assert answer.text, f"no answer to {body!r:.300}"
        harmless(answer.text)
    http.close()


def test_odd_runs_are_refused_in_one_sentence(wire, server):
    odd, sent = Odd(SEED + 1), 0
    for kind in ("run", "race") * 6:
        values = [*wire.watch_values("Once upon", "none", 1), wire.own]
        if kind == "race":
            lanes = [{"drafter": "none"}, {"drafter": "chain"}]
            values = ["Once upon", json.dumps(lanes), 0, 0, 1, 0, 1, "", wire.own]
        body = {
            "fn_index": wire.event(kind, "click")["id"],
            "data": odd.spoiled(values),
            "session_hash": wire.session,
        }
        answer = wire._http.post(
            "/queue/join", content=encoded(body), headers={"content-type": "application/json"}
        )
        harmless(answer.text)
        if answer.status_code != 200:
            continue
        try:
            for outputs in wire.hear(answer):
                harmless(json.dumps(outputs))
        except RuntimeError as error:
            harmless(str(error))
        sent += 1
    assert sent


CALLS = {
    "request": lambda odd: controls.request(
        dict(
            zip(
                controls.FIELDS,
                odd.spoiled(["a", '{"drafter": "chain"}', "", 0, 0, 1, 0, 4, ""]),
                strict=False,
            )
        )
    ),
    "pair": lambda odd: controls.pair(odd.value()),
    "lanes": lambda odd: controls.lanes(odd.value()),
    "file": lambda odd: traces.check(odd.value()),
    "race file": lambda odd: traces.check_race(odd.value()),
}


@pytest.mark.parametrize("name", CALLS)
def test_odd_settings_are_one_sentence(name):
    odd = Odd(SEED + 2)
    for _ in range(BUDGET // 6):
        try:
            CALLS[name](odd)
        except UserError as error:
            assert "\n" not in str(error) and len(str(error)) < 600


def test_odd_addresses_are_brought_into_range():
    odd, presets, races, menu = Odd(SEED + 3), preset_menu(), race_menu(), offer()
    names = [
        "preset",
        "prompt",
        "schema",
        "drafter",
        "rule",
        "tab",
        "t",
        "k",
        "p",
        "seed",
        "n",
        "o.length",
        "lane1",
    ]
    for _ in range(BUDGET // 4):
        query = {name: str(odd.value()) for name in odd.chance.sample(names, 4)}
        for tab in ("watch", "compare"):
            query["tab"] = tab
            found = link.read(query, presets, menu) | link.read_race(query, races, menu)
            assert len(found.get("prompt", "")) <= 4000
            json.dumps(found, allow_nan=False)


def test_a_trace_with_one_odd_value_is_refused_or_read():
    odd = Odd(SEED + 4)
    lines = trace_text(trace_names()[0]).splitlines()[:3]
    for _ in range(BUDGET // 6):
        at = odd.chance.randrange(len(lines))
        entry = json.loads(lines[at])
        entry[odd.chance.choice(list(entry))] = odd.value()
        spoiled = [*lines[:at], json.dumps(entry), *lines[at + 1 :]]
        try:
            read_trace("\n".join(spoiled) + "\n")
        except UserError as error:
            assert "\n" not in str(error)


@pytest.mark.parametrize(
    "path",
    [
        "/gradio_api/file=/etc/passwd", "/gradio_api/file=../../etc/passwd", "/gradio_api/file=README.md",
        "/gradio_api/file=presets/models/target/config.json", "/file=/etc/passwd", "/gradio_api/file=%2fetc%2fpasswd",
        "/static/../../../etc/passwd", "/assets/..%2f..%2f..%2fetc%2fpasswd", "/gradio_api/proxy=http://127.0.0.1/",
        "/gradio_api/file=http://127.0.0.1:1/", "/gradio_api/component_server", "/gradio_api/upload_progress",
    ],
)  # fmt: skip
def test_no_file_of_the_server_is_handed_out(server, path):
    answer = httpx.get(server.url + path, timeout=60)
    assert answer.status_code >= 400 or "root:" not in answer.text
    harmless(answer.text)
    assert "DRAFTSCOPE" not in answer.text or answer.status_code >= 400


def test_a_section_tells_no_control_character():
    told = json.loads(shown("", problem="a\x1b[31m\u202eb\nc"))
    assert told["problem"] == "a⟨1b⟩[31m⟨202e⟩b c"
