"""The trained gate that picks the operator by which a picture is made smaller."""

from engine.methods.shared.operator_gate import OperatorGate

KIND = OperatorGate.kind()
