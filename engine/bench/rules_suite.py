"""`python -m engine bench --suite rules`: how many tokens of the same drafts each rule accepts, at temperature 1.

Texts are drawn after prompts of every workload, with several seeds, under the first rule of each drafter. At each step
of these texts, every rule judges the same draft several times, each time with new random numbers. Two means over the
texts are reported, each with its standard error: the tokens per step, and how far they exceed those under the first
rule. The suite measures counts, not times.
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from engine.bench.contestants import Ours, able
from engine.bench.report import Report, table
from engine.bench.suite import Cards, Plan, choose
from engine.core.chance import JudgeChance
from engine.core.sampling import Sampling
from engine.core.step import Step
from engine.core.threads import torch_threads
from engine.methods import drafters
from engine.parts.loading import ModelPaths, load_models
from engine.rules import Case, Verifier, verifier, verifiers

FULL, QUICK = Plan(prompts=2, rounds=3, tokens=64), Plan(prompts=1, rounds=2, tokens=32)
"""How much is measured. Each round draws its texts with another seed."""
JUDGED = 8
"""The number of times that each rule judges the draft of a step."""
LINES = (
    ("chain", {"length": 4}, ("rejection", "block")),
    ("multi_chain", {"chains": 2, "length": 4}, ("rejection", "spectr", "greedy_multipath")),
    ("rsd_c", {"branching": "2-2-1"}, ("rejection", "traversal")),
    ("omnidraft", {"milliseconds": 0.0}, ("rejection",)),
    ("bytewise", {}, ("rejection", "bytewise")),
)
"""Each drafter with its options and its rules. A token of ``bytewise`` has no law of its own, so rejection sampling
judges it as a fixed guess."""


def measure(paths: ModelPaths, workloads: Cards, quick: bool) -> Report:
    """Measure, and return the report, with a row for each drafter and rule.

    rate: tokens per step. error: its standard error. gain, gain_error: the gain over the first rule, as a share of the
    first rule's rate, and its standard error; None for the first rule."""
    plan, named = QUICK if quick else FULL, [key for key, *_ in LINES]
    classes, needs = able([cls for key, cls in drafters().items() if key in named], paths)
    usable = {cls.key: cls for cls in classes}
    models = load_models(paths, needs, "float32", "cpu")
    prompts, rows = choose(models, workloads, plan), []
    for key, options, names in LINES:
        rules = [verifier(name) for name in names if name in verifiers()]
        rates = defaultdict(list)
        for seed in range(plan.rounds) if key in usable else ():
            sampling = Sampling(1.0, seed=seed)
            ours = Ours(usable[key], models, "", options, sampling, rules[0], recorded=True)
            with torch_threads(models.target.torch_threads):
                for prompt in prompts:
                    steps = list(ours.steps(prompt.tokens, plan.tokens))
                    for rule in rules:
                        rates[rule.key].append(tokens_a_step(steps, rule, sampling))
        rows += _rows(key, rates)
    columns = "drafter rule rate:.3f ±=error:.3f gain:+.1% ±=gain_error:.1%"
    note = f"rate: tokens a step, in {len(prompts) * plan.rounds} texts of {plan.tokens} tokens. ±: a standard error."
    return Report(f"{table(rows, columns)}\n{note}", rows)


def tokens_a_step(steps: Sequence[Step], rule: Verifier, sampling: Sampling) -> float:
    """The mean number of tokens per step under this rule: the accepted tokens, and the final token that the target
    chooses."""
    chance, accepted = JudgeChance(sampling.seed), 0
    for step in steps:
        case = Case(step.tree, step.p, step.logits, sampling, step.position, chance)
        accepted += sum(len(rule.judge(case).accepted) for _ in range(JUDGED))
    return 1 + accepted / JUDGED / len(steps)


def _rows(drafter: str, rates: Mapping[str, Sequence[float]]) -> Iterator[dict]:
    first: Sequence[float] = ()
    for rule, own in rates.items():
        row = {"drafter": drafter, "rule": rule, "rate": statistics.mean(own), "error": _error(own)}
        if first:
            more = [rate - first_rate for rate, first_rate in zip(own, first, strict=True)]
            base = statistics.mean(first)
            yield row | {"gain": statistics.mean(more) / base, "gain_error": _error(more) / base}
        else:
            first = own
            yield row | {"gain": None, "gain_error": None}


def _error(values: Sequence[float]) -> float:
    """The standard error of the mean."""
    return statistics.stdev(values) / math.sqrt(len(values))
