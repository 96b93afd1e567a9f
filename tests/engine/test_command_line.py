"""The command line keeps to its contract; a user's mistake ends in one line and exit code 2."""

import json
from pathlib import Path

import pytest

from engine.__main__ import main
from engine.errors import UserError
from engine.trace import read_trace
from presets import family, presets


@pytest.fixture
def call(capsys):
    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(list(arguments))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_list_names_drafters_verifiers_and_presets(call):
    code, out, _ = call("list", "--json")
    found = json.loads(out)
    assert code == 0
    named = {"none", "chain", "dyspec", "prompt_lookup", "dflash", "ddtree"}
    assert named <= {d["key"] for d in found["drafters"]}
    for drafter in found["drafters"]:
        assert set(drafter) >= {"key", "family", "default_verifier", "lossless", "options"}
    assert {v["key"] for v in found["verifiers"]} >= {"greedy", "rejection", "sampler_match"}
    assert [card["name"] for card in found["presets"]] == [card.name for card in presets()]
    code, out, _ = call("list")
    assert code == 0 and "dyspec" in out and "sampler_match" in out


def test_run_writes_text_and_trace(call, tmp_path):
    path = tmp_path / "out.ndjson"
    code, out, err = call(
        *("run", "--drafter", "dyspec", "--option", "budget=6", "--prompt", "The cat sat"),
        *("--max-new-tokens", "9", "--trace", str(path)),
    )
    trace = read_trace(path)
    assert code == 0
    assert out == trace.summary["text"]
    assert trace.run["drafter"]["options"]["budget"] == 6
    assert trace.summary["new_tokens"] == 9
    assert "9 tokens" in err
    assert [p.name for p in tmp_path.iterdir()] == ["out.ndjson"]


def test_a_preset_brings_prompt_and_drafter(call, tmp_path):
    card = presets()[0]
    path = tmp_path / "p.ndjson"
    code, *_ = call("run", "--preset", card.name, "--max-new-tokens", "5", "--trace", str(path))
    run = read_trace(path).run
    assert code == 0
    assert (run["prompt"]["text"], run["drafter"]["key"]) == (card.prompt, card.drafter)


def test_a_pair_of_directories_and_a_prompt_file(call, tmp_path):
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("One day, ", encoding="utf-8")
    models = family()
    code, out, _ = call(
        *("run", "--target", models.target, "--draft", models.parts["draft"], "--drafter", "chain"),
        *("--prompt-file", str(prompt), "--max-new-tokens", "6"),
    )
    assert code == 0 and out


BOM = "\ufeff"


@pytest.fixture
def opened(monkeypatch):
    """Return a list that gets the requests of the run command; nothing runs."""
    found = []

    def refuse(request, tell):
        found.append(request)
        raise UserError("enough")

    monkeypatch.setattr("engine.run.open_run", refuse)
    return found


def requested(opened, *arguments: str):
    assert main(["run", *arguments]) == 2
    return opened.pop()


def test_a_files_byte_order_mark_and_line_ends_are_not_in_its_text(opened, tmp_path):
    """As programs on Windows save text: the request is that of the plain text."""
    turns = [{"role": "user", "content": "Hello"}]
    texts = {
        "--prompt-file": ("prompt", "Once\r\nupon", "Once\nupon"),
        "--json-schema": ("json_schema", '{"type":\r\n"null"}', '{"type":\n"null"}'),
        "--messages": ("messages", json.dumps(turns), turns),
    }
    for flag, (field, content, expected) in texts.items():
        file = tmp_path / f"{field}.txt"
        file.write_bytes((BOM + content).encode())
        others = ["--prompt", "a"] if flag == "--json-schema" else []
        assert getattr(requested(opened, flag, str(file), *others), field) == expected


@pytest.mark.parametrize("flag", ["--prompt", "--stop", "--system"])
def test_a_text_may_begin_with_dashes(opened, flag):
    others = {"--prompt": [], "--stop": ["--prompt", "a"], "--system": ["--chat", "--prompt", "a"]}
    for text in ("---", "--", "-", "-x", "--5 % off", "--- a", "-1", "- a"):
        for given in ((flag, text), (f"{flag}={text}",)):
            request = requested(opened, "--seed", "3", *given, *others[flag], "--top-k", "5")
            found = {
                "--prompt": request.prompt,
                "--stop": request.stop[0] if request.stop else None,
                "--system": request.messages[0]["content"] if request.messages else None,
            }
            assert (found[flag], request.seed, request.top_k) == (text, 3, 5)


def test_a_flag_is_not_the_value_of_the_flag_before_it(call):
    for forgotten in (["--prompt", "--seed", "3"], ["--stop", "--seed=3"], ["--prompt"]):
        code, _, err = call("run", *forgotten)
        assert code == 2 and "expected one argument" in err and err.count("\n") == 1


LINES = {
    r"\n": "\n", r"\n\nUser:": "\n\nUser:", r"a\tb": "a\tb", r"\\nabla": r"\nabla", r"\d\\": "\\d\\",
    "\r\n": "\n", "a\nb": "a\nb",
}  # fmt: skip


@pytest.mark.parametrize("line", LINES)
def test_in_a_stop_string_backslash_n_is_a_line_break_and_elsewhere_it_is_not(opened, line):
    request = requested(opened, "--prompt", line, "--stop", line)
    assert request.stop == [LINES[line]]
    assert request.prompt == line.replace("\r\n", "\n")


MISTAKES = {
    "empty prompt": ["--prompt", ""],
    "no prompt": [],
    "two prompts": ["--prompt", "a", "--prompt-file", "b"],
    "prompt too long": ["--prompt", "word " * 5000],
    "missing prompt file": ["--prompt-file", "nowhere.txt"],
    "unknown preset": ["--preset", "nothing"],
    "option without value": ["--prompt", "a", "--drafter", "chain", "--option", "length"],
    "negative option": ["--prompt", "a", "--drafter", "chain", "--option", "length=-1"],
    "negative temperature": ["--prompt", "a", "--temperature", "-1"],
    "temperature no number": ["--prompt", "a", "--temperature", "nan"],
    "a directory that is no model": ["--prompt", "a", "--target", "."],
    "a missing directory": ["--prompt", "a", "--target", "/does/not/exist"],
    "no draft": ["--prompt", "a", "--drafter", "chain", "--target", family().target],
    "a diffusion drafter that is none": ["--prompt", "a", "--drafter", "dflash", "--diffusion", family().target],
    "a device without numbers": ["--prompt", "a", "--device", "meta"],
    "no such flag": ["--prompt", "a", "--colour", "red"],
    "a trace in no folder": ["--prompt", "a", "--trace", "no/such/folder/t.ndjson"],
}  # fmt: skip
"""Mistakes that a plan refuses are in test_plan.py."""


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line_and_code_2(call, mistake, tmp_path, monkeypatch):
    arguments = MISTAKES[mistake]
    monkeypatch.chdir(tmp_path)
    if "--trace" not in arguments:
        arguments = [*arguments, "--trace", "t.ndjson"]
    code, out, err = call("run", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ") and err.count("\n") == 1 and len(err) < 300
    assert not list(tmp_path.iterdir()), "a file was left behind"


DEAD_END = {
    "type": "object",
    "properties": {"a": {"type": "array", "items": {"const": 1}, "maxItems": 1}},
    "required": ["a"],
    "additionalProperties": False,
    "patternProperties": {"^a$": {"type": "array"}},
}
"""After the list comes a comma or a brace. Behind a comma the grammar engine finds no name that is left."""


def test_a_text_that_cannot_go_on_is_an_error_and_no_end(call, tmp_path):
    schema, path = tmp_path / "schema.json", tmp_path / "t.ndjson"
    schema.write_text(json.dumps(DEAD_END), encoding="utf-8")
    stops = set()
    for seed in range(3):
        code, out, err = call(
            *("run", "--drafter", "none", "--prompt", "Write:", "--json-schema", str(schema)),
            *("--temperature", "2", "--seed", str(seed), "--trace", str(path)),
        )
        summary = read_trace(path).summary
        assert summary["text"] == out and (code == 2) == (summary["stop"] == "error")
        if code == 2:
            assert (
                err.startswith("error: The JSON schema came to a dead end") and err.count("\n") == 1
            )
        else:
            assert json.loads(out.removesuffix("<|endoftext|>"))
        stops.add(summary["stop"])
    assert "error" in stops


@pytest.mark.parametrize("rule", ["asap", "awrs"])
def test_rules_that_weigh_a_schema_end_in_a_sentence_too(call, tmp_path, rule):
    """And the terminal says of which law they are exact."""
    schema, codes = tmp_path / "schema.json", set()
    schema.write_text(json.dumps(DEAD_END), encoding="utf-8")
    for seed in range(3):
        code, _, err = call(
            *("run", "--drafter", "chain", "--verifier", rule, "--prompt", "Write:"),
            *("--json-schema", str(schema), "--temperature", "2", "--seed", str(seed)),
        )
        told = "error: The JSON schema came to a dead end" if code else "[exact: the law of masked"
        assert told in err and "Traceback" not in err
        codes.add(code)
    assert codes <= {0, 2}


def test_an_empty_schema_is_no_free_text(call, tmp_path):
    schema = tmp_path / "empty.json"
    schema.touch()
    told = call("run", "--drafter", "none", "--prompt", "a", "--json-schema", str(schema))
    assert told == (2, "", "error: The JSON schema is empty.\n")


def test_a_draft_with_another_vocabulary(call, tmp_path):
    """The same model, but two of its tokens have changed places."""
    other = tmp_path / "draft"
    copy_model(Path(family().parts["draft"]), other)
    data = json.loads((other / "tokenizer.json").read_text(encoding="utf-8"))
    vocabulary = data["model"]["vocab"]
    first, second = list(vocabulary)[300:302]
    vocabulary[first], vocabulary[second] = vocabulary[second], vocabulary[first]
    (other / "tokenizer.json").write_text(json.dumps(data), encoding="utf-8")
    code, _, err = call("run", "--prompt", "a", "--drafter", "chain", "--draft", str(other))
    assert code == 2 and "vocabulary" in err and err.count("\n") == 1


def copy_model(source: Path, destination: Path) -> None:
    destination.mkdir()
    for path in source.iterdir():
        (destination / path.name).write_bytes(path.read_bytes())
