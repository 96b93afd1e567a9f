"""`python -m engine bench --suite long`: how much of a draft is kept when the draft reads a part of the target's own
cache.

The target writes a greedy text after each of several long prompts. A *selector* chooses which keys and values a draft
pass uses. For each selector, draft passes run over the target's text, a few tokens at a time, and their likeliest
tokens are compared with those of the text. This gives the chance that a drafted token is kept, with the same tokens for
all selectors. After the first prompt each selector also drafts for a new text, which must equal that of plain decoding.
After every prompt each selector writes a text from the chosen keys and values alone, without a check; how soon this
text differs from that of plain decoding shows the price of not checking. All of these results are counts, so a busy
machine does not matter.

Then passes are timed: draft passes against passes with all keys and values; passes over eight texts at once with the
selectors that promise most; and passes over eight texts that share one prompt.
"""

from collections.abc import Sequence
from functools import partial
from itertools import takewhile

from torch import Tensor
from tqdm import tqdm

from engine.bench.contestants import Ours, plain
from engine.bench.long_prompts import KINDS, MIDDLE, long_prompts
from engine.bench.long_times import (
    TEXTS,
    timed,
    told_race,
    told_shared,
    told_times,
    written_together,
)
from engine.bench.pass_times import below_one_prompt
from engine.bench.report import Report, setting, table
from engine.bench.suite import Cards, turn_of
from engine.core.chance import Chance
from engine.core.drafter import Start
from engine.core.prompt import PromptReading
from engine.core.sampling import Sampling, likeliest
from engine.core.threads import torch_threads
from engine.loops import run_loop
from engine.methods import drafter as drafter_class
from engine.methods.own_cache.drafter import OwnCacheDrafter
from engine.methods.shared.part_of_cache import SELECTORS
from engine.model.session import Session
from engine.parts.loading import ModelPaths, Models, load_models

LENGTHS, QUICK_LENGTHS = (1024, 4096, 8000), (1024,)
TOKENS, QUICK_TOKENS = 96, 24
TOGETHER = 4096  # several texts are timed together at the first prompt length from this on
EQUAL = 24  # most tokens of the texts that every selector writes
TITLE = "after prompts of {length:,} tokens: the share of the target's own tokens that a draft pass names"


def measure(paths: ModelPaths, workloads: Cards, quick: bool) -> Report:
    """Run the suite. A row of the report is about one selector and one length of prompts. For each kind of prompt it
    has the share of the target's tokens that draft passes predicted. It also has these entries. read: the share of the
    bytes of keys and values that a draft pass used. equal: whether the text written after the first prompt equals that
    of plain decoding. alone: for texts written without a check, the share of tokens before the first difference from
    plain decoding."""
    parts = OwnCacheDrafter.may_use()
    models = load_models(
        paths, {role: kind for role, kind in parts.items() if role in paths.parts}, "float32", "cpu"
    )
    tokens = QUICK_TOKENS if quick else TOKENS
    most = models.target.max_context - tokens
    as_turns = bool(models.target.tokenizer.chat_template)
    lengths = sorted({min(length, most) for length in (QUICK_LENGTHS if quick else LENGTHS)})
    selectors = [
        key
        for key, selector in SELECTORS.items()
        if not selector.needs_draft or parts.keys() <= models.parts.keys()
    ]
    rows, spent, shared, text = [], [], [], []
    for length in lengths:
        length_rows, passes, joined = compared(models, selectors, length, tokens, as_turns)
        rows, spent, shared = rows + length_rows, spent + passes, shared + joined
        columns = ["selector", *(f"{kind}:.3f" for kind in KINDS), "middle:.3f", "mean:.3f"]
        columns += ["read:.0%", "equal", "alone:.0%", "the paper=claim"]
        text += [TITLE.format(length=length), table(length_rows, columns), ""]
    text.append(
        "middle: the kinds whose answer stands in the middle of the prompt. read: of the cache's bytes. alone: of the tokens, those\n"
        "before the first that differs from plain decoding's where the part alone writes and nobody checks (reduced_cache)."
    )
    length = next((length for length in lengths if length >= TOGETHER), lengths[-1])
    raced = written_together(partial(_drafting, models), spent, length, tokens, as_turns)
    text = ["\n".join(text), told_times(spent), told_race(raced, length), told_shared(shared)]
    data = {
        "setting": setting(models, tokens=tokens),
        "rows": rows,
        "passes": spent,
        "together": raced,
        "shared": shared,
    }
    return Report("\n\n".join(text), data)


def compared(
    models: Models, selectors: Sequence[str], length: int, tokens: int, as_turns: bool
) -> tuple[list[dict], list[dict], list[dict]]:
    """Return the rows of the report for prompts of one length, one for each selector. Return also what ``timed`` and
    ``below_one_prompt`` give for the last prompt."""
    target, measures = models.target, {key: {} for key in selectors}
    prompts = long_prompts(length, lambda text: len(turn_of(target.tokenizer, text)), as_turns)
    with (
        torch_threads(target.torch_threads),
        tqdm(total=len(KINDS) * (1 + len(selectors)), leave=False, disable=None) as progress,
    ):
        for kind, text in prompts.items():
            prompt = turn_of(target.tokenizer, text)
            reading = PromptReading(prompt[:-1])
            written = text_of(Ours(plain(), models), prompt, tokens, reading)
            session = target.session(len(prompt) + tokens)
            reading.fill(session)
            session.extend([prompt[-1], *written])
            progress.update()
            for key in selectors:
                ours = _drafting(models, key)
                measures[key][kind] = guessed(ours, session, prompt, written)
                unchecked = Ours(drafter_class("reduced_cache"), models, key, {"selector": key})
                alone = text_of(unchecked, prompt, min(tokens, EQUAL), reading)
                measures[key][kind]["alike"] = alike(alone, written)
                if kind == KINDS[0]:
                    written_by_part = text_of(ours, prompt, min(tokens, EQUAL), reading)
                    measures[key]["equal"] = written_by_part == written[: len(written_by_part)]
                progress.update()
        rows = [_row(key, measures[key], length) for key in selectors]
        session.rewind(len(prompt) - 1)
        passes = timed(partial(_drafting, models), session, prompt, rows)
        return rows, passes, below_one_prompt(models, session, prompt, TEXTS[-1])


def _drafting(models: Models, selector: str) -> Ours:
    return Ours(OwnCacheDrafter, models, selector, {"selector": selector})


def text_of(ours: Ours, prompt: Sequence[int], tokens: int, reading: PromptReading) -> list[int]:
    """Continue a prompt; return the tokens of the continuation. reading: the prompt's keys and values, which are
    computed once and used for all texts."""
    steps = run_loop(ours.models.target, ours.request(prompt, tokens), False, reading)
    return [token for step in steps for token in step.output]


def alike(text: Sequence[int], written: Sequence[int]) -> float:
    """Return the share of a text's tokens that stand before the first difference from ``written``."""
    same = (a == b for a, b in zip(text, written, strict=False))
    return sum(takewhile(bool, same)) / len(text)


def guessed(ours: Ours, session: Session, prompt: Sequence[int], written: Sequence[int]) -> dict:
    """Return a dictionary. right: for each token of the written text, whether the draft passes would have drafted it,
    given the text before it. read: the mean share of the cache that the draft passes used. session: the target's
    session, with the keys and values of the whole text."""
    request, before = ours.request(prompt, len(written)), _Before(session)
    drafter, text = request.drafter, [*prompt, *written]
    length, right, shares = drafter.settings["length"], [], []
    before.length = len(prompt) - 1
    drafter.begin(Start(prompt, Sampling(), Chance.of(0).drafting, target=before))
    for end in range(len(prompt), len(text), length):
        before.length = end - 1
        drafter.turn_to(text[:end])
        shares.append(drafter.share)
        rows = text[end - 1 : min(end - 1 + length, len(text) - 1)]
        right += [a == b for a, b in zip(likeliest(drafter.read(rows)), text[end:], strict=False)]
        drafter.learn(len(rows))
    return {"right": right, "read": sum(shares) / len(shares)}


class _Before:
    """The target's session as it was after its first ``length`` tokens: a view that shows only the keys and values of
    the first ``length`` tokens of the text."""

    def __init__(self, session: Session) -> None:
        self.model, self.length, self._session = session.model, 0, session

    def columns(self, layer: int) -> tuple[Tensor, Tensor]:
        keys, values = self._session.columns(layer)
        return keys[:, :, : self.length], values[:, :, : self.length]


def _row(key: str, measures: dict, length: int) -> dict:
    def rate(*kinds: str) -> float:
        right = [hit for kind in kinds for hit in measures[kind]["right"]]
        return sum(right) / len(right)

    return {
        "selector": key,
        "length": length,
        **{kind: rate(kind) for kind in KINDS},
        "middle": rate(*MIDDLE),
        "mean": rate(*KINDS),
        "tokens": sum(len(measures[kind]["right"]) for kind in KINDS),
        "read": sum(measures[kind]["read"] for kind in KINDS) / len(KINDS),
        "equal": "yes" if measures["equal"] else "no",
        "alone": sum(measures[kind]["alike"] for kind in KINDS) / len(KINDS),
        "claim": SELECTORS[key].claim,
    }
