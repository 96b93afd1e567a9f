"""vLLM itself as the engine: `make serving-test`, which installs it and names its Python in DRAFTSCOPE_VLLM."""

import os
import subprocess
import time

import pytest

from engine.errors import UserError
from engine.parts.loading import ModelPaths
from engine.run import RunRequest
from engine.serving import served_target
from engine.serving.engine_client import KEY
from presets import family
from tests.app.serving import free_port
from tests.engine.family import ran, tokens_of, trace_of

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
        "--dtype",
        "float32",
        "--enforce-eager",
        "--max-model-len",
        "256",
        "--api-key",
        SECRET,
    ]
    settings = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_NUM_OF_RESERVED_CPU": "0"}
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


def test_the_text_ends_where_the_context_ends(target):
    trace = served(
        target, prompt="1 2 3 4 5 6 7 8 9 10 " * 10, drafter="prompt_lookup", max_new_tokens=400
    )
    assert trace.summary["stop"] == "context"
    assert len(trace.run["prompt"]["tokens"]) + trace.summary["new_tokens"] == 256


def test_what_goes_wrong_is_one_sentence(target, monkeypatch):
    with pytest.raises(
        UserError, match="serves no model 'house/embeddedx'; it serves: house/embedded."
    ):
        served(f"{target}x")
    with monkeypatch.context() as patch:
        patch.setattr(served_target, "KNOWN", 21)
        with pytest.raises(UserError, match="larger --max-logprobs"):
            served(target)
    monkeypatch.setenv(KEY, "another")
    with pytest.raises(UserError, match=f"refuses the key; give one in {KEY}"):
        served(target)
