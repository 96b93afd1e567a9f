"""Drafters without a model that remember the tokens that a target wrote or considered."""

from engine.core.drafter import Drafter


class RememberingDrafter(Drafter):
    """Keeps a store in the visitor's memory; the store's key must name the target, whose name is
    kept in ``_target``."""

    learns = True
    draw_kinds = ("one_hot",)

    @classmethod
    def build(cls, settings, models):
        drafter = cls(settings)
        drafter._target = models.folders.get("target", models.target.name)
        drafter._vocabulary = models.target.vocab_size
        return drafter
