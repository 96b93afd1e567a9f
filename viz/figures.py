"""Draws plotly figures of finished runs."""

import html
from collections.abc import Mapping

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from engine.trace import Trace
from viz.look import COLOURS, FAMILIES, GRID, SYMBOLS, figure, written
from viz.race import titles

STAGES = ("prefill", "draft", "verify", "judge", "commit")


def run_figures(trace: Trace) -> dict[str, go.Figure]:
    """Return the figures of one run, by name. Figures that do not apply to its drafter are left out."""
    from viz.mean_tree import mean_tree, mean_tree_figure

    drawn = {"accepted": accepted_histogram(trace), "time": where_time_went(trace)}
    if trace.summary["acceptance_by_depth"]:
        drawn["depth"] = acceptance_by_depth(trace)
        drawn["tree"] = mean_tree_figure(mean_tree(trace))
    points = judged_odds(trace)
    if points:
        drawn["odds"] = p_against_q(points, trace.run["sampling"]["temperature"] == 0)
    return drawn


def race_figures(traces: Mapping[str, Trace]) -> dict[str, go.Figure]:
    """Return the figures of a race, by name. traces: lane -> trace."""
    return {"speed": speed(traces), "accepted": histograms(traces)}


def accepted_histogram(trace: Trace) -> go.Figure:
    """Draw the numbers of steps in which 0, 1, 2, … drafted tokens were accepted."""
    counts = trace.summary["accepted_histogram"]
    mean = trace.summary["mean_accepted"]
    drawn = figure("Drafted tokens accepted in a step", "accepted", "steps")
    drawn.add_bar(
        x=list(range(len(counts))),
        y=counts,
        marker_color=COLOURS["accepted"],
        hovertemplate="%{x} accepted: %{y} steps<extra></extra>",
    )
    _count_from_zero(drawn, len(counts) - 1)
    if trace.steps:
        _note(drawn, f"{mean:.2f} tokens a step, the target’s own included")
    return drawn


def acceptance_by_depth(trace: Trace) -> go.Figure:
    """Draw to which depth drafts are accepted, compared with a constant rate of acceptance.

    Shares are of the steps that drafted. With acceptance rate a at every depth, a share a**d of these steps accepts a
    token at depth d (Leviathan et al. 2023).
    """
    rows = trace.summary["acceptance_by_depth"]
    rate = trace.summary["acceptance_rate"]
    depths = [row["depth"] for row in rows]
    begun = max((row["reached"] for row in rows), default=0)
    drawn = figure(
        "How deep drafts are kept",
        "depth in the draft",
        "share of drafting steps",
        key=True,
    )
    drawn.add_bar(
        name="kept to this depth",
        x=depths,
        y=[_share(row["accepted"], begun) for row in rows],
        marker_color=COLOURS["accepted"],
        customdata=[[row["accepted"], row["reached"], row["judged"]] for row in rows],
        hovertemplate="depth %{x}: %{customdata[0]} kept, reached %{customdata[1]} times, "
        "%{customdata[2]} tokens judged<extra></extra>",
    )
    drawn.add_scatter(
        name="kept where it was reached",
        x=depths,
        y=[_share(row["accepted"], row["reached"]) for row in rows],
        mode="markers",
        marker={"symbol": "diamond-open", "size": 10, "color": COLOURS["recovered"]},
        hovertemplate="depth %{x}: %{y:.2f} where reached<extra></extra>",
    )
    if rate is not None:
        drawn.add_scatter(
            name=f"if each depth kept {rate:.0%}",
            x=depths,
            y=[rate**depth for depth in depths],
            mode="lines+markers",
            line={"color": COLOURS["bonus"], "dash": "dot"},
            hovertemplate="expected %{y:.2f}<extra></extra>",
        )
    drawn.update_xaxes(dtick=1)
    drawn.update_yaxes(range=[0, 1.05])
    _note(drawn, "each depth is reached by fewer drafts")
    return drawn


def judged_odds(trace: Trace) -> dict[str, list[tuple[float, float, str]]]:
    """Return status -> (q, p, hover text) of every judged token that has both p and q."""
    points: dict[str, list] = {}
    for step in trace.steps:
        nodes = step["nodes"]
        for node in dict.fromkeys(entry["node"] for entry in step["judgements"]):
            q, p, status = nodes["q"][node], nodes["p"][node], nodes["status"][node]
            if q is not None and p is not None:
                label = f"{written(nodes['piece'][node])}<br>q {q:.3f}, p {p:.3f}<br>{status}"
                hover = f"{label}, step {step['index'] + 1}"
                points.setdefault(status, []).append((q, p, hover))
    return points


def p_against_q(
    points: Mapping[str, list[tuple[float, float, str]]], greedy: bool = False
) -> go.Figure:
    """Draw the target's p of each judged token against the draft's q. points: from ``judged_odds``. greedy: whether the
    target's likeliest token decided, and not p against q."""
    drawn = figure("Target against draft, every judged token", "q (draft)", "p (target)", key=True)
    if greedy:
        _note(drawn, "temperature 0: the favourite is kept")
    else:
        drawn.add_scatter(
            name="p = q",
            x=[0, 1],
            y=[0, 1],
            mode="lines",
            line={"color": COLOURS["ignored"], "width": 1, "dash": "dot"},
            hoverinfo="skip",
        )
    for status in (status for status in SYMBOLS if status in points):
        q, p, labels = zip(*points[status], strict=True)
        drawn.add_scatter(
            name=status,
            x=q,
            y=p,
            mode="markers",
            marker={"color": COLOURS[status], "symbol": SYMBOLS[status], "opacity": 0.7},
            hovertext=labels,
            hoverinfo="text",
        )
    drawn.update_xaxes(range=[-0.02, 1.02])
    drawn.update_yaxes(range=[-0.02, 1.02])
    return drawn


def where_time_went(trace: Trace) -> go.Figure:
    """Draw the milliseconds spent in each stage of the engine's work."""
    spent = trace.summary["milliseconds"]
    total = spent["total"]
    drawn = figure("Where the time went", "milliseconds", "", key=True, barmode="stack", height=170)
    for stage in STAGES:
        drawn.add_bar(
            name=stage,
            x=[spent[stage]],
            y=[""],
            orientation="h",
            marker_color=COLOURS[stage],
            hovertemplate=f"{stage}: %{{x:.1f}} ms, {_share(spent[stage], total):.0%}<extra></extra>",
        )
    drawn.update_layout(legend={"traceorder": "normal"})
    drawn.update_yaxes(showticklabels=False)
    return drawn


def speed(traces: Mapping[str, Trace]) -> go.Figure:
    """Draw the tokens per second of each lane, with the ratio to plain decoding if a lane ran it. A lane that was
    stopped before its first token has 0."""
    rates = {name: trace.summary["tokens_per_second"] or 0.0 for name, trace in traces.items()}
    plain = next(
        (rates[name] for name, t in traces.items() if t.run["drafter"]["family"] == "none"), None
    )
    ratios = [f"{rate / plain:.2f}×" if plain else f"{rate:.0f}" for rate in rates.values()]
    drawn = figure("Speed", "tokens per second", "", height=_height(traces))
    drawn.update_xaxes(range=[0, 1.15 * max(rates.values(), default=0) or 1])
    drawn.update_yaxes(
        showticklabels=False, showgrid=False, zeroline=False, range=[len(rates) - 0.5, -0.6]
    )
    drawn.update_layout(bargap=0.55, margin_l=20)
    names = titles({name: trace.run for name, trace in traces.items()})
    for row, name in enumerate(rates):
        drawn.add_annotation(
            text=html.escape(names[name]),
            x=0,
            y=row - 0.225,
            yanchor="bottom",
            xanchor="left",
            showarrow=False,
        )
    drawn.add_bar(
        orientation="h",
        y=list(range(len(rates))),
        x=list(rates.values()),
        text=ratios,
        textposition="outside",
        cliponaxis=False,
        marker={
            "color": [_colour(trace) for trace in traces.values()],
            "pattern": {"shape": ["" if not n else "/" for n in _turns(traces)], "size": 6},
        },
        hovertemplate="%{x:.1f} tokens per second<extra></extra>",
    )
    return drawn


def histograms(traces: Mapping[str, Trace]) -> go.Figure:
    """Draw the accepted tokens per step, as shares of each run's steps: one row per lane, on a common axis."""
    names = titles({name: trace.run for name, trace in traces.items()})
    most = max(len(trace.summary["accepted_histogram"]) for trace in traces.values()) - 1
    drawn = figure("Drafted tokens accepted in a step", "", "", height=_height(traces))
    rows = make_subplots(
        rows=len(traces),
        cols=1,
        shared_xaxes=True,
        vertical_spacing=0.3 / max(1, len(traces)),
        subplot_titles=[html.escape(names[name]) for name in traces],
    )
    drawn = go.Figure(rows).update_layout(drawn.layout)
    for row, (name, trace) in enumerate(traces.items(), start=1):
        counts = trace.summary["accepted_histogram"]
        total = sum(counts)
        drawn.add_bar(
            row=row,
            col=1,
            name=html.escape(names[name]),
            x=list(range(len(counts))),
            y=[_share(count, total) for count in counts],
            marker_color=_colour(trace),
            hovertemplate="%{x} accepted in %{y:.0%} of the steps<extra></extra>",
        )
    # titles begin above the axis numbers, so that a long name has the whole width of a phone
    drawn.update_annotations(font_size=13, xanchor="left", x=0, xshift=-40, yshift=6)
    drawn.update_layout(showlegend=False)
    drawn.update_yaxes(range=[0, 1], tickvals=[0, 1], tickformat=".0%", gridcolor=GRID)
    drawn.update_xaxes(gridcolor=GRID, fixedrange=True)
    drawn.update_xaxes(title_text="accepted", row=len(traces), col=1)
    _count_from_zero(drawn, max(most, 0))
    return drawn


def _height(traces: Mapping[str, Trace]) -> int:
    """Return the height of a figure with one row per lane, in pixels."""
    return 96 * len(traces) + 120


def _count_from_zero(drawn: go.Figure, most: int) -> None:
    """Set whole numbers from 0 to ``most`` on the x axis, few enough to be legible on a phone."""
    apart = next(step for step in (1, 2, 5, 10, 25, most + 1) if most <= 10 * step)
    drawn.update_xaxes(dtick=apart, tick0=0, range=[-0.7, most + 0.7])


def _colour(trace: Trace) -> str:
    return FAMILIES[trace.run["drafter"]["family"]]


def _turns(traces: Mapping[str, Trace]) -> list[int]:
    """Return, for each lane, the number of earlier lanes with the same colour."""
    colours = [_colour(trace) for trace in traces.values()]
    return [colours[:place].count(colour) for place, colour in enumerate(colours)]


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _note(drawn: go.Figure, text: str) -> None:
    drawn.add_annotation(
        text=text, xref="paper", yref="paper", x=1, y=1.06, showarrow=False, xanchor="right"
    )
