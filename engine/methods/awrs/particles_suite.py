"""`python -m engine bench --suite particles`: how much of the vocabulary is asked about, and what several weighed texts tell of
the chance of a valid text.

Documents of one small schema after prompts of the template workload, at temperature 1, with the draft model. The mean weight of
each set of texts estimates, without bias, the chance that a text of the target follows the schema. Where that chance is tiny,
single weights lie many orders of magnitude apart; the scatter of the logarithm says how far.
"""

import json
import math
import statistics
from functools import partial

from engine.bench.contestants import chain
from engine.bench.report import Report, table
from engine.bench.suite import Cards, Plan, choose
from engine.chat.json_schema import JsonSchema
from engine.core.options import resolve
from engine.core.sampling import Sampling
from engine.methods.awrs.particles import Particle, Writing, write
from engine.parts.loading import ModelPaths, load_models

FULL, QUICK = Plan(prompts=2, rounds=5, tokens=40), Plan(prompts=1, rounds=3, tokens=40)
COUNTS, QUICK_COUNTS = (1, 4, 16), (1, 4)
FIELDS = {
    "colour": {"enum": ["red", "green", "blue"]},
    "count": {"type": "integer", "minimum": 0, "maximum": 9},
}
SCHEMA = {
    "type": "object",
    "properties": FIELDS,
    "required": [*FIELDS],
    "additionalProperties": False,
}


def measure(paths: ModelPaths, workloads: Cards, quick: bool) -> Report:
    """In a row: texts: of a set. tested: tokens that the schema was asked about, for a token of the text. share: the same as a
    share of the vocabulary. scatter: standard deviation of the log of the mean weight between sets, the mean over prompts."""
    models = load_models(paths, chain().needs, "float32", "cpu")
    target, cls, plan = models.target, chain(), QUICK if quick else FULL
    options = resolve(cls.key, cls.options, {"length": 4})
    schema = partial(
        JsonSchema, json.dumps(SCHEMA), target.tokenizer, target.vocab_size, target.end_tokens
    )
    prompts = choose(models, {"template": workloads["template"]}, plan)
    rows = []
    for count in QUICK_COUNTS if quick else COUNTS:
        sets = [
            [
                write(
                    Writing(
                        target,
                        partial(cls.build, options, models),
                        schema,
                        Sampling(1.0, seed=seed),
                        prompt.tokens,
                        plan.tokens,
                    ),
                    count,
                )
                for seed in range(plan.rounds)
            ]
            for prompt in prompts
        ]
        texts = [text for of_prompt in sets for one in of_prompt for text in one]
        tested = sum(text.checks for text in texts) / sum(len(text.tokens) for text in texts)
        scatters = [statistics.stdev(map(_log_mean, of_prompt)) for of_prompt in sets]
        rows.append(
            {"texts": count, "tested": tested, "share": tested / target.vocab_size}
            | {"scatter": statistics.mean(scatters)}
        )
    told = "tested: for a token of the text. scatter: of the log of the mean weight, between sets of texts."
    return Report(f"{table(rows, 'texts tested:.1f share:.2%  scatter:.2f')}\n{told}", rows)


def _log_mean(texts: list[Particle]) -> float:
    most = max(text.log_weight for text in texts)
    mean = statistics.mean(math.exp(text.log_weight - most) for text in texts)
    return most + math.log(mean)
