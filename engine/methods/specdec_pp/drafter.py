"""A chain that ends where a trained head expects that one of its tokens will be rejected.

Huang et al., SpecDec++: Boosting Speculative Decoding via Adaptive Candidate Lengths (2024). The draft model is run
over each drafted token, and the head predicts from its hidden state how likely this token is to be accepted. 1 minus
the product of these predictions is the chance that at least one token so far is rejected. Drafting ends when this
chance exceeds a threshold. The last token stays in the draft: it was drawn from q, and if drawn tokens were dropped
because of their values, the text would not follow the target's law.
"""

from torch import Tensor

from engine.core.drafter import Kept
from engine.core.exhibits import Later, Table, Token
from engine.core.options import number, whole
from engine.core.tree import DraftTree
from engine.methods.shared.draft_model import DraftModelDrafter
from engine.methods.specdec_pp.calibration_curve import CalibrationCurve
from engine.methods.specdec_pp.part import AcceptanceHead, check_draft


class SpecDecPlusPlusDrafter(DraftModelDrafter):
    key = "specdec_pp"
    title = "SpecDec++"
    family, shape = "chain", "chain"
    summary = "Drafts until a trained head expects that one of the drafted tokens will be refused."
    options = (
        whole("length", 12, 1, 32).meaning("Most tokens drafted in a step."),
        number("threshold", 0.8, 0.0, 1.0, "Chance of a refusal").meaning(
            "Draft no further once the chance that a token so far is refused exceeds this."
        ),
    )
    needs = {"draft": "draft", "specdec_pp": "acceptance_head"}
    reads_chains = True
    trial = {"length": 3, "threshold": 0.5}

    def __init__(self, settings, draft, vocabulary: int, head: AcceptanceHead) -> None:
        super().__init__(settings, draft, vocabulary)
        self.head = head
        self.draft_features = (draft.layers,)  # the states after the last layer and the final norm

    @classmethod
    def build(cls, settings, models):
        draft, head = models.part("draft"), models.part("specdec_pp")
        check_draft(head, draft.hidden_size, draft.name, models.folders.get("draft"))
        return cls(settings, draft, models.target.vocab_size, head)

    def begin(self, start):
        super().begin(start)
        self._curve = CalibrationCurve()
        self._chances: list[float] = []  # predictions for the tokens read since the last step

    def propose(self, context, max_depth):
        self._all_kept = 1.0
        length = min(self.settings["length"], max_depth)
        return self._chain(context, length, follows=self._hopeful)

    def _hopeful(self, tree: DraftTree, q: Tensor) -> bool:
        """Return whether to draft another token after the token over which the draft model was run last."""
        self._chances.append(self.head.chance(self._reader.states[-1]))
        self._all_kept *= self._chances[-1]
        return 1 - self._all_kept <= self.settings["threshold"]

    def observe(self, kept: Kept):
        super().observe(kept)
        tree, accepted = kept.tree, len(kept.path)
        happened = [True] * accepted + [False] * (len(tree) > accepted)
        self._curve.see(zip(self._chances, happened, strict=False))
        if len(tree):
            shown = list(tree.tokens), list(self._chances), happened
            tree.exhibits += [Later(lambda: table(*shown)), Later(self._curve.snapshot().shown)]
        self._chances = []


def table(tokens: list[int], chances: list[float], happened: list[bool]) -> Table:
    """Return a table of the drafted tokens. Each has its predicted chance, if the draft model was run over it, and its
    outcome, if it was judged."""
    rows, all_kept = [], 1.0
    for place, token in enumerate(tokens):
        chance = chances[place] if place < len(chances) else None
        all_kept = None if chance is None else all_kept * chance
        fate = ("kept" if happened[place] else "refused") if place < len(happened) else "not judged"
        refusal = None if all_kept is None else round(1 - all_kept, 3)
        rows.append([Token(token), chance and round(chance, 3), refusal, fate])
    note = (
        "The draft model did not read the last token, so it has no prediction."
        if len(chances) < len(tokens)
        else "The chance of a refusal exceeded the threshold."
    )
    columns = ["token", "chance to be kept", "chance of a refusal so far", "outcome"]
    return Table("Predictions and outcomes", columns, rows, note=note)
