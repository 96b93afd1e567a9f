"""`python -m engine bench --suite particles`: how much of the vocabulary is checked by the constraint, how many passes
of the target the weighed texts take, and how well they estimate the chance of a valid text.

The decoder ``awrs`` writes texts at temperature 1, drawn by the target itself or by the draft model. The texts are
documents of two schemas: one that the prompt calls for, and one that it does not call for. The mean weight of a set of
texts estimates, without bias, the chance that a text of the target follows the schema. Where this chance is tiny,
single weights differ by many orders of magnitude; the scatter of the log of the mean weight shows by how much.
"""

import itertools
import json
import statistics

from engine.bench.report import Report, table
from engine.bench.suite import Cards, Plan, choose
from engine.chat.json_schema import JsonSchema
from engine.core.options import resolve
from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.loops import run_loop
from engine.methods.awrs.drafter import AwrsDrafter
from engine.methods.awrs.particles import log_mean
from engine.parts.loading import ModelPaths, Models, load_models
from engine.rules import verifier

FULL, QUICK = Plan(prompts=1, rounds=6, tokens=40), Plan(prompts=1, rounds=3, tokens=40)
COUNTS, QUICK_COUNTS = (1, 8), (1, 4)
LENGTHS = {"target": 0, "draft": 4}
CALLED_FOR = "Write 3 JSON records with id, name, colour.\n"
TEXT = {"type": "string", "maxLength": 12}
FIELDS = {
    "called for": {
        "id": {"type": "integer", "minimum": 1, "maximum": 9},
        "name": TEXT,
        "colour": TEXT,
    },
    "another": {
        "colour": {"enum": ["red", "green", "blue"]},
        "count": {"type": "integer", "minimum": 0, "maximum": 9},
    },
}


def measure(paths: ModelPaths, workloads: Cards, quick: bool) -> Report:
    """Run the suite. A row of the report has these entries: texts: the number of texts in a set. tested: tokens that
    the schema was asked about, per token of the texts. share: ``tested`` as a share of the vocabulary. passes: passes
    of the target per set. scatter: the standard deviation of the log of the mean weight between sets, averaged over
    prompts."""
    models = load_models(paths, AwrsDrafter.may_use(), "float32", "cpu")
    plan = QUICK if quick else FULL
    uncalled = choose(models, {"template": workloads["template"]}, plan)
    prompts = {
        "called for": [models.target.tokenizer(CALLED_FOR)["input_ids"]],
        "another": [prompt.tokens for prompt in uncalled],
    }
    rows = []
    for schema, drawn, count in itertools.product(
        prompts, LENGTHS, QUICK_COUNTS if quick else COUNTS
    ):
        sets = [
            [_set(models, schema, tokens, plan, seed, count, drawn) for seed in range(plan.rounds)]
            for tokens in prompts[schema]
        ]
        every = [run for of_prompt in sets for run in of_prompt]
        tested = sum(run.checks for run in every) / sum(run.written for run in every)
        passes = statistics.mean(run.passes()["target"] for run in every)
        scatters = [
            statistics.stdev(log_mean(run.particles) for run in of_prompt) for of_prompt in sets
        ]
        rows.append(
            {"schema": schema, "drawn_by": drawn, "texts": count, "tested": tested}
            | {"share": tested / models.target.vocab_size, "passes": passes}
            | {"scatter": statistics.mean(scatters)}
        )
    note = "tested: for a token of the texts. passes: of the target, for a set. scatter: of the log of the mean weight, between sets."
    columns = "schema drawn_by texts tested:.1f share:.2%  passes:.1f scatter:.2f"
    return Report(f"{table(rows, columns)}\n{note}", rows)


def _set(
    models: Models, schema: str, tokens: list[int], plan: Plan, seed: int, count: int, drawn: str
) -> AwrsDrafter:
    """Write one set of texts; return the decoder, which holds the texts and their weights."""
    target, fields = models.target, FIELDS[schema]
    held = {"type": "object", "properties": fields, "required": [*fields]}
    held["additionalProperties"] = False
    options = resolve("awrs", AwrsDrafter.options, {"texts": count, "length": LENGTHS[drawn]})
    decoder = AwrsDrafter.build(options, models)
    request = TextRequest(
        decoder,
        verifier("rejection"),
        Sampling(1.0, seed=seed),
        tokens,
        plan.tokens,
        constraint=JsonSchema(
            json.dumps(held), target.tokenizer, target.vocab_size, target.end_tokens
        ),
    )
    for _ in run_loop(target, request, recorded=False):
        pass
    return decoder
