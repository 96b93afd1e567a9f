"""vLLM itself as the engine: `make serving-test`, which installs it and names its Python in DRAFTSCOPE_VLLM."""

import os
import subprocess
import time

import pytest

from engine.core.options import resolve
from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.errors import UserError
from engine.loops import run_loop
from engine.methods import drafter as drafter_class
from engine.parts.loading import ModelPaths, load_models
from engine.rules import verifier
from engine.run import RunRequest
from engine.serving import served_target, served_text, vllm_questions
from engine.serving.engine_address import read
from engine.serving.engine_client import KEY, EngineClient
from presets import KINDS, family, prompts
from tests.app.serving import free_port
from tests.engine.family import ran, tokens_of, trace_of
from tests.statistics import same_law

PYTHON = os.environ.get("DRAFTSCOPE_VLLM")
pytestmark = pytest.mark.skipif(
    not PYTHON, reason="vLLM is not here; `make serving-test` installs it"
)
NAME, SECRET = "house/embedded", "kumquat"
PROMPT = "Once upon a time there was a little dog"


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    """The embedded target behind vLLM on this CPU, in float32."""
    port = free_port()
    command = [PYTHON, "-m", "vllm.entrypoints.openai.api_server", "--model", family().target]
    command += ["--served-model-name", NAME, "--host", "127.0.0.1", "--port", str(port)]
    command += [
        *["--dtype", "float32", "--enforce-eager", "--max-model-len", "256", "--api-key"],
        SECRET,
    ]
    # one thread: the model is small, and several would wait for each other where other tests run
    settings = {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "1"}
    settings["VLLM_CPU_KVCACHE_SPACE"] = "1"
    log = tmp_path_factory.mktemp("vllm") / "log"
    with log.open("w") as told:
        process = subprocess.Popen(
            command, env={**os.environ, **settings}, stdout=told, stderr=subprocess.STDOUT
        )
    address = f"vllm://127.0.0.1:{port}/{NAME}"
    try:
        os.environ[KEY] = SECRET
        while True:
            try:
                served_target.ServedTarget(address, family().target)
                break
            except UserError:
                assert process.poll() is None, log.read_text("utf-8")[-3000:]
                time.sleep(1)
        yield address
    finally:
        os.environ.pop(KEY, None)
        process.terminate()
        process.wait(30)


def served(target, **fields):
    models = ModelPaths(target, {"draft": family().parts["draft"]})
    return ran(RunRequest(**{"prompt": PROMPT, "models": models, "max_new_tokens": 32, **fields}))


def of_the_engine(target, prompts, **fields) -> list[list[int]]:
    """Return the text that vLLM writes by itself."""
    client = EngineClient(read(target))
    body = {"model": NAME, "prompt": prompts, "return_token_ids": True, **fields}
    choices = client.ask("/v1/completions", body)["choices"]
    return [choice["token_ids"] for choice in sorted(choices, key=lambda each: each["index"])]


def some_prompts(count) -> list[str]:
    texts = [entry["prompt"] for kind in KINDS for entry in prompts(kind)]
    return [" ".join(text.split()[:40]) for text in texts[::4]][:count]


@pytest.mark.parametrize("drafter", ["none", "chain", "dyspec", "prompt_lookup", "auto"])
def test_the_text_is_that_of_the_same_model_here(target, drafter):
    there, here = (
        served(target, drafter=drafter),
        trace_of(PROMPT, drafter=drafter, max_new_tokens=32),
    )
    assert tokens_of(there) == tokens_of(here)
    if drafter in ("none", "dyspec"):
        assert len(there.steps) == len(here.steps)
        for one, other in zip(there.steps, here.steps, strict=True):
            assert one["nodes"]["p"] == pytest.approx(other["nodes"]["p"], abs=1e-3)


def test_sixty_texts_are_those_of_the_engine_and_of_the_model_here(target):
    texts = some_prompts(60)
    assert len(texts) == 60
    here = [trace_of(text, drafter="none", max_new_tokens=24) for text in texts]
    asked = [trace.run["prompt"]["tokens"] for trace in here]
    own = of_the_engine(target, asked, temperature=0, max_tokens=24)
    for text, tokens, trace in zip(texts, own, here, strict=True):
        assert tokens == tokens_of(trace), text
        for drafter in ("chain", "dyspec"):
            there = served(target, prompt=text, drafter=drafter, max_new_tokens=24)
            assert tokens_of(there) == tokens, (drafter, text)


COUNT, FALSE_ALARM = 240, 1e-3


def sampled(models, drafter: str, prompt: list[int], length: int) -> list[list[int]]:
    """Return texts of the same prompt with other seeds."""
    cls, texts = drafter_class(drafter), []
    settings = resolve(drafter, cls.options, cls.trial)
    for seed in range(COUNT):
        request = TextRequest(
            cls.build(settings, models),
            verifier("rejection"),
            Sampling(1.0, seed=seed),
            prompt,
            length,
        )
        steps = run_loop(models.target, request)
        texts.append([token for step in steps for token in step.output])
    return texts


@pytest.mark.parametrize("drafter", ["chain", "dyspec"])
def test_sampled_texts_have_the_law_of_the_engine(target, drafter, monkeypatch):
    """A draft model that draws from two tokens, so that refusals often leave a token that the engine draws."""
    monkeypatch.setattr(served_text, "KNOWN", 2)
    models = load_models(ModelPaths(target, {"draft": family().parts["draft"]}), {"draft": "draft"})
    prompt = list(models.target.tokenizer(PROMPT)["input_ids"])
    own = of_the_engine(
        target, [prompt], temperature=1, max_tokens=3, n=COUNT, seed=1, ignore_eos=True
    )
    ours = sampled(models, drafter, prompt, 3)
    for place in range(3):
        pair = ([text[place] for text in texts if len(text) > place] for texts in (own, ours))
        assert same_law(*pair) > FALSE_ALARM / 6, place
    monkeypatch.setattr(served_text, "final_token", lambda verdict, seen: verdict.final_token)
    biased = sampled(models, drafter, prompt, 2)
    assert same_law([text[0] for text in own], [text[0] for text in biased]) < FALSE_ALARM / 6


def test_the_same_seed_writes_the_same_text(target):
    one, other = (served(target, drafter="chain", temperature=1.0, seed=7) for _ in range(2))
    assert tokens_of(one) == tokens_of(other)
    assert one.summary["target_calls"] == one.summary["steps"]


def test_the_text_ends_where_the_context_ends(target):
    trace = served(
        target, prompt="1 2 3 4 5 6 7 8 9 10 " * 10, drafter="prompt_lookup", max_new_tokens=400
    )
    assert trace.summary["stop"] == "context"
    assert len(trace.run["prompt"]["tokens"]) + trace.summary["new_tokens"] == 256


def test_what_goes_wrong_is_one_sentence(target, monkeypatch):
    told = "serves no model 'house/embeddedx'; it serves: house/embedded."
    with pytest.raises(UserError, match=told):
        served(f"{target}x")
    with monkeypatch.context() as patch:
        patch.setattr(vllm_questions, "KNOWN", 21)
        with pytest.raises(UserError, match="larger --max-logprobs"):
            served(target)
    monkeypatch.setenv(KEY, "another")
    with pytest.raises(UserError, match=f"refuses the key; give one in {KEY}"):
        served(target)
