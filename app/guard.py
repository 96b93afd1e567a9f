"""The outermost layer of the server: it checks each request before gradio sees it, and each answer on its way out.

A request must be meant for this server's name and site (``app.origins``), use a path that the page or a program uses,
and have a body within bounds (``app.bodies``). It gets a session if it has none. One client has a bounded number of
requests under way; above a rate a second, its requests wait (``app.rates``). Each refusal is one sentence. No exception
passes, so no traceback is logged.
"""

import asyncio
import json
import re
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager, contextmanager
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.bodies import Bodies, Gone, replayed
from app.origins import Origins, origins
from app.rates import Rates
from app.refusals import NONSENSE, Refused, log, note, note_failure, openai_error
from app.settings import LIMITS, Limits
from app.shares import Shares
from app.visitors import PROXIES, VISITORS, Visitors, client, proxies

API = "/gradio_api"
MCP = rf"{API}/mcp(/.*)?"
OPENAI = "/v1/"
PROGRAMS = re.compile(rf"{MCP}|{OPENAI}.*")
"""Paths whose POST requests are bounded in number elsewhere, so that they wait for no turn here."""
OPEN = {
    "GET": re.compile(
        r"/|/(config|theme\.css|favicon\.ico|robots\.txt|manifest\.json|health|metrics)/?"
        r"|/(assets|static|svelte|pwa_icon)(/.*)?"
        rf"|{API}/(info|openapi\.json|app_id|startup-events|theme\.css)/?"
        rf"|{API}/(heartbeat/[^/]+|queue/(data|status)|call/.+)|{MCP}|{OPENAI}models"
    ),
    "POST": re.compile(
        rf"{API}/((run|api)/[^/]+|queue/join|cancel|reset|component_server|call/.+)/?|{MCP}"
        rf"|{OPENAI}(chat/)?completions"
    ),
    "DELETE": re.compile(MCP),
}
"""The paths that the page and programs use. Gradio has others, for files, recordings, editing and analytics: they
are closed."""
CALLS = re.compile(rf"{API}/(run|api|call(?!/v2/)|queue/join|component_server)(/.*)?")
"""Paths of POST requests whose body names a session."""
PAGE = re.compile(rf"/|/config/?|{API}/(info|openapi\.json)/?")
"""The page and its descriptions, which are large and made anew for each request."""
STREAM = re.compile(rf"{API}/(heartbeat|queue/data|call)(/.*)?")
HEARTBEAT = f"{API}/heartbeat/"
CHEAP = re.compile(r"/(assets|static|svelte|pwa_icon)/.*|/(theme\.css|favicon\.ico|health)")
ASSET, CHEAP_BYTES = 0.1, 100_000
"""Prices, in requests: a GET of a CHEAP path costs ASSET, and each CHEAP_BYTES bytes of a body cost one."""
SESSION = re.compile(r"[\w.-]{1,64}", re.ASCII)
SENTENCES = {
    403: "This page does not allow that.",
    404: "This page has nothing at that address.",
    405: "This page has nothing at that address.",
    500: "Something went wrong here; try again.",
    503: "This page is busy; try again in a moment.",
}
MOST_HELD = 1 << 16
"""Bytes of an error answer that are kept and read."""


class Guard:
    def __init__(
        self,
        app: ASGIApp,
        rule: Origins,
        session_of: Callable[[str], str] = lambda event: event,
        visitors: Visitors = VISITORS,
        limits: Limits = LIMITS,
    ) -> None:
        """session_of: returns the session of an event of gradio's queue, or "" if there is no such event."""
        self._app, self._rule, self._session_of = app, rule, session_of
        self._visitors, self._limits = visitors, limits
        self._bodies, self._rates = Bodies(limits), Rates(limits.client_rate)
        self._open: Counter[str] = Counter()
        self._turns: dict[tuple[str, bool], asyncio.Semaphore] = {}
        self._unnamed_proxy = not proxies()
        """Whether a request through a proxy still causes a warning: no setting names a proxy, and it is the first."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "websocket":  # the page has none
                await send({"type": "websocket.close", "code": 1008})
            else:
                await self._app(scope, receive, send)
            return
        answer = Answer(scope, send, _path(scope).startswith(OPENAI))
        try:
            await self._passed(scope, receive, answer)
            await answer.end()
        except Gone:
            pass
        except Refused as refused:
            note(refused.kind)
            await answer.refuse(refused)
        except Exception as error:  # noqa: BLE001
            note_failure(error)
            await answer.refuse(Refused(400, "failed", NONSENSE, True))

    async def _passed(self, scope: Scope, receive: Receive, answer: "Answer") -> None:
        headers, method = Headers(scope=scope), scope["method"]
        path = _path(scope)
        who = client((scope.get("client") or ("",))[0])
        if self._unnamed_proxy and "x-forwarded-for" in headers:
            self._unnamed_proxy = False
            log.warning("a proxy that %s does not name: its visitors share one address", PROXIES)
        reads = method in ("GET", "HEAD")
        with self._counted(who), ExitStack() as held:
            wait = self._rates.wait(who, ASSET if reads and CHEAP.fullmatch(path) else 1.0)
            if wait and not (reads and STREAM.fullmatch(path)):  # reading begins no work
                await asyncio.sleep(wait)
            self._rule.check(headers, path.startswith((API, OPENAI)) or not reads)
            allowed = OPEN.get("GET" if reads else method)
            if allowed is None or not allowed.fullmatch(path):
                raise Refused(404, "path", SENTENCES[404], True)
            if reads:
                if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
                    raise Refused(400, "body-unasked", NONSENSE, True)
                session = self._reads(path, scope)
                if session:
                    beats = path.startswith(HEARTBEAT)
                    kind = self._visitors.heartbeat if beats else self._visitors.reading
                    held.enter_context(kind(session, who))
                if PAGE.fullmatch(path):
                    async with self._turn(who, answer, page=True):
                        await self._app(scope, receive, answer)
                else:
                    await self._app(scope, receive, answer)
                return
            reading = held.enter_context(self._bodies.read(who))
            held.callback(lambda: self._rates.wait(who, reading.size / CHEAP_BYTES))
            body = await reading.whole(headers, receive)
            if CALLS.fullmatch(path):
                body = self._with_session(path, headers, body, who)
                scope = {**scope, "headers": _sized(scope["headers"], len(body))}
            receive = replayed(body, receive)
            if PROGRAMS.fullmatch(path):
                await self._app(scope, receive, answer)
                return
            async with self._turn(who, answer):
                await self._app(scope, receive, answer)

    @contextmanager
    def _counted(self, who: str):
        if self._open[who] >= self._limits.client_requests:
            raise Refused(429, "requests", "Too much at once comes from your address here.", True)
        self._open[who] += 1
        try:
            yield
        finally:
            self._open[who] -= 1
            if not self._open[who]:
                del self._open[who]
                for key in [(who, True), (who, False)]:
                    self._turns.pop(key, None)

    @asynccontextmanager
    async def _turn(self, who: str, answer: "Answer", page: bool = False) -> AsyncIterator[None]:
        """Wait for a turn of this client, and hold it until the answer begins.

        A client has few calls under way at once, and one description of the page, because each takes much computing.
        When the answer begins, all is computed, and the client may read slowly.
        """
        most = 1 if page else self._limits.client_calls
        turn = self._turns.setdefault((who, page), asyncio.Semaphore(most))
        await turn.acquire()
        with ExitStack() as held:
            held.callback(turn.release)
            answer.begins = held.close
            yield

    def _reads(self, path: str, scope: Scope) -> str:
        """Return the session whose answers this request reads; "" if it reads none. Raises Refused for an unknown
        event."""
        if not STREAM.fullmatch(path):
            return ""
        last = path.rstrip("/").rpartition("/")[2]
        if path.startswith(HEARTBEAT):
            session = last
        elif path.startswith(f"{API}/call/"):
            session = self._session_of(last)
            if not session:
                raise Refused(404, "event", "That request is over, or never was.")
        else:
            session = parse_qs(scope["query_string"].decode("latin-1")).get("session_hash", [""])[0]
        return session if SESSION.fullmatch(session) else ""

    def _with_session(self, path: str, headers: Headers, body: bytes, who: str) -> bytes:
        """Return the body, with a new session if it names none, so that no two callers share one. Raises Refused."""
        if not headers.get("content-type", "").startswith("application/json"):
            raise Refused(415, "content-type", "This page reads JSON; it takes no files.")
        try:
            call = json.loads(body)
        except (ValueError, RecursionError):
            raise Refused(400, "json", NONSENSE) from None
        session = call.get("session_hash") if isinstance(call, dict) else ""
        if session is None and path != f"{API}/queue/join":
            session = call["session_hash"] = secrets.token_hex(16)
            body = json.dumps(call).encode("ascii")
        if not isinstance(session, str) or not SESSION.fullmatch(session):
            raise Refused(400, "session", NONSENSE)
        self._visitors.seen(session, who)
        return body


def _path(scope: Scope) -> str:
    return scope["path"].removeprefix(scope.get("root_path", "")) or "/"


def _sized(headers: list[tuple[bytes, bytes]], size: int) -> list[tuple[bytes, bytes]]:
    """Return the headers of a request, changed to say that its body is one piece of ``size`` bytes."""
    kept = [
        header for header in headers if header[0] not in (b"content-length", b"transfer-encoding")
    ]
    return [*kept, (b"content-length", str(size).encode("ascii"))]


class Answer:
    """An answer on its way out. Its headers allow no other site to read it, and an error becomes a sentence."""

    def __init__(self, scope: Scope, send: Send, openai: bool = False) -> None:
        """openai: errors are sent in OpenAI's form."""
        self._scope, self._send, self._openai = scope, send, openai
        self._begun = False
        self.begins: Callable[[], None] = lambda: None
        """Called when the answer begins."""
        self._error: Message | None = None
        """The first message of an error answer, held back to the end, because the error may still be replaced by
        another."""
        self._told = b""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begins()
            headers = MutableHeaders(scope=message)
            for name in [key for key in headers if key.startswith("access-control-")]:
                del headers[name]
            if message["status"] >= 400:
                self._error = message
                return
            self._begun = True
        elif self._error is not None:
            self._told = (self._told + message.get("body", b""))[:MOST_HELD]
            return
        await self._send(message)

    async def end(self) -> None:
        """Send the error answer that was held back. It keeps gradio's sentence, or gets one from SENTENCES."""
        if self._error is None:
            return
        status = self._error["status"]
        try:
            reply = json.loads(self._told)
        except ValueError:
            reply = None
        sentence = (reply.get("error") or reply.get("detail")) if isinstance(reply, dict) else None
        if self._openai and isinstance(sentence, dict):  # ours, which may name a field
            note(f"status-{status}")
            await self._give(status, reply, closes=False)
            return
        if not isinstance(sentence, str) or sentence.rstrip()[-1:] not in (".", "?", "!"):
            sentence = SENTENCES.get(status, NONSENSE)
        note(f"status-{status}")
        # gradio's own client reads 422 as something else
        status = 400 if status == 422 else status
        await self._give(status, self._body(status, sentence), closes=False)

    async def refuse(self, refused: Refused) -> None:
        if not self._begun:
            body = self._body(refused.status, refused.sentence)
            await self._give(refused.status, body, refused.closes)
            return
        try:  # nothing can be said in the middle of an answer; it ends here
            await self._send({"type": "http.response.body", "body": b""})
        except Exception:  # noqa: BLE001
            return

    def _body(self, status: int, sentence: str) -> dict:
        if self._openai:
            return openai_error(status, sentence)
        return {"error": sentence, "detail": sentence}

    async def _give(self, status: int, body: dict, closes: bool) -> None:
        self._begun, self._error = True, None
        headers = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
        if closes:
            headers["Connection"] = "close"
        await JSONResponse(body, status, headers)(self._scope, _nothing, self._send)


async def _nothing() -> Message:
    return {"type": "http.disconnect"}


def around(shares: Shares):
    """Return a lifespan for gradio's application that puts the guard around all its layers.

    Gradio adds its own layers after our middleware, so a guard that was middleware would stand inside them.
    """

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        app.middleware_stack = Guard(app.middleware_stack, origins(), shares.session_of)
        sweeping = asyncio.create_task(shares.sweep())
        yield
        sweeping.cancel()

    return lifespan
