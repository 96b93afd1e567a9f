"""Counting on a Ray cluster: the same table as on one machine, also when a node is lost."""

import importlib.util
import os
import signal
import threading
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from engine.__main__ import main
from engine.tune.prompt_sample import PromptText, Sample
from engine.tune.tuning import Tuning
from engine.tune.tuning_request import TuningRequest
from tests.tune.test_tuning import kept

ROOT = Path(__file__).parents[2]
HERE = importlib.util.find_spec("ray") is not None
PROMPTS = [PromptText(f"w1 w{i} w3 w1 w{i}", "ab"[i % 2]) for i in range(5, 13)]


@pytest.mark.skipif(HERE, reason="Ray is installed")
def test_without_ray_a_sentence_says_so(pair, capsys, tmp_path):
    (tmp_path / "p.txt").write_text("w1 w2\n", "utf-8")
    models = ("--target", pair.target, "--draft", pair.parts["draft"])
    code = main(["tune", *models, "--prompts", str(tmp_path / "p.txt"), "--ray", "auto"])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = project["optional-dependencies"]["ray"][0]
    assert code == 2 and f"pip install {pinned}." in capsys.readouterr().err


@pytest.mark.parametrize(
    "address", ["127.0.0.1:1", "ray://[::1]:1", "127.0.0.1:99999", "nowhere.invalid:6379"]
)
def test_an_address_that_nobody_answers_is_a_sentence(pair, capsys, tmp_path, address):
    (tmp_path / "p.txt").write_text("w1 w2\n", "utf-8")
    models = ("--target", pair.target, "--draft", pair.parts["draft"])
    code = main(["tune", *models, "--prompts", str(tmp_path / "p.txt"), "--ray", address])
    told = capsys.readouterr().err
    assert code == 2 and "No Ray cluster answers" in told and len(told.splitlines()) == 1


def kill_a_worker(killed: list[int], over: threading.Event) -> None:
    """End the first process that runs a task, as a lost node would."""
    while not over.wait(0.05):
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                name = entry.read_bytes()
            except OSError:
                continue
            if name.startswith(b"ray::counted_shard"):
                os.kill(int(entry.parent.name), signal.SIGKILL)
                killed.append(int(entry.parent.name))
                return


@pytest.mark.exhaustive
@pytest.mark.skipif(not HERE, reason="Ray is not installed")
def test_a_cluster_that_loses_a_worker_counts_what_one_machine_counts(pair, quick):
    asked = TuningRequest(pair, Sample.of(PROMPTS), ("chain",), new_tokens=12, texts=(1,))
    alone, killed = kept(Tuning(asked).lines()), []
    over = threading.Event()
    killer = threading.Thread(target=kill_a_worker, args=(killed, over))
    killer.start()
    found = kept(Tuning(replace(asked, ray="local")).lines())
    over.set()
    killer.join()
    shared = found.keys() & alone.keys()
    assert killed and len(shared) > len(alone) / 2
    assert {key: found[key] for key in shared} == {key: alone[key] for key in shared}
