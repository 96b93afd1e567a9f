"""FSPAD: an EAGLE cell that samples features with token embeddings, and whose head does not have to use the predicted
feature itself.

Gui et al., "Boosting Lossless Speculative Decoding via Feature Sampling and Partial Alignment Distillation" (2024).
*Feature sampling*: a feature holds the distribution of the next token but not the token that was written. So the
token's embedding selects, in a wider space, which parts of the feature the cell uses. *Partial alignment*: predicting
the next feature and giving sharp logits are two tasks that disturb each other. So the state that is passed on learns
the first task, and a separate readout between this state and the head learns the second.

The paper names both modules and gives their purpose. Their exact form is ours: a gated map on the residual path, and a
linear map beside it. Both modules add nothing at first, so the cell starts as in the recipe ``eagle``. With begun=True
the new cell starts instead with the weights of an ``eagle`` cell that is already trained, which saves that training;
the result is compared with this cell.
"""

from dataclasses import replace

from engine.core.options import switch, whole
from engine.errors import UserError
from engine.methods.shared.eagle_cell import EagleCell
from engine.training.cell_training import new_cell
from engine.training.students.cell_student import CONTINUED, CellStudent, begun_by

EAGLES = {"layout": "eagle", "steps": 0, "vocabulary": 0}
"""The options of the ``eagle`` cell with which FSPAD is compared."""


class FSPADStudent(CellStudent):
    key = "fspad"
    summary = "an `eagle` cell with feature sampling and partial alignment"
    after = "eagle"
    options = (
        whole("wide", 2, 1, 8).meaning("The sampling space, in widths of a feature."),
        switch("sampling", True).meaning("Whether features are sampled."),
        switch("partial", True).meaning("Whether the head has a readout of its own."),
        switch("begun", False).meaning("Whether it starts with the weights of the part `eagle`."),
    )

    def __init__(self, target, settings, begun: EagleCell | None = None) -> None:
        super().__init__(target, {**settings, **EAGLES})
        wide = settings["wide"] * self.config.hidden_size if settings["sampling"] else 0
        self._shape = replace(self._shape, sampling_size=wide)
        if begun is not None and begun.config.layout == "eagle":
            self.rival = begun
        if settings["begun"]:
            if self.rival is None:
                raise UserError(
                    "There is no `eagle` cell with the layout of EAGLE-1 and 2 to begin with (begun=True): run the "
                    "recipe `eagle` first, or name its folder (--start)."
                )
            self.muon_rate, self.adam_rate = CONTINUED

    @classmethod
    def of(cls, teacher, settings):
        """Return the student. If a trained `eagle` cell exists, in the folder of --start or else in the folder of the
        recipe `eagle`, the student is compared with it."""
        folder = teacher.start or teacher.parts / cls.after
        if not (folder / "config.json").is_file():
            return cls(teacher.module, settings)
        return begun_by(cls, teacher, settings, folder)

    def start(self) -> EagleCell:
        cell = new_cell(self._shape, self.target, readout=self.settings["partial"])
        if self.settings["begun"]:
            cell.load_state_dict(self.rival.state_dict(), strict=False)
        return cell


STUDENT = FSPADStudent
