"""Base class of drafters without a model that remember tokens which the target wrote or considered."""

from engine.core.drafter import Drafter


class RememberingDrafter(Drafter):
    """A drafter with a store in the visitor's memory. The store's key must contain ``_target``, the target's folder or
    name."""

    learns = True
    draw_kinds = ("one_hot",)

    @classmethod
    def build(cls, settings, models):
        drafter = cls(settings)
        drafter._target = models.folders.get("target", models.target.name)
        drafter._vocabulary = models.target.vocab_size
        return drafter
