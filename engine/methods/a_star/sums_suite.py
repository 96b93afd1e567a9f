"""`python -m engine bench --suite sums`: how many worked sums come out right, for how many tokens.

The prompts are held-out sums of the generator. Greedy decoding and one drawn text are the baselines. Two methods spend
more tokens with the help of the step scorer: A*-Decoding, and the best of several drawn texts, by the score at its end.
There are so many of these texts that together they have about as many tokens as A*-Decoding draws.
"""

import itertools
import math
import random
from dataclasses import replace
from functools import partial

from engine.bench.contestants import plain
from engine.bench.report import Report, table
from engine.bench.suite import Cards
from engine.core.options import resolve
from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.loops import run_loop
from engine.methods.a_star.drafter import AStarDrafter
from engine.methods.shared.reasoning import Steps
from engine.parts.loading import ModelPaths, Models, load_models
from engine.rules import verifier
from engine.training.answers import same_result
from engine.training.generators import arithmetic, is_held_out
from engine.training.generators.words import Vocabulary

SUMS, QUICK_SUMS = 16, 4
LONGEST = 200  # tokens of a worked sum
TEMPERATURES = (1.5,)
APART = 7_919  # difference between the seeds of two texts after one prompt


def measure(paths: ModelPaths, workloads: Cards, quick: bool) -> Report:
    """Run the suite. A row of the report has ``solved``, the share of sums whose result is right, and ``tokens``, the
    mean number of tokens drawn for a sum."""
    models = load_models(paths, AStarDrafter.needs, "float32", "cpu")
    sums = held_out(QUICK_SUMS if quick else SUMS)
    rows = [_row(models, sums, "greedy", 0.0, partial(_best, count=1))]
    for temperature in TEMPERATURES:
        rows.append(_row(models, sums, "one text", temperature, partial(_best, count=1)))
        a_star_row = _row(models, sums, "A*", temperature, _searched)
        count = math.ceil(a_star_row["tokens"] / rows[-1]["tokens"])
        best = partial(_best, count=count)
        rows += [_row(models, sums, f"best of {count}", temperature, best), a_star_row]
    note = f"{len(sums)} held-out sums; tokens: drawn for a sum, the mean"
    return Report(f"{table(rows, 'name temperature solved:.0% tokens:.0f')}\n{note}", rows)


def held_out(count: int) -> list[tuple[str, str]]:
    """Return ``count`` prompts, with their worked sums, that no training has read."""
    rng = random.Random("searched sums")
    pairs = (arithmetic.in_steps(rng, Vocabulary()) for _ in itertools.count())
    return [*itertools.islice((pair for pair in pairs if is_held_out(pair[0])), count)]


def _row(models: Models, asked, name: str, temperature: float, solve) -> dict:
    solved = tokens = 0
    for seed, (prompt, answer) in enumerate(asked):
        read = models.target.tokenizer(prompt)["input_ids"]
        text, drawn = solve(models, read, Sampling(temperature, seed=seed))
        said = models.target.tokenizer.decode(text, skip_special_tokens=True)
        solved += same_result(prompt, answer, said)
        tokens += drawn
    means = {"solved": solved / len(asked), "tokens": tokens / len(asked)}
    return {"name": name, "temperature": temperature} | means


def _written(models: Models, made, prompt: list[int], sampling: Sampling) -> list[int]:
    rule = verifier("sampler_match")
    request = TextRequest(made, rule, sampling, prompt, LONGEST)
    return [t for step in run_loop(models.target, request, recorded=False) for t in step.output]


def _best(
    models: Models, prompt: list[int], sampling: Sampling, count: int
) -> tuple[list[int], int]:
    """Draw ``count`` texts. Return the text that the scorer rates best at its end, and the number of tokens of all
    texts together."""
    texts = [
        _written(models, plain()({}), prompt, replace(sampling, seed=sampling.seed + APART * at))
        for at in range(count)
    ]
    best = texts[0] if count == 1 else max(texts, key=partial(_score, models, prompt))
    return best, sum(map(len, texts))


def _score(models: Models, prompt: list[int], text: list[int]) -> float:
    """Return the chance that all steps of a text are right, by the step scorer."""
    session = models.target.session(len(prompt) + len(text))
    session.prefill(prompt[:-1])
    logits, _ = session.feed([*prompt[-1:], *text[:-1]], range(-1, len(text) - 1))
    logs = logits.float().log_softmax(-1)[range(len(text)), text].tolist()
    steps, begun = Steps(models.target.tokenizer, "line", models.target.end_tokens), 0
    for at in range(1, len(text)):
        if steps.ended(text[begun:at]):
            begun = at
    return models.part("a_star").right(logs, begun)


def _searched(models: Models, prompt: list[int], sampling: Sampling) -> tuple[list[int], int]:
    drafter = AStarDrafter.build(resolve("a_star", AStarDrafter.options, {}), models)
    text = _written(models, drafter, prompt, sampling)
    return text, len(drafter.chances)
