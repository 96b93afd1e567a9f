"""Runs on the embedded family, for tests."""

import json
from functools import cache

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from engine.methods import drafters
from engine.run import RunRequest, open_run
from engine.trace import Trace, read_trace
from presets import family
from tests.lossless import lossless


@cache
def embedded_tokenizer():
    """Return the target's tokenizer, for tests that do not change it."""
    return AutoTokenizer.from_pretrained(family().target)


@cache
def embedded_module():
    """Return the target as transformers runs it, in float32."""
    return AutoModelForCausalLM.from_pretrained(family().target, dtype=torch.float32).eval()


def request(prompt: str, **fields) -> RunRequest:
    return RunRequest(prompt=prompt, models=family(), **fields)


def offered() -> list[str]:
    """Keys of the drafters whose parts the embedded family has."""
    roles = family().parts.keys()
    return [key for key, cls in drafters().items() if cls.needs.keys() <= roles]


def exact() -> list[str]:
    """Keys of the offered drafters that are lossless with their default rules."""
    known = lossless()
    return [key for key in offered() if key in known]


def ran(request: RunRequest) -> Trace:
    """A whole run, read back through the trace reader."""
    run = open_run(request)
    return read_trace("".join([run.header(), *run.steps(), run.summary()]))


def trace_of(prompt: str, **fields) -> Trace:
    return ran(request(prompt, **fields))


def tokens_of(trace: Trace) -> list[int]:
    return [token for step in trace.steps for token in step["output"]["tokens"]]


def lines_of(trace: Trace) -> list[dict]:
    return [json.loads(line) for line in trace.to_ndjson().splitlines()]
