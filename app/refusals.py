"""Refuses requests, each with one sentence; counts refusals by kind, and logs them without the requests' content."""

import logging
import traceback

from app import metrics

log = logging.getLogger("draftscope.refused")

NONSENSE = "This page cannot make sense of that request."


class Refused(Exception):
    """A request is refused. status: the HTTP status. kind: the word under which the refusal is counted. sentence: for
    the visitor. closes: whether the connection ends with the answer, so that the rest of the request is not read."""

    def __init__(self, status: int, kind: str, sentence: str, closes: bool = False) -> None:
        super().__init__(sentence)
        self.status, self.kind, self.sentence, self.closes = status, kind, sentence, closes


def openai_error(
    status: int, sentence: str, param: str | None = None, code: str | None = None
) -> dict:
    """Return the sentence as an error object of OpenAI's API. status: the HTTP status. param: the field that is
    refused. code: a word for programs."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    if status == 429:
        kind = "rate_limit_error"
    return {"error": {"message": sentence, "type": kind, "param": param, "code": code}}


def note(kind: str, **details: object) -> None:
    """Count a refusal, and log it in one line, which ``logs.Sparing`` may leave out."""
    metrics.TURNED_AWAY.labels(kind).inc()
    log.warning("refused: %s", kind, extra=details)


def note_failure(error: BaseException) -> None:
    """Count a request that failed inside, and log the kind of error and its place in the code. The traceback is logged
    at DRAFTSCOPE_LOG_LEVEL=debug only."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}" if frames else ""
    note("failed", error=type(error).__name__, at=place)
    log.debug("the whole of it", exc_info=error)
