"""Contestants that generate with OpenVINO GenAI."""

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from engine.bench.contestants import Contestant, Writing
from engine.errors import UserError
from engine.parts.digest import digest_of
from engine.parts.loading import ModelPaths

FOLDER = ".venv-openvino"  # DRAFTSCOPE_OPENVINO_PEER names another folder
WAYS = {
    "openvino": ("plain", "plain", {}),
    "openvino lookup": ("lookup", "lookup", {"num_assistant_tokens": 5, "max_ngram_size": 3}),
    "openvino draft 3": ("assisted", "draft", {"num_assistant_tokens": 3}),
    "openvino draft 5": ("assisted", "draft", {"num_assistant_tokens": 5}),
    "openvino draft 8": ("assisted", "draft", {"num_assistant_tokens": 8}),
    "openvino draft sure": ("assisted", "draft", {"assistant_confidence_threshold": 0.4}),
}
"""From a contestant's name to its group, its way of generating, and the settings for its generation config."""
ROUNDED = "openvino default"
"""The prefix of the names of contestants that compute in the precision that the library chooses, which is bf16 if the
processor has it."""


class GenAi:
    """A child process that runs OpenVINO GenAI. It ends when its parent ends, because its pipes are then closed."""

    def __init__(self, target: Path, draft: Path | None) -> None:
        worker = Path(__file__).with_name("worker.py")
        models = [str(folder) for folder in (target, draft) if folder is not None]
        self._process = subprocess.Popen(
            [environment() / "bin" / "python", worker, *models],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def ask(self, **request) -> dict:
        """Send a request, and return the answer. Raises UserError if the process has ended."""
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise UserError("OpenVINO GenAI has ended; make openvino-peer makes its environment.")
        return json.loads(line)


class GenAiContestant(Contestant):
    """A contestant for one way of generating. The passes of the library cannot be observed, so one call is counted for
    each token. exact: whether to compute in fp32."""

    def __init__(self, name: str, peer: GenAi, exact: bool = True) -> None:
        self.name = name if exact else name.replace("openvino", ROUNDED)
        self._peer, self._exact = peer, exact
        self.group, self._way, self._settings = WAYS[name]

    def write(self, prompt, count, counters=None):
        reply = self._peer.ask(
            way=self._way,
            exact=self._exact,
            tokens=list(prompt),
            count=count,
            settings=self._settings,
        )
        return Writing(reply["tokens"], reply["seconds"], max(1, len(reply["tokens"])))


def genai_contestants(
    paths: ModelPaths, exact: Sequence[str] = tuple(WAYS), rounded: Sequence[str] = ()
) -> list[GenAiContestant]:
    """Contestants for those of the named ways of generating whose models exist. exact: the ways that compute in fp32.
    rounded: the ways that compute in the precision that the library chooses. Raises UserError if the environment is
    missing or the exporter refuses a model."""
    draft = paths.parts.get("draft")
    exported = [exported_model(path) for path in (paths.target, draft) if path is not None]
    peer = GenAi(exported[0], exported[1] if draft is not None else None)
    return [
        GenAiContestant(name, peer, names is exact)
        for names in (exact, rounded)
        for name in names
        if draft is not None or WAYS[name][0] != "assisted"
    ]


def environment() -> Path:
    """The folder of the Python environment in which OpenVINO GenAI is installed. Raises UserError if it does not exist
    yet."""
    folder = Path(os.environ.get("DRAFTSCOPE_OPENVINO_PEER", FOLDER)).absolute()
    if not (folder / "bin" / "python").exists():
        raise UserError("There is no OpenVINO GenAI yet; make openvino-peer makes its environment.")
    return folder


def exported_model(path: str) -> Path:
    """The folder of the exported model, which is written on first use, in fp32. Raises UserError if the export
    fails."""
    home = environment()
    folder = home / "models" / f"{Path(path).name}-{digest_of(path)}"
    if folder.exists():
        return folder
    folder.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as beside:
        command = [home / "bin" / "optimum-cli", "export", "openvino", "--model", path]
        command += ["--task", "text-generation-with-past", "--weight-format", "fp32", beside]
        # the exporter takes this for a test run and sends no report to its makers
        quiet = os.environ | {"CI": "true"}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=quiet)
        if done.returncode:
            last = done.stderr.strip().splitlines()[-1:]
            raise UserError(f"{Path(path).name} cannot be exported for OpenVINO: {''.join(last)}")
        Path(beside).rename(folder)
        Path(beside).mkdir()  # for the context to remove
    return folder
