"""The model writes several tokens at once where it is sure enough of each.

Sun et al., "Decoding at the Speed of Thought: Harnessing Parallel Decoding of Lexical Units for LLMs" (2024).
Placeholders stand after the text, and one pass predicts the next token and the tokens at the placeholders. The longest
run of tokens that are all probable enough, a *lexical unit*, is written. These tokens are not checked, so the method is
lossy. In the paper the whole model is fine-tuned to predict tokens at placeholders. Here the target stays as it is, and
the placeholders are trained instead (``engine.methods.shared.prompt_tokens_part``).

Here a step drafts the unit that the previous pass predicted, so that the trace can show the tokens that the target
would have written instead. The method's own rule, ``engine.methods.lud.rule``, is lossy; under an exact rule the
drafter is exact.
"""

from engine.core.exhibits import Cell, Table, Token
from engine.core.options import number
from engine.core.tree import ROOT, DraftTree
from engine.methods.shared.probing import ProbingDrafter, sure_tokens


class LexicalUnitDrafter(ProbingDrafter):
    key = "lud"
    title = "Lexical units"
    family = "self"
    summary = "The model writes several tokens at once where it is sure of each, unchecked: lossy."
    needs = {"ppd": "prompt_tokens"}
    options = (
        number("sure", 0.9, 0.0, 1.0, "Confidence").meaning(
            "A unit ends before the first token that is less likely than this."
        ),
    )
    default_verifier = default_greedy_verifier = "lud"
    trial = {"sure": 0.0}

    def propose(self, context, max_depth):
        tree, parent = DraftTree(), ROOT
        laws = self._laws(context)
        guesses = sure_tokens(laws)
        unit = 0
        while unit < min(len(guesses), max_depth) and guesses[unit][1] >= self.settings["sure"]:
            token, _ = guesses[unit]
            parent = tree.draw(parent, token, "one_hot", laws[unit], "lexical unit")
            unit += 1
        proposal = self._asking_behind(tree, [parent], context)
        if guesses:
            tree.exhibits.append(self._said(guesses, unit))
        return proposal

    def _said(self, guesses: list[tuple[int, float]], unit: int) -> Table:
        rows: list[list[Cell]] = [
            [place + 1, Token(token), sure, "in the unit" if place < unit else "left out"]
            for place, (token, sure) in enumerate(guesses)
        ]
        title = f"What the placeholders predicted; a unit ends below {self.settings['sure']:g}"
        return Table(title, ["placeholder", "token", "probability", "outcome"], rows)
