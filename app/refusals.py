"""Requests that are refused: each with one sentence, counted by kind, and noted in the log without their content."""

import logging
import traceback

from app import metrics

log = logging.getLogger("draftscope.refused")

NONSENSE = "This page cannot make sense of that request."


class Refused(Exception):
    """status: of HTTP. kind: the word under which the refusal is counted. sentence: for the visitor. closes: whether
    the connection ends with the answer, because what follows on it is not wanted."""

    def __init__(self, status: int, kind: str, sentence: str, closes: bool = False) -> None:
        super().__init__(sentence)
        self.status, self.kind, self.sentence, self.closes = status, kind, sentence, closes


def openai_error(
    status: int, sentence: str, param: str | None = None, code: str | None = None
) -> dict:
    """The sentence in the form in which OpenAI's clients read it. status: of HTTP. param: the field that is refused. code: a
    word for programs."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    if status == 429:
        kind = "rate_limit_error"
    return {"error": {"message": sentence, "type": kind, "param": param, "code": code}}


def note(kind: str, **details: object) -> None:
    """Count a refusal, and tell the host of it in one line, as often as ``logs.Sparing`` lets it through."""
    metrics.TURNED_AWAY.labels(kind).inc()
    log.warning("refused: %s", kind, extra=details)


def note_failure(error: BaseException) -> None:
    """Count a request that failed inside; the line names the kind of error and the place in the code. The traceback is
    for DRAFTSCOPE_LOG_LEVEL=debug."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}" if frames else ""
    note("failed", error=type(error).__name__, at=place)
    log.debug("the whole of it", exc_info=error)
