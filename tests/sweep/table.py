"""The sweep's table, as Markdown."""

from collections.abc import Mapping, Sequence

from tests.sweep.comparing import DRAFTERS, EQUAL, REFUSED, UNBUILDABLE, Outcome

_HEAD = """# Which architectures the engine reads

Written by `python -m tests.sweep --table docs/architectures.md`, with transformers {version}: every causal architecture that it knows,
and some settings of them (behind a comma), tiny, with random weights, in fp32 on a CPU. Each drafter writes 24 greedy tokens with
the engine, which are compared with the model's own `generate`. A text is *equal* token for token, or the model is *refused* with a
sentence, or *not buildable* here. Trees (`dyspec`) are refused where only chains are read right.

The embedded family and other architectures that the tests have proven (`engine/model/proven.py`) open without a check. Any other model is
read a few short texts by when it is opened first, by its module and by the engine, as a chain and as a tree, also across its windows and on both
sides of the length it was trained for first (`engine/model/self_check.py`); where the two differ it is refused. Lengths beyond 640 tokens are not
tried: such a model is offered up to them. What was found out is kept by configuration and library version. `python -m
tests.engine.self_check_cost` measures the check: on the embedded target, as though it were not proven, a quarter of a processor second.

Not part of a comparison are penalties that a checkpoint asks `generate` for: the engine takes p as the model gives it, and says so when it opens
one. Tokens that a checkpoint forbids or forces are followed. The sweep reads through modules; with `--compiled` it opens models as on a CPU.
Not buildable are models whose smallest configuration here is still large, that need other packages, or that this version cannot build.

"""


def table(found: Mapping[str, Sequence[Outcome]], version: str) -> str:
    lines = [_HEAD.format(version=version) + _summary(found) + "\n"]
    lines.append("| architecture | " + " | ".join(f"`{key}`" for key in DRAFTERS) + " | |")
    lines.append("|---|" + "---|" * len(DRAFTERS) + "---|")
    lines += [_row(name, seen) for name, seen in found.items()]
    return "\n".join(lines) + "\n"


def _summary(found: Mapping[str, Sequence[Outcome]]) -> str:
    every = list(found.values())
    equal = sum(all(one.kind == EQUAL for one in seen) for seen in every)
    chains = sum(_mixed(seen) for seen in every)
    refused = sum(all(one.kind == REFUSED for one in seen) for seen in every)
    unbuilt = sum(all(one.kind == UNBUILDABLE for one in seen) for seen in every)
    other = sum(not all(one.fine for one in seen) for seen in every)
    return (
        f"Of {len(every)}: {equal} equal with all three drafters, {chains} equal with chains and refused with trees, "
        f"{refused} refused, {unbuilt} not buildable, {other} wrong or ended in a traceback.\n"
    )


def _mixed(seen: Sequence[Outcome]) -> bool:
    return {one.kind for one in seen} == {EQUAL, REFUSED}


def _row(name: str, seen: Sequence[Outcome]) -> str:
    if seen[0].drafter is None:
        kinds, words = [seen[0].kind] * len(DRAFTERS), seen[0].words
    else:
        kinds = [one.kind for one in seen]
        words = next((one.words for one in seen if one.kind != EQUAL), "")
    return f"| {name} | {' | '.join(kinds)} | {_said(name, words)} |"


def _said(name: str, words: str) -> str:
    """Return these words without characters that break the table, and without a repetition of the name."""
    said = words.removeprefix(f"{name} ").replace("|", "/").replace("`", "'")
    return said[:1].upper() + said[1:]
