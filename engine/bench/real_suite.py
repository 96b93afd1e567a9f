"""`python -m engine bench --suite real`: answers of a real chat model to prompts of eight kinds, here and in the
engines that people would use instead.

This engine's drafters, transformers (plain, assisted by the same draft model, and with prompt lookup) and OpenVINO
GenAI (the same three ways, both in fp32 and in the precision that OpenVINO chooses itself) take turns on each prompt. A
drafter, part or library that is missing is left out, with one sentence on standard error.
"""

import copy
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from transformers import PreTrainedModel

from engine.bench.bench_figures import Row, best_of, geometric_mean
from engine.bench.contestants import Contestant, Ours, plain
from engine.bench.goals import Entrant, Goal, goal_table, group, of, ratios, speed, step
from engine.bench.openvino.openvino_peers import ROUNDED, environment, genai_contestants
from engine.bench.peers import peer_contestants
from engine.bench.peers_suite import Race, agreement, beside
from engine.bench.report import Report, table
from engine.bench.suite import Cards, Plan, Result
from engine.cache_folder import cache_folder
from engine.errors import UserError
from engine.methods import drafters
from engine.parts.digest import digest_of
from engine.parts.loading import ModelPaths, Models, load_models

CHOOSER = "auto"
"""The key of the drafter that chooses among the others; also the name of its group."""
FULL = Plan(prompts=6, rounds=1, tokens=200)
QUICK = Plan(prompts=2, rounds=1, tokens=32)
ENTRANTS = [
    *(Entrant(key, key) for key in ("suffix", "prompt_lookup", "chain", "eagle", "dflash")),
    *(Entrant(key, key) for key in ("dyspec", "ddtree", CHOOSER)),
    Entrant("chain of 4", "chain", {"length": 4}),
    Entrant("eagle of 6", "eagle", {"nodes": 6}),
]
"""The contestants besides plain decoding. The last two have the draft sizes for which goals are set."""
SCHEDULES = (("constant", 3), ("heuristic", 5))  # of assisted generation, besides the default
EXACT = ("openvino", "openvino lookup", "openvino draft 3", "openvino draft 5")
OWN_PRECISION = ("openvino", "openvino lookup", "openvino draft 3")


def measure(paths: ModelPaths, workloads: Cards, quick: bool) -> Report:
    """Measure, and return the report. Texts are compared with those of transformers' plain ``generate``. workloads: the
    prompts are used as a user's turns. quick: use two prompts of each kind, and write 32 tokens."""
    draft = whole_draft(paths) if "draft" in paths.parts else None
    theirs = peer_contestants(paths, SCHEDULES, draft)
    genai, missing = openvino_contestants(paths, draft)
    absent = {"openvino": missing} if missing else {}
    return beside(
        paths,
        workloads,
        QUICK if quick else FULL,
        [*theirs, *genai],
        theirs[0],
        lambda race: real_goals(race, absent),
        enter=entered,
        tell=real_text,
        turns=True,
        schedules=SCHEDULES,
    )


def entered(models: Models) -> list[Ours]:
    """Contestants for plain decoding and for the drafters that can take part here. Each other drafter and the reason
    for its absence are printed to standard error."""
    present = [Ours(plain(), models)]
    for entrant in ENTRANTS:
        cls = drafters().get(entrant.key)
        lacking = None if cls is None else cls.needs.keys() - models.parts.keys()
        if cls is None or lacking:
            why = "no such drafter" if cls is None else f"no part {', '.join(sorted(lacking))}"
            print(f"{entrant.name} is left out: there is {why}", file=sys.stderr)
            continue
        try:
            present.append(Ours(cls, models, entrant.name, entrant.options))
        except UserError as error:
            print(f"{entrant.name} is left out: {error}", file=sys.stderr)
    for contestant in present:
        contestant.group = CHOOSER if contestant.name == CHOOSER else "ours"
    return present


def openvino_contestants(
    paths: ModelPaths, draft: PreTrainedModel | None
) -> tuple[Sequence[Contestant], str]:
    """The contestants of OpenVINO GenAI, and the reason why those in fp32 are missing, or "". Reasons are also printed
    to standard error. The contestants in fp32 share one process, and those in the precision that the library chooses
    share another, because a process that ends takes all its contestants with it."""
    present: list[Contestant] = []
    refusals = {}
    for precision, ways in {"fp32": (EXACT, ()), "its own precision": ((), OWN_PRECISION)}.items():
        try:
            environment()  # before a draft is written for nobody
            shared = paths
            if draft is not None:
                shared = paths.with_parts({"draft": str(written(draft, paths))})
            entrants = genai_contestants(shared, *ways)
            for contestant in entrants:
                contestant.write([0], 1)
            present += entrants
        except UserError as error:
            print(f"OpenVINO GenAI in {precision} is left out: {error}", file=sys.stderr)
            refusals[precision] = str(error)
    return present, refusals.get("fp32", "")


def whole_draft(paths: ModelPaths) -> PreTrainedModel:
    """A copy of the draft model's module, which the engine does not use. It includes the embeddings and the output head
    that the engine gives to a draft model that is stored without them."""
    opened = load_models(paths, {"draft": "draft"}, "float32", "cpu").part("draft")
    return copy.deepcopy(opened.model)


def written(draft: PreTrainedModel, paths: ModelPaths) -> Path:
    """The folder that holds the draft model as a checkpoint for other engines, written on first use. The checkpoint
    always has the target's output head: a draft model's own head may cover only a part of the vocabulary, and other
    engines need all of it."""
    folder = cache_folder() / "bench" / f"draft-{digest_of(paths.parts['draft'])}"
    if not folder.is_dir():
        target = load_models(paths, {}, "float32", "cpu").target
        whole, beside_it = copy.deepcopy(draft), folder.with_name(f"{folder.name}.part")
        whole.set_output_embeddings(copy.deepcopy(target.model.get_output_embeddings()))
        whole.config.architectures = [type(whole).__name__]
        whole.save_pretrained(beside_it)
        target.tokenizer.save_pretrained(beside_it)
        beside_it.rename(folder)
    return folder


def real_text(race: Race, goals: Sequence[Goal]) -> str:
    """The report's text: tokens per second for each kind of prompt, divided by those of plain decoding here; then the
    costs of passes, the texts that differ, and the goals."""
    base = plain().key
    kinds = list(dict.fromkeys(row.workload for row in race.table))
    lines = []
    for name in dict.fromkeys(row.contestant for row in race.table):
        own = {row.workload: row for row in race.table if row.contestant == name}
        ratios = {kind: own[kind].to_none for kind in kinds}
        lines.append(
            {
                "contestant": name,
                **ratios,
                "mean": geometric_mean(ratios.values()),
                "tokens_per_second": geometric_mean(r.tokens_per_second for r in own.values()),
                "per_call": sum(r.mean_accepted * r.calls for r in own.values())
                / sum(r.calls for r in own.values()),
                "equal": f"{race.equal[name]} of {race.texts[name]}",
            }
        )
    columns = ["contestant", *(f"{kind}:.2f" for kind in kinds), "mean:.2f"]
    columns += ["tokens/s=tokens_per_second:.1f", "tokens a pass=per_call:.2f", "equal texts=equal"]
    heading = f"tokens per second, {base} = 1"
    costs = ", ".join(f"{nodes} nodes {ms:.1f} ms" for nodes, ms in race.costs.items())
    parts = [f"{heading}\n{table(lines, columns)}", f"a pass over root and nodes: {costs}"]
    return "\n\n".join([*parts, agreement(race), goal_table(goals)])


def real_goals(race: Race, absent: Mapping[str, str]) -> list[Goal]:
    """The goals of this suite. For each kind of prompt, the fastest drafter is compared with the fastest contestant of
    another library. absent: for each library that could not take part, the reason."""
    rows, base = race.table, plain().key
    none, chooser = of(rows, base), of(rows, CHOOSER)
    best = best_of(rows, [name for name in group(rows, "ours") if name != base])
    names = [row.contestant for row in rows if row.group in ("assisted", "lookup")]
    genai = [name for name in names if name.startswith("openvino")]
    theirs = [name for name in names if name not in genai]
    genai = [name for name in genai if not name.startswith(ROUNDED)]
    gains = ratios(best, none) if best else []
    reason = absent.get("openvino", "")
    beside = _over(best, best_of(rows, theirs)), _over(best, best_of(rows, genai))
    plainly = _over(none, of(rows, "openvino"))
    own = [*group(rows, "ours"), *group(rows, CHOOSER)]
    same = sum(race.equal[name] for name in own) / sum(race.texts[name] for name in own)
    chosen = min(ratios(chooser, best)) if chooser and best else None
    slowest = min(_by_prompt(race.results, CHOOSER, base), default=None)
    missing = "" if chooser else f"there is no drafter {CHOOSER}"
    return [
        Goal("texts of this engine that equal generate", 1.0, 1.0, same),
        Goal(f"{base} / openvino", 0.95, 1.05, plainly, reason=reason),
        Goal(f"best drafter / {base}", 1.7, 2.3, geometric_mean(gains) if gains else None),
        Goal(f"best drafter / {base}, least kind", 1.15, None, min(gains, default=None)),
        Goal("best drafter / transformers' best speculation", 1.6, 2.2, beside[0]),
        Goal("best drafter / openvino's best speculation", 1.15, 1.5, beside[1], reason=reason),
        Goal(f"{CHOOSER} / best drafter, least kind", 0.95, None, chosen, reason=missing),
        Goal(f"{CHOOSER} / {base}, least prompt", 0.98, None, slowest, reason=missing),
        Goal("eagle of 6, tokens a pass", 2.4, 2.9, _step(rows, "eagle of 6")),
        Goal("chain of 4, tokens a pass", 2.1, None, _step(rows, "chain of 4")),
    ]


def _over(own: Mapping[str, Row], other: Mapping[str, Row]) -> float | None:
    return speed(own, [other]) if own and other else None


def _step(rows: Sequence[Row], name: str) -> float | None:
    own = of(rows, name)
    return step(own) if own else None


def _by_prompt(results: Sequence[Result], name: str, base: str) -> list[float]:
    """For each prompt, the time of the contestant ``base`` divided by that of the contestant ``name``, over all
    rounds."""
    spent: dict[tuple[str, str], float] = {}
    for result in results:
        key = result.contestant, result.prompt.name
        spent[key] = spent.get(key, 0.0) + result.writing.seconds
    return [
        spent[base, prompt] / seconds for (who, prompt), seconds in spent.items() if who == name
    ]
