"""The number of tokens per step by drafter and size, as measured when the models were trained: ``gains.json`` beside a
target or a part."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.parts.loading import Models

GAINS = "gains.json"


@dataclass(frozen=True)
class GainTable:
    """Gains measured at training time. gains: tokens per step, by drafter and size. prompts: one prompt for each kind
    of text over which the gains were averaged. Costs are measured on these prompts, because a drafter that is sure of
    its tokens writes longer drafts, which cost more."""

    gains: Mapping[str, Mapping[int, float]]
    prompts: Sequence[str]

    @classmethod
    def of(cls, content: dict) -> "GainTable":
        """The table in the content of the file, without drafters that have no sizes. Raises KeyError, TypeError,
        AttributeError or ValueError."""
        gains = {
            key: {int(size): float(gain) for size, gain in curve.items()}
            for key, curve in content["gains"].items()
            if curve
        }
        numbers = [number for curve in gains.values() for pair in curve.items() for number in pair]
        if not all(0 < number < math.inf for number in numbers):
            raise ValueError("a size or a gain is no positive number")
        return cls(gains, [str(prompt) for prompt in content["prompts"] if str(prompt).strip()])


def gain_table(models: Models) -> GainTable:
    """The gains and prompts from the files beside the target and the parts; empty if there are no files."""
    gains, prompts = {}, []
    for folder in models.folders.values():
        try:
            file_table = GainTable.of(json.loads((Path(folder) / GAINS).read_text("utf-8")))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
        gains |= file_table.gains
        prompts = file_table.prompts
    return GainTable(gains, prompts)
