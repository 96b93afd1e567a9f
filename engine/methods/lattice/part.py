"""DFlash2's candidate selector: it scores the candidates at a position of a block according to the token picked at the
position before.

DFlash2 (speculators 0.9, 2026): at a position with the state h, the score of candidate v after token u is the logit of
v plus sum_r P[u, r] (A h)_r S[v, r]. Letters in shapes: V vocabulary, C candidates of a position, R rank, H hidden
size. Published layout: ``candidate_selector.predecessor_codebook`` P [V, R], ``candidate_selector.successor_codebook``
S [V, R], ``candidate_selector.hidden_projection.weight`` A [R, H], in the same file as the tensors of the block
drafter. Here a folder may hold the selector alone.
"""

from __future__ import annotations

from torch import Tensor, nn

from engine.methods.shared.block_heads import DENOISER, BlockHeads, normal, shape_of

BEFORE, AFTER = "candidate_selector.predecessor_codebook", "candidate_selector.successor_codebook"
PROJECTION = "candidate_selector.hidden_projection.weight"


class CandidateSelector(BlockHeads):
    key, noun = "candidate_selector", "candidate selector"
    published = {
        BEFORE: "embed_before.weight",
        AFTER: "embed_after.weight",
        PROJECTION: "projection.weight",
    }

    def __init__(self, hidden: int, tokens: int, rank: int) -> None:
        """hidden: the size of a state. tokens: the size of the target's vocabulary. rank: R."""
        super().__init__()
        self.embed_before = nn.Embedding(tokens, rank)
        self.embed_after = nn.Embedding(tokens, rank)
        self.projection = nn.Linear(hidden, rank, bias=False)

    @classmethod
    def of_files(cls, config, tensors, target):
        tokens, rank = shape_of(tensors, BEFORE)
        return cls(shape_of(tensors, PROJECTION)[1], tokens, rank)

    def fields(self):
        hidden, rank = self.projection.in_features, self.projection.out_features
        return {
            "hidden_size": hidden,
            "selector_rank": rank,
            DENOISER: self.denoiser_digest,
        }

    @classmethod
    def tiny(cls, target, opener=None):
        """Return a selector for the tiny denoiser that changes its laws."""
        return normal(cls(target.hidden_size, target.vocab_size, 3), 0.7)

    def sizes(self):
        tokens = self.embed_before.num_embeddings
        return self.projection.in_features, tokens, tokens

    def transitions(self, hidden: Tensor, before: Tensor, candidates: Tensor) -> Tensor:
        """Return the terms [..., C] that are added to the logits of the candidates. hidden: [..., H], the states at the
        positions. before: int [...], the tokens before the positions. candidates: int [..., C]."""
        context = self.embed_before(before) * self.projection(hidden)
        return (context[..., None, :] * self.embed_after(candidates)).sum(-1)


KIND = CandidateSelector.kind()
