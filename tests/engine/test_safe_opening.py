"""Models from strangers: pickled weights run no code, code that comes with a model is not run, and the page's
process sends the host's Hub token to nobody."""

import json
import os
import pickle
import shutil
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import torch

from engine.errors import UserError
from engine.parts.opening import load_language_model
from engine.training.checkpoint import load_checkpoint, save_checkpoint
from presets import family

REPOSITORY = Path(__file__).parents[2]
OPEN = """
import {first}
from engine.errors import UserError
from engine.parts.hub import folder_of
try:
    folder_of("somebody/model")
except UserError as error:
    print(error)
"""
"""What ``load_language_model`` does with a name: all that it asks the Hub, without torch and transformers."""


class Bomb:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


@pytest.fixture
def model(tmp_path):
    """Return the folder of the embedded draft without its weights."""
    folder = tmp_path / "model"
    shutil.copytree(family().parts["draft"], folder)
    (folder / "model.safetensors").unlink()
    return folder


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "weights.ckpt"])
def test_pickled_weights_are_refused_unopened(model, tmp_path, name):
    trap = tmp_path / "sprung"
    (model / name).write_bytes(pickle.dumps(Bomb(trap)))
    with pytest.raises(UserError, match="pickled"):
        load_language_model(str(model))
    assert not trap.exists()


def test_pickled_weights_beside_safetensors_stay_unopened(model, tmp_path, uncompiled):
    shutil.copy(Path(family().parts["draft"]) / "model.safetensors", model)
    trap = tmp_path / "sprung"
    (model / "pytorch_model.bin").write_bytes(pickle.dumps(Bomb(trap)))
    assert load_language_model(str(model)).vocab_size > 0
    assert not trap.exists()


def test_code_that_comes_with_a_model_is_not_run(model, tmp_path):
    trap = tmp_path / "sprung"
    (model / "modeling_own.py").write_text(f"open({str(trap)!r}, 'w')\n")
    (model / "config.json").write_text(
        '{"model_type": "own", "auto_map": {"AutoConfig": "modeling_own.Config", '
        '"AutoModelForCausalLM": "modeling_own.Model"}}'
    )
    with pytest.raises(UserError):
        load_language_model(str(model))
    assert not trap.exists()


def test_a_known_kind_of_model_opens_without_the_code_beside_it(tmp_path, uncompiled):
    folder, trap = tmp_path / "model", tmp_path / "sprung"
    shutil.copytree(family().parts["draft"], folder)
    (folder / "modeling_own.py").write_text(f"open({str(trap)!r}, 'w')\n")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    config["auto_map"] = {"AutoModelForCausalLM": "modeling_own.Model"}
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    assert load_language_model(str(folder)).vocab_size > 0
    assert not trap.exists()


def test_the_trainer_s_checkpoints_run_no_code(tmp_path):
    whole = tmp_path / "a.pt"
    state = {
        "step": 3,
        "model": {"w": torch.ones(2)},
        "optimizer": {"state": {0: {"m": torch.zeros(2)}}},
    }
    save_checkpoint(whole, state)
    assert load_checkpoint(whole)["model"]["w"].tolist() == [1.0, 1.0]
    trap = tmp_path / "sprung"
    save_checkpoint(tmp_path / "b.pt", {"model": Bomb(trap)})
    with pytest.raises(pickle.UnpicklingError):
        load_checkpoint(tmp_path / "b.pt")
    assert not trap.exists()


@contextmanager
def hub():
    """Yield the address of an empty Hub, and a list that gets the headers of requests to it."""
    asked: list[dict] = []

    class Hub(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(dict(self.headers))
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_HEAD = do_GET

        def log_message(self, *_) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(("first", "sent"), [("app", False), ("engine", True)])
def test_the_host_s_token_is_sent_by_the_host_s_own_commands_alone(tmp_path, first, sent):
    with hub() as (address, asked):
        others = ("HF_HUB_DISABLE_IMPLICIT_TOKEN", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
        inherited = {k: v for k, v in os.environ.items() if k not in others}
        secret = {"HF_ENDPOINT": address, "HF_TOKEN": "hf_" + "s" * 34, "HF_HOME": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, "-c", OPEN.format(first=first)],
            cwd=REPOSITORY,
            env={**inherited, **secret},
            capture_output=True,
            text=True,
            check=False,
        )
    assert "no causal language model" in done.stdout, done.stderr
    assert asked, "the Hub was asked"
    assert any("authorization" in map(str.lower, headers) for headers in asked) == sent
