"""One text that is being written: draft below its end, judge what the target said, keep what may stay."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from engine.drafters.base import Drafter, Kept
from engine.gpu.judge import Coming, DeviceJudge, knows
from engine.gpu.question import Draft, Law, Looked
from engine.gpu.unwatched import unwatched
from engine.sampling import Sampling, distribution, stream
from engine.step import Clock, Step, Stop, cut_at_end
from engine.target.language_model import LanguageModel
from engine.target.session import Session
from engine.transfer import to_device, to_host_meanwhile
from engine.tree import DraftTree
from engine.verifiers.base import Verdict, Verifier


@dataclass(frozen=True)
class Wanted:
    """Up to max_new_tokens after a prompt (at least one token long), and how to write them."""

    drafter: Drafter
    verifier: Verifier
    sampling: Sampling
    prompt: Sequence[int]
    max_new_tokens: int


class Writing:
    """The text so far and who works on it. The pass of the target between ``draft`` and ``settle``
    is the caller's, who may make it for several texts at once.

    on_device: judged where the logits lie, for nobody watches; see ``decode``.
    """

    def __init__(self, target: LanguageModel, wanted: Wanted, watched: bool) -> None:
        self._target = target
        self._sampling = sampling = wanted.sampling
        self._end = len(wanted.prompt) + wanted.max_new_tokens
        self._limit = min(self._end, target.max_context)
        self._steps = 0
        self.context = list(wanted.prompt)
        self.stop: Stop | None = None
        self.on_device = not watched and target.slots is not None and knows(wanted.verifier.key)
        coins = stream(sampling.seed, "verify")
        if self.on_device:
            self.drafter = unwatched(wanted.drafter)
            law = Law(wanted.verifier.key, replace(sampling, seed=0), self.drafter.kinds(sampling))
            self._judge = DeviceJudge(law, sampling.seed, coins, target)
        else:
            self.drafter = wanted.drafter
            self._judge = HostJudge(wanted.verifier, sampling, coins)

    @property
    def capacity(self) -> int:
        """Columns that its session should have to begin with."""
        return self._limit + 1

    def begin(self, session: Session, features: Tensor | None) -> None:
        """session: has read all but the root; features: of what it read."""
        self.session = session
        generator = stream(self._sampling.seed, "draft")
        self.drafter.begin(self.context, self._sampling, generator, features)

    def draft(self) -> Draft:
        """What may come next; no more than fits."""
        tree, position = self._proposed(), len(self.context)
        return Draft(self.context[-1], tree, position, self._judge.ask(tree, position))

    def _proposed(self) -> DraftTree:
        most = min(self._limit, self.drafter.max_context)
        depth = most - len(self.context) - 1  # one place for the final token
        if depth <= 0:
            return DraftTree()
        return self.drafter.propose(self.context, depth).truncated(depth)

    def judge(self, draft: Draft, looked: Looked) -> Coming:
        """Have the tree judged by the target's pass over root and tree."""
        return self._judge(draft, looked)

    def settle(
        self,
        draft: Draft,
        coming: Coming,
        looked: Looked,
        times: dict[str, float],
        clock: Clock,
    ) -> Step:
        """Take the verdict and keep what may stay. times: what the stages before took."""
        tree = draft.tree
        verdict, p = coming()
        verdict, final = cut_at_end(verdict, tree, self._target.end_tokens)
        output = [tree.tokens[node] for node in verdict.accepted]
        if final != "none":
            output.append(verdict.final_token)
        times["judge"] = clock.lap()
        rows = looked.kept([0] + [node + 1 for node in verdict.accepted])
        self.session.commit(rows)
        features = looked.features
        if features is not None:
            features = features[to_device(torch.tensor(rows), features.device)]
        self.drafter.observe(Kept(tree, verdict.accepted, output, looked.logits, features))
        times["commit"] = clock.lap()
        self.context += output
        self.stop = self._why_stop()
        self._steps += 1
        return Step(
            self._steps - 1, draft.position, tree, None if self.on_device else looked.logits, p, verdict,
            output, final, times, stop=self.stop,
        )  # fmt: skip

    def _why_stop(self) -> Stop | None:
        if self.context[-1] in self._target.end_tokens:
            return "eos"
        if len(self.context) < self._limit:
            return None
        return "length" if self._limit == self._end else "context"


class HostJudge:
    """A verifier on the host; its verdicts hold what a recorder shows.

    On a GPU p stays where it is, and the verifier fetches the rows of its walk. For the recorder
    the whole crosses meanwhile; the clock waits for it at the end of the stage.
    """

    def __init__(self, verifier: Verifier, sampling: Sampling, coins: torch.Generator) -> None:
        self._verifier, self._sampling, self._coins = verifier, sampling, coins

    def ask(self, tree: DraftTree, position: int) -> None:
        """Nothing more than logits."""

    def __call__(self, draft: Draft, looked: Looked) -> Coming:
        return partial(self._verdict, draft.tree, looked.logits, draft.position)

    def _verdict(self, tree: DraftTree, logits: Tensor, position: int) -> tuple[Verdict, Tensor]:
        p = distribution(logits, self._sampling)
        shown = p if self._sampling.greedy else to_host_meanwhile(p)
        return self._verifier.judge(tree, p, self._sampling, position, self._coins), shown
