"""Races as files: they are split and joined, and a file that is no race is refused in one sentence."""

import json

import pytest

from engine.errors import UserError
from tests.viz.builder import Toy
from tests.viz.conftest import until
from tests.viz.hostile import HOSTILE
from viz.__main__ import main
from viz.race import is_race, joined, read_race, split

TOYS = {"chain": Toy(style="chain", steps=3), "none": Toy(style="none", steps=4)}
TEXTS = {lane: toy.ndjson() for lane, toy in TOYS.items()}
GOOD = joined(TEXTS)


def test_a_race_can_be_taken_apart_and_read():
    assert split(GOOD) == TEXTS
    assert is_race(GOOD) and not is_race(TEXTS["chain"])
    traces = read_race(GOOD)
    assert list(traces) == ["chain", "none"]
    assert [trace.run["drafter"]["family"] for trace in traces.values()] == ["chain", "none"]


def test_lines_may_come_in_the_order_in_which_they_happened():
    mixed = sorted(GOOD.splitlines(), key=lambda line: json.loads(line).get("index", -1))
    ends = [line for line in mixed if json.loads(line)["kind"] == "summary"]
    mixed = [line for line in mixed if line not in ends] + ends
    assert read_race("\n".join(mixed) + "\n") == read_race(GOOD)


def test_hostile_words_keep_their_lines():
    texts = {
        lane: Toy(words=list(HOSTILE), steps=9 + more).ndjson() for more, lane in enumerate("ab")
    }
    race = joined(texts)
    assert split(race) == texts
    for lane, trace in read_race(race).items():
        assert [json.loads(line) for line in texts[lane].strip().split("\n")][1:-1] == trace.steps


def change(lane: str, kind: str, *path_and_value) -> str:
    *path, last, value = path_and_value
    lines = [json.loads(line) for line in GOOD.splitlines()]
    entry = next(line for line in lines if (line["lane"], line["kind"]) == (lane, kind))
    for key in path:
        entry = entry[key]
    entry[last] = value
    return "".join(json.dumps(line) + "\n" for line in lines)


BAD = {
    "empty": "",
    "a single run": TEXTS["chain"],
    "one lane": joined({"chain": TEXTS["chain"]}),
    "too many lanes": joined({f"lane-{i}": TEXTS["none"] for i in range(9)}),
    "no JSON": GOOD.replace("{", "[", 1),
    "deep": "[" * 100_000 + "\n",
    "no object": GOOD + "[1]\n",
    "a line without lane": GOOD + TEXTS["none"],
    "a lane that is no name": change("chain", "run", "lane", 3),
    "a long name": GOOD.replace('"lane":"chain"', f'"lane":"{"x" * 41}"'),
    **{f"a hostile name {i}": change("none", "run", "lane", text) for i, text in enumerate(HOSTILE)
       if text not in ("__proto__", "constructor")},
    "cut off": GOOD[: len(GOOD) // 2],
    "no end": GOOD[: GOOD.rindex('{"lane"')],
    "a lane twice": GOOD + GOOD,
    "wrong steps": change("chain", "step", "position", 3),
    "infinite": change("chain", "step", "milliseconds", "draft", 5).replace('"draft": 5', '"draft": 1e999'),
    "half a character": change("chain", "run", "target", "name", "\ud800"),
    "another prompt": change("none", "run", "prompt", "text", "Another one."),
    "another temperature": change("none", "run", "sampling", "temperature", 0.1),
}  # fmt: skip


@pytest.mark.parametrize("fault", BAD)
def test_what_is_no_race_is_refused_in_a_sentence(fault):
    with pytest.raises(UserError) as told:
        read_race(BAD[fault])
    message = str(told.value)
    assert message.endswith((".", "?")) and "\n" not in message and len(message) < 250


@pytest.mark.parametrize("name", ["__proto__", "constructor", "toString"])
def test_names_that_mean_something_to_scripts_are_names(replay_race, name):
    page = replay_race(joined({name: TEXTS["chain"], "none": TEXTS["none"]}))
    until(page, "document.querySelectorAll('[data-lane]').length === 2")
    assert page.locator("[data-lane]").first.get_attribute("data-lane") == name


def test_the_command_line_takes_a_race(watched, tmp_path, capsys):
    source, target = tmp_path / "race.ndjson", tmp_path / "out.html"
    source.write_text(GOOD, "utf-8")
    assert main([str(source), "-o", str(target)]) == 0
    page = watched().page
    page.goto(target.as_uri())
    until(page, "document.querySelectorAll('[data-lane] .text [data-index]').length > 0")
    assert page.title() == "Draftscope: chain, none, race"
    assert page.locator(".ds-outcome tbody tr").count() == 2
    source.write_text(BAD["one lane"], "utf-8")
    target.unlink()
    assert main([str(source), "-o", str(target)]) == 2
    assert capsys.readouterr().err.count("\n") == 1 and not target.exists()


def test_hostile_words_of_a_race_stay_words(replay_race):
    settings = {"words": list(HOSTILE), "prompt": " ".join(HOSTILE), "pieces": list(HOSTILE)}
    key = "<b onclick=alert(1)>key</b>"
    toys = [Toy(steps=30, cut=20, key=key, seed=seed, **settings) for seed in (3, 3)]
    page = replay_race(joined({"one": toys[0].ndjson(), "two": toys[1].ndjson()}))
    until(page, "document.querySelectorAll('[data-lane=one] [data-token-text]').length > 0")
    seen = page.evaluate(
        """() => {
          const seen = new Set(), end = view.milliseconds;
          for (let k = 0; k <= 90; k++) {
            view.seek((k / 90) * end);
            for (const g of document.querySelectorAll('[data-token-text]')) seen.add(g.dataset.tokenText);
            const node = document.querySelector('[data-lane=two] g[data-node]');
            if (node) node.dispatchEvent(new MouseEvent('click', {bubbles: true}));
          }
          return [...seen]; }"""
    )
    assert len(set(seen) & set(HOSTILE)) >= 30
    assert page.locator("iframe, img, b, i, a, [onerror], [onload], [onmouseover]").count() == 0
    assert f"{key} (one)" == page.inner_text("[data-lane=one] .ds-lane-name")
