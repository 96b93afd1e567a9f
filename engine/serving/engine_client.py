"""HTTP requests to a serving engine, within limits of time and size. Every failure is a UserError of one sentence.

A redirect is not followed, because the API key and the text are meant for the named engine only. The API key comes from
the environment, and appears in no message and no trace.
"""

import json
import os
import time
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any

from engine.errors import UserError
from engine.printable import one_line
from engine.serving.engine_address import Address

KEY = "DRAFTSCOPE_ENGINE_KEY"
SECONDS = 120.0
"""The time within which an answer must be complete."""
BYTES = 1 << 28
"""The largest size of an answer. The log-probabilities of a prompt of 100,000 tokens take half of that."""


class EngineClient:
    def __init__(self, address: Address, seconds: float = SECONDS, most: int = BYTES) -> None:
        """seconds: the time within which an answer must be complete. most: the most bytes of an answer."""
        self.address = address
        self._seconds, self._most = seconds, most

    def ask(self, path: str, question: dict | None = None) -> Any:
        """The engine's answer, a JSON object or list. ``question`` is posted; with None, the request is a GET.

        If an answer breaks off, the request is sent once more, in the remaining time: the same question has the same
        seed, and so the same answer. An exception during the wait closes the connection, and the engine then stops its
        work. Raises UserError.
        """
        place, until = self.address.place, time.monotonic() + self._seconds
        for last in (False, True):
            try:
                status, body = self._answer(path, question, until)
                break
            except TimeoutError:
                raise UserError(
                    f"The engine at {place} took more than {self._seconds:g} s."
                ) from None
            except (OSError, HTTPException):
                if last:
                    raise UserError(f"The engine at {place} broke off its answer.") from None
        self._check(status, body)
        return self._parsed(body)

    def _answer(self, path: str, question: dict | None, until: float) -> tuple[int, bytes]:
        """Status and body of the response. Raises UserError if no engine answers, TimeoutError, and exceptions of the
        connection."""
        left = max(until - time.monotonic(), 0.001)
        connection = HTTPConnection(self.address.host, self.address.port, timeout=left)
        headers = {"Content-Type": "application/json", "Connection": "close"}
        if key := os.environ.get(KEY):
            headers["Authorization"] = f"Bearer {key}"
        try:
            try:
                connection.connect()
            except OSError:
                raise UserError(f"No engine answers at {self.address.place}.") from None
            body = None if question is None else json.dumps(question)
            connection.request("GET" if body is None else "POST", path, body, headers)
            response = connection.getresponse()
            return response.status, self._whole(response, connection, until)
        finally:
            connection.close()

    def _whole(self, response: HTTPResponse, connection: HTTPConnection, until: float) -> bytes:
        """The whole body of the response. Raises TimeoutError, UserError if it is too large, and exceptions of the
        connection."""
        parts, size = [], 0
        while True:
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError
            if connection.sock is not None:  # None once the end of the answer has arrived
                connection.sock.settimeout(left)
            part = response.read1(1 << 20)
            if not part:
                break
            parts.append(part)
            size += len(part)
            if size > self._most:
                raise UserError(
                    f"The engine at {self.address.place} sends more than {self._most / 1e6:,.0f} MB."
                )
        if response.length:  # read1 does not report missing bytes
            raise HTTPException
        return b"".join(parts)

    def _check(self, status: int, told: bytes) -> None:
        place = self.address.place
        if status == 200:
            return
        if 300 <= status < 400:
            raise UserError(
                f"The engine at {place} sends to another address, which is not followed."
            )
        if status in (401, 403):
            raise UserError(f"The engine at {place} refuses the key; give one in {KEY}.")
        why = _message(told)
        if "logprobs" in why:
            raise UserError(
                f"The engine at {place} gives fewer log-probabilities than asked for; start it with a larger --max-logprobs."
            )
        raise UserError(f"The engine at {place} refuses this ({status}): {why}")

    def _parsed(self, told: bytes) -> dict | list:
        try:
            answer = json.loads(told)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict | list):
            raise UserError(f"The engine at {self.address.place} broke off its answer.")
        return answer


def _message(told: bytes) -> str:
    """The engine's error message, on one line."""
    try:
        answer = json.loads(told)
        error = answer.get("error", answer)
        text = error["message"] if isinstance(error, dict) else str(error)
    except (ValueError, RecursionError, AttributeError, KeyError):
        text = told.decode("utf-8", "replace")
    return one_line(str(text), 200)
