"""The gate that picks the way in which a picture is made smaller."""

from engine.methods.shared.operator_gate import OperatorGate

KIND = OperatorGate.kind()
