"""Mean accepted tokens of a greedy chain while its draft is being trained: greedy text is the same whatever drafts it,
so the target writes it once, the draft is asked at every place of it, and the steps are walked afterwards."""

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
    """bool [N, K] -> int [N]: how many hold before the first that does not."""
    return right.int().cumprod(dim=1).sum(dim=1)


def chain_lengths(right: Tensor, length: int) -> Tensor:
    """bool [S, T - 1], whether the token behind each one is guessed -> int64 [S, T]: how many of a chain of `length`
    behind each token hold."""
    padded = torch.nn.functional.pad(right, (0, length), value=False)
    return padded.unfold(1, length, 1).long().cumprod(-1).sum(-1)


@torch.inference_mode()
def chain_matches(draft, text: list[int], start: int, length: int) -> list[int]:
    """A greedy chain of `length` from each place of text[start:]: right as long as the draft's argmax is the text."""
    tokens = torch.tensor(text)
    best = draft(input_ids=tokens[None], use_cache=False).logits[0, :-1].argmax(-1)
    return chain_lengths((best == tokens[1:])[None], length)[0, start - 1 : len(text) - 1].tolist()
