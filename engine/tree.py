"""The one structure in which every drafter hands over its guesses.

A chain is a tree with one branch. Beside the tokens stands what a verifier must know to be
exact: for each parent, how its children were proposed.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

if TYPE_CHECKING:
    from engine.gpu.shape import DeviceShape

ROOT = -1  # as a parent: the last committed token, which is no node of the tree

Kind = Literal["one_hot", "iid", "without_replacement"]


@dataclass
class Proposal:
    """How the children of one parent were proposed.

    kind: ``one_hot`` (picked by any means that does not know the verifier's randomness),
        ``iid`` (independent draws from q) or ``without_replacement`` (each draw from q without
        the tokens drawn before it).
    q: [V] the distribution drawn from, after temperature and truncation; None if there is none.
    draws: nodes in the order drawn. An i.i.d. draw that hits a token again repeats its node, so
        multiplicity is kept though equal children are one node.
    """

    kind: Kind
    q: Tensor | None = None
    draws: list[int] = field(default_factory=list)


@dataclass
class DraftTree:
    """Drafted tokens as flat arrays, parents before children.

    tokens, parents: one entry a node; the parent -1 is the root.
    q: the draft's probability of each node for display, or None where it has none.
    sources: what made the node (a drafter's key, "draft model", "context 17:20" ...).
    proposals: by parent.
    note: what this drafter wants to show of this step.
    ids: [N] int32, the tokens where they have not left the device yet (``tokens`` is -1 there), as
        happens only where nobody records; None elsewhere.
    shape: the parents where they have not left it either. Until they do (``unfold``), all nodes are
        children of the root here.
    """

    tokens: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    q: list[float | None] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    proposals: dict[int, Proposal] = field(default_factory=dict)
    note: dict = field(default_factory=dict)
    ids: Tensor | None = None
    shape: "DeviceShape | None" = None

    def __len__(self) -> int:
        return len(self.tokens)

    def add(self, parent: int, token: int, source: str, q: float | None = None) -> int:
        """Append a node under ``parent`` (a node index or ROOT); returns its index."""
        self.tokens.append(int(token))
        self.parents.append(parent)
        self.q.append(q)
        self.sources.append(source)
        return len(self.tokens) - 1

    def child(
        self,
        parent: int,
        kind: Kind,
        token: int,
        source: str,
        q: Tensor | None,
        shown: float | None = None,
    ) -> int:
        """One more draw under ``parent``: a new node, or the one that already holds the token.

        token: -1 where it is on the device only (``ids``). shown: its q, where that is known.
        """
        proposal = self.proposals.setdefault(parent, Proposal(kind, q))
        for node in proposal.draws:
            if self.tokens[node] == int(token):
                proposal.draws.append(node)
                return node
        if shown is None and q is not None and token >= 0:
            shown = float(q[token])
        node = self.add(parent, token, source, shown)
        proposal.draws.append(node)
        return node

    def children(self, parent: int) -> list[int]:
        """Distinct children in the order in which they were first drawn."""
        proposal = self.proposals.get(parent)
        return list(dict.fromkeys(proposal.draws)) if proposal else []

    @classmethod
    def unseen(cls, kind: Kind, source: str, ids: Tensor, shape: "DeviceShape") -> "DraftTree":
        """A tree that is on the device only."""
        size = len(ids)
        nodes = [-1] * size, [ROOT] * size, [None] * size, [source] * size
        proposals = {ROOT: Proposal(kind, None, list(range(size)))}
        return cls(*nodes, proposals, ids=ids, shape=shape)

    def unfold(self, parents: list[int]) -> None:
        """Learn the shape. Entries below ROOT, which stand at the end, are no nodes."""
        size = sum(parent >= ROOT for parent in parents)
        for part in (self.tokens, self.q, self.sources):
            del part[size:]
        self.parents, self.shape, self.ids = parents[:size], None, self.ids[:size]
        kind = self.proposals[ROOT].kind
        self.proposals = {}
        for node, parent in enumerate(self.parents):
            self.proposals.setdefault(parent, Proposal(kind)).draws.append(node)

    def fetch(self) -> None:
        """Wait for the device and learn all of what is there only."""
        if self.shape is not None:
            self.unfold(self.shape.parents.tolist())
            self.tokens, self.ids = self.ids.tolist(), None

    @property
    def deepest(self) -> int:
        """The depth of the deepest node, or more where the shape is not known."""
        return max(self.depths, default=0) if self.shape is None else self.shape.deepest

    @property
    def depths(self) -> list[int]:
        """Depth of each node; a child of the root has depth 1."""
        depths: list[int] = []
        for parent in self.parents:
            depths.append(1 if parent == ROOT else depths[parent] + 1)
        return depths

    def ancestor_mask(self) -> Tensor:
        """Bool [N+1, N+1]: may row i see column j? Row and column 0 are the root."""
        size = len(self.tokens) + 1
        mask = torch.zeros(size, size, dtype=torch.bool)
        mask[:, 0] = True
        for node, parent in enumerate(self.parents):
            if parent != ROOT:
                mask[node + 1] |= mask[parent + 1]
            mask[node + 1, node + 1] = True
        return mask

    def truncated(self, max_depth: int) -> "DraftTree":
        """The same tree without nodes deeper than max_depth.

        Exact under every rule, for depth never depends on a drawn value.
        """
        depths = self.depths
        if not depths or max(depths) <= max_depth:
            return self
        kept = [node for node, depth in enumerate(depths) if depth <= max_depth]
        ids = None if self.ids is None else self.ids[kept]
        index = {node: position for position, node in enumerate(kept)} | {ROOT: ROOT}
        return DraftTree(
            tokens=[self.tokens[node] for node in kept],
            parents=[index[self.parents[node]] for node in kept],
            q=[self.q[node] for node in kept],
            sources=[self.sources[node] for node in kept],
            proposals={
                index[parent]: Proposal(p.kind, p.q, [index[node] for node in p.draws])
                for parent, p in self.proposals.items()
                if parent in index and (0 if parent == ROOT else depths[parent]) < max_depth
            },
            note=self.note,
            ids=ids,
        )

    def check(self) -> None:
        """Raise ValueError where the arrays contradict one another: a drafter's bug."""
        lengths = {len(self.tokens), len(self.parents), len(self.q), len(self.sources)}
        if len(lengths) != 1:
            raise ValueError("the tree's arrays differ in length")
        drawn = {node: parent for parent, p in self.proposals.items() for node in p.draws}
        for node, parent in enumerate(self.parents):
            if not ROOT <= parent < node:
                raise ValueError(f"node {node} stands before its parent {parent}")
            if drawn.get(node, None) != parent:
                raise ValueError(f"node {node} is in no proposal of its parent")
        for parent, proposal in self.proposals.items():
            if not ROOT <= parent < len(self.tokens):
                raise ValueError(f"there is a proposal under {parent}, which is no node")
            if any(not 0 <= node < len(self.tokens) for node in proposal.draws):
                raise ValueError(f"a draw under {parent} is no node")
            if any(self.parents[node] != parent for node in proposal.draws):
                raise ValueError(f"a draw under {parent} is another's child")
            tokens = [self.tokens[node] for node in dict.fromkeys(proposal.draws)]
            if len(set(tokens)) != len(tokens):
                raise ValueError(f"two children of {parent} hold the same token")
            if proposal.kind != "one_hot" and proposal.q is None:
                raise ValueError(f"children of {parent} were drawn but their q is missing")
            if proposal.kind != "iid" and len(tokens) != len(proposal.draws):
                raise ValueError(f"a child of {parent} was proposed twice")
