"""The content security policy of the served page: what a browser may load and run here.

Gradio compiles its components' scripts from text, so ``'unsafe-eval'`` stays allowed. Two
kinds of scripts in the page's markup may run: those in gradio's template, which carry a nonce, and those in our own
head, which the policy names by their digests. So a smuggled-in ``<script>`` or ``onerror=`` does nothing.
"""

import base64
import hashlib
import os
import secrets
from html.parser import HTMLParser

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SPACES = ("https://huggingface.co", "https://*.hf.space")
"""The sites that show a Space in a frame."""


class _Inline(HTMLParser):
    """Collects the text of inline scripts."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.scripts: list[str] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self._inside = tag == "script" and "src" not in dict(attrs)
        if self._inside:
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.scripts[-1] += data

    def handle_endtag(self, tag: str) -> None:
        self._inside = False


def digests(page: str) -> list[str]:
    """Return a CSP source expression, with its digest, for each inline script of this HTML."""
    parser = _Inline()
    parser.feed(page)
    parser.close()
    sources = []
    for script in parser.scripts:
        digest = hashlib.sha256(script.encode("utf-8")).digest()
        sources.append(f"'sha256-{base64.b64encode(digest).decode()}'")
    return sources


def policy(scripts: list[str]) -> str:
    """Return the policy for a page that runs these inline scripts. scripts: CSP source expressions, digests or a
    nonce."""
    embedders = os.environ.get("DRAFTSCOPE_EMBEDDED_BY", "").split()
    if "SPACE_ID" in os.environ:
        embedders += SPACES
    rules = {
        "default-src": ["'self'"],
        "script-src": ["'self'", "'unsafe-eval'", *scripts],
        "style-src": ["'self'", "'unsafe-inline'"],
        "img-src": ["'self'", "data:", "blob:"],
        "font-src": ["'self'", "data:"],
        "worker-src": ["'self'", "blob:"],
        "object-src": ["'none'"],
        "base-uri": ["'self'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'self'", *embedders],
    }
    return "; ".join(" ".join([name, *sources]) for name, sources in rules.items())


class Policy:
    """ASGI middleware that adds the policy to HTML answers. Every answer also forbids the browser to guess its type."""

    def __init__(self, app: ASGIApp, head: str = "") -> None:
        """head: HTML that the page's script adds to the document."""
        self._app = app
        self._head = digests(head)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        nonce = secrets.token_urlsafe(16)
        scope.setdefault("state", {})["nonce"] = nonce

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["X-Content-Type-Options"] = "nosniff"
                headers["Referrer-Policy"] = "same-origin"
                if headers.get("content-type", "").startswith("text/html"):
                    scripts = [f"'nonce-{nonce}'", *self._head]
                    headers["Content-Security-Policy"] = policy(scripts)
            await send(message)

        await self._app(scope, receive, answer)
