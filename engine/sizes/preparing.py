"""Prepares models before a text is timed: compiles the graphs for the numbers of rows that its passes will have."""

from engine.core.drafter import Drafter
from engine.core.load import Expected
from engine.model.language_model import LanguageModel
from engine.parts.loading import Models


def prepare(models: Models, drafter: Drafter, nodes: int, coming: Expected, greedy: bool) -> None:
    """Let the drafter and the language models compile what a run needs: passes over the prompt, and passes over drafts
    of up to ``nodes`` nodes. If the drafter's models write whole chains of their own likeliest tokens
    (``reads_chains``) and the run is greedy, passes for these chains are compiled as well. coming: the expected
    lengths of the text."""
    drafter.expect(coming)
    models.target.expect(drafter.feature_layers, nodes, coming)
    for part in models.parts.values():
        if isinstance(part, LanguageModel):
            part.expect((), nodes, coming)
            if drafter.reads_chains and greedy:
                part.expect_chains(drafter.draft_features, coming)
