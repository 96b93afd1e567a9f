"""The content security policy of the served page, in a browser that enforces it."""

import re
import urllib.request

import pytest
from starlette.responses import HTMLResponse

from app.policy import Policy, digests, policy
from tests.app.awaiting import awaited


def answer(url: str):
    with urllib.request.urlopen(url, timeout=30) as given:
        return dict(given.headers), given.read().decode("utf-8", "replace")


def test_the_page_comes_with_a_policy_that_names_its_own_scripts(server):
    headers, page = answer(server.url)
    rules = dict(rule.split(" ", 1) for rule in headers["content-security-policy"].split("; "))
    assert rules["default-src"] == "'self'" and rules["object-src"] == "'none'"
    assert "'unsafe-inline'" not in rules["script-src"] and "http" not in rules["script-src"]
    inline = re.findall(r"<script\b(?![^>]*\ssrc=)([^>]*)>", page)
    nonce = re.search(r"'nonce-([\w-]{20,})'", rules["script-src"])[1]
    assert inline and all(f'nonce="{nonce}"' in one for one in inline)
    assert answer(server.url)[0]["content-security-policy"] != headers["content-security-policy"]
    headers, _ = answer(f"{server.url}/config")
    assert headers["x-content-type-options"] == "nosniff"


def test_the_policy_does_not_follow_what_goes_out():
    """A script in the content of an answer, however it came there, is not one of ours."""
    sent = []

    async def page(scope, receive, send):
        html = HTMLResponse("<script>alert('Hello, world.');</script>")
        await html(scope, receive, send)

    async def send(message):
        sent.append(message)

    asked = {"type": "http", "method": "GET", "path": "/", "headers": []}
    awaited(Policy(page, "<script>ours</script>")(asked, None, send))
    told = dict(sent[0]["headers"])[b"content-security-policy"].decode()
    assert digests("<script>ours</script>")[0] in told
    assert digests("<script>alert('Hello, world.');</script>")[0] not in told


def test_who_may_show_the_page_in_a_frame(monkeypatch):
    def framers() -> str:
        return policy([]).rpartition("frame-ancestors ")[2]

    assert framers() == "'self'"
    monkeypatch.setenv("SPACE_ID", "a/b")
    assert "https://huggingface.co" in framers()
    monkeypatch.setenv("DRAFTSCOPE_EMBEDDED_BY", "https://school.example")
    assert "https://school.example" in framers()


@pytest.mark.parametrize(
    ("page", "count"),
    [
        ("<script>a</script><script src=x></script><SCRIPT>b</SCRIPT>", 2),
        ("<p>none</p>", 0),
        ("<script>cut", 1),
    ],
)
def test_inline_scripts_are_found(page, count):
    assert len(digests(page)) == count


def test_a_digest_is_that_of_a_browser():
    """The example in the specification (CSP3, the alert in section 2.3.1)."""
    known = "'sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng='"
    assert digests("<script>alert('Hello, world.');</script>") == [known]
