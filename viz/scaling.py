"""The figure of the scaling law on its card: acceptance against the size of the draft model, measured and by the fitted
law."""

import math
from collections.abc import Mapping


def scaling_exhibits(found: Mapping) -> list[dict]:
    """Return two curves over the logarithm of the draft model's parameters, with one line for each length of training.

    found: the result that the recipe ``scylla`` wrote, {"points", "held_out", "law", "predicted"}.
    """
    points, last = found["points"], found["held_out"]
    lengths = sorted({point["tokens"] for point in points})
    batches = sorted(point["batch"] for point in points)
    sizes = sorted({point["parameters"] for point in (*points, last)})
    measured = {(point["parameters"], point["tokens"]): point["acceptance"] for point in points}
    error = found["predicted"] - last["acceptance"]
    note = f"R² {found['law']['r2']:.3f}; error of the prediction {error:+.3f}"
    drafts = [
        {"name": f"trained on {length:,} tokens", "y": [measured.get((s, length)) for s in sizes]}
        for length in lengths
    ]
    held_out = [
        {"name": name, "y": [value if size == last["parameters"] else None for size in sizes]}
        for name, value in (
            ("held out, measured", last["acceptance"]),
            ("held out, predicted", found["predicted"]),
        )
    ]
    law = [
        {
            "name": f"by the law, {length:,} tokens",
            "y": [
                expected(found["law"], size, length, batches[len(batches) // 2]) for size in sizes
            ],
        }
        for length in lengths
    ]
    axis = {
        "kind": "curve",
        "x": [math.log10(size) for size in sizes],
        "x_label": "log10 of the draft’s parameters",
        "y_label": "acceptance",
    }
    return [
        {**axis, "title": "Acceptance by size of the draft", "series": drafts + held_out},
        {**axis, "title": "The fitted law", "note": note, "series": law},
    ]


def expected(law: Mapping, parameters: float, tokens: float, batch: float) -> float:
    """Return the acceptance that the law predicts for a draft model. tokens: of its training. batch: of its
    training."""
    values = {"parameters": parameters, "tokens": tokens, "batch": batch}
    return law["intercept"] + sum(
        slope * math.log10(values[name]) for name, slope in law["slopes"].items()
    )
