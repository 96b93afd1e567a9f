"""Models on the Hub: a Hub that hangs or refuses is told in a sentence."""

import socket
import threading

import pytest
from huggingface_hub import constants

from engine.errors import UserError
from engine.parts import hub


@pytest.fixture
def answering(monkeypatch):
    """Return answering(dripping), which starts a Hub on this machine that answers every request with status 404.
    dripping: whether it sends byte after byte, longer than a test could wait. It returns an event, set once an answer
    was sent whole."""
    whole, over = threading.Event(), threading.Event()
    listening = socket.create_server(("127.0.0.1", 0))

    def serve(dripping: bool) -> None:
        while not over.is_set():
            try:
                visitor, _ = listening.accept()
            except OSError:
                return
            with visitor:
                visitor.recv(65536)
                answer = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nX-Long: " + b"x" * 2000
                for at in range(len(answer) if dripping else 0):
                    if over.wait(0.02):
                        return
                    visitor.sendall(answer[at : at + 1])
                visitor.sendall((b"" if dripping else answer) + b"\r\n\r\n")
                whole.set()

    def begin(dripping: bool) -> threading.Event:
        port = listening.getsockname()[1]
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{port}")
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        threading.Thread(target=serve, args=(dripping,), daemon=True).start()
        return whole

    yield begin
    over.set()
    listening.close()


def test_a_hub_that_is_too_slow_is_given_up(answering, monkeypatch):
    monkeypatch.setattr(hub, "PATIENCE", 0.5)
    whole = answering(dripping=True)
    with pytest.raises(UserError, match="did not answer"):
        hub.download("owner/name", 10**9)
    assert not whole.is_set(), "nobody waited for the rest"


def test_a_model_that_the_hub_does_not_have_is_told(answering):
    whole = answering(dripping=False)
    with pytest.raises(UserError, match="no public model owner/name"):
        hub.download("owner/name", 10**9)
    assert whole.is_set()
