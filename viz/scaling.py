"""The figure of the scaling law: acceptance against the size of the draft, with the fitted law."""

import math
from collections.abc import Mapping

import plotly.graph_objects as go

from viz.look import COLOURS, figure

LINES = ("#8b95a5", "#9a6fb0", "#2f7fc1", "#138a66")


def scaling_figure(found: Mapping) -> go.Figure:
    """found: the result that the recipe `scylla` wrote, {"points", "held_out", "law", "predicted"}."""
    drawn = figure("Acceptance by size of the draft", "parameters", "acceptance", key=True)
    points, last = found["points"], found["held_out"]
    lengths = sorted({point["tokens"] for point in points})
    batches = [point["batch"] for point in points]
    usual = sorted(batches)[len(batches) // 2]
    reach = [min(point["parameters"] for point in points), last["parameters"]]
    for length, colour in zip(lengths, LINES, strict=False):
        some = [point for point in points if point["tokens"] == length]
        drawn.add_scatter(
            name=f"trained on {length:,} tokens",
            legendgroup=str(length),
            x=[point["parameters"] for point in some],
            y=[point["acceptance"] for point in some],
            mode="markers",
            marker={"color": colour, "size": 10},
            customdata=[point["batch"] for point in some],
            hovertemplate="%{x:,} parameters, a batch of %{customdata:,} tokens: %{y:.3f}<extra></extra>",
        )
        drawn.add_scatter(
            legendgroup=str(length),
            showlegend=False,
            x=reach,
            y=[expected(found["law"], size, length, usual) for size in reach],
            mode="lines",
            line={"color": colour, "dash": "dot"},
            hovertemplate="the law: %{y:.3f}<extra></extra>",
        )
    for name, value, symbol in (
        ("held out, measured", last["acceptance"], "star"),
        ("held out, predicted", found["predicted"], "star-open"),
    ):
        drawn.add_scatter(
            name=name,
            x=[last["parameters"]],
            y=[value],
            mode="markers",
            marker={"symbol": symbol, "size": 14, "color": COLOURS["rejected"]},
            hovertemplate=f"{name}: %{{y:.3f}}<extra></extra>",
        )
    drawn.update_xaxes(type="log")
    error = found["predicted"] - last["acceptance"]
    drawn.add_annotation(
        text=f"R² {found['law']['r2']:.3f}; error of the prediction {error:+.3f}",
        xref="paper",
        yref="paper",
        x=1,
        y=1.06,
        xanchor="right",
        showarrow=False,
    )
    return drawn


def expected(law: Mapping, parameters: float, tokens: float, batch: float) -> float:
    """The acceptance that the law predicts for a draft."""
    given = {"parameters": parameters, "tokens": tokens, "batch": batch}
    return law["intercept"] + sum(
        slope * math.log10(given[name]) for name, slope in law["slopes"].items()
    )
