"""Counts how many tokens of greedy chains would be accepted on a finished text, while a draft model is being trained.

A greedy text does not depend on the draft model. So the target writes it once. The draft model then predicts the next
token at every position of the text in one pass, and the steps of a run are reconstructed from these predictions.
"""

from __future__ import annotations

import torch
from torch import Tensor


def mean_accepted(matches: list[int]) -> float:
    """The mean number of new tokens per step of a greedy run, the final token of each step included. matches[t]: how
    many drafted tokens are right in a step that begins after t written tokens."""
    at = steps = 0
    while at < len(matches):
        at += matches[at] + 1
        steps += 1
    return len(matches) / max(1, steps)


def walked(kept: list[int], start: int) -> float:
    """The mean number of new tokens per step of a greedy run. start: the index in the text of the first token after
    the prompt. kept[t]: how many drafted tokens are right in a step whose root is token t."""
    last = len(kept) - 1
    return mean_accepted([min(kept[at], last - at) for at in range(start - 1, last)])


def run_lengths(right: Tensor) -> Tensor:
    """For each row of ``right``, bool [N, K], how many entries are True before the first False, int [N]."""
    return right.int().cumprod(dim=1).sum(dim=1)


def chain_lengths(right: Tensor, length: int) -> Tensor:
    """For each token as the root, how many tokens of a drafted chain of `length` are right before the first wrong one,
    int64 [S, T], for S texts of T tokens. right: bool [S, T - 1], whether the draft model predicts the next token of
    the text at each position."""
    padded = torch.nn.functional.pad(right, (0, length), value=False)
    return padded.unfold(1, length, 1).long().cumprod(-1).sum(-1)


@torch.inference_mode()
def chain_matches(draft, text: list[int], start: int, length: int) -> list[int]:
    """For each step that may begin within text[start:], how many tokens of a greedy chain of `length` by the draft
    model are right. The result is the argument ``matches`` of ``mean_accepted``."""
    tokens = torch.tensor(text)
    best = draft(input_ids=tokens[None], use_cache=False).logits[0, :-1].argmax(-1)
    return chain_lengths((best == tokens[1:])[None], length)[0, start - 1 : len(text) - 1].tolist()
