"""The suite ``pieces``: what each piece of the GPU path brings.

The same texts are written by the engine as it is, by the engine without one piece, and by
transformers, in turn; figures are medians of the rounds. Three pairs of models: the trained one, and
two with random weights, whose drafts are almost never accepted; for those the milliseconds of a step count.
"""

import gc
import statistics
import time
from collections.abc import Iterator, Sequence
from functools import partial

import torch
from transformers import StaticCache

from engine.bench.contestants import Ours, Way, chain, own_options, plain
from engine.bench.gpu.costs import LLAMA_8B, Shape
from engine.bench.gpu.parts import Part, attempt, measure_parts
from engine.bench.gpu.steps import random_model
from engine.bench.gpu.timing import Deadline, here
from engine.bench.gpu.without import COMPILED, PIECES, has_twin
from engine.bench.peers import Assisted, Generate, constant
from engine.bench.report import Report
from engine.bench.suite import Cards, Plan, Prompt, Suite, in_turn
from engine.core.drafter import Drafter
from engine.core.sampling import Sampling
from engine.fast.gpu.static_model import StaticModel
from engine.methods import drafters
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
ONLY_HOSTED = ("verdicts", "twins", "blocks")
"""The pieces that make a difference between the methods; the others concern the passes of all alike, and are measured
with plain decoding and the greedy chain."""

Methods = Sequence[tuple[type[Drafter], Sampling]]


def usual() -> Methods:
    """What pairs with random weights are measured with."""
    return (plain(), GREEDY), (chain(), GREEDY), (chain(), SAMPLED)


def hosted() -> Methods:
    """What the trained pair is measured with: every drafter that has a twin on the device; sampled where it draws."""
    twins = [cls for cls in drafters().values() if has_twin(cls) and cls is not chain()]
    more = [(cls, sampling) for cls in twins for sampling in (GREEDY, SAMPLED)]
    draws = [each for each in more if each[1].greedy or each[0].kinds(SAMPLED) != {"one_hot"}]
    return *usual(), *draws


def measure(paths: ModelPaths, workloads: Cards, quick: bool) -> Report:
    """quick: fewer and shorter texts. paths: of a trained pair."""
    pieces = [
        {"name": piece.name, "lines": piece.lines, "replaced": piece.replaced} for piece in PIECES
    ]
    some = partial(parts, paths, in_turn(workloads), quick)
    return measure_parts("pieces", SECONDS, some, pieces=pieces)


def parts(
    paths: ModelPaths, texts: list[str], quick: bool, found: object, deadline: Deadline
) -> Iterator[Part]:
    """One part for each pair of models."""
    count, rounds = (32, 3) if quick else (128, ROUNDS)
    for dtype in ("float32",) if quick else ("float32", "bfloat16"):
        name, plan = f"{TRAINED}, {dtype}", Plan(2, rounds, count)
        yield name, partial(_trained, paths, texts, name, dtype, plan, deadline), 60
    for shape in (SMOLLM2, LLAMA_8B):
        yield shape.name, partial(_random, shape, Plan(1, rounds, count // 2), deadline), 60


def _trained(
    paths: ModelPaths, texts: list[str], name: str, dtype: str, plan: Plan, deadline: Deadline
) -> Iterator[dict]:
    needs = {role: kind for cls, _ in hosted() for role, kind in cls.needs.items()}
    models = _on_buffers(load_models(paths, needs, dtype, here().type))
    prompts = [models.target.tokenizer(text)["input_ids"] for text in texts[: plan.prompts]]
    yield from measured(name, models, hosted(), prompts, plan, deadline)


def _on_buffers(models: Models) -> Models:
    """The same models as on CUDA, also on a CPU."""

    def static(part):
        plain = isinstance(part, LanguageModel) and not isinstance(part, StaticModel)
        return StaticModel(part.model, part.tokenizer, part.name) if plain else part

    parts = {role: static(part) for role, part in models.parts.items()}
    return Models(static(models.target), parts, models.folders)


def _random(shape: Shape, plan: Plan, deadline: Deadline, prompt: int = 256) -> Iterator[dict]:
    torch.manual_seed(0)
    models = Models(random_model(shape), {"draft": random_model(DRAFTS[shape.name])})
    prompts = [torch.randint(shape.vocabulary, (prompt,)).tolist()]
    try:
        yield from measured(shape.name, models, usual(), prompts, plan, deadline)
    finally:
        del models
        gc.collect()
        if here().type == "cuda":
            torch.cuda.empty_cache()


def measured(
    pair: str,
    models: Models,
    methods: Methods,
    token_lists: Sequence[list[int]],
    plan: Plan,
    deadline: Deadline,
) -> Iterator[dict]:
    """One row for each way. Ways that fail, and those for which no time is left, have a row that says so.

    What torch compiles comes last: its own graphs free the workspaces of cuBLAS on all streams, and our
    graphs, which contain the addresses of theirs, must not be replayed after that.
    """
    prompts = [Prompt(pair, str(place), result) for place, result in enumerate(token_lists)]
    every, whole = [*_ours(models, methods), *_peers(models)], {}
    for compiled in (False, True):
        ways, problems = prepared(
            pair, [way for way in every if way.compiled == compiled], prompts, plan, deadline
        )
        yield from problems
        results = Suite(ways, prompts, plan, enough=lambda: deadline.left < 10).run()
        rounds: dict[str, list] = {way.name: [] for way in ways}
        for number in range(plan.rounds):
            round_results = [name for name in results if name.round == number]
            if len(round_results) == len(ways) * len(prompts):  # a whole round
                for name, written in rounds.items():
                    written.append(
                        [result.writing for result in round_results if result.contestant == name]
                    )
        whole |= {way.name: rounds[way.name] for way in ways if way.name == way.method}
        for way in (way for way in ways if rounds[way.name]):
            yield _row(f"{pair}, {way.name}", rounds[way.name], whole.get(way.method))


def prepared(
    pair: str, ways: list[Way], prompts: Sequence[Prompt], plan: Plan, deadline: Deadline
) -> tuple[list[Way], list[dict]]:
    """The ways that have written these texts before, so that nothing is left to be compiled or captured; and rows for
    the others."""
    ready, problems = [], []
    for way in ways:
        began = time.perf_counter()
        problem = "no time was left"
        if deadline.left > 20:
            once = Suite([way], prompts, Plan(plan.prompts, WARM_UP, plan.tokens))
            _, problem = attempt(once.run)
        print(f"  {pair}: {way.name} prepared in {time.perf_counter() - began:.1f} s", flush=True)
        if problem is None:
            ready.append(way)
        else:
            problems.append({"name": f"{pair}, {way.name}", "problem": problem})
    return ready, problems


def _ours(models: Models, methods: Methods) -> Iterator[Way]:
    def writing(cls: type[Drafter], sampling: Sampling, models: Models, absence: str = "") -> Ours:
        options = {} if cls.size_option is None else {cls.size_option: cls.usual_size}
        options |= own_options(cls, {"stop_below": 0.0})
        name = (cls.key if sampling.greedy else f"{cls.key}, sampled") + absence
        rule = verifier("greedy" if sampling.greedy else "rejection")
        return Ours(cls, models, name, options, sampling, rule)

    for method in methods:
        yield Way(writing(*method, models))
    for piece in PIECES:
        served = [
            method
            for method in methods
            if piece.serves(method[0]) and (method in usual()[:2] or piece.name in ONLY_HOSTED)
        ]
        without = piece.without(models) if served else models
        for method in served:
            contestant = writing(*method, without, f", {piece.absence}")
            name = contestant.name.removesuffix(f", {piece.absence}")
            yield Way(contestant, name, piece.running, piece.name == COMPILED)


class OnStaticCache(Generate):
    """On one cache of a fixed size, which makes transformers compile the pass."""

    counted = False
    _longest = 0

    def prepare(self, length):
        if self._longest < length:
            self._longest = 128 * -(-length // 128)
            self._cache = StaticCache(self.module.config, self._longest)
        self._cache.reset()
        return {"past_key_values": self._cache}


def _peers(models: Models) -> Iterator[Way]:
    module, ends, draft = models.target.model, models.target.end_tokens, models.part("draft").model
    none = plain().key
    yield Way(Generate(f"{none}, transformers", "plain", module, ends), none)
    static = f"{none}, transformers, static cache, compiled"
    yield Way(OnStaticCache(static, "plain", module, ends), none, compiled=True)
    schedule = constant(LENGTH) | {"assistant_confidence_threshold": 0.0}
    name = f"{chain().key}, transformers, assisted"
    yield Way(Assisted(name, module, ends, draft, schedule), chain().key)


def _row(name: str, own: list[list], whole: list[list] | None) -> dict:
    """own, whole: the writings of each round."""

    def step(texts: list) -> float:
        return statistics.mean(each for text in texts for each in text.step_milliseconds)

    def rate(texts: list) -> float:
        return sum(len(text.tokens) for text in texts) / sum(text.seconds for text in texts)

    row = {
        "name": name,
        "step_ms": statistics.median(map(step, own)),
        "tokens_per_second": statistics.median(map(rate, own)),
    }
    if whole:
        pairs = [*zip(own, whole, strict=False)]
        row["times_whole_step"] = statistics.median(step(a) / step(b) for a, b in pairs)
        row["share_of_whole"] = statistics.median(rate(a) / rate(b) for a, b in pairs)
        row["same_text"] = [text.tokens for text in own[0]] == [text.tokens for text in whole[0]]
    steps = [step(texts) for texts in own]
    return row | {"spread": max(steps) / min(steps) - 1, "rounds": len(own)}
