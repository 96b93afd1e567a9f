"""Unlearning of repetition in stories (Welleck et al., 2020), on rows that are added to the usual windows.

Half of the rows are the model's own greedy continuations of beginnings of training stories: a token that completes
a run of four tokens for the second time is made less likely (the paper's loss on sequences). The other half are the
stories themselves: in addition to the usual loss, the token that earlier followed the same three tokens is made
less likely where the story continues differently (the paper's loss on tokens). Other documents are left alone,
because repetition is right there.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.training.selftext import continue_batch

RUN = 4  # tokens that make a repetition
LENGTH = 256  # of a row
NEW_TOKENS = 200
ON_TOKENS = 0.5  # weight of the loss on tokens relative to that on sequences


def unlikely_loss(
    logits: Tensor, wanted: Tensor, weights: Tensor, unwanted: Tensor, unlikely: Tensor
) -> Tensor:
    """Weighted sums of the cross-entropy of the wanted tokens and of the unlikelihood, -log(1 - p), of the unwanted ones.
    logits [n, V]; the tokens int64 [n]; weights and unlikely, the weights of the two terms, [n]."""
    usual = F.cross_entropy(logits, wanted, reduction="none")
    # 1 - p is summed over the other tokens, so that it keeps its precision where p is nearly one
    others = logits.scatter(1, unwanted[:, None], float("-inf"))
    pushed = torch.logsumexp(logits, -1) - torch.logsumexp(others, -1)
    return (usual * weights + pushed * unlikely).sum()


def repeats(tokens: list[int], start: int = 0) -> list[int]:
    """The places at or after `start` whose token completes a run that occurred before."""
    seen, found = set(), []
    for end in range(RUN - 1, len(tokens)):
        run = tuple(tokens[end - RUN + 1 : end + 1])
        if run in seen and end >= start:
            found.append(end)
        seen.add(run)
    return found


def tempting(tokens: list[int]) -> dict[int, int]:
    """Place -> the token that last followed the same three tokens, where the text has another token."""
    followed: dict[tuple, int] = {}
    found = {}
    for place in range(RUN - 1, len(tokens)):
        before = tuple(tokens[place - RUN + 1 : place])
        if followed.get(before, tokens[place]) != tokens[place]:
            found[place] = followed[before]
        followed[before] = tokens[place]
    return found


@dataclass
class Rows:
    """tokens, wanted, unwanted int64 [n, LENGTH]; weights, unlikely float [n, LENGTH]: the arguments of
    `unlikely_loss`; the weights are one or zero."""

    tokens: Tensor
    wanted: Tensor
    weights: Tensor
    unwanted: Tensor
    unlikely: Tensor

    def part(self, rows: slice) -> Rows:
        return Rows(*(x[rows] for x in vars(self).values()))


def _row(tokens: list[int], counted: bool, unwanted: dict[int, int], eos: int) -> list[Tensor]:
    """Everything about the token at a place is stored one place earlier, where the token is predicted."""
    tokens = tokens[:LENGTH]
    length = len(tokens)
    ids = torch.full((LENGTH,), eos)
    ids[:length] = torch.tensor(tokens)
    weights, unlikely, other = torch.zeros(LENGTH), torch.zeros(LENGTH), ids.roll(-1).clone()
    if counted:
        weights[: length - 1] = 1
    for place, token in unwanted.items():
        if 0 < place < length:
            other[place - 1], unlikely[place - 1] = token, 1
    return [ids, ids.roll(-1), weights, other, unlikely]


def _stacked(rows: list[list[Tensor]]) -> Rows:
    return Rows(*map(torch.stack, zip(*rows, strict=True)))


def rows_of_its_own(model, beginnings: list[list[int]], eos: int) -> Rows:
    """The model's greedy texts after these beginnings, with their repetitions as unwanted tokens."""
    rows = []
    for begun, added in zip(
        beginnings, continue_batch(model, beginnings, NEW_TOKENS, 0.0, eos), strict=True
    ):
        text = begun + added
        again = {place: text[place] for place in repeats(text, len(begun))}
        rows.append(_row(text, False, again, eos))
    return _stacked(rows)


def rows_of_stories(stories: list[list[int]], eos: int) -> Rows:
    return _stacked([_row([*story, eos], True, tempting(story), eos) for story in stories])


def make_rows(model, stories: list[list[int]], count: int, eos: int, seed: str) -> Rows:
    """`count` rows, both kinds in turn. stories: token ids of training stories."""
    rng = random.Random(seed)
    chosen = rng.sample(stories, count)
    begun = [story[: rng.choice([4, 8, 12, 20, 40])] for story in chosen[: count // 2]]
    own, given = rows_of_its_own(model, begun, eos), rows_of_stories(chosen[count // 2 :], eos)
    given.unlikely *= ON_TOKENS
    both = [
        torch.stack((a, b), 1).flatten(0, 1)
        for a, b in zip(vars(own).values(), vars(given).values(), strict=True)
    ]
    return Rows(*both)
