"""A stranger's pair in the engine: chat templates, several ends, stop strings, the generation config."""

import json
import shutil

import pytest
import torch
from transformers import AutoModelForCausalLM, LlamaConfig

from engine.__main__ import main
from engine.chat.turns import chat_prompt, checked
from engine.errors import UserError
from engine.methods import drafters
from engine.model.generation import ends_of
from engine.parts.loading import ModelPaths
from engine.parts.models import open_model
from engine.run import RunRequest, open_run
from engine.trace import read_trace
from tests.engine.family import ran, tokens_of
from tests.engine.tiny import generated as written_by
from tests.grids import some
from tests.lossless import lossless
from tests.pairs import SIZES, make, strangers_pair, tokenizer

TURNS = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello dog"}]
COUNT = 40


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    target, draft = strangers_pair(tmp_path_factory.mktemp("pair"))
    return ModelPaths(str(target), {"draft": str(draft)})


def trace_of(pair, **fields):
    return ran(
        RunRequest(**{"prompt": "Once upon", "models": pair, "max_new_tokens": COUNT, **fields})
    )


@pytest.fixture(scope="module")
def reference(pair):
    return AutoModelForCausalLM.from_pretrained(pair.target, dtype=torch.float32)


def generated(reference, prompt, **settings):
    neutral = {"temperature": None, "top_k": None, "top_p": None}
    return written_by(reference, prompt, COUNT, **neutral, **settings)


@pytest.fixture(scope="module")
def turns() -> list[int]:
    """Return the tokens of the conversation."""
    return tokenizer().apply_chat_template(TURNS, add_generation_prompt=True)["input_ids"]


@pytest.fixture(scope="module")
def answer(reference, turns) -> list[int]:
    return generated(reference, turns)


EXACT = [
    key
    for key, cls in drafters().items()
    if key in ("none", "prompt_lookup") or set(cls.needs) == {"draft"}
    if key in lossless() and cls.loop != "switching"
]
"""Drafters that read with the pair's draft, and two without."""


@pytest.mark.parametrize("key", EXACT)
def test_a_conversation_is_answered_as_generate_would(pair, turns, answer, key):
    trace = trace_of(pair, prompt="", messages=TURNS, drafter=key)
    prompt = trace.run["prompt"]
    assert prompt["messages"] == TURNS
    assert prompt["text"] == "<|system|>Be brief.<|end|><|user|>Hello dog<|end|><|assistant|>"
    assert prompt["tokens"] == turns
    assert tokens_of(trace) == answer


@pytest.fixture(scope="module")
def stop(pair) -> str:
    """Return a string from the middle of the text, which spans tokens."""
    text = trace_of(pair, drafter="none").summary["text"]
    return text[len(text) // 2 : len(text) // 2 + 4]


@pytest.fixture(scope="module")
def stopped(reference, stop) -> tuple[list[int], list[int]]:
    """Return the tokens of the usual prompt, and those that generate writes until the string stands in the text."""
    prompt = tokenizer()("Once upon")["input_ids"]
    return prompt, generated(reference, prompt, stop_strings=[stop], tokenizer=tokenizer())


STOPPED = some(EXACT, {"none", "chain", "dyspec", "prompt_lookup"}.__contains__)


@pytest.mark.parametrize("key", STOPPED)
def test_a_stop_string_ends_the_text_where_generate_ends_it(pair, stop, stopped, key):
    trace = trace_of(pair, drafter=key, stop=["never in it", stop])
    assert trace.summary["stop"] == "stop" and stop in trace.summary["text"]
    assert trace.run["stop_strings"] == ["never in it", stop]
    assert (trace.run["prompt"]["tokens"], tokens_of(trace)) == stopped


def told_to(pair, folder, **settings) -> ModelPaths:
    """Return the pair with these settings in the target's generation config, in a copy that lies in this folder."""
    folder = shutil.copytree(pair.target, folder / "told")
    file = folder / "generation_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **settings}))
    return ModelPaths(str(folder), pair.parts)


@pytest.fixture(scope="module")
def told_to_stop(pair, stop, tmp_path_factory) -> ModelPaths:
    return told_to(pair, tmp_path_factory.mktemp("stop"), stop_strings=["never in it", stop])


@pytest.mark.parametrize("key", ["none", "chain", "prompt_lookup"])
def test_a_stop_string_of_the_generation_config_ends_the_text(told_to_stop, stop, stopped, key):
    trace = trace_of(told_to_stop, drafter=key, stop=["nor this"])
    assert trace.summary["stop"] == "stop"
    assert trace.run["stop_strings"] == ["nor this", "never in it", stop]
    assert (trace.run["prompt"]["tokens"], tokens_of(trace)) == stopped


@pytest.fixture(scope="module")
def told_to_cut(pair, tmp_path_factory) -> ModelPaths:
    folder = tmp_path_factory.mktemp("cut")
    return told_to(pair, folder, min_p=0.6, top_k=0, top_p=1.0, temperature=1.0)


@pytest.mark.parametrize("key", ["none", "chain"])
def test_the_model_s_own_cuts_are_in_the_trace_and_made(told_to_cut, key):
    trace = trace_of(told_to_cut, drafter=key, own_sampling=True, seed=3)
    assert trace.run["sampling"]["min_p"] == 0.6
    rows = [entry["p"] for step in trace.steps for entry in step["distributions"]]
    assert rows
    for row in rows:
        shares = [share for _, _, share in row if share > 0]
        assert min(shares) >= 0.6 * max(shares) - 1e-6
    free = trace_of(told_to_cut, drafter=key, temperature=1.0, seed=3, max_new_tokens=2)
    assert "min_p" not in free.run["sampling"]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_in_half_precision_nothing_is_called_lossless(pair, dtype, tmp_path, capsys):
    rule = trace_of(pair, drafter="chain", dtype=dtype, max_new_tokens=3).run["verifier"]
    assert (rule["lossless"], rule["same_text"], rule["up_to_rounding"]) == (False, False, True)
    whole = trace_of(pair, drafter="chain", dtype="float32", max_new_tokens=3).run["verifier"]
    assert whole["lossless"] and whole["same_text"] and "up_to_rounding" not in whole
    lossy = trace_of(
        pair, drafter="chain", dtype=dtype, verifier="typical", max_new_tokens=3, temperature=0.8
    )
    assert not lossy.run["verifier"]["lossless"] and "up_to_rounding" not in lossy.run["verifier"]
    command = ["run", "--target", pair.target, "--drafter", "none", "--prompt", "Once"]
    command += ["--max-new-tokens", "2"]
    assert main([*command, "--dtype", dtype]) == 0
    assert f"{dtype}: equal up to rounding" in capsys.readouterr().err
    assert main(command) == 0
    assert "rounding" not in capsys.readouterr().err


def test_what_was_drafted_behind_a_stop_string_is_dropped(pair, stop):
    """The target drafts for itself, so that whole drafts are kept and the text ends inside one."""
    own = ModelPaths(pair.target, {"draft": pair.target})
    trace = trace_of(own, drafter="chain", options={"length": 12, "stop_below": 0}, stop=[stop])
    plain = trace_of(own, drafter="none", stop=[stop])
    assert tokens_of(trace) == tokens_of(plain)
    last = trace.steps[-1]
    assert last["output"]["final"] == "none" and "ignored" in last["nodes"]["status"]


def test_every_end_of_several_ends_a_text(pair, reference):
    ends = ends_of(reference, tokenizer())
    assert len(ends.tokens) == 2 and ends.named_by == "generation config"
    target = open_model(pair.target, torch.float32, "cpu")
    assert target.end_tokens == ends.tokens
    assert chat_prompt(target, TURNS).ends == {tokenizer().get_vocab()["<|end|>"]}
    target.tokenizer.chat_template = "{% for turn in messages %}{{ turn.content }}, {% endfor %}"
    assert not chat_prompt(target, TURNS).ends, "an ordinary token, which an answer may hold"


def test_where_nobody_but_the_tokenizer_names_an_end_it_counts_and_generate_is_told(tmp_path):
    """The engine ends a text at the tokenizer's end of text. generate() would go on unless it is told."""
    end = tokenizer().eos_token_id
    folder = make(tmp_path / "endless", LlamaConfig(vocab_size=4160, eos_token_id=None, **SIZES), 3)
    module = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    favourite = tokens_of(trace_of(ModelPaths(str(folder)), drafter="none"))[10]
    with torch.no_grad():  # the end is now likelier than the favourite
        module.lm_head.weight[end] = 1.01 * module.lm_head.weight[favourite]
    ended = tmp_path / "ended"
    module.save_pretrained(ended)
    tokenizer().save_pretrained(ended)
    written = trace_of(ModelPaths(str(ended)), drafter="none", max_new_tokens=200)
    assert written.summary["stop"] == "eos"
    assert written.run["target"]["ends_named_by"] == "tokenizer"
    assert written.run["target"]["end_tokens"] == [end]
    given = torch.tensor([written.run["prompt"]["tokens"]])
    settings = {"do_sample": False, "max_new_tokens": 200, "pad_token_id": 0}
    told = module.generate(given, **settings, eos_token_id=[end])[0, given.shape[1] :].tolist()
    alone = module.generate(given, **settings)[0, given.shape[1] :].tolist()
    assert tokens_of(written) == told and len(alone) == 200 > len(told)


def test_the_models_own_sampling(pair):
    sampling = trace_of(pair, drafter="none", own_sampling=True, max_new_tokens=2).run["sampling"]
    assert (sampling["temperature"], sampling["top_k"], sampling["top_p"]) == (0.7, 20, 0.8)


MISTAKES = [
    [], "hello", [{"role": "assistant", "content": "a"}], [{"role": "root", "content": "a"}], [{"role": "user", "content": 3}],
    [{"role": "user", "content": "a", "tools": []}], [{"role": "user", "content": "a"}] * 999, [{"role": "user", "content": " "}],
]  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES, ids=range(8))
def test_a_conversation_that_is_none_is_one_sentence(mistake):
    with pytest.raises(UserError):
        checked(mistake)
        checked(MISTAKES[mistake])


@pytest.mark.parametrize("stop", [[""], ["a"] * 9, ["a" * 201], [3], ["\ud800"]])
def test_a_stop_string_that_is_none_is_one_sentence(pair, stop):
    with pytest.raises(UserError):
        open_run(RunRequest("a", pair, drafter="none", stop=stop))


@pytest.mark.parametrize(
    "template",
    ["{{ raise_exception('no\x1b[31m') }}", "{% broken", "{{ ''.__class__.__mro__ }}", ""],
)
def test_a_hostile_template_is_one_sentence(pair, template, monkeypatch):
    target = open_model(pair.target, torch.float32, "cpu")
    monkeypatch.setattr(target.tokenizer, "chat_template", template or None)
    with pytest.raises(UserError) as told:
        chat_prompt(target, TURNS)
    assert "\x1b" not in str(told.value) and "<class" not in str(told.value)


def test_the_command_line_talks(pair, tmp_path, capsys):
    path, file = tmp_path / "t.ndjson", tmp_path / "turns.json"
    command = ["run", "--target", pair.target, "--drafter", "none", "--max-new-tokens", "2"]
    command += ["--trace", str(path)]
    assert main([*command, "--chat", "--system", "Be brief.", "--prompt", "Hello dog"]) == 0
    first = read_trace(path)
    file.write_text(json.dumps(TURNS))
    assert main([*command, "--messages", str(file)]) == 0
    assert read_trace(path).run["prompt"] == first.run["prompt"]
    assert first.run["prompt"]["messages"] == TURNS
    for wrong in (["--messages", str(file), "--prompt", "a"], ["--system", "a", "--prompt", "b"]):
        assert main([*command, *wrong]) == 2
    assert capsys.readouterr().err.count("error: ") == 2
