"""Tokens a second on a trained pair: this engine, transformers plain and transformers assisted."""

import time

import torch

from engine.bench_gpu.timing import Deadline

TOKENS = 128


def end_to_end(paths, prompts: list[str], deadline: Deadline, dtype: str) -> list[dict]:
    """One row a way of decoding, greedy, summed over the prompts that fit in the time."""
    from engine.models import load_models

    models = load_models(paths, frozenset({"draft"}), dtype, "cuda")
    ways = {
        "transformers, plain": lambda prompt: _generate(models, prompt, assisted=False),
        "transformers, assisted": lambda prompt: _generate(models, prompt, assisted=True),
        "engine, none": lambda prompt: _engine(paths, prompt, "none", dtype),
        "engine, chain": lambda prompt: _engine(paths, prompt, "chain", dtype),
    }
    totals = {way: [0, 0.0] for way in ways}
    equal = compared = 0
    for index, prompt in enumerate([prompts[0], *prompts]):  # the first one warms up
        if deadline.left < 15:
            break
        texts = {}
        for way, run in ways.items():
            texts[way], seconds = run(prompt)
            if index:
                totals[way][0] += len(texts[way])
                totals[way][1] += seconds
        if index:
            compared += 1
            equal += texts["engine, chain"] == texts["transformers, plain"]
    rate = {way: tokens / seconds for way, (tokens, seconds) in totals.items() if seconds}
    return [
        {
            "name": f"{way}, {dtype}",
            "tokens_per_second": rate[way],
            "times_plain": rate[way] / rate["transformers, plain"],
            "times_assisted": rate[way] / rate["transformers, assisted"],
            "prompts": compared,
            **({"equal_to_transformers": equal} if way == "engine, chain" else {}),
        }
        for way in rate
    ]


def _generate(models, prompt: str, assisted: bool) -> tuple[list[int], float]:
    """transformers' own greedy generate; its attention is set to SDPA for the while."""
    target = models.target
    tokens = target.tokenizer(prompt, return_tensors="pt").input_ids.to("cuda")
    helpers = {"assistant_model": models.draft.model} if assisted else {}
    used = [target.model] + ([models.draft.model] if assisted else [])
    ours = [model.config._attn_implementation for model in used]
    for model in used:
        model.set_attn_implementation("sdpa")
    try:
        torch.cuda.synchronize()
        begin = time.perf_counter()
        output = target.model.generate(
            tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=TOKENS,
            do_sample=False, **helpers,
        )  # fmt: skip
        torch.cuda.synchronize()
        seconds = time.perf_counter() - begin
    finally:
        for model, name in zip(used, ours, strict=True):
            model.set_attn_implementation(name)
    return output[0, tokens.shape[1] :].tolist(), seconds


def _engine(paths, prompt: str, drafter: str, dtype: str) -> tuple[list[int], float]:
    """Engine time as the trace reports it: prefill and steps, recording left out."""
    import json

    from engine.run import RunRequest, open_run

    request = RunRequest(
        prompt=prompt, models=paths, drafter=drafter, max_new_tokens=TOKENS,
        dtype=dtype, device="cuda",
    )  # fmt: skip
    run = open_run(request)
    tokens = [token for step in run.steps() for token in json.loads(step)["output"]["tokens"]]
    return tokens, run.milliseconds / 1000
