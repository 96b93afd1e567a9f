"""`python -m engine bench --suite long`: how much of a draft is kept when the draft reads a part of the target's own cache.

Greedy texts after long prompts of four kinds, by plain decoding and by ``own_cache`` with every selector; all must be alike.
What is counted are drafted tokens, not time, so a busy machine does not matter.
"""

from collections.abc import Iterable, Sequence

from tqdm import tqdm

from engine.bench.contestants import Ours, plain
from engine.bench.long_prompts import KINDS, MIDDLE, long_prompts
from engine.bench.report import Report, setting, table
from engine.bench.suite import Cards, turn_of
from engine.core.decode import decode
from engine.core.prompt import PromptReading
from engine.core.step import Step
from engine.core.threads import torch_threads
from engine.methods.own_cache.drafter import SELECTORS, OwnCacheDrafter
from engine.methods.own_cache.speckv import SpecKV
from engine.parts.loading import ModelPaths, Models, load_models

LENGTHS, QUICK_LENGTHS = (1024, 4096, 8000), (1024,)
TOKENS, QUICK_TOKENS = 96, 32
STORY = "after a prompt of {length:,} tokens: drafted tokens that were kept, of those whose predecessors were kept"


def measure(paths: ModelPaths, workloads: Cards, quick: bool) -> Report:
    """In a row: kept, by kind of prompt; read: the share of the bytes of keys and values that a draft pass read; equal: how
    many texts are those of plain decoding."""
    parts = OwnCacheDrafter.may_use()
    models = load_models(
        paths, {role: kind for role, kind in parts.items() if role in paths.parts}, "float32", "cpu"
    )
    tokens = QUICK_TOKENS if quick else TOKENS
    most = models.target.max_context - tokens
    asked = bool(models.target.tokenizer.chat_template)
    lengths = sorted({min(length, most) for length in (QUICK_LENGTHS if quick else LENGTHS)})
    selectors = [
        key for key in SELECTORS if key != SpecKV.key or parts.keys() <= models.parts.keys()
    ]
    rows, told = [], []
    for length in lengths:
        some = compared(models, selectors, length, tokens, asked)
        rows += some
        columns = ["selector", *(f"{kind}:.3f" for kind in KINDS), "middle:.3f", "mean:.3f"]
        columns += ["read:.0%", "equal", "the paper=claim"]
        told += [STORY.format(length=length), table(some, columns), ""]
    told.append(
        "middle: the kinds whose answer stands in the middle of the prompt. read: of the cache's bytes."
    )
    return Report("\n".join(told), {"setting": setting(models, tokens=tokens), "rows": rows})


def compared(
    models: Models, selectors: Sequence[str], length: int, tokens: int, asked: bool
) -> list[dict]:
    """A row for each selector, for prompts of one length."""
    target = models.target
    prompts = long_prompts(length, lambda text: len(turn_of(target.tokenizer, text)), asked)
    counts: dict[tuple[str, str], dict] = {}
    with tqdm(total=len(KINDS) * (1 + len(selectors)), leave=False, disable=None) as progress:
        for kind, text in prompts.items():
            prompt = turn_of(target.tokenizer, text)
            reading = PromptReading(prompt[:-1])
            expected = [
                token
                for step in steps(Ours(plain(), models), prompt, tokens, reading)
                for token in step.output
            ]
            progress.update()
            for key in selectors:
                ours = Ours(OwnCacheDrafter, models, key, {"selector": key})
                counts[key, kind] = counted(steps(ours, prompt, tokens, reading), expected)
                progress.update()
    return [_row(key, {kind: counts[key, kind] for kind in KINDS}, length) for key in selectors]


def steps(ours: Ours, prompt: Sequence[int], tokens: int, reading: PromptReading) -> Iterable[Step]:
    """The steps of a text whose prompt was read for all texts together."""
    target = ours.models.target
    with torch_threads(target.torch_threads):
        yield from decode(target, ours.request(prompt, tokens), False, reading)


def counted(written: Iterable[Step], expected: Sequence[int]) -> dict:
    reached = kept = 0
    output, shares = [], []
    for step in written:
        accepted = len(step.verdict.accepted)
        kept += accepted
        reached += min(accepted + 1, len(step.draft.tree))
        output += step.output
        shares += [
            one.value for one in step.draft.tree.exhibits if getattr(one, "kind", "") == "gauge"
        ]
    return {"kept": kept, "reached": reached, "equal": output == expected, "shares": shares}


def _row(key: str, by_kind: dict[str, dict], length: int) -> dict:
    def rate(kinds: Iterable[str]) -> float | None:
        some = [by_kind[kind] for kind in kinds]
        reached = sum(one["reached"] for one in some)
        return sum(one["kept"] for one in some) / reached if reached else None

    shares = [share for one in by_kind.values() for share in one["shares"]]
    equal = sum(one["equal"] for one in by_kind.values())
    return {
        "selector": key,
        "length": length,
        **{kind: rate([kind]) for kind in KINDS},
        "middle": rate(MIDDLE),
        "mean": rate(KINDS),
        "drafted": sum(one["reached"] for one in by_kind.values()),
        "read": sum(shares) / len(shares) if shares else None,
        "equal": f"{equal} of {len(by_kind)}",
        "claim": SELECTORS[key].claim,
    }
