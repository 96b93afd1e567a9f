"""A checkpoint on the Hub is described from its configuration and the beginning of its weights; the rest is not fetched."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import torch
from huggingface_hub import constants

from engine.bridges.inspecting import inspect_drafter
from engine.errors import UserError
from tests.engine.eagle_cells import LAYOUTS, checkpoint, tensors_of

REVISION = "0123456789abcdef0123456789abcdef01234567"
BEYOND = 4_000_000
"""Bytes of a tensor, far more than a header."""


@pytest.fixture
def serve(tmp_path, monkeypatch):
    """Return serve(folder), which starts a Hub on this machine whose only model, owner/name, is this folder. It returns
    the bytes sent of each file."""
    servers = []

    def begin(folder):
        sent: dict[str, int] = {}

        class Hub(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_HEAD(self):
                self.do_GET()

            def do_GET(self):
                place = self.path.partition("?")[0]
                file = folder / place.rpartition("/")[2]
                if place == "/api/models/owner/name":
                    names = [{"rfilename": one.name} for one in folder.iterdir()]
                    body = json.dumps(
                        {"id": "owner/name", "sha": REVISION, "siblings": names}
                    ).encode()
                elif "/resolve/" in place and file.is_file():
                    body = file.read_bytes()
                else:
                    self.send_response(404)
                    self.send_header("Content-Length", "0")
                    return self.end_headers()
                asked = self.headers.get("range")
                first, last = map(int, asked[6:].split("-")) if asked else (0, len(body) - 1)
                part = body[first : last + 1]
                self.send_response(206 if asked else 200)
                self.send_header("Content-Length", str(len(part)))
                self.send_header("ETag", '"e"')
                self.send_header("X-Repo-Commit", REVISION)
                self.end_headers()
                if self.command == "GET":
                    sent[file.name] = sent.get(file.name, 0) + len(part)
                    self.wfile.write(part)
                return None

        server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        place = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setattr(constants, "ENDPOINT", place)
        template = place + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        return sent

    yield begin
    for server in servers:
        server.shutdown()
        server.server_close()


def test_only_descriptions_are_fetched(tmp_path, serve):
    config, shapes = LAYOUTS["eagle3"]()
    tensors = tensors_of(shapes) | {"z.weight": torch.zeros(BEYOND // 4)}
    sent = serve(checkpoint(tmp_path / "model", config, tensors))
    found = inspect_drafter("owner/name")
    assert (found.name, found.kind) == ("owner/name", "eagle3")
    assert "d2t" in [trap.name for trap in found.traps]
    assert 0 < sent["model.safetensors"] < BEYOND / 10


def test_what_the_hub_does_not_have_is_one_sentence(tmp_path, serve):
    (tmp_path / "empty").mkdir()
    serve(tmp_path / "empty")
    with pytest.raises(UserError, match="no config.json"):
        inspect_drafter("owner/name")
    with pytest.raises(UserError, match="no public model owner/other"):
        inspect_drafter("owner/other")


def test_a_damaged_file_on_the_hub_is_one_sentence(tmp_path, serve):
    folder = checkpoint(tmp_path / "model", {}, {"a": torch.zeros(1)})
    serve(folder)
    for content in (b"", b"\xff" * 64, b"\x04\0\0\0\0\0\0\0nons"):
        (folder / "model.safetensors").write_bytes(content)
        with pytest.raises(UserError) as told:
            inspect_drafter("owner/name")
        assert str(told.value).endswith(".") and "\n" not in str(told.value)
