"""The process of OpenVINO GenAI, run by the peer's own Python: python worker.py TARGET [DRAFT].

The arguments are folders of exported models. A request is one line, {"way", "exact", "tokens", "count", "settings"},
and its answer is the line {"tokens", "seconds"}. ``way`` is plain, draft or lookup. If ``exact`` is true, the precision
is fp32; if not, the library chooses it. The settings go into the generation config. This file imports nothing from the
project, which is not installed in the peer's environment.
"""

import json
import sys
import time
from functools import cache, partial

import numpy as np
import openvino as ov
import openvino_genai as genai

EXACT = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"}


def pipelines(target: str, draft: str | None):
    """Return a function that opens a pipeline when it is first requested, and then returns the same pipeline again. The
    function's arguments are ``way`` and ``exact``, as in a request."""
    open_target = partial(genai.LLMPipeline, target, "CPU")
    makers = {
        "plain": open_target,
        "lookup": partial(open_target, prompt_lookup=True),
        "draft": lambda **how: open_target(
            draft_model=genai.draft_model(draft, "CPU", **how), **how
        ),
    }
    return cache(lambda way, exact: makers[way](**(EXACT if exact else {})))


def answer(pipeline, tokens: list[int], count: int, settings: dict) -> dict:
    ids = np.array([tokens], np.int64)
    inputs = genai.TokenizedInputs(ov.Tensor(ids), ov.Tensor(np.ones_like(ids)))
    config = pipeline.get_generation_config()
    config.max_new_tokens, config.do_sample = count, False
    for name, value in settings.items():
        setattr(config, name, value)
    began = time.perf_counter()
    output = pipeline.generate(inputs, config)
    return {"tokens": list(output.tokens[0]), "seconds": time.perf_counter() - began}


def main(target: str, draft: str | None = None) -> None:
    pipeline = pipelines(target, draft)
    answers, sys.stdout = sys.stdout, sys.stderr  # everything else that is printed goes to stderr
    for line in sys.stdin:
        request = json.loads(line)
        chosen = pipeline(request["way"], request["exact"])
        reply = answer(chosen, request["tokens"], request["count"], request["settings"])
        print(json.dumps(reply), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
