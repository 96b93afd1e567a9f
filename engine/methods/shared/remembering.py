"""Base class of drafters without a model that store tokens which the target wrote or considered."""

from engine.core.drafter import Drafter


class RememberingDrafter(Drafter):
    """A drafter that keeps a store in the visitor's memory, so that later texts can use it. The key of the store must
    contain ``_target``, the target's folder or name."""

    learns = True
    draw_kinds = ("one_hot",)

    @classmethod
    def build(cls, settings, models):
        drafter = cls(settings)
        drafter._target = models.folders.get("target", models.target.name)
        drafter._vocabulary = models.target.vocab_size
        return drafter
