"""Mean accepted tokens of a greedy chain while its draft is being trained: greedy text does not depend on the draft,
so the target writes it once, the draft predicts at every place in it, and the steps are replayed afterwards."""

from __future__ import annotations

import torch
from torch import Tensor


def mean_accepted(matches: list[int]) -> float:
    """matches[t]: how many drafted tokens are right when the last committed token is t tokens into the text.
    New tokens / steps, the final token of each step included."""
    at = steps = 0
    while at < len(matches):
        at += matches[at] + 1
        steps += 1
    return len(matches) / max(1, steps)


def walked(kept: list[int], start: int) -> float:
    """Mean accepted tokens in a greedy text whose first token after the prompt stands at ``start``. kept[t]: how many
    drafted tokens are right with the text's token t as the root."""
    last = len(kept) - 1
    return mean_accepted([min(kept[at], last - at) for at in range(start - 1, last)])


def run_lengths(right: Tensor) -> Tensor:
    """bool [N, K] -> int [N]: how many are True before the first False."""
    return right.int().cumprod(dim=1).sum(dim=1)


def chain_lengths(right: Tensor, length: int) -> Tensor:
    """bool [S, T - 1], whether the token after each one is guessed -> int64 [S, T]: how many tokens of a chain of
    `length` after each token are right."""
    padded = torch.nn.functional.pad(right, (0, length), value=False)
    return padded.unfold(1, length, 1).long().cumprod(-1).sum(-1)


@torch.inference_mode()
def chain_matches(draft, text: list[int], start: int, length: int) -> list[int]:
    """A greedy chain of `length` from each place of text[start:]: right as long as the draft's argmax is the text."""
    tokens = torch.tensor(text)
    best = draft(input_ids=tokens[None], use_cache=False).logits[0, :-1].argmax(-1)
    return chain_lengths((best == tokens[1:])[None], length)[0, start - 1 : len(text) - 1].tolist()
