"""`python -m engine bench --suite reasoning`: arithmetic problems, solved by the large model, the small one, and both
together.

The problems come from the arithmetic generator and were held out from training. They are solved greedily, and the suite
measures the share of right results and the engine time. The contestants take turns on each problem.
"""

import itertools
import random

from engine.bench.contestants import Ours, chain, plain
from engine.bench.report import Report, figures, table
from engine.bench.suite import Cards, Plan, Prompt, Result, Suite, by_contestant, sums
from engine.methods import drafters
from engine.methods.shared.reasoning import ENDINGS
from engine.parts.loading import ModelPaths, Models, load_models
from engine.rules import verifier
from engine.training.answers import Pair, same_result
from engine.training.generators import arithmetic, is_held_out
from engine.training.generators.words import Vocabulary

KINDS = {"steps": arithmetic.in_steps, "word problems": arithmetic.story}
SUMS, QUICK_SUMS = 40, 8  # of each kind
SPARE = 24  # tokens beyond the right answer's length
SMALL = "small alone"
COUNTERS = {
    "milliseconds": lambda step: sum(step.milliseconds.values()) + step.prefill_milliseconds
}


def measure(paths: ModelPaths, workloads: Cards, quick: bool) -> Report:
    """Measure, and return the report, with a row for each contestant. right: problems with a right result. seconds:
    engine time, prompts included. small_tokens: tokens that the small model wrote."""
    models = load_models(paths, chain().needs, "float32", "cpu")
    answers = dict(held_out_sums(QUICK_SUMS if quick else SUMS))
    size = lambda text: len(models.target.tokenizer(text)["input_ids"])
    prompts = [
        Prompt("sums", ask, models.target.tokenizer(ask)["input_ids"], size(answer) + SPARE)
        for ask, answer in answers.items()
    ]

    def is_right(result: Result) -> bool:
        tokens, ask = result.writing.tokens, result.prompt.name
        said = models.target.tokenizer.decode(tokens, skip_special_tokens=True)
        return same_result(ask, answers[ask], said)

    plan = Plan(prompts=len(prompts), rounds=1, tokens=SPARE)
    results = Suite(contestants(models), prompts, plan, COUNTERS, warm_up="once").run()
    rows = []
    for name, count in sums(results, by_contestant).items():
        small = name == SMALL
        row = {
            "name": name,
            "sums": count["texts"],
            "right": sum(is_right(result) for result in results if result.contestant == name),
            "tokens": count["tokens"],
            "small_tokens": count["tokens" if small else "accepted"],
            "target_passes": 0 if small else count["calls"],
            "seconds": count["milliseconds"] / 1000,
        }
        more = figures(row, share="right / sums", by_the_small="small_tokens / tokens")
        rows.append(row | more | {"ms_a_sum": 1000 * row["seconds"] / row["sums"]})
    columns = "name right share:.0% seconds:.2f ms_a_sum:.0f passes=target_passes by_the_small:.0%"
    text = f"{len(prompts)} held-out sums, greedy; passes: of the large model"
    return Report(f"{table(rows, columns)}\n{text}", rows)


def contestants(both: Models) -> list[Ours]:
    """Contestants for each model alone, and for each drafter that lets the small model write whole steps of
    reasoning."""
    small = Models(both.part("draft"), both.parts)
    together = [
        cls
        for cls in drafters().values()
        if any(tuple(option.choices or ()) == tuple(ENDINGS) for option in cls.options)
    ]
    return [
        Ours(plain(), both, "large alone", {}),
        Ours(plain(), small, SMALL, {}),
        *(Ours(cls, both, "", {}, rule=verifier(cls.default_greedy_verifier)) for cls in together),
    ]


def held_out_sums(count: int) -> list[Pair]:
    """``count`` problems of each kind that were held out from training, as pairs of prompt and answer."""
    sums_ = []
    for name, make in KINDS.items():
        rng = random.Random(f"reasoning/{name}")
        pairs = (make(rng, Vocabulary()) for _ in itertools.count())
        sums_ += itertools.islice((pair for pair in pairs if is_held_out(pair[0])), count)
    return sums_
