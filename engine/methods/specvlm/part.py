"""A gate over ways to make a picture smaller."""

from engine.methods.shared.operator_gate import OperatorGate

KIND = OperatorGate.kind()
