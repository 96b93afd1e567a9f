"""Trains DFlash2's candidate selector for any block drafter, which stays unchanged.

The selector learns the target's laws over the candidates at the positions of random blocks; the token before each
position is the text's own.
"""

from __future__ import annotations

from torch import Tensor, nn

from engine.core.options import whole
from engine.methods.lattice.drafter import LatticeDrafter
from engine.methods.lattice.part import CandidateSelector
from engine.training.students.block_students import Blocks, BlockStudent, principal

CANDIDATES = next(x.default for x in LatticeDrafter.options if x.name == "candidates")


class SelectorStudent(BlockStudent):
    key = "lattice"
    summary = "the candidate selector of `lattice`, on the diffusion drafter"
    options = (whole("rank", 16, 1, 4096).meaning("Rank of the selector."),)

    def start(self) -> CandidateSelector:
        sizes, rank = self.denoiser.config, self.settings["rank"]
        made = CandidateSelector(sizes.hidden_size, sizes.vocab_size, rank)
        made.embed_before.weight.data = principal(self.target.get_input_embeddings().weight, rank)
        nn.init.normal_(made.embed_after.weight, std=0.02)  # at first nearly no effect
        made.denoiser_digest = self.digest
        return made

    def scores(self, part: CandidateSelector, blocks: Blocks) -> tuple[Tensor, Tensor]:
        alone, candidates = blocks.logits.topk(CANDIDATES, dim=-1)
        return alone + part.transitions(blocks.hidden, blocks.befores, candidates), candidates


STUDENT = SelectorStudent
