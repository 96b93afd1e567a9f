"""A vLLM server with the recorder, as docs/serving.md starts it."""

import json
import os
import signal
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from presets import family
from tests.app.serving import free_port

PYTHON = os.environ.get("DRAFTSCOPE_VLLM", "")
NAME = "house/embedded"
DRAFT = {"method": "draft_model", "model": family().parts["draft"], "num_speculative_tokens": 4}
NGRAM = {
    "method": "ngram",
    "num_speculative_tokens": 4,
    "prompt_lookup_max": 3,
    "prompt_lookup_min": 1,
}


def environment() -> dict[str, str]:
    """Return an environment in which vLLM can speculate on a CPU. It needs Intel's OpenMP, which pip has put beside the
    interpreter."""
    told = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_NUM_OF_RESERVED_CPU": "0"}
    openmp = Path(PYTHON).parents[1] / "lib" / "libiomp5.so"
    return {**os.environ, **told, **({"LD_PRELOAD": str(openmp)} if openmp.exists() else {})}


class VllmServer:
    def __init__(self, port: int, process: subprocess.Popen) -> None:
        self.url, self.process = f"http://127.0.0.1:{port}", process

    def get(self, path: str, **question) -> bytes:
        data = json.dumps(question).encode() if question else None
        asked = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(asked, timeout=600) as answer:
            return answer.read()

    def ask(self, prompt: str, **more) -> dict:
        usual = {"model": NAME, "max_tokens": 48, "temperature": 0, "return_token_ids": True}
        return json.loads(self.get("/v1/completions", **usual | {"prompt": prompt} | more))

    def ask_all(self, prompts: list[str], **more) -> list[dict | None]:
        """Return the answers to all of these requests at once; None for an answer that is broken off."""
        answers: list[dict | None] = [None] * len(prompts)

        def ask(place: int) -> None:
            try:
                answers[place] = self.ask(prompts[place], **more)
            except OSError:
                pass

        threads = [threading.Thread(target=ask, args=(place,)) for place in range(len(prompts))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return answers

    def counted(self, name: str) -> int:
        """Return a counter of vLLM's own metrics."""
        lines = self.get("/metrics").decode().splitlines()
        return sum(
            int(float(line.split()[-1]))
            for line in lines
            if line.startswith(f"vllm:{name}_total{{")
        )

    def kill(self) -> None:
        """Kill all of its processes at once."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@contextmanager
def vllm_server(setting: dict, log: Path, **variables: str) -> Iterator[VllmServer]:
    """Yield a server of the embedded target with this speculative setting."""
    port = free_port()
    command = [PYTHON, "-m", "vllm.entrypoints.openai.api_server", "--model", family().target]
    command += ["--served-model-name", NAME, "--host", "127.0.0.1", "--port", str(port)]
    command += ["--dtype", "float32", "--enforce-eager", "--max-model-len", "256"]
    command += ["--speculative-config", json.dumps(setting)]
    with log.open("w") as told:
        process = subprocess.Popen(
            command,
            env=environment() | variables,
            stdout=told,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    server = VllmServer(port, process)
    try:
        while True:
            try:
                server.get("/health")
                break
            except OSError:
                assert process.poll() is None, log.read_text("utf-8")[-3000:]
                time.sleep(1)
        yield server
    finally:
        if process.poll() is None:
            server.kill()
