"""Makes the ``acceptance`` and ``setting`` lines of a tuning, each about one candidate."""

from __future__ import annotations

from collections.abc import Iterator

from engine.tune.candidates import ALL, Candidate
from engine.tune.speed_prediction import Speed


def acceptance_lines(candidate: Candidate) -> Iterator[dict]:
    """Yields a line with the candidate's counts for each kind of prompt. The last line has the counts over all
    prompts, and the tokens and milliseconds of plain decoding after the same prompts."""
    tokens, spent = candidate.beside
    plainly = {"plain": {"new_tokens": tokens, "milliseconds": round(spent, 3)}}
    for kind in [*(kind for kind in candidate.counts if kind != ALL), ALL]:
        yield {
            "kind": "acceptance",
            **candidate.named,
            "prompt_kind": kind,
            "prompts": candidate.prompts,
            **(plainly if kind == ALL else {}),
            **candidate.counts[kind].to_dict(),
        }


def setting_line(candidate: Candidate, texts: int, speed: Speed, exact: bool) -> dict:
    return {
        "kind": "setting",
        **candidate.named,
        "lossless": exact,
        "prompts": candidate.prompts,
        "texts": texts,
        "predicted": round(speed.predicted, 2),
        "checked": None if speed.checked is None else round(speed.checked, 2),
        "ratio": round(speed.ratio, 3),
        "plain": round(speed.plain, 2),
    }
