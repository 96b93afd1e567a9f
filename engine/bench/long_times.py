"""The time measurements of the suite ``long``: passes, by length and number of texts, and several texts at once.

A selector is a method that chooses the part of the KV cache that a draft pass reads.
"""

from collections.abc import Callable, Sequence

from engine.bench.contestants import Ours, plain
from engine.bench.long_prompts import KINDS, long_prompts
from engine.bench.pass_times import times, together
from engine.bench.report import table
from engine.bench.suite import turn_of
from engine.methods.shared.part_of_cache import SELECTORS
from engine.model.session import Session

Drafting = Callable[[str], Ours]
"""A function from the key of a selector to a contestant whose drafter reads the part of the cache that this selector
chooses."""
TEXTS = (1, 8)
STEP = 200  # tokens by which the second set of prompts for several texts is shorter than the first
WORTH = 1.05
"""The least gain over plain decoding that counts; a smaller gain may be chance."""


def timed(
    drafting: Drafting, session: Session, prompt: Sequence[int], rows: list[dict]
) -> list[dict]:
    """The times of passes over one text, with each selector that needs no draft model, and over several texts, with the
    selector that gains most.

    session: a session that holds all tokens of the prompt but its last one. rows: for each selector its key, the length
    of the prompt and the mean share of drafted tokens that are accepted.
    """
    timings: list[dict] = []
    for texts in TEXTS:
        best = max(timings, key=lambda row: row["gain"], default=None)
        for row in rows:
            key = row["selector"]
            if SELECTORS[key].needs_draft or (best and key != best["selector"]):
                continue
            passes = times(drafting(key), session, prompt, texts)
            timings.append(
                {
                    "length": row["length"],
                    "texts": texts,
                    "selector": key,
                    "whole": passes.whole,
                    "share": passes.draft / passes.whole,
                    "choosing": passes.choose / passes.whole,
                    "checking": passes.check / passes.whole,
                    "kept": row["mean"],
                    "gain": passes.gain(row["mean"]),
                }
            )
    return timings


def told_times(timed: list[dict]) -> str:
    """The table of these times as text, with the length from which on drafting pays."""
    columns = "length texts selector a_pass_in_ms=whole:.0f draft÷pass=share:.2f choosing÷pass=choosing:.2f check÷pass=checking:.2f kept:.3f gain:.2f"
    lengths = [row["length"] for row in timed if row["gain"] >= WORTH]
    crossing = f"from {min(lengths):,} tokens on" if lengths else "at none of these lengths"
    return (
        f"a pass over one row of each text, and what drafting for itself takes of it:\n{table(timed, columns)}\n"
        f"gain: times as fast as plain decoding with the best length, reckoned from these times. It pays {crossing} ({WORTH} times)."
    )


def told_shared(shared: list[dict]) -> str:
    if not shared:
        return "This target reads texts with one prompt in one pass in any case, or not at all."
    columns = "length texts each_in_a_session_ms=apart:.0f all_in_one_ms=shared:.0f ratio:.2f keys_and_values_of_the_prompt_MB=mb:.0f"
    return (
        f"a pass over one row of each of several texts with one prompt:\n{table(shared, columns)}"
    )


def written_together(
    drafting: Drafting, timed: list[dict], length: int, tokens: int, asked: bool
) -> list[dict]:
    """The speeds of several texts at once, after prompts of about this length, for plain decoding and for the two
    selectors that gain most on one text."""
    usual = Ours(plain(), drafting(timed[0]["selector"]).models)
    tokenizer, prompts = usual.models.target.tokenizer, []
    for shorter in range(-(-TEXTS[-1] // len(KINDS))):
        texts_by_kind = long_prompts(
            length - STEP * shorter, lambda text: len(turn_of(tokenizer, text)), asked
        )
        prompts += [turn_of(tokenizer, text) for text in texts_by_kind.values()]
    gains = {
        row["selector"]: row["gain"]
        for row in timed
        if row["length"] == length and row["texts"] == 1
    }
    best = sorted(gains, key=gains.__getitem__, reverse=True)[:2]
    return [*together([usual, *map(drafting, best)], prompts[: TEXTS[-1]], tokens)]


def told_race(rows: list[dict], length: int) -> str:
    usual = rows[0]["speed"]
    shown = [row | {"ratio": row["speed"] / usual} for row in rows]
    return (
        f"{TEXTS[-1]} texts at once, after prompts of up to {length:,} tokens:\n"
        f"{table(shown, 'contestant tokens_a_second=speed:.1f ÷_none=ratio:.2f texts_that_are_equal=equal')}"
    )
