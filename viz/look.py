"""The common style of the figures, and the text of tokens in them. Plotly reads hover text as HTML, so it is
escaped."""

import html
import re

import plotly.graph_objects as go

COLOURS = {
    "accepted": "#2f7fc1",
    "rejected": "#d55e20",
    "ignored": "#8b95a5",
    "recovered": "#d99a1c",
    "bonus": "#138a66",
    "prefill": "#b8c0cc",
    "draft": "#9a6fb0",
    "verify": "#4d5d78",
    "judge": "#c8761a",
    "commit": "#8d97a8",
}
FAMILIES = {
    "none": "#7d8798",
    "chain": "#6f63d2",
    "tree": "#1c97a0",
    "retrieval": "#8c8424",
    "diffusion": "#cf5a92",
    "heads": "#9b4f9f",
    "self": "#946a52",
    "decoder": "#5b7f3f",
}
"""Family of drafters -> its colour in every figure, which is no colour of a token's status. Stripes mark further lanes
of the same family. Each colour has a contrast of 3 to 1 on white and on the dark page."""
SYMBOLS = {"accepted": "circle", "rejected": "x", "ignored": "circle-open"}
TEXT = "#737f92"  # legible on white and on slate; a page that knows its background sets its own
GRID = "rgba(128, 136, 150, 0.25)"

_VISIBLE = str.maketrans({" ": "␣", "\n": "⏎", "\r": "␍", "\t": "⇥", "\u2028": "⏎", "\u2029": "⏎"})
_HIDDEN = {
    code: f"‹{code:04x}›"
    for span in ((0, 0x20), (0x7F, 0xA0), (0x200B, 0x2010), (0x202A, 0x202F), (0x2060, 0x2070))
    for code in range(*span)
    if chr(code) not in "\n\r\t"
} | {0xFEFF: "‹feff›", 0x061C: "‹061c›", 0xAD: "‹00ad›"}


_ENDS = re.compile(
    r"<(?:[|｜](?:endoftext|im_end|eot_id|end_of_text|eot|end)[|｜]|/s|eos|end_of_turn)>"
)


def written(piece: str, length: int = 24) -> str:
    """Return a token as hover text: with visible white space, at most ``length`` characters long, and escaped."""
    ends = _ENDS.fullmatch(piece)
    text = "⟨end⟩" if ends else piece.translate(_VISIBLE).translate(_HIDDEN) or "∅"
    if len(text) > length:
        text = text[: length - 1] + "…"
    return html.escape(text).replace("$", "&#36;").replace("%{", "%&#123;")


KEY = 48  # pixels for the legend under a figure


def figure(title: str, x: str, y: str, key: bool = False, **layout) -> go.Figure:
    """Return an empty figure in the common style. x, y: titles of the axes. key: whether to leave room for a legend
    below.

    Titles must not come from a trace, because they are not escaped.
    """
    below = KEY if key else 0
    axis = {"gridcolor": GRID, "zerolinecolor": GRID, "linecolor": GRID, "fixedrange": True}
    return go.Figure(
        layout={
            "title": {"text": title, "font": {"size": 17}, "x": 0.01},
            "font": {"family": "system-ui, sans-serif", "size": 13, "color": TEXT},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "xaxis": {"title": {"text": x}, **axis},
            "yaxis": {"title": {"text": y}, **axis},
            "margin": {"l": 60, "r": 20, "t": 56, "b": 52 + below},
            "height": layout.pop("height", 340) + below,
            "legend": {
                "orientation": "h",
                "yref": "container",
                "y": 0,
                "yanchor": "bottom",
                "x": 0,
            },
            "hoverlabel": {"font": {"family": "ui-monospace, monospace"}},
            "bargap": 0.25,
            **layout,
        }
    )
