"""The figures of a finished trace, by name, for the conditions of examples (``presets.conditions``)."""

import re
from collections.abc import Callable, Iterator
from functools import partial

from engine.trace import Trace

Figure = Callable[[Trace], float]


def kept(step: dict) -> list[int]:
    """Return the accepted nodes of a step."""
    return [node for node, status in enumerate(step["nodes"]["status"]) if status == "accepted"]


def refused(step: dict) -> list[int]:
    return [node for node, status in enumerate(step["nodes"]["status"]) if status == "rejected"]


def drafting(trace: Trace) -> Iterator[dict]:
    """Yield the steps in which at least one token was drafted."""
    return (step for step in trace.steps if step["nodes"]["token"])


def share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def forks_saved(trace: Trace) -> int:
    """Return the number of steps with an accepted token of which an earlier sibling was rejected."""

    def saved(step: dict) -> bool:
        parents, lost = step["nodes"]["parent"], refused(step)
        return any(
            parents[node] == parents[other] and other < node
            for node in kept(step)
            for other in lost
        )

    return sum(map(saved, trace.steps))


def thrown_after_refusal(trace: Trace) -> int:
    """Return the most tokens that were drafted below rejected tokens in one step."""

    def below(step: dict) -> int:
        gone = set(refused(step))
        parents = step["nodes"]["parent"]
        for node, parent in enumerate(parents):
            if parent in gone:
                gone.add(node)
        return len(gone) - len(refused(step))

    return max(map(below, trace.steps), default=0)


def coins(trace: Trace, kept_by_chance: bool) -> int:
    """Return the number of judgements that the coin decided: acceptance was neither certain nor impossible.

    kept_by_chance: count the accepted tokens, or else the rejected tokens.
    """
    return sum(
        0 < entry["accept"] < 1 and (entry["coin"] < entry["accept"]) == kept_by_chance
        for step in trace.steps
        for entry in step["judgements"]
        if entry["coin"] is not None
    )


def draft_depth(trace: Trace) -> float:
    """Return how many tokens ahead a draft looks: the mean depth of its deepest node, over the steps with a draft."""
    steps = list(drafting(trace))
    return share(sum(max(step["nodes"]["depth"]) for step in steps), len(steps))


def whole_drafts(trace: Trace) -> float:
    """Return the share of steps that accept a branch to its deepest level, among steps whose draft is deeper than 1."""
    steps = [step for step in drafting(trace) if max(step["nodes"]["depth"]) > 1]
    return share(sum(len(kept(s)) == max(s["nodes"]["depth"]) for s in steps), len(steps))


def nothing_kept(trace: Trace) -> float:
    """Return the share of steps that accept no token, among the steps with a draft."""
    steps = list(drafting(trace))
    return share(sum(not kept(step) for step in steps), len(steps))


def clashes(trace: Trace) -> int:
    """Return the number of rejected nodes whose token also stands further up the same branch of the draft."""

    def twice(step: dict, node: int) -> bool:
        nodes, at = step["nodes"], step["nodes"]["parent"][node]
        while at >= 0:
            if nodes["token"][at] == nodes["token"][node]:
                return True
            at = nodes["parent"][at]
        return False

    return sum(twice(step, node) for step in trace.steps for node in refused(step))


def doubled(trace: Trace, alive: bool = False) -> int:
    """Return the number of drafted nodes that repeat the token of their parent; special tokens do not count. alive:
    count accepted nodes only."""

    def again(nodes: dict, node: int) -> bool:
        parent = nodes["parent"][node]
        word = not nodes["piece"][node].startswith("<")
        return parent >= 0 and word and nodes["token"][parent] == nodes["token"][node]

    return sum(
        again(step["nodes"], node)
        for step in trace.steps
        for node in (kept(step) if alive else range(len(step["nodes"]["token"])))
    )


def refused_where(trace: Trace, test: Callable[[str], bool]) -> float:
    """Return the share of recovered tokens whose text passes the test."""
    ends = [s["output"]["pieces"][-1] for s in trace.steps if s["output"]["final"] == "recovered"]
    return share(sum(map(test, ends)), len(ends))


def kept_in_context(trace: Trace) -> float:
    """Return the share of new tokens that were accepted from a draft copied from the context."""
    copied = sum(
        step["nodes"]["source"][node].startswith("context")
        for step in trace.steps
        for node in kept(step)
    )
    return share(copied, trace.summary["new_tokens"])


def spread(trace: Trace, letter: str) -> float:
    """Return the mean probability of the likeliest token over the places that the walk reached. letter: "p" or "q"."""
    tops = [
        max(entry[2] for entry in place[letter])
        for step in trace.steps
        for place in step["distributions"]
        if place[letter]
    ]
    return share(sum(tops), len(tops))


def milliseconds_a_token(trace: Trace) -> float:
    """Return the compute time for each new token in milliseconds, prefill included."""
    return share(trace.summary["milliseconds"]["total"], trace.summary["new_tokens"])


def stage(trace: Trace, name: str) -> float:
    """Return the milliseconds of one stage per step. name: of the stage."""
    return share(trace.summary["milliseconds"][name], trace.summary["steps"])


def exhibits(trace: Trace) -> int:
    """Return the number of steps whose drafter shows exhibits of its method."""
    return sum(bool((step.get("drafter") or {}).get("exhibits")) for step in trace.steps)


def refusals_a_kept(trace: Trace) -> float:
    """Return the number of rejected tokens for each accepted token."""
    return share(
        sum(len(refused(step)) for step in trace.steps),
        sum(len(kept(step)) for step in trace.steps),
    )


def strange_words(trace: Trace) -> int:
    """Return the number of different words in the text that are not in the prompt."""
    words = re.findall(r"[a-z]+", trace.summary["text"].split("<")[0].lower())
    return len(set(words) - set(re.findall(r"[a-z]+", trace.run["prompt"]["text"].lower())))


def without_target(trace: Trace) -> int:
    """Return the number of steps without a pass of the target."""
    return sum("passes" in step and not step["passes"].get("target") for step in trace.steps)


FIGURES: dict[str, Figure] = {
    "tokens": lambda trace: trace.summary["new_tokens"],
    "steps": lambda trace: trace.summary["steps"],
    "passes": lambda trace: trace.summary["target_calls"],
    "tokens_a_step": lambda trace: trace.summary["mean_accepted"],
    "acceptance_rate": lambda trace: trace.summary["acceptance_rate"] or 0.0,
    "longest_kept": lambda trace: len(trace.summary["accepted_histogram"]) - 1,
    "drafted_a_step": lambda trace: share(
        sum(len(step["nodes"]["token"]) for step in trace.steps), len(trace.steps)
    ),
    "most_drafted": lambda trace: max(len(step["nodes"]["token"]) for step in trace.steps),
    "draft_depth": draft_depth,
    "forks_saved": forks_saved,
    "thrown_after_refusal": thrown_after_refusal,
    "refusals_a_kept": refusals_a_kept,
    "strange_words": strange_words,
    "coins_kept": partial(coins, kept_by_chance=True),
    "coins_refused": partial(coins, kept_by_chance=False),
    "whole_drafts": whole_drafts,
    "nothing_kept": nothing_kept,
    "clashes": clashes,
    "doubled": doubled,
    "doubled_kept": partial(doubled, alive=True),
    "breaks": lambda trace: sum(s["output"]["final"] == "recovered" for s in trace.steps),
    "breaks_at_digits": partial(refused_where, test=lambda piece: piece.strip().isdigit()),
    "kept_in_context": kept_in_context,
    "surest_p": partial(spread, letter="p"),
    "surest_q": partial(spread, letter="q"),
    "milliseconds_a_token": milliseconds_a_token,
    "draft_milliseconds": partial(stage, name="draft"),
    "drafting_in_passes": lambda trace: share(stage(trace, "draft"), stage(trace, "verify")),
    "verify_milliseconds": partial(stage, name="verify"),
    "verify_milliseconds_a_row": lambda trace: share(
        stage(trace, "verify"), 1 + FIGURES["drafted_a_step"](trace)
    ),
    "exhibits": exhibits,
    "without_target": without_target,
}
