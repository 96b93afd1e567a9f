"""`python -m engine bench --suite pictures`: passes of the image target, and the cost of acceptance by clusters.

Every contestant draws one picture of each digit with the same seed. Passes are counted, so the machine's speed does not
matter.
"""

from engine.bench.contestants import Ours
from engine.bench.report import Report, figures, table
from engine.bench.suite import Cards, Plan, Suite, by_contestant, choose, sums
from engine.core.sampling import Sampling
from engine.core.step import Step
from engine.errors import UserError
from engine.methods import drafters
from engine.parts.loading import ModelPaths, Models, load_models
from engine.rules import verifier

DIGITS, QUICK_DIGITS = "0123456789", "012"
WINDOW = {"window": 16, "fill": "repeat"}
WAYS = (
    ("none", {}, "rejection", {}),
    ("jacobi", {"window": 16}, "rejection", {}),
    ("sjd", {**WINDOW, "window": 8}, "rejection", {}),
    ("sjd", WINDOW, "rejection", {}),
    *(("sjd", WINDOW, "gsd", {"group": group}) for group in (4, 8, 16)),
)
"""The contestants. Each has a drafter, the drafter's options, a rule, and the rule's options."""
COUNTERS = {
    "nats": lambda step: -sum(logs(step)),
    "judged": lambda step: len(prices(step)),
    "spread": lambda step: sum(prices(step)),
}


def measure(paths: ModelPaths, workloads: Cards, quick: bool) -> Report:
    """Run the suite. A row of the report has these entries, among others. nats: the mean -log p of the tokens under the
    target; pictures with more nats than those of plain decoding are less likely. price: for a lossy rule, the mean
    probability, over judged positions, that the rule gives to other tokens than the target does; None for an exact
    rule. Raises UserError if the target writes no pictures."""
    models = load_models(paths, {})
    target = models.target
    if target.picture is None:
        raise UserError(f"{target.name} writes no pictures; this suite needs a model that does.")
    cards = [{"id": digit, "prompt": digit} for digit in (QUICK_DIGITS if quick else DIGITS)]
    plan = Plan(prompts=len(cards), rounds=1, tokens=target.picture.places)
    ours = [drawing(models, *way) for way in WAYS if way[0] in drafters()]
    results = Suite(ours, choose(models, {"digits": cards}, plan), plan, COUNTERS).run()
    rows = [
        {"who": who}
        | figures(
            count,
            tokens="tokens",
            passes="steps",
            nats="nats / tokens",
            price="spread / judged",
            tokens_a_pass="tokens / steps",
        )
        for who, count in sums(results, by_contestant).items()
    ]
    columns = "who tokens_a_pass:.2f passes nats_a_token=nats:.3f price:.3f"
    note = "Price: the share of the probability that goes to other tokens than the target's in a judged place (total "
    return Report(f"{table(rows, columns)}\n{note}variation); none with an exact rule.", rows)


def drawing(models: Models, key: str, options: dict, rule: str, rule_options: dict) -> Ours:
    settings = ", ".join(f"{name} {value}" for name, value in (options | rule_options).items())
    lossy = f" / {rule}" if rule_options else ""
    name = f"{key}{lossy}{f' ({settings})' if settings else ''}"
    judge, sampling = verifier(rule, rule_options), Sampling(1.0, seed=1)
    return Ours(drafters()[key], models, name, options, sampling, judge, recorded=True)


def logs(step: Step) -> list[float]:
    """Return log p of each token that the step wrote, under the target, given the tokens before it."""
    places = [0] + [node + 1 for node in step.verdict.accepted]
    rows = step.logits[places].float().log_softmax(-1)
    return [float(row[token]) for row, token in zip(rows, step.output, strict=False)]


def prices(step: Step) -> list[float]:
    """Return, for each judged position of the step, the probability that the rule's clusters moved to other tokens."""
    return [row[4] for shown in step.verdict.exhibits for row in shown.make().rows]
