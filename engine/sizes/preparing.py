"""Preparation before a text is timed: making the graphs for the sizes of its passes."""

from engine.core.drafter import Drafter
from engine.core.load import Expected
from engine.model.language_model import LanguageModel
from engine.parts.loading import Models


def prepare(models: Models, drafter: Drafter, nodes: int, coming: Expected, greedy: bool) -> None:
    """Have the drafter prepare itself, and the language models prepare for passes over the prompt and over up to
    ``nodes`` nodes, and for chains if the drafter reads them."""
    drafter.expect(coming)
    models.target.expect(drafter.feature_layers, nodes, coming)
    for part in models.parts.values():
        if isinstance(part, LanguageModel):
            part.expect((), nodes, coming)
            if drafter.reads_chains and greedy:
                part.expect_chains(drafter.draft_features, coming)
