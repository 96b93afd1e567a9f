"""Trains a model not to repeat itself in stories (Welleck et al., 2020), on rows that are added to the windows of
training text.

Half of the rows are the model's own greedy continuations of beginnings of training stories. Where a token completes a
run of four tokens that occurred before, the loss makes this token less likely (the paper's loss on sequences). The
other half of the rows are training stories, whose cross-entropy is also learned. Where the same three tokens occurred
before in the story and were followed by another token, the loss makes that other token less likely (the paper's loss
on tokens). Other kinds of documents are not used, because in them repetition is right.
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
    tokens. logits: [n, V], for n positions. wanted, unwanted: a token for each position, int64 [n]. weights: the
    weights of the first term, [n]. unlikely: the weights of the second term, [n]."""
    usual = F.cross_entropy(logits, wanted, reduction="none")
    # 1 - p is computed as the sum over all other tokens, which is precise even if p is nearly 1
    others = logits.scatter(1, unwanted[:, None], float("-inf"))
    pushed = torch.logsumexp(logits, -1) - torch.logsumexp(others, -1)
    return (usual * weights + pushed * unlikely).sum()


def repeats(tokens: list[int], start: int = 0) -> list[int]:
    """The positions from `start` on whose token completes a run of ``RUN`` tokens that occurred before in the list."""
    seen, places = set(), []
    for end in range(RUN - 1, len(tokens)):
        run = tuple(tokens[end - RUN + 1 : end + 1])
        if run in seen and end >= start:
            places.append(end)
        seen.add(run)
    return places


def tempting(tokens: list[int]) -> dict[int, int]:
    """Position -> the token that followed when the three tokens before this position last occurred, for all positions
    at which the text has another token than that."""
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
    """n rows of tokens, int64 [n, LENGTH], with the arguments of `unlikely_loss` for each position: wanted and
    unwanted, int64 [n, LENGTH]; weights and unlikely, float [n, LENGTH]."""

    tokens: Tensor
    wanted: Tensor
    weights: Tensor
    unwanted: Tensor
    unlikely: Tensor

    def part(self, rows: slice) -> Rows:
        return Rows(*(x[rows] for x in vars(self).values()))


def _row(tokens: list[int], counted: bool, unwanted: dict[int, int], eos: int) -> list[Tensor]:
    """The tensors of one row, in the order of ``Rows``, for a text. counted: whether the text's cross-entropy is
    learned. unwanted: position -> a token that is made less likely at this position. In the tensors, the entries for a
    position are stored one position earlier, where the model predicts it."""
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
    """The rows of the model's greedy texts after these beginnings. In them, tokens that complete a repeated run are
    unwanted."""
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
    """`count` rows, in turn one of the model's own texts and one of the stories. stories: the token ids of training
    stories. seed: for the choice of stories."""
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
