"""A cell attends to a few latents (weighted sums) of the picture and drafts several tokens in one pass.

Wang et al., FLASH: Latent-Aware Semi-Autoregressive Speculative Decoding for Multimodal Tasks (2025); the cell is
described in ``engine.methods.flash_mm.part``. A longer draft takes further passes, each from the features and tokens of
the pass before. The draft is a chain and is judged one-hot: the likeliest token is taken at each position, and none is
drawn.
"""

from engine.core.drafter import Drafter
from engine.core.exhibits import Later, Matrix
from engine.core.options import whole
from engine.core.tree import ROOT, DraftTree
from engine.methods.flash_mm.latent_reader import LatentReader
from engine.methods.shared.block_walk import places_shown
from engine.methods.shared.draft_model import stop_option
from engine.model.captions import CaptionsModel


class FlashDrafter(Drafter):
    key = "flash_mm"
    title = "Latents of a picture, FLASH"
    family = "heads"
    summary = "A small cell reads a few latents of the picture and drafts five tokens in one pass."
    draw_kinds = ("one_hot",)
    shape = "chain"
    needs = {"flash_mm": "latent_cell"}
    options = (
        whole("length", 0, 0, 20).meaning(
            "Most tokens drafted in a step; each pass of the cell gives several (0: the fastest size for this machine, measured)."
        ),
        stop_option(
            0.3,
            "Make no further pass when the chance that everything so far is kept falls below this, by q",
        ),
    )
    size_option, usual_size = "length", 5
    trial = {"length": 4}

    def __init__(self, settings, cell, target) -> None:
        super().__init__(settings)
        self.cell, self.target = cell, target
        self.feature_layers = (target.layers,)

    @classmethod
    def build(cls, settings, models):
        return cls(settings, models.part("flash_mm"), models.target)

    def begin(self, start):
        super().begin(start)
        target = self.target
        sees = isinstance(target, CaptionsModel) and target.pixels is not None
        patches = len(target.patch_tokens) if sees else 0
        self._reader = LatentReader(self.cell, target, self.sampling, patches)
        self._reader.learn(start.features)
        self._stop_below = self.settings["stop_below"] if self.sampling.greedy else 0.0

    def propose(self, context, max_depth):
        tree, parent = DraftTree(), ROOT
        length = min(self.settings["length"], max_depth)
        tokens, laws = self._reader.next_tokens(context, length, self._worth_a_pass)
        for token, law in zip(tokens, laws, strict=True):
            parent = tree.draw(parent, token, "one_hot", law, "latent head")
        if tokens:
            tree.exhibits.append(Later(lambda: places_shown(laws, tokens)))
        if self._reader.shares is not None:
            tree.exhibits.append(self._shown())
        return tree

    def _worth_a_pass(self, laws) -> bool:
        return float(laws.amax(-1).prod()) >= self._stop_below

    def _shown(self) -> Matrix:
        shares = self._reader.shares.cpu()
        latents, patches = ([str(at + 1) for at in range(size)] for size in shares.shape)
        note = f"The draft reads {len(latents)} rows for the picture, in the place of {len(patches)} patches."
        values = [[round(share, 3) for share in row] for row in shares.tolist()]
        return Matrix("Patches in each latent", latents, patches, values, note=note)

    def observe(self, kept):
        self._reader.learn(kept.features)

    def passes(self):
        return {"flash_mm": self._reader.passes}
