"""Four named endpoints for programs, under the same limits as the page.

``gradio_client`` calls them by name, and with ``DRAFTSCOPE_MCP=1`` they are the tools of an MCP server; the
docstrings of the four functions are what a program, or a language model, reads about them.
"""

import json
import secrets
from collections.abc import Iterator
from contextlib import closing
from itertools import count

import gradio as gr

from app import fence, live
from app.example_menu import preset_menu
from app.menu import offer
from app.parts import engine_event
from app.settings import LIMITS
from presets import cards, models

_serial = count(1)
_EVENT = engine_event()
ENGINE = {name: _EVENT[name] for name in ("concurrency_id", "concurrency_limit")}
"""The concurrency settings of the page's own runs, which the endpoints share."""


def offered() -> dict:
    """List what this server offers: drafters, acceptance rules, example prompts, families of models, and its limits.

    Call this first to learn the keys that `run` and `compare` take. A drafter whose "missing" is not empty
    cannot run here. "exact" says whether a drafter with its own rule leaves the target model's text
    unchanged.
    """
    menu = offer()
    examples = {
        name: {field: entry[field] for field in ("title", "prompt", "look_for")}
        | {field: json.loads(entry["pair"])[field] for field in ("drafter", "options")}
        for name, entry in preset_menu().items()
        if entry["listed"]
    }
    limits = {
        "prompt_characters": LIMITS.prompt_characters,
        "new_tokens": LIMITS.new_tokens,
        "lanes": LIMITS.lanes,
        "runs_at_once": LIMITS.running,
    }
    return {
        "drafters": menu["drafters"],
        "rules": menu["rules"],
        "examples": examples,
        "models": models(),
        "limits": limits,
    }


offered.__name__ = "list"  # an MCP tool has its function's name


def methods(search: str = "") -> list[dict]:
    """Describe published speculative-decoding methods: how each works, its paper and claim, and what was
    measured here.

    Parameters:
        search: only methods whose key, title or authors contain this; empty: all of them
    """
    term = str(search or "").casefold()
    fields = (
        "key",
        "title",
        "family",
        "kind",
        "exactness",
        "mechanism",
        "paper",
        "claim",
        "measured",
    )
    entries = []
    for card in cards().values():
        paper = card.paper or {}
        if term in f"{card.key} {card.title} {paper.get('authors', '')}".casefold():
            entries.append({field: getattr(card, field) for field in fields})
    return entries


def run(
    prompt: str,
    drafter: str = "auto",
    options: dict | None = None,
    verifier: str = "",
    rule_options: dict | None = None,
    temperature: float = 0.0,
    top_k: int = 0,
    top_p: float = 1.0,
    seed: int = 0,
    max_new_tokens: int = 96,
    json_schema: str = "",
    steps: bool = True,
    models: str = "",
    python_names: bool = False,
    heal: bool = False,
    request: gr.Request | None = None,
) -> Iterator[str]:
    """Continue a prompt by speculative decoding and get the trace of the run: every drafted token, whether
    it was accepted or rejected and why, and how fast it went.

    The answer is NDJSON, one JSON object a line: a "run" line (models, settings, prompt), "step" lines
    (draft tree, judgements, output), and a "summary" line, whose "text" is what was written and whose
    "mean_accepted" is the tokens gained a step (plain decoding: 1.0). It streams: each update is the trace
    so far. The models are small; their text shows how decoding works and is no source of facts.

    Parameters:
        prompt: the text to continue
        drafter: key of a drafter, as `list` names them, for example none, chain, suffix; auto picks a drafter at every step
        options: the drafter's options by name; what is left out has its default
        verifier: key of an acceptance rule; empty: the drafter's own
        rule_options: the rule's options by name; those of another rule are left aside
        temperature: 0 to 2; 0 always takes the likeliest token
        top_k: keep the k likeliest tokens; 0 keeps all
        top_p: keep the likeliest tokens up to this much probability
        seed: the same seed, prompt and settings give the same text
        max_new_tokens: write at most this many tokens
        json_schema: a JSON schema that the text must follow; empty: any text
        steps: false leaves the step lines out, which makes the answer short: enough for text and figures
        models: empty for the small models that write text; another family as `list` names them: smollm2 for a chat
            model that answers the prompt, image for those that draw a digit, named by the prompt
        python_names: prompt and text are Python, and a name that a line uses must exist in the text so far
        heal: the prompt may end in the middle of a token: its last tokens are taken back, and the "text" begins with them
    """
    values = {
        "prompt": prompt,
        "pair": json.dumps(_pair(drafter, options, verifier, rule_options)),
        "json_schema": json_schema,
        "python_names": python_names,
        "heal": heal,
        "models": models,
        **_numbers(temperature, top_k, top_p, seed, max_new_tokens),
    }
    yield from _traced("watch", values, steps, request)


def compare(
    prompt: str,
    drafters: list[str],
    temperature: float = 0.0,
    top_k: int = 0,
    top_p: float = 1.0,
    seed: int = 0,
    max_new_tokens: int = 96,
    steps: bool = True,
    models: str = "",
    request: gr.Request | None = None,
) -> Iterator[str]:
    """Race two or more drafters on one prompt and seed, each on a clock of its own computing time.

    The answer is NDJSON as from `run`, and each line has one more key, "lane", which names the drafter it
    belongs to. Compare the summary lines: "tokens_per_second", "mean_accepted", and "text", which is the same
    in all lossless lanes at temperature 0.

    Parameters:
        prompt: the text to continue
        drafters: keys of the drafters, plain decoding ("none") first if it is to be the measure
        temperature: 0 to 2; 0 always takes the likeliest token
        top_k: keep the k likeliest tokens; 0 keeps all
        top_p: keep the likeliest tokens up to this much probability
        seed: one seed for all lanes
        max_new_tokens: each lane writes at most this many tokens
        steps: false leaves the step lines out, which makes the answer short
        models: as of `run`
    """
    lanes = [_pair(key) for key in drafters] if isinstance(drafters, list) else None
    values = {
        "prompt": prompt,
        "lanes": json.dumps(lanes),
        "models": models,
        **_numbers(temperature, top_k, top_p, seed, max_new_tokens),
    }
    yield from _traced("compare", values, steps, request)


def _pair(
    drafter: str, options: object = None, verifier: object = "", rule_options: object = None
) -> dict:
    return {
        "drafter": drafter,
        "options": options or {},
        "verifier": verifier or "",
        "rule_options": rule_options or {},
    }


def _numbers(temperature, top_k, top_p, seed, max_new_tokens) -> dict:
    return {
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "seed": seed,
        "max_new_tokens": max_new_tokens,
    }


def _traced(tab: str, values: dict, steps: bool, request: gr.Request | None) -> Iterator[str]:
    """Make a run in a seat of its own, and yield the whole trace so far at each update.

    steps: false yields the finished trace only, once, without step lines. Drafters learn nothing from the run. Raises
    gr.Error, with a sentence, if the run fails.
    """
    session = (request and request.session_hash) or secrets.token_hex(8)
    seat = f"{tab}#{next(_serial)}"
    text = ""
    try:
        with closing(live.start(session, seat, fence.MAKERS[tab], values)) as updates:
            for trace, state, message in updates:
                if state == "error":
                    raise gr.Error(message, print_exception=False)
                text = trace or text
                if steps and text:
                    yield text
        if not steps:
            yield _without_steps(text)
    finally:
        live.leave(session, seat)


def _without_steps(text: str) -> str:
    lines = [line for line in text.split("\n") if line]
    return "".join(f"{line}\n" for line in lines if json.loads(line)["kind"] != "step")


def offer_endpoints() -> None:
    """Declare the four endpoints; call this within the page's ``gr.Blocks``."""
    gr.api(offered, api_name="list", queue=False)
    gr.api(methods, api_name="methods", queue=False)
    gr.api(run, api_name="run", **ENGINE)
    gr.api(compare, api_name="compare", **ENGINE)
