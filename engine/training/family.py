"""The recipe `family`: runs all recipes of the embedded family in order, each in a separate process.

A finished recipe leaves a mark in <checkpoints>/done and is not run again, so a stopped run resumes where it was. The
output of each recipe goes to <checkpoints>/logs. To stop the run, send SIGTERM to its process group (`kill -TERM --
-PID`).
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from engine.training.common import UserError, need_data, place, say
from engine.training.students import other_recipes, students

SHIPPED = Path(__file__).resolve().parents[2] / "presets" / "models" / "target"
SEED = "9"  # the seed of the target and its windows
MINUTES = 40.0  # minutes of each alignment and of each part

LANES = 2  # lanes train side by side, with one thread each; the parts of a lane train one after the other
OTHERS = ("scylla", "hybrid", "experts")
"""Recipes of parts (models beside the target) that do not come from a method's folder."""

Lines = dict[str, list[str]]
"""Name of a run -> the words of its command after `python -m engine.training`, of which the last is the recipe. The
name is also that of the run's mark and of its log."""


def trunk(minutes: float) -> Lines:
    """The trunk: the runs on which all other runs depend, in order. minutes: how long each alignment takes."""
    aligned = ["--minutes", str(minutes), "--students"]
    return {
        "tokenizer": ["--start", str(SHIPPED), "tokenizer"],
        "windows": ["--seed", SEED, "windows"],
        "target": ["--seed", SEED, "target"],
        "text": ["--tokens", "640000", "text"],
        "vocabulary": ["vocabulary"],
        "draft": ["draft"],
        "larger-draft": ["--larger", "draft"],
        "divergences": ["--tokens", "400000", "divergences"],
        "align": [*aligned, "draft,larger-draft,diffusion", "align"],
        "align-16": [*aligned, "diffusion-16", "align"],
    }


def untrained(trunk: Lines, target: Path) -> Lines:
    """The runs of the trunk, but without the run `target` if the folder ``target`` already holds a finished target."""
    finished = (target / "model.safetensors").exists()
    return {key: words for key, words in trunk.items() if not (finished and key == "target")}


def lanes(minutes: float) -> list[Lines]:
    """The runs that train parts (models beside the target), divided into lanes that run side by side. If a recipe
    starts from the part of another recipe, it comes later in the same lane. minutes: how long each part is trained."""
    recipes = {key: cls for key, cls in students().items() if cls.of_family}
    begun, lanes = {cls.after for cls in recipes.values()}, [{} for _ in range(LANES)]
    order = sorted(recipes, key=lambda key: (key not in begun, recipes[key].after not in recipes))
    for key in (*order, *other_recipes(), *OTHERS):
        before = recipes[key].after if key in recipes else ""
        lane = next((lane for lane in lanes if before in lane), min(lanes, key=len))
        lane[key] = ["--minutes", str(minutes), key]
    return lanes


class Family:
    """Runs recipes in processes of their own, and marks the finished ones. places: the command-line options that name
    folders. start: (command, log file, environment) -> the exit code of the command."""

    def __init__(self, checkpoints: Path, places: list[str], start: Callable[..., int]):
        self._done, self._logs = checkpoints / "done", checkpoints / "logs"
        self._places, self._start = places, start
        for folder in (self._done, self._logs):
            folder.mkdir(parents=True, exist_ok=True)

    def is_done(self, name: str) -> bool:
        return (self._done / name).exists()

    def run(self, name: str, words: list[str], threads: int | None = None) -> bool:
        """Run a recipe, unless it is marked as finished. Returns whether it is finished now. words: the words of the
        recipe's command. threads: the value of OMP_NUM_THREADS; None: the variable is not changed."""
        if self.is_done(name):
            return True
        say(f"family: {name} begins")
        command = [sys.executable, "-m", "engine.training", *self._places, *words]
        environment = {**os.environ, **({"OMP_NUM_THREADS": str(threads)} if threads else {})}
        path = self._logs / f"{name}.log"
        with path.open("a", encoding="utf-8") as log:
            code = self._start(command, log, environment)
        if code:
            say(f"family: {name} ended with exit code {code}; see {path}")
        else:
            (self._done / name).touch()
        return not code

    def _run_lane(self, lines: Lines) -> None:
        for name, words in lines.items():  # a part that fails does not stop the others
            self.run(name, words, threads=1)

    def run_all(self, trunk: Lines, lanes: list[Lines]) -> None:
        """Run the trunk in order, then the lanes side by side. Raises UserError as soon as a recipe of the trunk
        fails. If a recipe of a lane fails, the lanes go on, and UserError is raised when all have ended."""
        for name, words in trunk.items():
            if not self.run(name, words):
                raise UserError(f"the recipe {name} failed; the family ends here")
        side = [threading.Thread(target=self._run_lane, args=(lane,)) for lane in lanes]
        for thread in side:
            thread.start()
        for thread in side:
            thread.join()
        if missing := [name for lane in lanes for name in lane if not self.is_done(name)]:
            raise UserError(f"these recipes failed: {', '.join(missing)}")


def _start(command: list[str], log, environment: dict[str, str]) -> int:
    return subprocess.run(command, stdout=log, stderr=log, env=environment, check=False).returncode


def family(args) -> None:
    need_data(args)
    folders = ("data", "checkpoints", "models")
    places = [word for name in folders for word in (f"--{name}", str(getattr(args, name)))]
    minutes = args.minutes or MINUTES
    first = untrained(trunk(minutes), place(args, "target"))
    Family(args.checkpoints, places, _start).run_all(first, lanes(minutes))
