"""The outermost layer of the server: what a stranger's request must pass before gradio sees it, and what an answer must
pass on its way out.

Each request is checked for the name and the site it was meant for (``app.origins``), for a path that the page or a
program uses, and for a body within bounds (``app.bodies``); it is given a session if it has none; one client has a
bounded number of requests under way, and beyond some in a second they wait (``app.rates``). Each refusal is one sentence. No exception passes, so no traceback is logged.
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
"""Posts that bring their own bounds on how many are under way."""
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
"""The paths that the page and programs use. Gradio has others, for files, recordings, editing and analytics: those are
closed."""
CALLS = re.compile(rf"{API}/(run|api|call(?!/v2/)|queue/join|component_server)(/.*)?")
"""Posts whose body names a session."""
PAGE = re.compile(rf"/|/config/?|{API}/(info|openapi\.json)/?")
"""The page and its descriptions, which are large and made anew for each request."""
STREAM = re.compile(rf"{API}/(heartbeat|queue/data|call)(/.*)?")
HEARTBEAT = f"{API}/heartbeat/"
CHEAP = re.compile(r"/(assets|static|svelte|pwa_icon)/.*|/(theme\.css|favicon\.ico|health)")
ASSET, CHEAP_BYTES = 0.1, 100_000
"""The price of what is cheap, in requests; and a body of so many bytes costs as much as a request."""
SESSION = re.compile(r"[\w.-]{1,64}", re.ASCII)
SENTENCES = {
    403: "This page does not allow that.",
    404: "This page has nothing at that address.",
    405: "This page has nothing at that address.",
    500: "Something went wrong here; try again.",
    503: "This page is busy; try again in a moment.",
}
MOST_HELD = 1 << 16
"""Bytes of an error's answer that are looked at."""


class Guard:
    def __init__(
        self,
        app: ASGIApp,
        rule: Origins,
        session_of: Callable[[str], str] = lambda event: event,
        visitors: Visitors = VISITORS,
        limits: Limits = LIMITS,
    ) -> None:
        """session_of: from an event of gradio's queue to its session; "" where there is no such event."""
        self._app, self._rule, self._session_of = app, rule, session_of
        self._visitors, self._limits = visitors, limits
        self._bodies, self._rates = Bodies(limits), Rates(limits.client_rate)
        self._open: Counter[str] = Counter()
        self._turns: dict[tuple[str, bool], asyncio.Semaphore] = {}
        self._unnamed_proxy = not proxies()
        """Whether the host is yet to be told, should there be a proxy that no setting names."""

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
        """The client's calls take turns, and so do the descriptions of the page, one at a time: each takes much
        computing. A turn ends where the answer begins, for then all is computed, and the client may read slowly."""
        most = 1 if page else self._limits.client_calls
        turn = self._turns.setdefault((who, page), asyncio.Semaphore(most))
        await turn.acquire()
        with ExitStack() as held:
            held.callback(turn.release)
            answer.begins = held.close
            yield

    def _reads(self, path: str, scope: Scope) -> str:
        """The session whose answers this request reads; "" for a request of another kind."""
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
        """The body, with a session of its own where none is named, so that no two callers share one."""
        if not headers.get("content-type", "").startswith("application/json"):
            raise Refused(415, "content-type", "This page reads JSON; it takes no files.")
        try:
            given = json.loads(body)
        except (ValueError, RecursionError):
            raise Refused(400, "json", NONSENSE) from None
        session = given.get("session_hash") if isinstance(given, dict) else ""
        if session is None and path != f"{API}/queue/join":
            session = given["session_hash"] = secrets.token_hex(16)
            body = json.dumps(given).encode("ascii")
        if not isinstance(session, str) or not SESSION.fullmatch(session):
            raise Refused(400, "session", NONSENSE)
        self._visitors.seen(session, who)
        return body


def _path(scope: Scope) -> str:
    return scope["path"].removeprefix(scope.get("root_path", "")) or "/"


def _sized(headers: list[tuple[bytes, bytes]], size: int) -> list[tuple[bytes, bytes]]:
    """The headers of a request whose body has now this many bytes in one piece."""
    kept = [one for one in headers if one[0] not in (b"content-length", b"transfer-encoding")]
    return [*kept, (b"content-length", str(size).encode("ascii"))]


class Answer:
    """An answer on its way out: it is readable by this page alone, and an error says a sentence."""

    def __init__(self, scope: Scope, send: Send, openai: bool = False) -> None:
        """openai: the client reads errors in OpenAI's form."""
        self._scope, self._send, self._openai = scope, send, openai
        self._begun = False
        self.begins: Callable[[], None] = lambda: None
        """Called where the answer begins."""
        self._error: Message | None = None
        """The beginning of an error's answer, held to the end: a failure inside may yet follow."""
        self._told = b""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begins()
            headers = MutableHeaders(scope=message)
            for name in [one for one in headers if one.startswith("access-control-")]:
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
        """Send what was held. An error of gradio's keeps its own sentence, and gets ours where it has none."""
        if self._error is None:
            return
        status = self._error["status"]
        try:
            given = json.loads(self._told)
        except ValueError:
            given = None
        told = (given.get("error") or given.get("detail")) if isinstance(given, dict) else None
        if self._openai and isinstance(told, dict):  # ours, which may name a field
            note(f"status-{status}")
            await self._give(status, given, closes=False)
            return
        if not isinstance(told, str) or told.rstrip()[-1:] not in (".", "?", "!"):
            told = SENTENCES.get(status, NONSENSE)
        note(f"status-{status}")
        # gradio's own client reads 422 as something else
        status = 400 if status == 422 else status
        await self._give(status, self._body(status, told), closes=False)

    async def refuse(self, refused: Refused) -> None:
        if not self._begun:
            told = self._body(refused.status, refused.sentence)
            await self._give(refused.status, told, refused.closes)
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
    """A lifespan for gradio's application, which puts the guard around everything, gradio's own layers included: those
    are added after ours, and would stand outside it."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        app.middleware_stack = Guard(app.middleware_stack, origins(), shares.session_of)
        sweeping = asyncio.create_task(shares.sweep())
        yield
        sweeping.cancel()

    return lifespan
