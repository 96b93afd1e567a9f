"""The suite ``pieces``: what each piece of the GPU path brings.

The same texts are written by the engine as it is, by the engine without one piece, and by
transformers, in turn; figures are medians of the rounds. Three pairs of models: the trained one, and
two with random weights, whose drafts are almost never accepted; for those the milliseconds of a step count.
"""

import contextlib
import gc
import itertools
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial

import torch
import transformers
from transformers import StaticCache

from engine.bench.gpu.costs import LLAMA_8B, Shape
from engine.bench.gpu.end_to_end import Sdpa
from engine.bench.gpu.gpu_report import Part, attempt, measure_all, opening, write
from engine.bench.gpu.steps import random_model
from engine.bench.gpu.timing import Deadline, ceilings, here, wait
from engine.bench.gpu.without import COMPILED, PIECES
from engine.core.decode import decode
from engine.core.options import resolve
from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.fast.gpu.static_model import StaticModel
from engine.methods import drafter as drafter_class
from engine.model.language_model import LanguageModel
from engine.parts.loading import ModelPaths, Models, load_models
from engine.rules import verifier

SECONDS = 900
WARM_UP, ROUNDS = 2, 5
LENGTH = 4  # tokens that chains draft, and assisted generation
SMOLLM2 = Shape("SmolLM2-135M-shaped", 30, 576, 9, 3, 64, 1536, 49152, True)
DRAFTS = {
    SMOLLM2.name: Shape("draft", 4, 256, 4, 2, 64, 768, 49152, True),
    LLAMA_8B.name: Shape("draft", 4, 1024, 8, 4, 128, 4096, 128256, True),
}
TRAINED = "trained pair"
GREEDY, SAMPLED = Sampling(), Sampling(temperature=1.0, seed=1)
RANDOM_METHODS = (("none", GREEDY), ("chain", GREEDY), ("chain", SAMPLED))
TRAINED_METHODS = (
    *RANDOM_METHODS, ("dflash", GREEDY), ("dflash", SAMPLED), ("ddtree", GREEDY), ("dyspec", GREEDY),
    ("dyspec", SAMPLED),
)  # fmt: skip
ONLY_HOSTED = ("verdicts", "twins", "blocks")
"""The pieces that make a difference between the methods; the others concern the passes of all alike, and are measured
with ``none`` and greedy ``chain``."""


@dataclass
class Written:
    """One text. steps: their milliseconds. Ours are without the first, which reads the prompt; of transformers' only the
    mean is known, with the prompt."""

    tokens: list[int]
    seconds: float
    steps: list[float]


@dataclass
class Way:
    """A way of writing. write: a text after a prompt, with so many tokens. compiled: by torch."""

    name: str
    method: str
    write: Callable[[list[int], int], Written]
    running: Callable[[], AbstractContextManager] = nullcontext
    compiled: bool = False
    rounds: list[list[Written]] = field(default_factory=list)

    def write_all(self, prompts: list[list[int]], count: int) -> list[Written]:
        with self.running():
            return [self.write(prompt, count) for prompt in prompts]


def run_pieces(paths: ModelPaths, texts: list[str], quick: bool, json_path: str | None = None):
    """Measure, print one line for each way, and write JSON. paths: of a trained pair."""
    transformers.utils.logging.set_verbosity_error()
    deadline = Deadline(SECONDS)
    content = opening("pieces", ceilings())
    content["pieces"] = [
        {"name": piece.name, "lines": piece.lines, "replaced": piece.replaced} for piece in PIECES
    ]
    measure_all(parts(paths, texts, quick, deadline), deadline, content)
    write(json_path, content, [])
    return content


def parts(paths: ModelPaths, texts: list[str], quick: bool, deadline: Deadline) -> Iterator[Part]:
    """One part for each pair of models."""
    count, rounds = (32, 3) if quick else (128, ROUNDS)
    for dtype in ("float32",) if quick else ("float32", "bfloat16"):
        name = f"{TRAINED}, {dtype}"
        yield name, partial(_trained, paths, texts, name, dtype, count, rounds, deadline), 60
    for shape in (SMOLLM2, LLAMA_8B):
        yield shape.name, partial(_random, shape, count // 2, rounds, deadline), 60


def _trained(
    paths: ModelPaths,
    texts: list[str],
    name: str,
    dtype: str,
    count: int,
    rounds: int,
    deadline: Deadline,
) -> Iterator[dict]:
    needs = {
        role: kind
        for method, _ in TRAINED_METHODS
        for role, kind in drafter_class(method).needs.items()
    }
    models = _on_buffers(load_models(paths, needs, dtype, here().type))
    prompts = [models.target.tokenizer(text)["input_ids"] for text in texts[:2]]
    yield from measured(name, models, TRAINED_METHODS, prompts, count, rounds, deadline)


def _on_buffers(models: Models) -> Models:
    """The same models as on CUDA, also on a CPU."""

    def static(part):
        plain = isinstance(part, LanguageModel) and not isinstance(part, StaticModel)
        return StaticModel(part.model, part.tokenizer, part.name) if plain else part

    parts = {role: static(part) for role, part in models.parts.items()}
    return Models(static(models.target), parts, models.folders)


def _random(shape: Shape, count: int, rounds: int, deadline: Deadline, prompt: int = 256):
    torch.manual_seed(0)
    models = Models(random_model(shape), {"draft": random_model(DRAFTS[shape.name])})
    prompts = [torch.randint(shape.vocabulary, (prompt,)).tolist()]
    try:
        yield from measured(shape.name, models, RANDOM_METHODS, prompts, count, rounds, deadline)
    finally:
        del models
        gc.collect()
        if here().type == "cuda":
            torch.cuda.empty_cache()


def measured(
    pair: str, models: Models, methods, prompts: list[list[int]], count: int, rounds: int, deadline
) -> Iterator[dict]:
    """One row for each way. Ways that fail, and those for which no time is left, have a row that says so.

    What torch compiles comes last: its own graphs free the workspaces of cuBLAS on all streams, and our
    graphs, which contain the addresses of theirs, must not be replayed after that.
    """
    ours, others = [*_ours(models, methods)], [*_peers(models)]
    whole: dict[str, Way] = {}
    for compiled in (False, True):
        ways = [way for way in (*ours, *others) if way.compiled == compiled]
        ways, problems = prepared(pair, ways, prompts, count, deadline)
        yield from problems
        whole |= {way.method: way for way in ways if way.name == way.method}
        yield from timed_in_turn(pair, ways, whole, prompts, count, rounds, deadline)


def prepared(
    pair: str, ways: list[Way], prompts: list[list[int]], count: int, deadline
) -> tuple[list[Way], list[dict]]:
    """The ways that have written these texts before, so that nothing is left to be compiled or captured; and rows for
    the others."""
    ready, problems = [], []
    for way in ways:
        began = time.perf_counter()
        problem = "no time was left"
        if deadline.left > 20:
            _, problem = attempt(
                lambda way=way: [way.write_all(prompts, count) for _ in range(WARM_UP)]
            )
        print(f"  {pair}: {way.name} prepared in {time.perf_counter() - began:.1f} s", flush=True)
        if problem is None:
            ready.append(way)
        else:
            problems.append({"name": f"{pair}, {way.name}", "problem": problem})
    return ready, problems


def timed_in_turn(
    pair: str,
    ways: list[Way],
    whole: dict[str, Way],
    prompts: list[list[int]],
    count: int,
    rounds: int,
    deadline,
) -> Iterator[dict]:
    """Whole rounds, as many as there is time for. whole: by method, what the others are compared with."""
    for _ in range(rounds):
        if deadline.left < 10:
            break
        for way in ways:
            way.rounds.append(way.write_all(prompts, count))
    for way in ways:
        if way.rounds:
            yield _row(pair, way, whole.get(way.method))


def _ours(models: Models, methods) -> Iterator[Way]:
    for method, sampling in methods:
        name = method if sampling.greedy else f"{method}, sampled"
        yield Way(name, name, partial(_written, models, method, sampling))
    for piece in PIECES:
        other = None
        for method, sampling in methods:
            usual = (method, sampling) in RANDOM_METHODS[:2]
            if piece.serves(method) and (usual or piece.name in ONLY_HOSTED):
                name = method if sampling.greedy else f"{method}, sampled"
                other = other or piece.without(models)
                yield Way(
                    f"{name}, {piece.absence}",
                    name,
                    partial(_written, other, method, sampling),
                    piece.running,
                    piece.name == COMPILED,
                )


def _written(
    models: Models, method: str, sampling: Sampling, prompt: list[int], count: int
) -> Written:
    cls = drafter_class(method)
    given = {} if cls.size_option is None else {cls.size_option: cls.usual_size}
    if any(option.name == "stop_below" for option in cls.options):
        given["stop_below"] = 0.0
    rule = verifier("greedy" if sampling.greedy else "rejection")
    wait()
    began = time.perf_counter()
    drafter = cls.build(resolve(method, cls.options, given), models)
    request = TextRequest(drafter, rule, sampling, prompt, count)
    tokens, times = [], []
    for step in decode(models.target, request, recorded=False):
        times.append(time.perf_counter())
        tokens += step.output
    wait()
    seconds = time.perf_counter() - began
    return Written(tokens, seconds, [1000 * (b - a) for a, b in itertools.pairwise(times)])


def _peers(models: Models) -> Iterator[Way]:
    longest = 0
    cache: list[StaticCache] = []

    def static(prompt: list[int], count: int) -> Written:
        nonlocal longest
        if not cache or longest < len(prompt) + count:
            longest = 128 * -(-(len(prompt) + count) // 128)
            cache[:] = [StaticCache(models.target.model.config, longest)]
        cache[0].reset()
        return _generated(models, prompt, count, past_key_values=cache[0])

    yield Way("none, transformers", "none", partial(_generated, models))
    yield Way("none, transformers, static cache, compiled", "none", static, compiled=True)
    draft = models.part("draft").model
    draft.generation_config.num_assistant_tokens = LENGTH
    draft.generation_config.num_assistant_tokens_schedule = "constant"
    draft.generation_config.assistant_confidence_threshold = 0.0
    yield Way(
        "chain, transformers, assisted",
        "chain",
        partial(_generated, models, assistant_model=draft),
    )


def _generated(models: Models, prompt: list[int], count: int, **more: object) -> Written:
    """transformers' own greedy generate; the target's passes are its steps."""
    target = models.target.model
    given = torch.tensor([prompt], device=here())
    modules = [target, *([more["assistant_model"]] if "assistant_model" in more else [])]
    with Sdpa(*modules), _counted(target, "past_key_values" not in more) as passes:
        wait()
        began = time.perf_counter()
        output = target.generate(
            given, attention_mask=torch.ones_like(given), max_new_tokens=count, do_sample=False,
            pad_token_id=0, eos_token_id=sorted(models.target.end_tokens) or None, **more,
        )  # fmt: skip
        wait()
        seconds = time.perf_counter() - began
    tokens = output[0, len(prompt) :].tolist()
    return Written(tokens, seconds, [1000 * seconds / (len(passes) or len(tokens))])


@contextlib.contextmanager
def _counted(module, hooked: bool) -> Iterator[list[None]]:
    """A context that counts the module's passes, unless it is compiled: a hook would cut the compiled graph in two."""
    passes: list[None] = []
    hook = None
    if hooked:
        hook = module.lm_head.register_forward_hook(lambda *_: passes.append(None))
    try:
        yield passes
    finally:
        if hook is not None:
            hook.remove()


def _row(pair: str, way: Way, whole: Way | None) -> dict:
    def step(texts: list[Written]) -> float:
        return statistics.mean(each for text in texts for each in text.steps)

    def rate(texts: list[Written]) -> float:
        return sum(len(text.tokens) for text in texts) / sum(text.seconds for text in texts)

    def median(way: Way, figure: Callable[[list[Written]], float]) -> float:
        return statistics.median(map(figure, way.rounds))

    row = {
        "name": f"{pair}, {way.name}",
        "step_ms": median(way, step),
        "tokens_per_second": median(way, rate),
    }
    if whole is not None and whole.rounds:
        rounds = [*zip(way.rounds, whole.rounds, strict=False)]
        row["times_whole_step"] = statistics.median(step(a) / step(b) for a, b in rounds)
        row["share_of_whole"] = statistics.median(rate(a) / rate(b) for a, b in rounds)
        row["same_text"] = [text.tokens for text in way.rounds[0]] == [
            text.tokens for text in whole.rounds[0]
        ]
    steps = [step(texts) for texts in way.rounds]
    return row | {"spread": max(steps) / min(steps) - 1, "rounds": len(way.rounds)}
