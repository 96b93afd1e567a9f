"""Fetches and opens the models that are not in the repository, once for all visitors.

One process of low priority fetches a family's target, however many visitors wait for it. It goes on when they leave,
and is cancelled once all of them have cancelled. A target that is on this machine is opened in the background when a
visitor chooses it, so that the first run need not wait. A failure is reported as one sentence.
"""

import json
import logging
import subprocess
import sys
import threading
from dataclasses import asdict, dataclass, field
from pathlib import Path

import presets
from app import zero
from app.settings import model_paths
from engine.errors import UserError
from engine.parts.loading import load_models
from engine.run import RunRequest, open_run
from presets.fetched import missing_target, root, sources

log = logging.getLogger("draftscope")

PROGRAM = "engine.parts.fetching_process"
FAILED = "The download failed; the server’s log says more."


@dataclass
class State:
    """The state of one family's target. task: the work that goes on, "" for none. share: how much of the task is done,
    from 0 to 1. problem: a sentence, "" for none. opened: whether the target has been opened since the server began.
    asking: the sessions that wait for it."""

    task: str = ""
    share: float = 0.0
    problem: str = ""
    opened: bool = False
    asking: set[str] = field(default_factory=set)
    process: subprocess.Popen | None = None


class Fetching:
    """The states of all families whose targets are fetched."""

    def __init__(self) -> None:
        self._states: dict[str, State] = {}
        self._lock = threading.Lock()

    def told(self, name: str) -> dict:
        """Return the state of this family for the page: {"here", "task", "share", "problem", "opened"}; {} for a
        family whose target is in the repository."""
        if name not in sources():
            return {}
        here = missing_target(name) is None
        with self._lock:
            state = self._states.setdefault(name, State())
            return {
                "here": here,
                "task": state.task,
                "share": state.share,
                "problem": state.problem,
                "opened": state.opened,
            }

    def fetch(self, name: str, session: str) -> None:
        """Begin to fetch this family's target, or join the visitors who wait for it. Does nothing if the target is
        on this machine."""
        if name not in sources() or missing_target(name) is None:
            return
        with self._lock:
            state = self._states.setdefault(name, State())
            state.asking.add(session)
            if state.process is not None:
                return
            state.share, state.problem = 0.0, ""
            try:
                state.process = self._begun(name)
            except OSError as error:
                state.asking.clear()
                state.problem = f"The download could not begin: {error.strerror}."
                return
            state.task = "Beginning"
        threading.Thread(
            target=self._follow, args=(name, state, state.process), name="fetching", daemon=True
        ).start()

    def cancel(self, name: str, session: str) -> None:
        """Note that this visitor no longer waits for the target; if no other visitor does, end the work."""
        with self._lock:
            state = self._states.get(name)
            if state is None or session not in state.asking:
                return
            state.asking.discard(session)
            if state.process is not None and not state.asking:
                state.process.terminate()

    def open(self, name: str) -> None:
        """Begin to open this family's target, unless it is missing, open already, or being fetched or opened."""
        if name not in sources() or missing_target(name) is not None:
            return
        with self._lock:
            state = self._states.setdefault(name, State())
            if state.opened or state.task:
                return
            state.task, state.share, state.problem = "Opening", 0.0, ""
        threading.Thread(target=self._open, args=(name, state), name="opening", daemon=True).start()

    def _begun(self, name: str) -> subprocess.Popen:
        process = subprocess.Popen(
            [sys.executable, "-m", PROGRAM],
            cwd=Path(presets.__file__).parents[1],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is for the server, which ends it
        )
        wish = {"source": asdict(sources()[name]), "root": str(root())}
        process.stdin.write(json.dumps(wish) + "\n")
        process.stdin.close()
        return process

    def _follow(self, name: str, state: State, process: subprocess.Popen) -> None:
        """Copy the progress that the process writes into ``state``, until the process has ended."""
        problem = ""
        for line in process.stdout:
            try:
                said = json.loads(line)
            except ValueError:
                continue  # a line that other code wrote to the process's output
            if isinstance(said, dict):
                problem = said["problem"]
                continue
            with self._lock:
                state.task, state.share = said
        process.wait()
        with self._lock:
            cancelled = not state.asking
            state.process, state.task = None, ""
            state.asking.clear()
            if process.returncode and not cancelled:
                state.problem = problem or FAILED
        log.info("fetched" if not process.returncode else "not fetched", extra={"models": name})

    def _open(self, name: str, state: State) -> None:
        problem = ""
        try:
            if zero.on_zero():
                load_models(model_paths(name), {}, device="cpu")
            else:
                fields = presets.asked(name, "Hello")
                request = RunRequest(
                    models=model_paths(name), drafter="none", max_new_tokens=4, **fields
                )
                for _ in open_run(request).steps():
                    pass
        except UserError as error:
            problem = str(error)
        except Exception:
            log.exception("%s could not be opened ahead of time", name)
        with self._lock:
            state.task, state.problem, state.opened = "", problem, not problem


fetching = Fetching()
