"""Turns the lines of a trace into objects of OpenAI's API."""

import json
import time
from collections.abc import Collection, Iterator

from app.openai_request import Wish

FINISHED = {"eos": "stop", "stop": "stop", "length": "length", "context": "length"}
"""Why a run stopped: the word in a trace -> OpenAI's word. Every other reason becomes "length", too."""


def lasting(text: str, stops: Collection[str], marks: Collection[str]) -> str:
    """Return the part of an unfinished text that can be sent already: the finished text is sure to begin with it.

    It ends before a stop string, before an ending that may become a stop string, and before a mark at the end. marks:
    the texts of special tokens.
    """
    cut = _before(text, stops)
    if cut != text:
        return cut
    for size in range(min(len(text), max(map(len, stops), default=0)), 0, -1):
        if any(stop.startswith(text[-size:]) for stop in stops):
            return text[:-size]
    return _unmarked(text, marks)


def whole(text: str, stops: Collection[str], marks: Collection[str], stop: str) -> str:
    """Return the finished text as it is sent: without the special token that ended it, and only up to a stop string.

    stop: the reason for the end, from the trace's summary.
    """
    return _before(_unmarked(text, marks) if stop == "eos" else text, stops)


def _before(text: str, stops: Collection[str]) -> str:
    return text[: min((text.find(stop) for stop in stops if stop in text), default=len(text))]


def _unmarked(text: str, marks: Collection[str]) -> str:
    return text.removesuffix(max(filter(text.endswith, marks), key=len, default=""))


class Telling:
    """One answer, made from the lines of its trace as they come."""

    def __init__(self, wish: Wish, name: str, link: str) -> None:
        """name: the answer's name. link: the address at which the page shows the run."""
        self.name = name
        self._wish, self._link = wish, {"draftscope_run": link}
        kind = "text_completion"
        if wish.chat:
            kind = "chat.completion.chunk" if wish.stream else "chat.completion"
        self._head = {
            "id": f"{'chatcmpl' if wish.chat else 'cmpl'}-{name}",
            "object": kind,
            "created": int(time.time()),
            "model": wish.model,
        }
        self._stops: Collection[str] = ()
        self._text = self._told = ""
        self._prompt = self._drafted = self._accepted = 0
        self._summary: dict | None = None

    def objects(self, lines: str, marks: Collection[str]) -> Iterator[dict]:
        """Yield the objects for these further lines: chunks of a stream, or, without a stream, the whole answer at the
        end."""
        first = not self._prompt
        for line in filter(None, lines.split("\n")):
            self._read(json.loads(line))
        summary, wish, chat = self._summary, self._wish, self._wish.chat
        if summary is None:
            text = lasting(self._text, self._stops, marks)
        else:
            text = whole(self._text, self._stops, marks, summary["stop"])
        if not wish.stream:
            if summary is not None:
                said = {"role": "assistant", "content": text, "refusal": None}
                choice = self._choice({"message": said} if chat else {"text": text}, summary)
                yield {**self._head, **choice, "usage": self._usage(), **self._link}
            return
        if first and chat:
            yield self._chunk({"delta": {"role": "assistant", "content": ""}})
        added = text[len(self._told) :]
        self._told += added
        if added:
            yield self._chunk({"delta": {"content": added}} if chat else {"text": added})
        if summary is not None:
            yield {**self._chunk({"delta": {}} if chat else {"text": ""}, summary), **self._link}
            if wish.usage:
                yield {**self._head, "choices": [], "usage": self._usage()}

    def _read(self, entry: dict) -> None:
        if entry["kind"] == "run":
            self._stops = entry.get("stop_strings", ())
            self._prompt = len(entry["prompt"]["tokens"])
        elif entry["kind"] == "step":
            status = entry["nodes"]["status"]
            self._text += "".join(entry["output"]["pieces"])
            self._drafted += len(status)
            self._accepted += status.count("accepted")
        else:
            self._summary = entry

    def _chunk(self, said: dict, summary: dict | None = None) -> dict:
        counts = {"usage": None} if self._wish.usage else {}
        return {**self._head, **self._choice(said, summary), **counts}

    def _choice(self, said: dict, summary: dict | None) -> dict:
        """Return the ``choices`` field of an object. said: its text. summary: None while the text goes on."""
        why = summary and FINISHED.get(summary["stop"], "length")
        return {"choices": [{"index": 0, **said, "logprobs": None, "finish_reason": why}]}

    def _usage(self) -> dict:
        written = self._summary["new_tokens"]
        return {
            "prompt_tokens": self._prompt,
            "completion_tokens": written,
            "total_tokens": self._prompt + written,
            "completion_tokens_details": {
                "accepted_prediction_tokens": self._accepted,
                "rejected_prediction_tokens": self._drafted - self._accepted,
            },
        }
