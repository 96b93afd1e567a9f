"""Base class of drafters that build a draft from the marginals of a denoised block
(``engine.methods.shared.marginals``)."""

from engine.core.drafter import Drafter
from engine.methods.shared.marginals import BlockReader, feature_layers


class DiffusionDrafter(Drafter):
    """Base class of drafters that build a draft from the marginals that a block-diffusion drafter gives in one pass."""

    family = "diffusion"
    needs = {"diffusion": "denoiser"}

    def __init__(self, settings, drafter, target) -> None:
        super().__init__(settings)
        self.diffusion = drafter
        self.target = target
        self.feature_layers = feature_layers(drafter.config)

    @classmethod
    def build(cls, settings, models):
        return cls(settings, models.part("diffusion"), models.target)

    def begin(self, start):
        super().begin(start)
        self._reader = BlockReader(self.diffusion, self.target)
        self._reader.read(start.features)

    def _marginals(self, context, max_depth):
        return self._reader.marginals(context[-1], self._length(max_depth), self.sampling)

    def _length(self, max_depth):
        return min(self.settings["length"], self.diffusion.config.drafts, max_depth)

    def observe(self, kept):
        self._reader.read(kept.features)

    def passes(self):
        return {"diffusion": self._reader.passes}
