"""Sentences that the exporters for several engines share."""

from dataclasses import replace

from engine.bridges.recommended import TREES, Recommended

STOPS = "Draftscope’s chain stops early where the draft is unsure; llama.cpp stops by the probability of a single token."
CUT_SHORT = (
    "Some of the measured drafts were short. In the rates for a test, a token that was not drafted counts as refused, so a server that "
    "always drafts in full may keep more."
)
PLACE = "The record does not know where the drafter’s weights are: put their folder or Hub name in the place of {}."
WHICH_EAGLE = "If `python -m engine inspect` calls the checkpoint EAGLE-3, the {} is {}."
RATES = "Its rates are the chances that the first n tokens are all kept."
"""What the lists in ``Export.synthetic`` are."""
NO_RATES = (
    "Not every position of the draft was reached, so there is no second setting that imitates the measured "
    "acceptance in a test of the server."
)
CHAINS = ("chain", "pard", "dflash", "prompt_lookup")
"""Drafters whose draft is a chain. The sizes of all others are told in nodes."""


def texts(count: int) -> str:
    return f"{count} text{'s' if count != 1 else ''}"


def measured(setting: Recommended, size: int) -> str:
    """With which models the setting was measured, and how fast it was there with this size."""
    models = f", {setting.models}," if setting.models else ""
    speed = setting.tried.get(size)
    named = _named(replace(setting, size=size))
    if speed:
        said = f"{named}: {speed}."
    elif whole := setting.tried.get(setting.size):
        said = f"Drafts of up to {_tokens(setting.size)}: {whole}. Always {_tokens(size)} were not measured here."
    else:
        said = f"The speed of {named}, was not measured here."
    if setting.off_above is not None:
        said = f"From how many texts on it hurts is this machine's: measure it again where the server runs. {said}"
    return (
        f"The numbers hold for the models measured here{models} and for these prompts. For your models, measure those with a copy of this project: "
        f"`python -m engine tune --target DIR --draft DIR`. {said}"
    )


def in_full(engine: str, setting: Recommended) -> str:
    """How a chain differs in an engine that never ends a draft early, and the reason."""
    never = f"{engine} never ends a draft early"
    if setting.drafted is None:
        return (
            f"{never}, but Draftscope’s chain of up to {_tokens(setting.size)} ends early where the draft model is unsure, so try a "
            "shorter chain, too."
        )
    size = setting.in_full.size
    return (
        f"The chain of up to {_tokens(setting.size)} that was measured here has {_tokens(size)} for {engine}: {never}, so it gets "
        f"the mean length that was drafted here ({setting.drafted:.1f})."
    )


def in_its_place(engine: str, setting: Recommended, answer: Recommended) -> str:
    """That ``setting`` is exported instead of the recommended ``answer``, why, and how fast both were.
    ``setting.ratio`` must be known."""
    beside = "" if answer.ratio is None else f" (`{answer.drafter}` {answer.ratio:.1f})"
    faster = answer.ratio is not None and setting.ratio > answer.ratio
    checked = (
        "The higher speed is predicted; the answer’s was checked by running it. " if faster else ""
    )
    tree = answer.drafter in TREES and answer.width > 1
    lacks = f"{engine} has no {'trees' if tree else f'drafter like `{answer.drafter}`'}"
    return (
        f"{lacks}, so it cannot be told {_named(answer)}. The best setting measured here that it can be told "
        f"is {_named(setting)}: {setting.ratio:.1f} times plain decoding for one text{beside}. {checked}"
        "Settings that were tried on fewer prompts are left out, even where they look faster."
    )


def _tokens(count: int) -> str:
    return f"{count} token{'s' if count != 1 else ''}"


def _named(setting: Recommended) -> str:
    noun = "token" if setting.drafter in CHAINS else "node"
    return f"`{setting.drafter}`, {setting.size} {noun}{'s' if setting.size != 1 else ''}"


def no_drafter(engine: str, setting: Recommended) -> str:
    return f"{engine} has no drafter like `{setting.drafter}`, so this setting cannot be expressed for it."


def no_tree(engine: str, setting: Recommended) -> str:
    return f"{engine} drafts chains only: a tree of {setting.size} nodes, {setting.width} wide, cannot be expressed for it."


def no_block_rule(engine: str) -> str:
    return f"{engine} has no block verification; its own rule keeps fewer tokens."


def no_switch(engine: str, setting: Recommended) -> str:
    return f"Above {texts(setting.off_above)} at a time plain decoding was faster; {engine} cannot switch by the number of texts."
