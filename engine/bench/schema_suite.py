"""`python -m engine bench --suite schema`: the steps saved by the tokens that a JSON schema forces.

Every prompt of the template workload is answered greedily: with the schema by one record, without it
by as many tokens. Counts, not times, so one round is enough.
"""

import json
from dataclasses import replace

from engine.bench.contestants import Ours, chain, plain
from engine.bench.report import Report, figures, table
from engine.bench.suite import Cards, Plan, Suite, choose, sums
from engine.chat.json_schema import JsonSchema
from engine.parts.loading import ModelPaths, load_models

FULL, QUICK = Plan(prompts=48, rounds=1, tokens=64), Plan(prompts=8, rounds=1, tokens=64)
SHORT = {"type": "string", "maxLength": 12}
NUMBER = {"type": "integer", "minimum": 0, "maximum": 99}
FIELDS = {"name": SHORT, "count": NUMBER, "city": SHORT, "active": {"type": "boolean"}}
RECORD = {
    "type": "object",
    "properties": FIELDS,
    "required": [*FIELDS],
    "additionalProperties": False,
}
"""Keys, quotes and brackets are forced: about half of the tokens of a record."""
COUNTERS = {"forced": lambda step: min(step.tree.forced, len(step.verdict.accepted))}
"""Kept tokens that the schema forced."""


def measure(paths: ModelPaths, workloads: Cards, quick: bool) -> Report:
    models = load_models(paths, chain().needs, "float32", "cpu")
    target, plan = models.target, QUICK if quick else FULL
    prompts = choose(models, {"template": workloads["template"]}, plan)

    def constraint() -> JsonSchema:
        ends = target.end_tokens
        return JsonSchema(json.dumps(RECORD), target.tokenizer, target.vocab_size, ends)

    rows, lines = [], []
    for cls in (plain(), chain()):
        bound = Ours(cls, models, options={}, constraint=constraint, recorded=True)
        schema_texts = Suite([bound], prompts, plan, COUNTERS).run()
        lengths = {result.prompt.name: len(result.writing.tokens) for result in schema_texts}
        as_long = [replace(prompt, count=lengths[prompt.name]) for prompt in prompts]
        free_texts = Suite(
            [Ours(cls, models, options={}, recorded=True)], as_long, plan, COUNTERS
        ).run()
        for schema, results in ((False, free_texts), (True, schema_texts)):
            (count,) = sums(results).values()
            rows.append(
                {"drafter": cls.key, "schema": schema}
                | figures(count, tokens="tokens", steps="steps", forced="forced")
                | figures(count, share="forced / tokens", tokens_a_step="tokens / steps")
            )
        free, forced = (row["tokens_a_step"] for row in rows[-2:])
        lines.append(f"{cls.key}: {forced / free:.2f} times the tokens a step")
    cells = [row | {"schema": "yes" if row["schema"] else "no"} for row in rows]
    text = table(cells, "drafter schema tokens forced=share:.0% tokens_a_step:.2f")
    return Report("\n".join([text, *lines]), rows)
