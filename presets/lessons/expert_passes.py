"""The figures that the lesson on experts shows of its two targets. ``python -m presets experts`` measures them."""

import json
from functools import cache
from itertools import product

from engine.core.threads import torch_threads
from engine.parts.loading import load_models
from engine.parts.opening import language_model
from engine.run import RunRequest, open_run
from engine.sizes.expert_use import idle, milliseconds, used, widened
from engine.sizes.this_machine import processor
from engine.trace import Trace, read_trace
from presets.conditions import finished
from presets.families import family
from presets.listed import HERE

FILE = HERE / "lessons" / "experts.json"
TARGETS = {"experts": "BlockFFN", "experts-topk": "top-k mixture"}
"""Family -> its name in the lesson."""
RACES = (
    "race-story",
    "race-edit",
    "race-template",
    "race-code",
    "race-arithmetic",
    "race-operations",
)
"""The races whose prompts and texts of plain decoding the targets read."""
LONGEST = 16  # tokens of a draft
TIMED = 3  # texts on which passes are timed
SHOWN = 24  # the token of the first text at which the picture begins
WIDER = 16
"""How many times as wide the experts are in the passes that stand for a larger model."""


@cache
def expert_passes() -> dict:
    """Return {"machine", "wider", "kept", "pieces", "targets"}, as ``measure`` wrote it to FILE.

    wider: how many times as wide the experts are for ``wide``. kept: the chance that a drafted token is accepted at
    temperature 1, over both targets. pieces: the texts of some tokens. targets: {"name", "experts", "uses", "idle",
    "milliseconds", "wide"}. experts: the number of experts of a layer. uses: for each piece, its experts in the middle
    layer. idle: the share of all experts that 1, 2 ... neighbouring tokens do not use. milliseconds: of a pass over
    1, 2 ... rows. wide: the same times with wider experts.
    """
    return json.loads(FILE.read_text("utf-8"))


def measure() -> None:
    """Measure both targets on one thread, and write the figures to FILE."""
    plain = [finished(race)["none"] for race in RACES]
    texts = [_tokens(trace) for trace in plain]
    with torch_threads(1):
        targets = [_measured(name, texts) for name in TARGETS]
    pieces = [*plain[0].run["prompt"]["pieces"], *_of_output(plain[0], "pieces")]
    shown = slice(SHOWN, SHOWN + LONGEST + 1)
    figures = {
        "machine": processor(),
        "wider": WIDER,
        "kept": round(_kept(plain), 4),
        "pieces": pieces[shown],
        "targets": [{**target, "uses": target["uses"][shown]} for target in targets],
    }
    FILE.write_text(json.dumps(figures, ensure_ascii=False, separators=(",", ":")) + "\n", "utf-8")


def _measured(name: str, texts: list[list[int]]) -> dict:
    target = load_models(family(name), {}).target
    using = [used(target, text) for text in texts]
    layers, _, experts = using[0].shape
    rows = range(1, LONGEST + 2)
    wide = language_model(widened(target.model, WIDER), target.tokenizer, target.name)
    return {
        "name": TARGETS[name],
        "experts": experts,
        "uses": [one.nonzero()[:, 0].tolist() for one in using[0][layers // 2]],
        "idle": [round(sum(idle(one, n) for one in using) / len(using), 4) for n in rows],
        "milliseconds": _times(target, texts, rows),
        "wide": _times(wide, texts, rows),
    }


def _times(model, texts: list[list[int]], rows: range) -> list[float]:
    return [round(time, 4) for time in milliseconds(model, texts[:TIMED], rows)]


def _kept(plain: list[Trace]) -> float:
    """Return the share of judged tokens that were accepted, over chain drafts after these prompts, on both targets."""
    reached = accepted = 0
    for name, trace in product(TARGETS, plain):
        request = RunRequest(
            prompt=trace.run["prompt"]["text"],
            models=family(name),
            drafter="chain",
            options={"length": 4, "stop_below": 0.0},
            temperature=1.0,  # greedy texts of so small models repeat themselves, and repetitions are kept
            max_new_tokens=trace.summary["new_tokens"],
        )
        run = open_run(request)
        lines = "".join([run.header(), *run.steps(), run.summary()])
        for depth in read_trace(lines).summary["acceptance_by_depth"]:
            reached += depth["reached"]
            accepted += depth["accepted"]
    return accepted / reached


def _tokens(trace: Trace) -> list[int]:
    return [*trace.run["prompt"]["tokens"], *_of_output(trace, "tokens")]


def _of_output(trace: Trace, name: str) -> list:
    return [item for step in trace.steps for item in step["output"][name]]
