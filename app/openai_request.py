"""Reads a request in the form of OpenAI's API as the settings of a run on this server.

The API has fields that would change the text, but that no run here follows. A request with such a field is refused, and
the refusal names the field: an answer that ignored the field would look as if it had followed it.
"""

import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

from app import controls, fence, live
from app.seats import Job
from app.settings import LIMITS, model_paths
from engine.chat.turns import checked as checked_turns
from engine.core.ending import check_stop_strings
from engine.errors import UserError
from engine.model.picture import FIELD as PICTURE
from engine.parts.files import needed_config
from engine.parts.hub import name_of
from engine.run import RunRequest
from presets import families, family
from presets.fetched import check_there, missing_target

T = TypeVar("T")

TAB = "openai"
USUAL_TOKENS = 16
"""Most new tokens of a completion that names no length. An answer in a conversation may be as long as the server
allows."""
ROLES = {"developer": "system"}
"""OpenAI's name for a role -> the name in chat templates."""
NO_EFFECT = {"metadata", "prompt_cache_key", "safety_identifier", "service_tier", "store", "user"}
"""Fields that change no text."""
NOTHING_ASKED = {
    "best_of": 1,
    "echo": False,
    "frequency_penalty": 0,
    "logit_bias": {},
    "logprobs": False,
    "n": 1,
    "presence_penalty": 0,
    "tools": [],
}
"""Fields that no run here follows -> the value that changes nothing, which is allowed."""
FOLLOWED = {"model", "max_tokens", "max_completion_tokens", "temperature", "top_p", "seed", "stop"}
FOLLOWED |= {"response_format", "stream", "stream_options"}


class Refusal(UserError):
    """The refusal of a request. param: the field that is refused. status: the HTTP status. code: a word for
    programs."""

    def __init__(
        self, sentence: str, param: str | None = None, status: int = 400, code: str | None = None
    ) -> None:
        super().__init__(sentence)
        self.param, self.status, self.code = param, status, code


@dataclass(frozen=True)
class Wish:
    """A request that has been read. model: the model's name in the request. values: the run's settings, as JSON can
    hold them. chat: whether the request is a conversation. stream: whether the answer is sent while it is written.
    usage: whether a streamed answer ends with a count of its tokens."""

    model: str
    values: dict
    chat: bool
    stream: bool
    usage: bool


def model_names() -> dict[str, str]:
    """Return the models that write text and are on this machine: model name in a request -> name of its family."""
    own = model_paths().target
    first = "embedded" if own == family().target else name_of(own)
    others = [name for name in families() if name and missing_target(name) is None]
    return {first: "", **{name: name for name in others if name != first and not _draws(name)}}


@cache
def _draws(name: str) -> bool:
    """Return whether the tokens of this family are pieces of a picture."""
    return PICTURE in needed_config(Path(family(name).target))


def read(body: bytes, chat: bool) -> Wish:
    """Return the wish in the body of a request. chat: whether the body is a conversation, whose next turn is to be
    written; otherwise it holds a prompt. Raises Refusal."""
    fields = _object(body)
    text = "messages" if chat else "prompt"
    for name, asked in fields.items():
        if name not in FOLLOWED | NO_EFFECT | {text} and not _asks_nothing(name, asked):
            name = name[:80]  # a stranger chose the name, of any length
            raise Refusal(f"This server does not follow {name!r}; leave it out.", name)
    names, model = model_names(), fields.get("model")
    if not isinstance(model, str) or model not in names:
        sentence = f"There is no such model here; known are: {', '.join(names)}."
        raise Refusal(sentence, "model", 404, "model_not_found")

    def value(name: str, reads: Callable[[object], T]) -> T:
        try:
            return reads(fields.get(name))
        except UserError as error:
            raise Refusal(str(error), name) from None

    def number(name: str, kind: str, usual: float) -> float:
        return value(
            name, lambda asked: controls.RANGES[kind].read(usual if asked is None else asked)
        )

    length = (
        "max_tokens" if fields.get("max_completion_tokens") is None else "max_completion_tokens"
    )
    usual = LIMITS.new_tokens if chat else min(USUAL_TOKENS, LIMITS.new_tokens)
    values = {
        "models": names[model],
        "prompt": "" if chat else value("prompt", controls.prompt),
        "messages": value("messages", _turns) if chat else None,
        "stop": value("stop", _stops),
        "json_schema": value("response_format", _schema),
        "max_new_tokens": number(length, "max_new_tokens", usual),
        "temperature": number("temperature", "temperature", 0),
        "top_p": number("top_p", "top_p", 1),
        "seed": number("seed", "seed", secrets.randbelow(2**31)),
    }
    usage = value("stream_options", _counts)
    return Wish(model, values, chat, value("stream", _flag), usage)


def _object(body: bytes) -> Mapping[str, object]:
    """Return the JSON object in the body, without the fields that are null. Raises Refusal for any other body."""
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise Refusal("The body is not a JSON object.")
    return {name: value for name, value in fields.items() if value is not None}


def _asks_nothing(name: str, value: object) -> bool:
    nothing = NOTHING_ASKED.get(name)
    return (
        nothing is not None
        and value == nothing
        and isinstance(value, bool) == isinstance(nothing, bool)
    )


def _flag(flag: object) -> bool:
    if flag is not None and not isinstance(flag, bool):
        raise UserError("stream is true or false.")
    return bool(flag)


def _counts(options: object) -> bool:
    """Return whether the options of a stream ask for a count of the tokens. Raises UserError for other options."""
    if options is None:
        return False
    usage = options.get("include_usage", False) if isinstance(options, dict) else None
    if not isinstance(usage, bool) or set(options) - {"include_usage", "include_obfuscation"}:
        raise UserError('stream_options is {"include_usage": true} or false.')
    return usage


def _stops(wanted: object) -> list[str]:
    stops = [wanted] if isinstance(wanted, str) else wanted or []
    if not isinstance(stops, list):
        raise UserError("stop is a string or a list of strings.")
    check_stop_strings(stops)
    return stops


def _schema(form: object) -> str | None:
    """Return the JSON schema that a response format names, as text; None for any text. Raises UserError."""
    kind = form.get("type") if isinstance(form, dict) else form
    if kind in (None, "text"):
        return None
    named = form.get("json_schema") if kind == "json_schema" else None
    schema = named.get("schema") if isinstance(named, dict) else None
    if not isinstance(schema, dict):
        raise UserError(
            'response_format is {"type": "text"} or {"type": "json_schema", "json_schema": {"schema": …}}.'
        )
    return controls.json_schema(json.dumps(schema))


def _turns(messages: object) -> list[dict[str, str]]:
    """Return the checked turns of the conversation, with each turn's content as one text. Raises UserError."""
    turns = messages if isinstance(messages, list) else []
    return checked_turns([_turn(turn) for turn in turns])


def _turn(message: object) -> object:
    if not isinstance(message, dict):
        return message
    turn = {name: value for name, value in message.items() if value not in (None, [])}
    role, content = turn.get("role"), turn.get("content")
    if isinstance(content, list) and all(isinstance(part, dict) for part in content):
        parts = [part.get("text") if part.get("type") == "text" else None for part in content]
        content = "".join(parts) if all(isinstance(part, str) for part in parts) else None
    return {
        **turn,
        "role": ROLES.get(role, role) if isinstance(role, str) else role,
        "content": content,
    }


def job(values: Mapping[str, object]) -> Job:
    """Open the run with these settings and return it. values: those of a ``Wish``. Raises UserError."""
    check_there(values["models"])
    models = model_paths(values["models"])
    return live.opened([RunRequest(**{**values, "models": models}, drafter="auto")])[0]


fence.MAKERS[TAB] = job
