"""Five numbers that are all called acceptance, computed from how often each drafted position was reached and kept.

Papers and engines print different numbers of these five under similar names; ``NUMBERS`` says where each is printed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple


class Number(NamedTuple):
    """The description of one number. key: its key in the dict that ``numbers`` returns. means, printed_by: whole
    sentences for people."""

    key: str
    title: str
    formula: str
    means: str
    printed_by: str


NUMBERS = (
    Number(
        "kept_share",
        "Share of drafted tokens kept",
        "tokens kept ÷ tokens drafted",
        "How much of the drafting was of use. It falls when more is drafted, even if the text comes faster, and it is low for "
        "every tree, because at most one branch can be kept.",
        "vLLM prints it as `draft_acceptance_rate` and “Avg Draft acceptance rate”, SGLang as `spec_accept_rate`, llama.cpp as "
        "“draft acceptance” (`draft_n_accepted` ÷ `draft_n`).",
    ),
    Number(
        "conditional",
        "Rate by position, of the tokens reached",
        "kept at position i ÷ steps that reached position i",
        "How likely a token is kept when all before it were. This is a property of the two models and the kind of text; a longer "
        "draft does not change it.",
        "Its mean is the α of Leviathan et al. (2023); the EAGLE papers give it by position as 0-α, 1-α and so on. Draftscope’s "
        "`acceptance_by_depth` holds its two counts. Beware: “acceptance rate per position” of vLLM and llama.cpp is another "
        "number, kept at position i ÷ all steps; it also falls where the positions before are refused.",
    ),
    Number(
        "mean_with_bonus",
        "Mean length with the target’s own token",
        "1 + tokens kept ÷ steps",
        "Tokens that a step adds to the text, the bonus or recovered token included: 1 where nothing is kept, K + 1 where all is.",
        "vLLM prints it as `mean_acceptance_length`, SGLang as `spec_accept_length`, llama.cpp as “mean acceptance length”. It is "
        "the τ of the EAGLE papers, and Spec-Bench’s mean accepted tokens.",
    ),
    Number(
        "mean_without_bonus",
        "Mean length of the kept draft",
        "tokens kept ÷ steps",
        "Drafted tokens that a step keeps: from 0 to K, one less than the number above. The two are often mixed up.",
        "The positions of vLLM’s `acceptance_histogram` and of SGLang’s `spec_correct_drafts_histogram` count it; "
        "`--spec-synth-rates` of llama.cpp and `synthetic_acceptance_rates` of vLLM add up to it.",
    ),
    Number(
        "block_efficiency",
        "Block efficiency",
        "new tokens ÷ passes of the target",
        "What was really written for each pass of the target. The last step of a text may be cut off, so it is a little below the "
        "mean length with the target’s own token.",
        "SpecTr (Sun et al., 2023) and block verification (Sun et al., 2024) report it; Draftscope’s `mean_accepted` is this number "
        "without the first pass over the prompt.",
    ),
)


def numbers(
    positions: Sequence[Mapping] = (),
    steps: int | None = None,
    drafted: int | None = None,
    accepted: int | None = None,
    new_tokens: int | None = None,
) -> dict:
    """The five numbers by their keys, and ``unconditional`` (kept at a position ÷ all steps). A number is None if the
    counts do not give it.

    positions: as in an ``acceptance`` line: ``position`` from 1, ``accepted``, and perhaps ``reached`` (counts of
    steps). steps: the number of target passes that judged a draft. drafted, accepted: the numbers of drafted and of
    accepted tokens in all these steps. new_tokens: the number of tokens that these steps added to the texts.
    """
    kept_counts = [entry.get("accepted") for entry in positions]
    if accepted is None and kept_counts and None not in kept_counts:
        accepted = sum(kept_counts)
    mean = _ratio(accepted, steps)
    return {
        "kept_share": _ratio(accepted, drafted),
        "conditional": [_ratio(entry.get("accepted"), entry.get("reached")) for entry in positions],
        "unconditional": [_ratio(entry, steps) for entry in kept_counts],
        "mean_with_bonus": None if mean is None else 1 + mean,
        "mean_without_bonus": mean,
        "block_efficiency": _ratio(new_tokens, steps),
    }


def numbers_of(line: Mapping) -> dict:
    """The result of ``numbers`` for an ``acceptance`` line. Some lines give numbers themselves, in ``stated``, because
    their source has no counts; these replace the computed numbers."""
    names = ("steps", "drafted", "accepted", "new_tokens")
    computed = numbers(line.get("positions", ()), **{name: line.get(name) for name in names})
    return computed | dict(line.get("stated", {}))


def survival(positions: Sequence[Mapping]) -> list[float] | None:
    """For each position, the share of drafts that were kept up to and including it: [K], never rising. A draft that
    ends before a position counts as refused at this position. None if the number of drafts is not known."""
    drafts = positions[0].get("reached") if positions else None
    rates = [_ratio(entry.get("accepted"), drafts) for entry in positions]
    return rates if rates and None not in rates else None


def cut_short(positions: Sequence[Mapping]) -> bool:
    """Whether some drafts were kept to their last token although other drafts had more tokens."""
    return any(
        after.get("reached", 0) < before.get("accepted", 0) for before, after in pairwise(positions)
    )


def _ratio(above: int | None, below: int | None) -> float | None:
    return above / below if above is not None and below else None
