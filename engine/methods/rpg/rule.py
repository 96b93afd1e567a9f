"""A repetition penalty by structure: the target's logits are penalised for repeating lines of one structure, and tokens
are drawn from the changed distribution.

Dong et al., Rethinking Repetition Problems of LLMs in Code Generation (2025): RPG. After a repeated block the authors
also raise the probability of the end of the text; this rule does not.
"""

from engine.core.options import number
from engine.methods.rpg.penalty import StructurePenalty
from engine.rules.sampler_match import SamplerMatch
from engine.rules.sentences import SAMPLER_MATCH


class StructureRepetition(SamplerMatch):
    """The penalty depends on the whole text before a token. So it is computed along each path of the draft tree, both
    for the target's logits and for the draft's. All drafters write the same text with the same seed, or at temperature
    0."""

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
