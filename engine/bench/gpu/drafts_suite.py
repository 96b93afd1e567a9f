"""The suite ``drafts``: how much a chat model's trained draft models and heads gain on a GPU, by draft size.

The contestants are plain decoding, every drafter whose parts the target's folder holds, at several sizes, and
transformers, both plain and assisted by the same draft model. They continue the same prompts in turn, greedily and in
bfloat16. Speeds are medians of the rounds. To count tokens per step, this engine's contestants also continue further
prompts, once.
"""

import statistics
from collections.abc import Iterator, Sequence
from functools import partial

from engine.bench.contestants import Contestant, Ours, chain, own_options, plain
from engine.bench.gpu.parts import Part, attempt, measure_parts
from engine.bench.gpu.timing import Deadline, here
from engine.bench.peers import Assisted, Generate, constant
from engine.bench.report import Report
from engine.bench.suite import Cards, Plan, Prompt, Result, Suite, in_turn, turn_of
from engine.core.drafter import Drafter
from engine.fast.gpu.static_model import StaticModel
from engine.methods import drafters
from engine.model.language_model import LanguageModel
from engine.parts.loading import ModelPaths, Models, load_models

SECONDS = 150
LENGTHS, NODES = (2, 4, 6), (8, 16, 32, 64)
TREES = ("dyspec", "ddtree")
"""The keys of drafters that build their trees on the host."""
RACED, COUNTED = 3, 12  # prompts that all contestants continue, and that only the engine continues
ROUNDS, TOKENS = 3, 64
PLAIN, ASSISTED = "transformers, plain", "transformers, assisted"
ASSISTED_LENGTH = 4  # tokens that assisted generation drafts
SPARE = 6.0  # seconds that must be left to begin another text


def measure(paths: ModelPaths, workloads: Cards, quick: bool) -> Report:
    """Measure, and return the report. paths: a target and its parts; if the target has a chat template, each prompt is
    a user's turn. quick: use fewer rounds and prompts."""
    return measure_parts("drafts", SECONDS, partial(parts, paths, in_turn(workloads), quick))


def parts(
    paths: ModelPaths, texts: Sequence[str], quick: bool, rates: object, deadline: Deadline
) -> Iterator[Part]:
    """Yields the single part of which this suite consists. All of its contestants share one opened target."""
    race = Plan(1, 1, 16) if quick else Plan(RACED, ROUNDS, TOKENS)
    counted = 1 if quick else COUNTED
    yield "drafts", partial(measured, paths, texts, race, counted, deadline), 20


def able(paths: ModelPaths) -> list[type[Drafter]]:
    """The drafters that are measured, among those whose trained modules exist. They are the drafters with a variant
    that drafts on the device (``Drafter.device_twin``), the drafters in ``TREES``, and all drafters that use none of
    the trained modules of these two groups."""
    fed = [cls for cls in drafters().values() if cls.needs and cls.needs.keys() <= {*paths.parts}]
    twins = [cls for cls in fed if has_twin(cls) or cls.key in TREES]
    served = {role for cls in twins for role in cls.needs}
    return [cls for cls in fed if cls in twins or not cls.needs.keys() & served]


def has_twin(cls: type[Drafter]) -> bool:
    """Whether the drafter has a variant that drafts on the device (``Drafter.device_twin``)."""
    return cls.device_twin is not Drafter.device_twin and not cls.yours


def sizes(cls: type[Drafter]) -> list[int]:
    """The draft sizes at which a drafter is measured, up to the maximum of its size option; [0] if it has no such
    option."""
    if cls.size_option is None:
        return [0]
    option = next(option for option in cls.options if option.name == cls.size_option)
    candidates = {*LENGTHS, cls.usual_size} if cls.size_option == "length" else {*NODES}
    return sorted(size for size in candidates if size <= (option.maximum or size))


def measured(
    paths: ModelPaths, texts: Sequence[str], race: Plan, counted: int, deadline: Deadline
) -> Iterator[dict]:
    """One row for each contestant. The row of a contestant that failed, or for which no time was left, has a
    ``problem`` instead of figures."""
    classes = able(paths)
    needs = {role: kind for cls in classes for role, kind in cls.needs.items()}
    models = on_buffers(load_models(paths, needs, "bfloat16", here().type))
    prompts = [
        Prompt("chat", str(place), turn_of(models.target.tokenizer, text))
        for place, text in enumerate(texts[: race.prompts + counted])
    ]
    ready = []
    for contestant in contestants(models, classes):
        problem = "no time was left"
        if deadline.left > SPARE:
            _, problem = attempt(partial(_warm, contestant, prompts, race.tokens))
        if problem is None:
            ready.append(contestant)
        else:
            yield {"name": contestant.name, "problem": problem}
    if not ready:
        return
    raced = Suite(ready, prompts[: race.prompts], race, enough=lambda: deadline.left < SPARE).run()
    ours = [contestant for contestant in ready if contestant.group == "ours"]
    once = Plan(counted, 1, race.tokens)
    more = Suite(ours, prompts[race.prompts :], once, enough=lambda: deadline.left < SPARE).run()
    yield from rows(raced, more)


def on_buffers(models: Models) -> Models:
    """The models with their passes on static buffers, as on CUDA, even if the device is a CPU."""

    def static(part):
        plain = isinstance(part, LanguageModel) and not isinstance(part, StaticModel)
        return StaticModel(part.model, part.tokenizer, part.name) if plain else part

    parts = {role: static(part) for role, part in models.parts.items()}
    return Models(static(models.target), parts, models.folders)


def contestants(models: Models, classes: Sequence[type[Drafter]]) -> Iterator[Contestant]:
    """The contestants: first plain decoding, then the chain of ASSISTED_LENGTH tokens and the peers, then all other
    drafters, those with the smallest sizes first."""
    yield Ours(plain(), models)
    ours = [
        (size, Ours(cls, models, f"{cls.key} {size or ''}".strip(), _options(cls, size)))
        for cls in classes
        for size in sizes(cls)
    ]
    ours.sort(key=lambda pair: pair[0])
    usual = f"{chain().key} {ASSISTED_LENGTH}"
    yield from (contestant for _, contestant in ours if contestant.name == usual)
    module, ends = models.target.model, models.target.end_tokens
    yield Generate(PLAIN, "plain", module, ends)
    if chain() in classes:
        draft, schedule = models.part("draft").model, constant(ASSISTED_LENGTH)
        yield Assisted(ASSISTED, module, ends, draft, schedule)
    yield from (contestant for _, contestant in ours if contestant.name != usual)


def _options(cls: type[Drafter], size: int) -> dict:
    """The options with which a drafter always drafts ``size`` tokens or nodes and never stops early."""
    chosen = {} if cls.size_option is None else {cls.size_option: size}
    return chosen | own_options(cls, {"stop_below": 0.0})


def _warm(contestant: Contestant, prompts: Sequence[Prompt], tokens: int) -> None:
    """Write the text after the longest prompt twice. Then everything has been compiled and captured, and the buffers
    are large enough for all prompts."""
    longest = max(prompts, key=lambda prompt: len(prompt.tokens))
    Suite([contestant], [longest], Plan(1, 2, tokens)).run()


def rows(raced: Sequence[Result], more: Sequence[Result]) -> list[dict]:
    """One row of figures for each contestant. raced: the results of the rounds in which all contestants took part.
    more: the results of further prompts, which only this engine's contestants continued, once."""
    speeds = {name: _speed(raced, name) for name in _names(raced)}
    peers = {PLAIN: "times_plain", ASSISTED: "times_assisted", plain().key: "times_none"}
    texts = {
        name: [
            result.writing.tokens
            for result in raced
            if result.contestant == name and not result.round
        ]
        for name in speeds
    }
    table = []
    for name, speed in speeds.items():
        row = {"name": name, "tokens_per_second": speed}
        row |= {key: speed / speeds[peer] for peer, key in peers.items() if peer in speeds}
        own = [result.writing for result in (*more, *raced) if result.contestant == name]
        row["tokens_per_step"] = sum(len(result.tokens) for result in own) / sum(
            result.calls for result in own
        )
        row["equal_texts"] = sum(
            a == b for a, b in zip(texts[name], texts[next(iter(texts))], strict=False)
        )
        row["texts"] = len(
            {result.prompt.name for result in (*more, *raced) if result.contestant == name}
        )
        table.append(row | {"rounds": 1 + max(r.round for r in raced if r.contestant == name)})
    return table


def _names(results: Sequence[Result]) -> list[str]:
    return list(dict.fromkeys(result.contestant for result in results))


def _speed(results: Sequence[Result], name: str) -> float:
    """Tokens per second of a contestant, as the median over the rounds."""
    rounds: dict[int, list] = {}
    for result in results:
        if result.contestant == name:
            rounds.setdefault(result.round, []).append(result.writing)
    return statistics.median(
        sum(len(text.tokens) for text in texts) / sum(text.seconds for text in texts)
        for texts in rounds.values()
    )
