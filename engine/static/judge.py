"""The verdict made where the logits lie: one launch, and a few whole numbers come back."""

from collections.abc import Callable

import torch
from torch import Tensor

from engine.kernels.flat_tree import FlatTree
from engine.kernels.transfer import to_device
from engine.kernels.verify_tree import RULES, DeviceVerdict, verify_tree
from engine.sampling import Sampling, distribution, position_noise
from engine.tree import ROOT, DraftTree
from engine.verifiers.base import Verdict
from engine.verifiers.rejection import toss

STATUS = ("ignored", "rejected", "accepted")
FINAL = ("bonus", "recovered")


def knows(rule: str) -> bool:
    """Whether the kernel has this rule."""
    return rule in RULES


class DeviceJudge:
    """Judges as the verifier of this key would, with the same coins and the same noise.

    Its verdicts hold no judgements and no residuals: these are for a recorder.
    """

    def __init__(self, rule: str, sampling: Sampling, coins: torch.Generator) -> None:
        self._rule = rule
        self._sampling = sampling
        self._coins = Coins(coins)
        self._noise = NoiseRows(sampling.seed)

    def __call__(
        self, tree: DraftTree, logits: Tensor, position: int
    ) -> Callable[[], tuple[Verdict, None]]:
        """Launch it; what is returned waits for the verdict. One step at a time.

        logits: [N+1, V]. position: where the first drafted token would stand in the text.
        """
        vocabulary, device = logits.shape[-1], logits.device
        flat = FlatTree.of(tree, vocabulary, device)
        if tree.ids is not None:
            flat = flat.holding(tree.ids)
        rows, coins, noise = logits, None, None
        if self._rule != "greedy":
            rows = distribution(logits, self._sampling)
            depth = max(tree.depths, default=0)
            noise = self._noise.rows(position, depth + 1, vocabulary, device)
        if self._rule == "rejection":
            coins = to_device(self._coins.ahead(flat.draws.numel()), device)
        found = verify_tree(self._rule, rows, flat, coins, noise)
        return lambda: (self._verdict(tree, self.arrived(found)), None)

    @staticmethod
    def arrived(found: DeviceVerdict) -> list[int]:
        """The step's one wait for the device."""
        return found.numbers.tolist()

    def _verdict(self, tree: DraftTree, numbers: list[int]) -> Verdict:
        (count, token, final, tossed), rest = numbers[:4], numbers[4:]
        size = len(tree)
        accepted, kept, status = rest[:count], rest[size : size + count], rest[2 * size :]
        self._coins.spend(tossed)
        if tree.ids is not None:
            for node, its in zip(accepted, kept, strict=True):
                tree.tokens[node] = its
        return Verdict(
            accepted=accepted,
            status=[STATUS[state] for state in status],
            judgements=[],
            final_token=token,
            final=FINAL[final],
            walk=[ROOT, *accepted],
        )


class Coins:
    """Uniforms tossed ahead of their use; those not spent are the next step's first ones."""

    def __init__(self, generator: torch.Generator) -> None:
        self._generator = generator
        self._tossed: list[float] = []

    def ahead(self, count: int) -> Tensor:
        """[count] float64, without spending them."""
        while len(self._tossed) < count:
            self._tossed.append(toss(self._generator))
        return torch.tensor(self._tossed[:count], dtype=torch.float64)

    def spend(self, count: int) -> None:
        del self._tossed[:count]


class NoiseRows:
    """The noise of positions of the text, each made and sent to the device once."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._rows: dict[int, Tensor] = {}

    def rows(self, first: int, count: int, vocabulary: int, device: torch.device) -> Tensor:
        """[count, V] of the positions from ``first`` on; those before it are forgotten."""
        wanted = range(first, first + count)
        self._rows = {place: row for place, row in self._rows.items() if place >= first}
        for place in wanted:
            if place not in self._rows:
                noise = position_noise(self._seed, place, vocabulary)
                self._rows[place] = to_device(noise, device)
        return torch.stack([self._rows[place] for place in wanted])
