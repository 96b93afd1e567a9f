"""The draft model sees a tenth of a film: mostly the patches that the target looks at when it reads the question.

Ji et al., SpecVLM: Enhancing Speculative Decoding of Video LLMs via Verifier-Guided Token Pruning (EMNLP 2025). Nothing
is trained. First the patches with the most attention from the question's tokens, over all heads and layers, are kept
until they cover a share of this attention. Then other patches at even distances are added, so that no region and no
time is wholly unseen. A picture is pruned in the same way. The paper drafts a static tree of 25 nodes; here the draft
is a chain.
"""

import torch
from torch import Tensor

from engine.core.options import number
from engine.methods.shared.draft_chain import DraftChain
from engine.methods.shared.seen_patches import PartSeenChain, SeenPart
from engine.methods.shared.selector import Queries, attention
from engine.model.cache_view import read_again
from engine.model.session import Session

COVERED = 0.5  # the first stage ends when the kept patches have this share of the attention


class SpecVLMVideoDrafter(PartSeenChain):
    key = "specvlm_video"
    title = "Pruned picture, SpecVLM"
    summary = "A draft model writes a few tokens ahead and sees only the patches that matter to the target."
    options = (
        *DraftChain.options,
        number("share", 0.1, 0.0, 1.0, "Share seen").meaning(
            "How much of the picture or film the draft model sees; the target sees all of it."
        ),
    )
    uses_target = True

    def look(self, start):
        patches, share = len(self._target.patch_tokens), self.settings["share"]
        if not share:
            return None
        count = max(1, round(share * patches))
        scores = asked_for(start.target, start.prompt, patches)
        kept = pruned(scores, count)
        weights = torch.zeros(len(scores))
        weights[kept] = scores[kept] / scores.max()
        model = self._whole.seeing(self._target.pixels)
        return SeenPart(model, [model.patch_tokens[place] for place in kept], weights.tolist())


def asked_for(session: Session, prompt: list[int], patches: int) -> Tensor:
    """Return how much attention the question's tokens pay to each patch, [P]: the mean over tokens, heads and layers.
    session: the target's session, in which all of the prompt except its last token is committed. patches: the number P
    of patches."""
    watch = Queries()
    read_again(session, prompt[patches:], patches, watch)
    layers = [
        attention(queries, session.columns(layer)[0][0], patches).mean((0, 1))[:patches]
        for layer, queries in watch.taken().items()
    ]
    return torch.stack(layers).mean(0).cpu()


def pruned(scores: Tensor, count: int) -> list[int]:
    """Return the indices of the ``count`` patches that are kept, ascending. scores: [P], the attention on each
    patch."""
    kept: list[int] = []
    for place in scores.argsort(descending=True).tolist()[:count]:
        if scores[kept].sum() >= COVERED * scores.sum():
            break
        kept.append(place)
    rest = [place for place in range(len(scores)) if place not in kept]
    more = count - len(kept)
    return sorted(kept + [rest[(2 * turn + 1) * len(rest) // (2 * more)] for turn in range(more)])
