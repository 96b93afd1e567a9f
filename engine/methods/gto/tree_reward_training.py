"""The reward of a draft tree: the accepted length that can be expected from the target.

Hu et al., "Bridging Draft Policy Misalignment: Group Tree Optimization for Speculative Decoding" (2025). A cell in
training drafts trees after positions of a text, with the drafter's own policy, and the target runs over all trees of a
batch in one pass. The expected accepted length of a branch is the sum of the target's probabilities of its prefixes.
The reward of a tree is a smooth maximum over its branches.

Letters in shapes: S windows, T tokens of a window, R rows of a window's trees, N nodes of a tree, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.core.sampling import Sampling
from engine.core.tree import ROOT
from engine.methods.shared.cell_tree import drafted_below
from engine.methods.shared.eagle_cell import EagleCell
from engine.methods.shared.eagle_reader import EagleReader


@dataclass(frozen=True)
class Policy:
    """The drafter's options that shape a tree."""

    nodes: int
    depth: int
    top_k: int


@dataclass(frozen=True)
class GrownTree:
    """A drafted tree. root: the position of the root token in the window. tokens, parents: one entry per node, parents
    first; a parent is a node or ROOT."""

    root: int
    tokens: list[int]
    parents: list[int]

    def __len__(self) -> int:
        return len(self.tokens)


@dataclass(frozen=True)
class Lender:
    """The modules of the target that an EAGLE cell uses while it drafts in training."""

    embed: Callable[[Tensor], Tensor]
    head: Callable[[Tensor], Tensor]
    vocab_size: int
    device: torch.device

    @classmethod
    def of(cls, target) -> Lender:
        head = target.get_output_embeddings()
        return cls(target.get_input_embeddings(), head, head.weight.shape[0], target.device)

    def readable(self, tokens: Sequence[int]) -> Sequence[int]:
        return tokens


@torch.no_grad()
def grown(
    cell: EagleCell,
    lender: Lender,
    features: Tensor,
    tokens: Sequence[int],
    roots: Sequence[int],
    policy: Policy,
) -> list[GrownTree]:
    """Return the trees that a drafter with this cell would propose in one window, one tree per root.

    features: [T, n*Ht], the states of n layers of the target, of size Ht each, at the window's tokens. tokens: [T], of
    the window. roots: positions in the window, ascending, the first at least 1.
    """
    reader, trees, read_to = EagleReader(cell, lender, Sampling()), [], 0
    for root in roots:
        reader.learn(features[read_to:root])
        read_to = root
        level = reader.catch_up(tokens[: root + 1])
        levels = min(policy.depth, policy.nodes)
        drafted = drafted_below(reader, level, policy.nodes, levels, policy.top_k)
        best_candidates = sorted(drafted.candidates.best(policy.nodes))
        place = {ROOT: ROOT} | {candidate: node for node, candidate in enumerate(best_candidates)}
        trees.append(
            GrownTree(
                root,
                [drafted.candidates.tokens[candidate] for candidate in best_candidates],
                [place[drafted.candidates.parents[candidate]] for candidate in best_candidates],
            )
        )
    return trees


@torch.no_grad()
def laws_of(target, tokens: Tensor, trees: Sequence[Sequence[GrownTree]]) -> list[list[Tensor]]:
    """Return the target's distributions [N, V] after the nodes of each tree, as a list of tensors for each window.

    tokens: int64 [S, T]. trees: for each window, any number of trees.
    """
    cache = target(input_ids=tokens, use_cache=True, logits_to_keep=1).past_key_values
    length, device = tokens.shape[1], tokens.device
    widest = max(sum(map(len, window_trees)) for window_trees in trees)
    ids = torch.zeros(len(trees), widest, dtype=torch.long)
    places = torch.zeros_like(ids)
    sees = torch.zeros(len(trees), widest, length + widest, dtype=torch.bool)
    sees[:, :, 0] = True  # rows that pad the batch must also see something
    for window, window_trees in enumerate(trees):
        first = 0
        for tree in window_trees:
            for node, (token, parent) in enumerate(zip(tree.tokens, tree.parents, strict=True)):
                row, above = first + node, first + parent
                ids[window, row] = token
                if parent == ROOT:
                    places[window, row] = tree.root + 1
                    sees[window, row, : tree.root + 1] = True
                else:
                    places[window, row] = places[window, above] + 1
                    sees[window, row] = sees[window, above]
                sees[window, row, length + row] = True
            first += len(tree)
    dtype = target.dtype
    mask = torch.zeros(sees.shape, dtype=dtype).masked_fill_(~sees, torch.finfo(dtype).min)
    logits = target(
        input_ids=ids.to(device),
        attention_mask=mask[:, None].to(device),
        position_ids=places.to(device),
        past_key_values=cache,
        use_cache=True,
    ).logits
    laws = []
    for rows, window_trees in zip(logits.float().softmax(-1), trees, strict=True):
        sizes = list(map(len, window_trees))
        laws.append(list(rows[: sum(sizes)].split(sizes)))
    return laws


def reward(tree: GrownTree, behind: Tensor, laws: Tensor, eta: float) -> float:
    """Return log(sum of exp(eta * expected accepted length)) / eta, where the sum is over the tree's branches. behind:
    [V], the distribution after the root. laws: [N, V], the distributions after the nodes."""
    reached, lengths = {ROOT: 1.0}, {ROOT: 0.0}
    for node, (token, parent) in enumerate(zip(tree.tokens, tree.parents, strict=True)):
        law = behind if parent == ROOT else laws[parent]
        reached[node] = reached[parent] * float(law[token])
        lengths[node] = lengths[parent] + reached[node]
    ends = set(range(len(tree))) - set(tree.parents)
    most = max(lengths[end] for end in ends)
    return most + math.log(sum(math.exp(eta * (lengths[end] - most)) for end in ends)) / eta


def longest_accepted(tree: GrownTree, behind: Tensor, laws: Tensor) -> list[int]:
    """Return the tokens of the tree that greedy verification keeps."""
    children = {pair: node for node, pair in enumerate(zip(tree.parents, tree.tokens, strict=True))}
    tokens, at = [], ROOT
    while True:
        best = int((behind if at == ROOT else laws[at]).argmax())
        if (at, best) not in children:
            return tokens
        tokens.append(best)
        at = children[at, best]


def advantages(current: Tensor, reference: Tensor, least: float = 1e-6) -> Tensor:
    """Return by how much each tree's reward exceeds that of the reference's tree at the same place, standardized within
    each group, [S, G].

    current, reference: the rewards [S, G] of the trees of the cell in training, and of those of the reference, the cell
    before this training.
    """
    better = current - reference
    mean = better.mean(-1, keepdim=True)
    return (better - mean) / (better.std(-1, correction=0, keepdim=True) + least)
