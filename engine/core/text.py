"""A text in progress: draft tokens after the end of the text, judge the draft by the target's pass, keep the accepted
tokens."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch

import torch
from torch import Tensor

from engine.core.attempt import Attempt
from engine.core.bound import Bound
from engine.core.chance import Chance
from engine.core.constraint import Constraint, masked_tree
from engine.core.drafter import Drafter, Start
from engine.core.ending import Ending, StopStrings
from engine.core.finite import refuse_nan, refuse_nan_among
from engine.core.load import Acceptance, Load
from engine.core.memory import Memory
from engine.core.proposal import Proposal
from engine.core.rule import Case, Final, Verdict, Verifier
from engine.core.sampling import Sampling, distribution
from engine.core.seen import Draft, Seen
from engine.core.step import Clock, Step, Stop, cut_at_end
from engine.core.target import Session, Target
from engine.core.transfer import to_device, to_host_meanwhile
from engine.core.tree import DraftTree
from engine.errors import UserError


@dataclass(frozen=True)
class TextRequest:
    """A request for up to max_new_tokens after a prompt of at least one token.

    memory: what drafters and rules remember from the visitor's earlier texts; None begins a new memory. chance: the
    random numbers, given by tests; None derives them from the seed. most_nodes: the most nodes that a step's tree may
    have, forced tokens included; None means no limit. ends: tokens that end this text, besides the end tokens of the
    target. stop_strings: strings that end the text once the text contains one of them.
    """

    drafter: Drafter
    verifier: Verifier
    sampling: Sampling
    prompt: Sequence[int]
    max_new_tokens: int
    memory: Memory | None = None
    constraint: Constraint | None = None
    chance: Chance | None = None
    most_nodes: int | None = None
    ends: frozenset[int] = frozenset()
    stop_strings: StopStrings | None = None


class Text:
    """The text so far, with its target and its drafter.

    The caller makes the target's pass between ``draft`` and ``settle``, and may make one pass for several texts.
    """

    def __init__(self, target: Target, request: TextRequest, recorded: bool = True) -> None:
        """recorded: whether the steps hold all data that a recorder shows, such as logits and p."""
        self.recorded = recorded
        self.target = target
        self.request = request
        self.sampling = request.sampling
        self.drafter = request.drafter
        self.context = list(request.prompt)
        self.stop: Stop | None = None
        self.chance = request.chance or Chance.of(request.sampling.seed)
        ends = target.end_tokens | request.ends
        self.ending = Ending(ends, request.stop_strings, request.prompt)
        self._end = len(request.prompt) + request.max_new_tokens
        self._limit = min(self._end, target.max_context)
        self.deepest = math.inf  # the greatest depth of the next draft
        self._steps = 0
        self._drafted = 0  # nodes of the drafter's largest tree so far
        self.acceptance = Acceptance()
        self._counted: dict[str, int] = {}
        self._memory = request.memory if request.memory is not None else Memory()
        # masks p and q; a rule that tests single tokens does without masks
        self._mask = None if request.verifier.tests_tokens else request.constraint

    @property
    def capacity(self) -> int:
        """The number of columns with which the text's KV cache should begin."""
        return self._limit + 1

    @property
    def drafting(self) -> Sampling:
        """The drafter's sampling settings. They are the target's, because a draft that resembles the target is accepted
        most often."""
        return self.sampling

    def begin(self, session: Session, features: Tensor | None, load: Load | None = None) -> None:
        """Start the drafter. session: the target's session, which has read all prompt tokens except the last one (the
        root). features: the target's hidden states at the tokens that the session has read. load: the expected load of
        the first pass; None if the pass will be for this text only."""
        self.session = session
        if self.request.constraint is not None:
            self.request.constraint.begin(self._read_ahead)
        self.drafter.begin(
            Start(
                tuple(self.context),
                self.drafting,
                self.chance.drafting,
                features,
                session,
                self._memory,
                self._mask,
                load or Load(context=len(self.context)),
            )
        )

    def _read_ahead(self, tree: DraftTree) -> Tensor:
        """Return the target's logits [N+1, V] after the text and after each node of a tree, and leave no row of the
        tree in the session."""
        logits, _ = self.session.feed(*Draft(self.context[-1], tree, len(self.context)).rows)
        self.session.drop()
        return logits

    def draft(self) -> Attempt:
        """Return a draft of the next tokens. It is no deeper than the number of tokens that the text may still get."""
        proposal, forced = self._propose()
        draft = proposal.behind(forced)
        if draft.begun is None and self.session.rows:  # rows of another tree
            self.session.drop()
        return Attempt(
            proposal,
            Draft(
                self.context[-1],
                draft.tree,
                len(self.context),
                draft.probes,
                draft.begun,
                self.drafter.wants_features,
            ),
        )

    def _propose(self) -> tuple[Proposal, list[int]]:
        """Return the drafter's proposal, and the tokens that the constraint forces before the proposal."""
        most = min(self._limit, self.drafter.max_context)
        depth = min(most - len(self.context) - 1, self.deepest)  # one place for the final token
        forced = self._forced(min(depth, self._most_forced()))
        room = depth - len(forced)
        if room <= 0:
            return Proposal(DraftTree()), forced
        proposal = self._proposal([*self.context, *forced], room)
        self._refuse_many(len(proposal.tree), len(forced))
        refuse_nan_among(proposal.tree.q, f"The drafter {self.drafter.key}")
        self._drafted = max(self._drafted, len(proposal.tree))
        return proposal, forced

    def _proposal(self, context: Sequence[int], room: int) -> Proposal:
        """Return the drafter's proposal after these tokens, with no node deeper than ``room``."""
        return Proposal.of(self.drafter.propose(context, room)).truncated(room)

    def _most_forced(self) -> float:
        """Return the largest number of forced tokens that leaves room, within ``most_nodes``, for a whole tree of the
        drafter. The tree's size is taken from the options, or from the largest tree so far if that was larger. The size
        of the coming tree is not used, because it may depend on the tokens drawn."""
        most = self.request.most_nodes
        if most is None:
            return math.inf
        return max(0, most - max(self._drafted, self.drafter.most_nodes))

    def _refuse_many(self, nodes: int, forced: int) -> None:
        """Raise UserError if a draft has more nodes than ``most_nodes`` allows. Cutting the tree to size instead could
        make an exact rule lossy."""
        most = self.request.most_nodes
        if most is not None and nodes + forced > most:
            behind = f" behind {forced} forced tokens" if forced else ""
            raise UserError(
                f"With these options {self.drafter.title} drafts {nodes} nodes in a step{behind}; "
                f"at most {most} are allowed here."
            )

    def _forced(self, most: float) -> list[int]:
        """Up to ``most`` tokens that the constraint forces."""
        return [] if self._mask is None or most <= 0 else self._mask.forced((), int(most))

    def judge(self, attempt: Attempt, seen: Seen) -> Attempt:
        """Return the attempt with a verdict that is still pending. seen: the results of the target's pass over root and
        tree."""
        draft = attempt.draft
        logits = masked_tree(seen.logits, draft.tree, self._mask)
        bound = self._bound(seen.logits)

        def verdict() -> tuple[Verdict, Tensor | None]:
            refuse_nan(seen.logits, self.target.name)
            p = shown = None
            if self.recorded or self.request.verifier.reads_p:
                p = distribution(logits, self.sampling)
                # For the recorder, all of p is copied to the host while the verifier fetches the rows of its walk.
                shown = p if self.sampling.greedy else to_host_meanwhile(p)
            case = Case(
                draft.tree,
                p,
                logits,
                self.sampling,
                draft.position,
                self.chance.judging,
                seen.probes,
                draft.probes,
                bound,
            )
            return self.request.verifier.judge(case), shown

        return attempt.judged_by(verdict, seen, logits)

    def _bound(self, free: Tensor) -> Bound | None:
        """Return the constraint together with its text, as the rule needs it; None without a constraint. free: the
        target's unmasked logits [N+1, V]."""
        request = self.request
        if request.constraint is None:
            return None
        text, target = self.context[len(request.prompt) :], (self.target.name, id(self.target))
        return Bound(request.constraint, free, request.prompt, text, target, self._memory)

    def settle(self, attempt: Attempt, clock: Clock, load: Load | None = None) -> Step:
        """Compute the verdict and keep the accepted tokens. load: the load of the pass; None if the pass was for this
        text only."""
        verdict, p = attempt.judging()
        verdict, final = cut_at_end(verdict, attempt.draft.tree, self.ending)
        return self.finish(attempt, Outcome(verdict, final, p), clock, load)

    def finish(
        self, attempt: Attempt, outcome: Outcome, clock: Clock, load: Load | None = None
    ) -> Step:
        """Commit the accepted tokens and, if there is one, the final token. Returns the finished step."""
        draft, seen, times = attempt.draft, attempt.seen, attempt.milliseconds
        verdict = outcome.verdict
        output = [draft.tree.tokens[node] for node in verdict.accepted]
        if outcome.final is not None:
            output.append(verdict.final_token)
        times["judge"] = clock.lap()
        features = self._keep(seen, verdict, outcome.final)
        if self.request.constraint is not None:
            self.request.constraint.commit(output)
        self.ending.commit(output)
        own = (self.acceptance.chance,)
        load = load or Load(rows=draft.count, context=draft.position, chances=own)
        self.drafter.observe(attempt.kept(verdict, output, features, load))
        self.acceptance.see(*attempt.judged(verdict))
        times["commit"] = clock.lap()
        self.context += output
        self.stop = self._why_stop()
        self._steps += 1
        return Step(
            self._steps - 1,
            draft,
            attempt.logits if self.recorded else None,
            outcome.p,
            verdict,
            output,
            outcome.final,
            times,
            stop=self.stop,
            passes=self._passes(seen),
        )

    def _keep(self, seen: Seen, verdict: Verdict, final: Final) -> Tensor | None:
        """Commit the rows of the root and the accepted path, and return the features of these rows, or None if the pass
        returned none. If the step has no final token, the last accepted token is not committed but becomes the next
        root, which the next pass reads together with its tree."""
        rows = seen.places_of([0] + [node + 1 for node in verdict.accepted])
        self.session.commit(rows[:-1] if final is None else rows)
        features = seen.features
        if features is None or rows == list(range(len(features))):
            return features
        return features[to_device(torch.tensor(rows), features.device)]

    def _passes(self, seen: Seen) -> dict[str, int]:
        """Return the number of forward passes in this step, by model. The drafter counts its passes from the start of
        the text, so its count before the step is subtracted."""
        now = dict(self.drafter.passes())
        own = {role: count - self._counted.get(role, 0) for role, count in now.items()}
        self._counted = now
        looked = {} if seen.logits is None else {"target": 1}
        return looked | {role: count for role, count in own.items() if count}

    def _why_stop(self) -> Stop | None:
        ended = self.ending.why(self.context[-1])
        if ended is not None:
            return ended
        if len(self.context) < self._limit:
            return None
        return "length" if self._limit == self._end else "context"


@dataclass(frozen=True)
class Outcome:
    """The outcome of a step's tree.

    p: [N+1, V], the distributions sampled from, for a recorder; None if the target made no pass. A row that the target
    did not compute is NaN.
    """

    verdict: Verdict
    final: Final
    p: Tensor | None = None


@singledispatch
def text_of(target: Target, request: TextRequest, recorded: bool) -> Text:
    """The ``Text`` that serves a request on this kind of target; see ``engine.core.decode.decode``."""
    return Text(target, request, recorded)
