"""Judges a tree on the device that holds the logits, so that only a few whole numbers come back to the host."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from engine.core.attempt import PendingVerdict
from engine.core.chance import JudgeChance
from engine.core.rule import Verdict
from engine.core.seen import Seen
from engine.core.transfer import to_device
from engine.core.tree import ROOT, DraftTree
from engine.errors import UserError
from engine.fast.gpu.device_tree import DeviceTree
from engine.fast.gpu.question import JudgedSeen, JudgingKey, Question, QuestionedDraft
from engine.fast.kernels.flat_tree import FlatTree, Places
from engine.fast.kernels.position_noise import noise_rows
from engine.fast.kernels.truncation import truncated
from engine.fast.kernels.verify_tree import NOT_A_NUMBER, RULES, verify_tree
from engine.model.language_model import LanguageModel

STATUS = ("ignored", "rejected", "accepted")
FINAL = ("bonus", "recovered")


def knows(rule: str) -> bool:
    """Whether the kernel ``verify_tree`` implements the rule with this key."""
    return rule in RULES


class DeviceJudge:
    """Judges trees as the CPU's verifier with the same key would, with the same coins and the same noise. The coins
    decide about rejection, and the noise draws tokens.

    Its verdicts hold no judgements and no residuals, because only a recorder needs these.
    """

    def __init__(
        self, key: JudgingKey, seed: int, chance: JudgeChance, target: LanguageModel
    ) -> None:
        self._key = key
        self._coins = Coins(chance)
        self._noise = NoiseRows(seed, target.vocab_size, target.device)

    def ask(self, tree: DraftTree, position: int) -> Question:
        """The question with which a pass judges this tree. position: where the tree's first token would stand in the
        text."""
        places = Places.of(tree)
        coins, noise = [], None
        if self._key.rule == "rejection":
            coins = self._coins.ahead(len(places.draws))
        if self._key.rule != "greedy":
            noise = self._noise.rows(position, tree.deepest + 1)
        return Question(self._key, places, coins, noise)

    def __call__(self, draft: QuestionedDraft, seen: Seen) -> PendingVerdict:
        """Return the pending verdict on the draft's tree. If the target's pass has not judged the tree, launch a kernel
        that does. The verdict of one step must be awaited before the next step is judged."""
        judged = isinstance(seen, JudgedSeen)
        numbers = seen.numbers if judged else self._launched(draft, seen.logits)
        return partial(self._awaited, draft, numbers)

    def _awaited(
        self, draft: QuestionedDraft, numbers: Callable[[], list[int]]
    ) -> tuple[Verdict, None]:
        if (noise := draft.question.noise) is not None:  # while the device is at work
            self._noise.make(draft.position + len(noise), len(noise))
        return self._verdict(draft.tree, self.arrived(numbers)), None

    def _launched(self, draft: QuestionedDraft, logits: Tensor) -> Callable[[], list[int]]:
        """Judge the tree in a kernel launch of its own. Returns a function that waits for the verdict's numbers and
        returns them. logits: [N+1, V]."""
        tree, question, device = draft.tree, draft.question, logits.device
        flat = FlatTree.of(tree, logits.shape[-1], device)
        if isinstance(tree, DeviceTree):
            flat = flat.holding(tree.ids)
        key, rows = question.key, logits
        if key.rule != "greedy":
            rows = truncated(logits, key.sampling)
        coins = to_device(torch.tensor(question.coins, dtype=torch.float64), device)
        return verify_tree(key.rule, rows, flat, coins, question.noise).numbers.tolist

    @staticmethod
    def arrived(numbers: Callable[[], list[int]]) -> list[int]:
        """Wait for the verdict's numbers and return them. No other call of a step waits for the device."""
        return numbers()

    def _verdict(self, tree: DraftTree, numbers: list[int]) -> Verdict:
        (count, final_token, final, tossed), rest = numbers[:4], numbers[4:]
        if final == NOT_A_NUMBER:
            raise UserError(
                "The model's scores are not numbers (NaN): its numbers overflow, "
                "which bfloat16 or float32 may prevent."
            )
        size = len(rest) // 3  # nodes of the tree, padding included
        accepted, tokens = rest[:count], rest[size : size + count]
        self._coins.spend(tossed)
        if isinstance(tree, DeviceTree):
            for node, accepted_token in zip(accepted, tokens, strict=True):
                tree.tokens[node] = accepted_token
        return Verdict(
            accepted=accepted,
            status=[STATUS[state] for state in rest[2 * size : 2 * size + len(tree)]],
            judgements=[],
            final_token=final_token,
            final=FINAL[final],
            walk=[ROOT, *accepted],
        )


class Coins:
    """Uniform numbers that are tossed before they are needed. Coins that one step does not spend are the first coins of
    the next."""

    def __init__(self, chance: JudgeChance) -> None:
        self._chance = chance
        self._tossed: list[float] = []

    def ahead(self, count: int) -> list[float]:
        """The next ``count`` coins, without spending them."""
        while len(self._tossed) < count:
            self._tossed.append(self._chance.toss())
        return self._tossed[:count]

    def spend(self, count: int) -> None:
        del self._tossed[:count]


class NoiseRows:
    """The noise for the positions of a text, computed once for each position and kept on the device."""

    def __init__(self, seed: int, vocabulary: int, device: torch.device) -> None:
        self._seed, self._vocabulary, self._device = seed, vocabulary, device
        self._rows: dict[int, Tensor] = {}

    def make(self, first: int, count: int) -> None:
        """Compute the noise of the ``count`` positions from ``first`` on, except where it exists already. Positions
        only grow, so the positions without noise are consecutive."""
        fresh = [place for place in range(first, first + count) if place not in self._rows]
        if fresh:
            noise = noise_rows(self._seed, fresh[0], len(fresh), self._vocabulary, self._device)
            self._rows |= zip(fresh, noise, strict=True)

    def rows(self, first: int, count: int) -> Tensor:
        """The noise [count, V] of the positions from ``first`` on; earlier positions are forgotten."""
        self._rows = {place: row for place, row in self._rows.items() if place >= first}
        self.make(first, count)
        return torch.stack([self._rows[first + place] for place in range(count)])
