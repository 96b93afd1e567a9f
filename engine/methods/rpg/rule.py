"""A repetition penalty by structure: p is weighed against repeating lines of one structure, and tokens are drawn from
the weighed p.

Dong et al., Rethinking Repetition Problems of LLMs in Code Generation (2025): RPG. The authors also raise the
probability of the end of the text where a block was repeated; that is left out here.
"""

from engine.core.options import number
from engine.methods.rpg.penalty import StructurePenalty
from engine.rules.sampler_match import SamplerMatch
from engine.rules.sentences import SAMPLER_MATCH


class StructureRepetition(SamplerMatch):
    """The penalty depends on the whole text, so it is computed along each path, for target and draft alike. With one
    seed, or at temperature 0, all drafters write the same text."""

    key = "rpg"
    title = "Repetition penalty by structure"
    summary = "weighs p against repeating lines of one structure, and keeps the child that equals the draw; another law"
    law = "sampling with a penalty on repeated structure"
    exact_kinds = frozenset()
    options = (
        number("decay", 0.9, 0.1, 1.0, "decay").meaning(
            "The logit of the token that would begin the structure again is multiplied by this, once for each repetition."
        ),
    )

    sentences = {
        name.replace(SamplerMatch.key, "rpg"): told.replace("from p", "from the weighed p")
        for name, told in SAMPLER_MATCH.items()
    }

    def weighing(self, target, prompt):
        if target.tokenizer is None:
            return None
        return StructurePenalty(target.tokenizer, prompt, self.settings["decay"])
