"""Programs as visitors: the endpoints, and every snippet of docs/programs.md."""

import itertools
import json
import re
import subprocess
import sys

import pytest
from gradio_client import Client

from app.settings import LIMITS
from engine.methods import drafters
from engine.trace import read_trace
from presets import cards
from tests.app.serving import REPOSITORY
from tests.engine.family import tokens_of, trace_of
from viz.race import read_race

SNIPPETS = re.findall(
    r"```python\n(.*?)```", (REPOSITORY / "docs" / "programs.md").read_text("utf-8"), re.DOTALL
)
PROMPT = "Once upon a time there was a little dog"


@pytest.fixture(scope="module")
def client(server):
    return Client(server.url, verbose=False)


def test_every_snippet_of_the_document_runs(server, tmp_path):
    assert len(SNIPPETS) == 8
    program = tmp_path / "program.py"
    program.write_text("\n".join(SNIPPETS).replace("http://127.0.0.1:7860", server.url), "utf-8")
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "none plain decoding lossless" in done.stdout.lower(), "of /list"
    assert "There is no drafter 'oracle'" in done.stdout


def test_there_are_four_endpoints_and_they_are_documented(client):
    found = client.view_api(return_format="dict", print_info=False)["named_endpoints"]
    assert set(found) == {"/list", "/methods", "/run", "/compare"}
    names = [one["parameter_name"] for one in found["/run"]["parameters"]]
    assert names[-4:] == ["steps", "models", "python_names", "heal"], (
        "what is new stands last, for those who count places"
    )
    assert all(len(endpoint["description"]) > 60 for endpoint in found.values())
    for name in ("/run", "/compare"):
        for parameter in found[name]["parameters"]:
            told = parameter["python_type"]["description"] or parameter.get("description", "")
            assert told or parameter["parameter_name"] in found[name]["description"] + json.dumps(
                found[name]
            )


def test_list_and_methods_tell_what_there_is(client):
    offered = client.predict(api_name="/list")
    assert set(offered["drafters"]) == set(drafters())
    assert offered["limits"]["new_tokens"] == LIMITS.new_tokens
    assert offered["examples"] and all(one["prompt"] for one in offered["examples"].values())
    assert {card["key"] for card in client.predict(api_name="/methods")} == set(cards())
    (one,) = client.predict(search="dyspec", api_name="/methods")
    assert one["key"] == "dyspec"
    assert client.predict(search="\x00nothing", api_name="/methods") == []


def test_a_run_streams_and_is_the_engine_s_own(client):
    job = client.submit(
        prompt=PROMPT, drafter="chain", options={"length": 3}, max_new_tokens=24, api_name="/run"
    )
    updates = list(job)
    assert len(updates) > 2
    assert all(after.startswith(before) for before, after in itertools.pairwise(updates))
    assert all(update.endswith("\n") for update in updates), "whole lines"
    trace = read_trace(updates[-1])
    here = trace_of(PROMPT, drafter="chain", options={"length": 3}, max_new_tokens=24)
    assert tokens_of(trace) == tokens_of(here)


def test_a_race_is_a_race(client):
    race = client.predict(
        prompt=PROMPT, drafters=["none", "prompt_lookup"], max_new_tokens=8, api_name="/compare"
    )
    lanes = read_race(race)
    assert list(lanes) == ["none", "prompt_lookup"]
    assert len({trace.summary["text"] for trace in lanes.values()}) == 1


def test_without_steps_the_answer_is_short(client):
    short = client.predict(prompt=PROMPT, max_new_tokens=8, steps=False, api_name="/run")
    assert [json.loads(line)["kind"] for line in short.split("\n") if line] == ["run", "summary"]


@pytest.mark.parametrize(
    "wish",
    [
        {"prompt": 7},
        {"prompt": "dog", "drafter": "oracle"},
        {"prompt": "dog", "options": [1]},
        {"prompt": "dog", "temperature": "hot"},
        {"prompt": "dog", "json_schema": "{"},
    ],
    ids=json.dumps,
)
def test_what_cannot_be_run_is_told_in_one_sentence(client, wish):
    with pytest.raises(Exception) as told:
        client.predict(**wish, api_name="/run")
    said = str(told.value)
    assert said[-1] in ".?" and "\n" not in said and "Traceback" not in said


@pytest.mark.parametrize("lanes", [None, ["none"], ["none"] * 9, [["none"], 3]])
def test_no_race_is_told_in_one_sentence(client, lanes):
    with pytest.raises(Exception) as told:
        client.predict(prompt="dog", drafters=lanes, api_name="/compare")
    assert str(told.value)[-1] in ".?"
