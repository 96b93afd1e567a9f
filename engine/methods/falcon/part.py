"""The kind of part that is a Falcon cell."""

from engine.methods.falcon.falcon_cell import FalconCell

KIND = FalconCell.kind()
