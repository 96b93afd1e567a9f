"""The overlapped loop: the target checks drafted tokens while the drafter goes on drafting.

Liu et al., PEARL: Parallel Speculative Decoding with Adaptive Draft Length (2024). The loop is a generator, and nothing
runs between two steps.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from engine.core.attempt import Attempt
from engine.core.constraint import masked_tree
from engine.core.decode import begin
from engine.core.exhibits import Token, Words
from engine.core.finite import refuse_nan
from engine.core.prompt import PromptReading
from engine.core.proposal import Proposal
from engine.core.rule import Case, Final, Verdict
from engine.core.sampling import distribution
from engine.core.seen import Draft, Seen
from engine.core.simultaneous import Pair, Timed, pair_on
from engine.core.step import Clock, Span, Step, cut_at_end
from engine.core.target import Target
from engine.core.text import Outcome, Text, TextRequest
from engine.core.tree import DraftTree, Kind


def overlapped(
    target: Target,
    request: TextRequest,
    recorded: bool = True,
    reading: PromptReading | None = None,
) -> Iterator[Step]:
    """Write the requested text and yield each step; see ``engine.core.decode.decode``.

    In each step the target's pass runs over the root and the tokens that were drafted in the last step. Meanwhile the
    drafter, which must draft chains, drafts more tokens after them. Then the earlier tokens and the first of the new
    tokens are judged, because the target's pass gives p for all of these, but for no later token.

    *Pre-verify*: no tokens wait, so the first token of the new draft is checked while the rest of the draft is being
    written. *Post-verify*: tokens of the last step are checked while the draft goes on. If all judged tokens are kept,
    the other new tokens wait for the next step; after a rejection they are dropped. So a draft continues until a token
    is rejected.

    Exact with every rule that is exact for the drafter's kind of draw: each token is drawn from q given exactly the
    text before it, and it is judged only if all of that text was kept.

    The milliseconds of a step's stages add up to elapsed time: ``verify`` is the time of the target's pass, during
    which the drafter also runs, and ``draft`` is the time in which only the drafter ran. Spans use a clock that stands
    still while the caller has the step.
    """
    text = OverlappedText(target, request)
    clock = Clock(target.device, precise=True)
    elapsed = spent = begin(text, target, reading or PromptReading(request.prompt[:-1]), clock)
    del reading  # freed once the last text has begun
    pair = pair_on(target.device)
    try:
        while text.stop is None:
            step = text.step(pair, clock, elapsed)
            elapsed += sum(step.milliseconds.values())
            step.prefill_milliseconds, spent = spent, 0.0
            yield step
            clock.lap()  # the caller's time is not engine time
    finally:
        pair.close()
        text.drafter.close()


@dataclass(frozen=True)
class Guess:
    """A drafted token that may wait for a later step, with the data that judging it needs."""

    token: int
    kind: Kind
    law: Tensor | None
    q: float | None
    source: str


class OverlappedText(Text):
    """A text that may hold drafted tokens from one step to the next, before they are judged."""

    def __init__(self, target: Target, request: TextRequest) -> None:
        super().__init__(target, request)
        self._waiting: list[Guess] = []
        self._in_a_row = 0  # drafted tokens kept since the last rejection

    def step(self, pair: Pair, clock: Clock, elapsed: float) -> Step:
        """Make and finish one step. elapsed: engine milliseconds since the run began."""
        waiting = self._waiting
        question = Draft(self.context[-1], _chain(waiting), len(self.context))
        seen, fresh = self._both(pair, question)
        times = stage_times(seen, clock.lap())
        refuse_nan(seen.value.logits, self.target.name)
        tree = _chain([*waiting, *fresh.value])
        judged = tree.truncated(len(waiting) + bool(fresh.value))
        logits = masked_tree(seen.value.logits, question.tree, self.request.constraint)
        p = distribution(logits, self.sampling)
        verdict = self._judged(judged, question.position, logits, p)
        verdict, final = cut_at_end(verdict, judged, self.ending)
        final = self._final(final, verdict, read_on=len(judged) > len(waiting))
        goes_on = self._goes_on(verdict, judged)
        self._waiting = fresh.value[1:] if goes_on else []
        decided = judged if goes_on else tree  # the tokens that wait belong to a later step
        verdict.status = verdict.status + ["ignored"] * (len(decided) - len(judged))
        decided.exhibits.append(self._at_once(waiting, fresh.value, verdict))
        rows = len(decided) + 1
        attempt = Attempt(
            Proposal(decided),
            replace(question, tree=decided),
            replace(seen.value, logits=_padded(seen.value.logits, rows)),
            _padded(logits, rows),
            milliseconds=times,
        )
        step = self.finish(attempt, Outcome(verdict, final, _padded(p.cpu(), rows)), clock)
        step.spans = _spans(len(waiting), seen, fresh, elapsed)
        return step

    def _both(self, pair: Pair, question: Draft) -> tuple[Timed[Seen], Timed[list[Guess]]]:
        """Run the target's pass over ``question``, and at the same time draft after the last token of ``question``."""
        behind = [*self.context, *question.tree.tokens]
        room = min(self._limit, self.drafter.max_context) - len(behind)
        if self.request.most_nodes is not None:  # a shorter chain is exact: no drawn token decides
            room = min(room, self.request.most_nodes - len(question.tree))

        def draft() -> list[Guess]:
            return self._guesses(behind, room) if room > 0 else []

        return pair.run(lambda: self.session.look(question), draft)

    def _guesses(self, context: Sequence[int], room: int) -> list[Guess]:
        """A chain of at most ``room`` tokens drafted after ``context``. Raises ValueError for a tree that branches."""
        tree = self._proposal(context, room).tree
        if tree.parents != list(range(-1, len(tree) - 1)):
            raise ValueError(
                f"the drafter {self.drafter.key} drafts trees; the overlapped loop takes chains"
            )
        guesses = []
        for node, parent in enumerate(tree.parents):
            (draw,) = tree.draws[parent]
            law = None if draw.law is None else tree.laws[draw.law]
            guesses.append(
                Guess(tree.tokens[node], draw.kind, law, tree.q[node], tree.sources[node])
            )
        return guesses

    def _judged(self, judged: DraftTree, position: int, logits: Tensor, p: Tensor) -> Verdict:
        """The verdict on a chain, given logits and p [R, V] of the rows that the target read.

        If the target has not read the last judged token, p after that token is unknown. The rule then receives an
        arbitrary law for it, and the final token that it draws from that law is not used.
        """
        extra = len(judged) + 1 - len(p)
        unknown = torch.zeros_like(p[:extra])
        unknown[:, 0] = 1.0
        case = Case(
            judged,
            torch.cat([p, unknown]),
            torch.cat([logits, torch.zeros_like(logits[:extra])]),
            self.sampling,
            position,
            self.chance.judging,
        )
        return self.request.verifier.judge(case)

    def _final(self, final: Final, verdict: Verdict, read_on: bool) -> Final:
        """The kind of final token of the step, or None: a bonus token is dropped if its law is unknown or the text is
        full.
        read_on: whether the last judged token is one of the new tokens, which the target has not read."""
        full = len(self.context) + len(verdict.accepted) >= self._limit
        return None if final == "bonus" and (read_on or full) else final

    def _goes_on(self, verdict: Verdict, judged: DraftTree) -> bool:
        """Whether all judged tokens were kept and none of them ends the text."""
        kept = verdict.accepted
        ended = self.ending.first([judged.tokens[node] for node in kept]) is not None
        return len(kept) == len(judged) and not ended

    def _keep(self, seen: Seen, verdict: Verdict, final: Final) -> Tensor | None:
        """Commit the rows of those kept tokens that the target has read. If it has not read the last kept token, this
        token has no row yet and becomes the next root. So all rows are committed, as if the target had chosen a final
        token."""
        read = [node for node in verdict.accepted if node + 1 < self.session.rows]
        return super()._keep(seen, replace(verdict, accepted=read), "bonus")

    def _at_once(self, waiting: Sequence[Guess], fresh: Sequence[Guess], verdict: Verdict) -> Words:
        in_a_row = self._in_a_row + len(verdict.accepted)
        self._in_a_row = 0 if "rejected" in verdict.status else in_a_row
        checked = [Token(guess.token) for guess in [*waiting, *fresh[:1]]]
        written = [Token(guess.token) for guess in fresh]
        note = "Both lanes were at work at the same time."
        lines = [
            ["Target, checking: ", *checked],
            ["Draft, writing: ", *written],
            f"Drafted tokens kept since the last refusal: {in_a_row}.",
        ]
        return Words("Post-verify" if waiting else "Pre-verify", lines, note=note)


def _chain(guesses: Sequence[Guess]) -> DraftTree:
    tree, parent = DraftTree(), -1
    for guess in guesses:
        parent = tree.draw(parent, guess.token, guess.kind, guess.law, guess.source, guess.q)
    return tree


def _padded(rows: Tensor, count: int) -> Tensor:
    """rows [R, V] -> [count, V]. The added rows, which the target did not compute, are NaN."""
    missing = rows.new_full((count - len(rows), rows.shape[-1]), torch.nan)
    return torch.cat([rows, missing])


def stage_times(seen: Timed, wall: float) -> dict[str, float]:
    """The milliseconds of the stages of a step in which the target's pass and the drafter ran at the same time. wall:
    the step's elapsed milliseconds. verify: the time of the target's pass. draft: the rest, in which only the drafter
    ran."""
    verify = min(wall, seen.end - seen.start)
    return {"draft": wall - verify, "verify": verify}


def _spans(waiting: int, seen: Timed, fresh: Timed, elapsed: float) -> list[Span]:
    checks = f"post-verify, {waiting + 1} rows" if waiting else "pre-verify, 1 row"
    spans = [Span("target", checks, elapsed + seen.start, elapsed + seen.end)]
    if fresh.value:
        drafts = f"drafts {len(fresh.value)} more"
        spans.append(Span("draft", drafts, elapsed + fresh.start, elapsed + fresh.end))
    return spans
