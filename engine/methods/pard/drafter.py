"""A draft model that drafts all tokens in one pass.

PARD (An et al., "PARD: Accelerating LLM Inference with Low-Cost PARallel Draft Model Adaptation", 2025): a draft model
is trained further, on masks that stand after the text. At each mask the model then gives the law of the token after the
mask's position.
"""

from engine.core.exhibits import Later
from engine.core.options import whole
from engine.methods.pard.part import mask_of
from engine.methods.shared.block_walk import blind, places_shown
from engine.methods.shared.draft_model import DraftModelDrafter


class PardDrafter(DraftModelDrafter):
    key = "pard"
    title = "Draft model in one pass, PARD"
    family, shape = "chain", "chain"
    summary = "A draft model reads masks behind the text and writes all tokens ahead in one pass."
    needs = {"pard": "pard"}
    options = (
        whole("length", 0, 0, 32).meaning(
            "Tokens drafted in each step (0: the fastest size for this machine, measured)."
        ),
    )
    size_option, usual_size = "length", 7
    trial = {"length": 2}

    @classmethod
    def build(cls, settings, models):
        return cls(settings, models.part("pard"), models.target.vocab_size)

    def propose(self, context, max_depth):
        length = min(self.settings["length"], max_depth)
        marginals = self._reader.read_masks(context, mask_of(self.draft), length).cpu()
        tree = blind(marginals, self.sampling, self.chance)
        tokens = list(tree.tokens)
        tree.exhibits.append(Later(lambda: places_shown(marginals, tokens)))
        return tree

    def passes(self):
        return {"pard": self._reader.passes}
