"""The suite ``gpu``: the time of a step, the host's share of it, and tokens per second end to end.

In the end-to-end comparison, this engine, transformers plain and transformers assisted use the same modules, prompts
and number of tokens and decode greedily. The time runs from the prompt's tokens to the last token's id. No trace is
recorded.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from engine.bench.agreement import differences
from engine.bench.contestants import Ours, chain, plain
from engine.bench.gpu.costs import LLAMA_8B, QWEN3_4B, Ceilings
from engine.bench.gpu.gpu_goals import step_goals
from engine.bench.gpu.parts import Part, measure_parts
from engine.bench.gpu.steps import step_times
from engine.bench.gpu.timing import Deadline, here
from engine.bench.peers import Assisted, Generate, constant
from engine.bench.report import Report
from engine.bench.suite import Cards, Plan, Prompt, Suite, by_contestant, in_turn, sums
from engine.parts.loading import ModelPaths, Models, load_models

SECONDS = 220
EQUAL_PROMPTS, RACED_PROMPTS = 50, 10
TOKENS = 128
SPARE = 15  # seconds that must be left to begin another prompt
PLAIN, ASSISTED = "transformers, plain", "transformers, assisted"


def measure(paths: ModelPaths, workloads: Cards, quick: bool) -> Report:
    """Measure, and return the report. paths: a trained pair of models, because a target with random weights accepts no
    drafts. Prompts of all kinds take turns."""
    return measure_parts("gpu", SECONDS, partial(parts, paths, in_turn(workloads)), step_goals)


def parts(
    paths: ModelPaths, texts: Sequence[str], found: Ceilings, deadline: Deadline
) -> Iterator[Part]:
    """The parts of the suite. Those that the goals need come first; the comparison in fp32 is last, if there is time.
    found: the machine's measured memory bandwidth and matrix rate."""
    yield LLAMA_8B.name, partial(step_times, LLAMA_8B, found), 60
    equality = partial(greedy_equality, paths, texts[:EQUAL_PROMPTS], deadline)
    yield "greedy equality", equality, 30
    race = partial(end_to_end, paths, texts[:RACED_PROMPTS], deadline)
    yield "end to end, bfloat16", partial(race, "bfloat16"), 30
    yield QWEN3_4B.name, partial(step_times, QWEN3_4B, found), 40
    yield "end to end, float32", partial(race, "float32"), 30


def end_to_end(
    paths: ModelPaths, texts: Sequence[str], deadline: Deadline, dtype: str, tokens: int = TOKENS
) -> list[dict]:
    """One row for each way of decoding, over as many prompts as the time allows. ``times_assisted`` is the speed
    divided by that of the faster schedule of assisted generation."""
    models = load_models(paths, chain().needs, dtype, here().type)
    module, ends, draft = models.target.model, models.target.end_tokens, models.part("draft").model
    contestants = [
        Generate(PLAIN, "plain", module, ends),
        Assisted(f"{ASSISTED}, default", module, ends, draft),
        Assisted(f"{ASSISTED}, constant", module, ends, draft, constant(5)),
        *(Ours(cls, models, f"engine, {cls.key}") for cls in (plain(), chain())),
    ]
    prompts, plan = _prompts(models, texts), Plan(len(texts), 1, tokens)
    longest = max(prompts, key=lambda prompt: len(prompt.tokens))  # its buffers serve all others
    Suite(contestants, [longest, longest], plan).run()
    results = Suite(contestants, prompts, plan, enough=lambda: deadline.left < SPARE).run()
    counts = sums(results, by_contestant)
    rate = {name: count["tokens"] / count["seconds"] for name, count in counts.items()}
    return [
        {
            "name": f"{name}, {dtype}",
            "tokens_per_second": value,
            "times_plain": value / rate[PLAIN],
            "times_assisted": value
            / max(rate[rival] for rival in rate if rival.startswith(ASSISTED)),
            "prompts": counts[name]["texts"],
        }
        for name, value in rate.items()
    ]


def greedy_equality(
    paths: ModelPaths, texts: Sequence[str], deadline: Deadline, tokens: int = TOKENS
) -> list[dict]:
    """One row: the number of texts for which our chain equals transformers' plain greedy decoding, in fp32, and for
    each other text the margin between the two best logits at the first differing token."""
    models = load_models(paths, chain().needs, "float32", here().type)
    peer = Generate(PLAIN, "plain", models.target.model, models.target.end_tokens)
    suite = Suite(
        [peer, Ours(chain(), models)],
        _prompts(models, texts),
        Plan(len(texts), 1, tokens),
        enough=lambda: deadline.left < SPARE,
    )
    results = suite.run()
    different = differences(results, PLAIN, peer.logits)
    compared = len(results) // 2
    row = {"name": "greedy output equal, float32", "equal": compared - len(different)}
    return [row | {"prompts": compared, "margins": [difference.margin for difference in different]}]


def _prompts(models: Models, texts: Sequence[str]) -> list[Prompt]:
    encode = models.target.tokenizer
    return [
        Prompt("mixed", str(place), encode(text)["input_ids"]) for place, text in enumerate(texts)
    ]
