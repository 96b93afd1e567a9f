"""python -m viz.suite RESULT.json -o OUT.html: the figures of a bench suite, from the file that its --json wrote."""

import argparse
import html
import json
import math
import sys
from pathlib import Path

import plotly.graph_objects as go

from engine.errors import UserError
from engine.trace import Outlet, read_text
from viz.look import figure, written

COLOURS = ("#8b95a5", "#2f7fc1", "#138a66", "#d99a1c", "#c05b9c", "#8b63c9", "#d55e20", "#4d5d78")
MARKS = ("circle", "square", "diamond", "cross", "x", "triangle-up", "star", "hexagon")
MOST_POINTS = 2_000


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m viz.suite", description=__doc__)
    parser.add_argument("result", type=Path, help="what `python -m engine bench --json` wrote")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the HTML file to write")
    given = parser.parse_args(arguments)
    try:
        outlet = Outlet(given.output)
        outlet.write([page(suite_figures(read_text(given.result)))])
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def suite_figures(text: str) -> list[go.Figure]:
    """Return the figures of a bench result. Raises UserError if it has no figure, or a figure cannot be read."""
    try:
        data = json.loads(text)["figures"]
        drawn = [scatter(entry) for entry in data]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UserError("This file holds no figure of a bench suite.") from None
    if not drawn:
        raise UserError("This file holds no figure of a bench suite.")
    return drawn


def scatter(given: dict) -> go.Figure:
    """Draw points in series. given: {"title", "x", "y": titles of the axes, "points": [{"series", "label", "x", "y"}]}.
    Raises ValueError for a point that is no number."""
    series: dict[str, list[dict]] = {}
    for point in given["points"][:MOST_POINTS]:
        if not all(math.isfinite(float(point[axis])) for axis in "xy"):
            raise ValueError("a point is no number")
        series.setdefault(str(point["series"]), []).append(point)
    title, x, y = (html.escape(str(given[name])) for name in ("title", "x", "y"))
    drawn = figure(title, x, y, key=True, height=460)
    for place, (name, points) in enumerate(series.items()):
        labels = [
            f"{written(str(p['label']), 60)}<br>{float(p['x']):.2f}, {float(p['y']):.2f}"
            for p in points
        ]
        drawn.add_scatter(
            name=html.escape(name),
            x=[float(p["x"]) for p in points],
            y=[float(p["y"]) for p in points],
            mode="markers",
            marker={
                "color": COLOURS[place % len(COLOURS)],
                "symbol": MARKS[place % len(MARKS)],
                "size": 11,
            },
            hovertext=labels,
            hoverinfo="text+name",
        )
    drawn.update_yaxes(rangemode="tozero")
    return drawn


def page(figures: list[go.Figure]) -> str:
    """Return one self-contained page with these figures."""
    parts = [
        drawn.to_html(full_html=False, include_plotlyjs=place == 0)
        for place, drawn in enumerate(figures)
    ]
    head = "<meta charset='utf-8'><meta name='viewport' content='width=device-width'><title>Bench suite</title>"
    return f"<!doctype html><html lang='en'><head>{head}</head><body>{''.join(parts)}</body></html>"


if __name__ == "__main__":
    sys.exit(main())
