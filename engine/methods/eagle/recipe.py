"""Trains the cell of EAGLE (``engine.training.students.cell_student``)."""

from engine.training.students.cell_student import EagleStudent

STUDENT = EagleStudent
