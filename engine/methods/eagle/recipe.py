"""Trains the cell of EAGLE.

With layout=eagle the cell reads the target's last state, with noise added, and learns the next state and the target's
distribution after it. With layout=eagle3 or speculators the cell reads the target's states at three lower layers, has
its own head, and learns only the distribution. vocabulary=N limits this head to the N most frequent tokens. With
head=target the head keeps the rows of the target's head for these tokens, and the saved files leave the head out.
steps=N unrolls N steps of a draft in which the cell's own states are fed back: this is EAGLE-3's training-time test,
which layout=eagle can also use in place of the loss on features. With --start a trained cell is trained further, and
its files record the accepted length before and after.
"""

from engine.core.options import choice, whole
from engine.training.students.cell_student import STEPS, CellStudent


class EagleStudent(CellStudent):
    key = "eagle"
    summary = "a cell that predicts the target's next features"
    options = (
        choice("layout", "eagle", ("eagle", "eagle3", "speculators")).meaning(
            "Of the files, and what the cell reads: the last state (eagle) or three lower ones."
        ),
        STEPS,
        whole("vocabulary", 0, 0, 1 << 20).meaning(
            "Tokens that a cell with a head of its own can draft, the most frequent ones (0: all)."
        ),
        choice("head", "own", ("own", "target")).meaning(
            "Whose rows the head of a cell with a vocabulary of its own has: its own, or the target's, unchanged."
        ),
    )


STUDENT = EagleStudent
