"""Trains a model against repetition in stories (Welleck et al., 2020), on rows that are added to the windows of text.

Half of the rows are the model's own greedy continuations of beginnings of training stories. There, a token that
completes a run of four tokens which occurred before is made less likely (the paper's loss on sequences). The other half
are training stories. There, the cross-entropy is also learned; and where a story continues differently than it did
after the same three tokens before, the earlier next token is made less likely (the paper's loss on tokens). Other kinds
of documents are not used, because in them repetition is right.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.training.selftext import continue_batch

RUN = 4  # tokens of a run; a run that occurs twice is a repetition
LENGTH = 256  # tokens of a row
NEW_TOKENS = 200  # tokens of a continuation
ON_TOKENS = 0.5  # the weight of the loss on tokens, relative to the loss on sequences


def unlikely_loss(
    logits: Tensor, wanted: Tensor, weights: Tensor, unwanted: Tensor, unlikely: Tensor
) -> Tensor:
    """The weighted sum of the cross-entropy of the wanted tokens, plus the weighted sum of -log(1 - p) of the unwanted
    tokens. logits: [n, V]. wanted, unwanted: tokens, int64 [n]. weights, unlikely: the weights of the first and of the
    second term, [n]."""
    usual = F.cross_entropy(logits, wanted, reduction="none")
    # 1 - p is computed as the sum over all other tokens, which is precise even if p is nearly 1
    others = logits.scatter(1, unwanted[:, None], float("-inf"))
    pushed = torch.logsumexp(logits, -1) - torch.logsumexp(others, -1)
    return (usual * weights + pushed * unlikely).sum()


def repeats(tokens: list[int], start: int = 0) -> list[int]:
    """The places from `start` on whose token completes a run of ``RUN`` tokens that occurred before."""
    seen, places = set(), []
    for end in range(RUN - 1, len(tokens)):
        run = tuple(tokens[end - RUN + 1 : end + 1])
        if run in seen and end >= start:
            places.append(end)
        seen.add(run)
    return places


def tempting(tokens: list[int]) -> dict[int, int]:
    """Place -> the token that last followed the same three tokens, for all places at which the text has another
    token."""
    followed: dict[tuple, int] = {}
    unwanted = {}
    for place in range(RUN - 1, len(tokens)):
        before = tuple(tokens[place - RUN + 1 : place])
        if followed.get(before, tokens[place]) != tokens[place]:
            unwanted[place] = followed[before]
        followed[before] = tokens[place]
    return unwanted


@dataclass
class Rows:
    """Rows of tokens, int64 [n, LENGTH], and for each place of a row the arguments of `unlikely_loss`: wanted and
    unwanted, int64 [n, LENGTH]; weights and unlikely, float [n, LENGTH], each 1 or 0."""

    tokens: Tensor
    wanted: Tensor
    weights: Tensor
    unwanted: Tensor
    unlikely: Tensor

    def part(self, rows: slice) -> Rows:
        return Rows(*(x[rows] for x in vars(self).values()))


def _row(tokens: list[int], counted: bool, unwanted: dict[int, int], eos: int) -> list[Tensor]:
    """The tensors of a row, in the order of ``Rows``, for a text. counted: whether its cross-entropy is learned.
    unwanted: place -> a token that is made less likely there. What concerns the token at a place is stored one place
    earlier, where it is predicted."""
    tokens = tokens[:LENGTH]
    length = len(tokens)
    ids = torch.full((LENGTH,), eos)
    ids[:length] = torch.tensor(tokens)
    weights, unlikely, avoided = torch.zeros(LENGTH), torch.zeros(LENGTH), ids.roll(-1).clone()
    if counted:
        weights[: length - 1] = 1
    for place, token in unwanted.items():
        if 0 < place < length:
            avoided[place - 1], unlikely[place - 1] = token, 1
    return [ids, ids.roll(-1), weights, avoided, unlikely]


def _stacked(rows: list[list[Tensor]]) -> Rows:
    return Rows(*map(torch.stack, zip(*rows, strict=True)))


def rows_of_its_own(model, beginnings: list[list[int]], eos: int) -> Rows:
    """The rows of the model's greedy texts after these beginnings, whose repeated tokens are unwanted."""
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
    """`count` rows, in turn from the model's own texts and from stories. stories: the token ids of training stories.
    seed: of the random choice."""
    rng = random.Random(seed)
    chosen = rng.sample(stories, count)
    begun = [story[: rng.choice([4, 8, 12, 20, 40])] for story in chosen[: count // 2]]
    own, of_stories = rows_of_its_own(model, begun, eos), rows_of_stories(chosen[count // 2 :], eos)
    of_stories.unlikely *= ON_TOKENS
    columns = [
        torch.stack((a, b), 1).flatten(0, 1)
        for a, b in zip(vars(own).values(), vars(of_stories).values(), strict=True)
    ]
    return Rows(*columns)
