"""Tokens per second on a trained pair: this engine, transformers plain and transformers assisted.

All of them get the same modules, prompts and number of tokens, decode greedily, and are timed from
the prompt's tokens to the last token's id. Nothing is recorded.
"""

import time
from collections.abc import Iterator

import torch

from engine.bench.gpu.timing import Deadline, here, wait
from engine.core.decode import decode
from engine.core.options import resolve
from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.methods import drafter as drafter_class
from engine.methods.chain.drafter import ChainDrafter
from engine.parts.loading import Models, load_models
from engine.rules import verifier
from engine.sizes.draft_size import settle_size

TOKENS = 128
SCHEDULES = (("default", None), ("constant", 5))  # of assisted generation; the faster one counts
PLAIN = "transformers, plain"


def end_to_end(
    paths, prompts: list[str], deadline: Deadline, dtype: str, tokens: int = TOKENS
) -> list[dict]:
    """One row for each way of decoding, summed over the prompts for which there is time."""
    models = load_models(paths, ChainDrafter.needs, dtype, here().type)
    read = [_tokens(models, prompt) for prompt in prompts]
    ways = {
        PLAIN: lambda prompt: _generate(models, prompt, tokens),
        **{
            f"transformers, assisted, {kind}": lambda prompt, kind=kind, length=length: _generate(
                models, prompt, tokens, assisted=(kind, length)
            )
            for kind, length in SCHEDULES
        },
        **{
            f"engine, {key}": lambda prompt, key=key: _engine(models, prompt, tokens, key)
            for key in ("none", "chain")
        },
    }
    totals = {way: [0, 0.0] for way in ways}
    done = 0
    for prompt in _warm_up_first(read):
        if prompt is not None and deadline.left < 15:
            break
        for way, run in ways.items():
            if prompt is None:
                run(max(read, key=len))  # the longest: its buffers serve all others
                continue
            found, seconds = run(prompt)
            totals[way][0] += len(found)
            totals[way][1] += seconds
        done += prompt is not None
    return _rows(totals, done, dtype)


def _warm_up_first(read: list[list[int]]) -> Iterator[list[int] | None]:
    yield None
    yield None
    yield from read


def _rows(totals: dict[str, list], done: int, dtype: str) -> list[dict]:
    rate = {way: tokens / seconds for way, (tokens, seconds) in totals.items() if seconds}
    assisted = [value for way, value in rate.items() if "assisted" in way]
    return [
        {
            "name": f"{way}, {dtype}",
            "tokens_per_second": value,
            "times_plain": value / rate[PLAIN],
            "times_assisted": value / max(assisted),
            "prompts": done,
        }
        for way, value in rate.items()
    ]


def greedy_equality(
    paths, prompts: list[str], deadline: Deadline, tokens: int = TOKENS
) -> list[dict]:
    """Count the texts for which our chain equals transformers' plain greedy decoding, in fp32. For
    each text that differs, give the difference between the two best logits where it first differs."""
    models = load_models(paths, ChainDrafter.needs, "float32", here().type)
    equal, compared, margins = 0, 0, []
    for prompt in prompts:
        if deadline.left < 15:
            break
        given = _tokens(models, prompt)
        expected, _ = _generate(models, given, tokens)
        found, _ = _engine(models, given, tokens, "chain")
        compared += 1
        equal += found == expected
        if found != expected:
            margins.append(_margin(models, given, found, expected))
    row = {"name": "greedy output equal, float32", "equal": equal, "prompts": compared}
    return [row | {"margins": margins}]


def _margin(models: Models, given: list[int], found: list[int], expected: list[int]) -> float:
    """The difference between the module's two best logits where the texts first differ."""
    pairs = zip([*found, None], [*expected, None], strict=False)
    first = next(index for index, (one, other) in enumerate(pairs) if one != other)
    text = torch.tensor([given + expected[:first]], device=here())
    with torch.no_grad(), Sdpa(models.target.model):
        best = models.target.model(text).logits[0, -1].float().topk(2).values
    return float(best[0] - best[1])


def _tokens(models: Models, prompt: str) -> list[int]:
    return models.target.tokenizer(prompt)["input_ids"]


class Sdpa:
    """A context in which the modules use transformers' SDPA instead of our attention."""

    def __init__(self, *modules) -> None:
        self._modules = modules

    def __enter__(self) -> None:
        self._ours = [module.config._attn_implementation for module in self._modules]
        for module in self._modules:
            module.set_attn_implementation("sdpa")

    def __exit__(self, *_) -> None:
        for module, name in zip(self._modules, self._ours, strict=True):
            module.set_attn_implementation(name)


def _generate(
    models: Models, prompt: list[int], count: int, assisted: tuple | None = None
) -> tuple[list[int], float]:
    """transformers' own greedy generate. assisted: schedule and number of drafted tokens."""
    target, helpers = models.target.model, {}
    if assisted is not None:
        helpers["assistant_model"] = draft = models.part("draft").model
        kind, length = assisted
        usual = type(draft.generation_config)()
        draft.generation_config.num_assistant_tokens = length or usual.num_assistant_tokens
        draft.generation_config.num_assistant_tokens_schedule = (
            usual.num_assistant_tokens_schedule if length is None else kind
        )
    given = torch.tensor([prompt], device=here())
    with Sdpa(target, *helpers.values()):
        wait()
        began = time.perf_counter()
        output = target.generate(
            given, attention_mask=torch.ones_like(given), max_new_tokens=count,
            do_sample=False, pad_token_id=0,
            eos_token_id=sorted(models.target.end_tokens) or None, **helpers,
        )  # fmt: skip
        wait()
        seconds = time.perf_counter() - began
    return output[0, len(prompt) :].tolist(), seconds


def _engine(models: Models, prompt: list[int], count: int, key: str) -> tuple[list[int], float]:
    cls = drafter_class(key)
    options = settle_size(cls, resolve(key, cls.options, {}), models, Sampling())
    wait()
    began = time.perf_counter()
    drafter = cls.build(options, models)
    request = TextRequest(drafter, verifier("greedy"), Sampling(), prompt, count)
    steps = decode(models.target, request, recorded=False)
    written = [token for step in steps for token in step.output]
    wait()
    return written, time.perf_counter() - began
