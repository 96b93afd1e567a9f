"""A host may mount everything but a cache folder read-only: the server writes only in that folder."""

import os
import subprocess
import sys

import pytest

from tests.app.serving import REPOSITORY, free_port

SERVE = """
import sys, os, threading
wrote = []
def note(event, given):
    if event == "open" and isinstance(given[0], (str, bytes)):
        mode, flags = given[1], given[2]
        if (mode and set(mode) & set("wax+")) or flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            wrote.append(os.path.abspath(os.fsdecode(given[0])))
    elif event in ("os.mkdir", "os.rename", "os.symlink", "os.link"):
        wrote.append(os.path.abspath(os.fsdecode(given[1 if event != "os.mkdir" else 0])))
sys.addaudithook(note)
sys.path.insert(0, ".")
import app
from app import live, shutdown, warm
from app.fence import MAKERS
from app.page import build, launch
warm.warm = lambda after: warm.ready.set()  # the models are opened by the run itself
open(os.path.join(os.environ["TMPDIR"], "probe"), "w").close()
demo = build()
def visit():
    warm.ready.wait()
    wish = {"prompt": "Once", "pair": '{"drafter": "chain", "options": {"length": 2}}', "max_new_tokens": 4}
    states = [state for _, state, _ in live.start("me", "watch", MAKERS["watch"], wish)]
    print(states[-1], flush=True)
    os.kill(os.getpid(), 15)
threading.Thread(target=visit, daemon=True).start()
launch(demo)
print("\\n".join(sorted(set(wrote))))
shutdown.end()
"""


@pytest.mark.exhaustive
def test_it_writes_below_its_cache_folder_alone(tmp_path):
    """An audit hook records every file that Python opens for writing, from the start through a run to the end."""
    cache = tmp_path / "cache"
    cache.mkdir()
    places = ("GRADIO_TEMP_DIR", "DRAFTSCOPE_CACHE", "HF_HOME", "TRITON_CACHE_DIR")
    places += ("TORCHINDUCTOR_CACHE_DIR", "TMPDIR")
    settings = {name: str(cache / name.lower()) for name in places} | {"TMPDIR": str(cache)}
    settings |= {"HOME": str(tmp_path / "home"), "GRADIO_SERVER_PORT": str(free_port())}
    done = subprocess.run(
        [sys.executable, "-B", "-c", SERVE],
        cwd=REPOSITORY,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "done" in lines
    written = [line for line in lines if line.startswith("/") and not line.startswith("/dev/")]
    assert str(cache / "probe") in written, "the hook sees what is written"
    assert [path for path in written if not path.startswith(str(cache))] == []
