"""The one loop: draft, verify in one target pass, judge, commit. It is a generator.

Pause is not calling next, single-step is calling it once, cancel is closing it.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from engine.drafters.base import Drafter, Kept
from engine.language_model import LanguageModel, Session
from engine.sampling import Sampling, distribution, stream
from engine.tree import DraftTree
from engine.verifiers.base import Judgement, Verdict, Verifier

Stop = Literal["eos", "length", "context"]
STAGES = ("draft", "verify", "judge", "commit")


@dataclass
class Step:
    """One finished step.

    position: tokens committed before it. logits: [N+1, V] of the target, after the root and
    after each node; p: [N+1, V] what it was sampled from. output: the kept path and, unless final is ``none``, the final token.
    milliseconds: by stage. prefill_milliseconds: of the first step, 0 elsewhere.
    stop: why the run ends here, or None.
    """

    index: int
    position: int
    tree: DraftTree
    logits: Tensor
    p: Tensor
    verdict: Verdict
    output: list[int]
    final: Literal["bonus", "recovered", "none"]
    milliseconds: dict[str, float] = field(default_factory=dict)
    prefill_milliseconds: float = 0.0
    stop: Stop | None = None


def decode(
    target: LanguageModel,
    drafter: Drafter,
    verifier: Verifier,
    sampling: Sampling,
    prompt: Sequence[int],
    max_new_tokens: int,
) -> Iterator[Step]:
    """Write up to max_new_tokens after the prompt (at least one token long), a step at a time.

    Each step is one full-depth pass of the target over the root and the tree.
    """
    clock = _Clock(target)
    context = list(prompt)
    limit = min(len(prompt) + max_new_tokens, target.max_context)
    session = target.session(limit + 1, drafter.feature_layers)
    coins = stream(sampling.seed, "verify")
    features = session.prefill(context[:-1])
    drafter.begin(context, sampling, stream(sampling.seed, "draft"), features)
    prefill_milliseconds = clock.lap()
    stop, index = None, 0
    try:
        while stop is None:
            step = _step(session, drafter, verifier, sampling, context, limit, coins, clock)
            step.index, step.prefill_milliseconds = index, prefill_milliseconds
            context += step.output
            stop = step.stop = _why_stop(target, context, limit, len(prompt) + max_new_tokens)
            yield step
            clock.lap()  # what happened outside is not engine time
            prefill_milliseconds, index = 0.0, index + 1
    finally:
        drafter.close()


def _step(session, drafter, verifier, sampling, context, limit, coins, clock) -> Step:
    """Draft below the root, look at the tree in one pass, judge it, keep what may stay."""
    times = {}
    depth = min(limit, drafter.max_context) - len(context) - 1  # one place for the final token
    tree = DraftTree()
    if depth > 0:
        tree = drafter.propose(context, depth).truncated(depth)
    times["draft"] = clock.lap()
    logits, features = look_at(session, context[-1], tree)
    times["verify"] = clock.lap()
    p = distribution(logits, sampling).cpu()
    verdict = verifier.judge(tree, p, sampling, len(context), coins)
    verdict, final = cut_at_end(verdict, tree, session.model.end_tokens)
    output = [tree.tokens[node] for node in verdict.accepted]
    if final != "none":
        output.append(verdict.final_token)
    times["judge"] = clock.lap()
    rows = [0] + [node + 1 for node in verdict.accepted]
    session.commit(rows)
    kept = None if features is None else features[rows]
    drafter.observe(Kept(tree, verdict.accepted, output, logits, kept))
    times["commit"] = clock.lap()
    return Step(0, len(context), tree, logits, p, verdict, output, final, times)


def look_at(session: Session, root: int, tree: DraftTree) -> tuple[Tensor, Tensor | None]:
    """The target's one pass over the root (row 0) and the tree (node i in row i + 1)."""
    parents = [-1] + [parent + 1 for parent in tree.parents]
    return session.feed([root, *tree.tokens], parents)


def cut_at_end(verdict: Verdict, tree: DraftTree, ends: frozenset[int]) -> tuple[Verdict, str]:
    """Drop what was accepted beyond an end of text; there is no final token then."""
    for count, node in enumerate(verdict.accepted, start=1):
        if tree.tokens[node] in ends:
            return _first(verdict, tree, count), "none"
    return verdict, verdict.final


def _first(verdict: Verdict, tree: DraftTree, count: int) -> Verdict:
    """The verdict as if the walk had ended on its ``count``-th accepted node."""
    walk = verdict.walk[:count]
    places = set(walk)

    def judged(entry: Judgement) -> bool:
        return tree.parents[entry.node] in places

    status = [
        state if tree.parents[node] in places else "ignored"
        for node, state in enumerate(verdict.status)
    ]
    return Verdict(
        accepted=verdict.accepted[:count],
        status=status,
        judgements=[entry for entry in verdict.judgements if judged(entry)],
        final_token=verdict.final_token,
        final=verdict.final,
        walk=walk,
        residuals={place: r for place, r in verdict.residuals.items() if place in places},
    )


def _why_stop(target, context, limit, wanted) -> Stop | None:
    if context[-1] in target.end_tokens:
        return "eos"
    if len(context) < limit:
        return None
    return "length" if limit == wanted else "context"


class _Clock:
    """Milliseconds since the last lap; waits for the device, so that work is not misattributed."""

    def __init__(self, target: LanguageModel) -> None:
        self._device = target.device
        self._last = time.perf_counter()

    def lap(self) -> float:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        now = time.perf_counter()
        elapsed, self._last = (now - self._last) * 1000, now
        return elapsed
