"""Draws the instruments of the lessons as plotly figures for a notebook. The page draws them with its own scripts."""

from collections.abc import Mapping, Sequence

import networkx as nx
import plotly.graph_objects as go

from viz.look import COLOURS, figure, written
from viz.mean_tree import places

ROW, LEAST = 34, 120
"""Pixels per leaf of a tree, and the fewest pixels for all leaves together."""
MODEL = 8e9
"""The number of weights, two bytes each, of the model for which data sheets give the time of a pass."""
MOST_ROWS = 512


def step_figure(step: Mapping) -> go.Figure:
    """Draw the draft tree of one step, depth to the right: every drafted token by status, and the target's own
    token."""
    nodes, output = step["nodes"], step["output"]
    pieces, status = ["", *nodes["piece"]], ["ignored", *nodes["status"]]
    parents = [parent + 1 for parent in nodes["parent"]]
    hovers = ["the text so far", *(_odds(nodes, node) for node in range(len(parents)))]
    if output["final"] != "none":
        path = [node + 1 for node, state in enumerate(nodes["status"]) if state == "accepted"]
        parents.append(path[-1] if path else 0)
        pieces.append(output["pieces"][-1])
        status.append(output["final"])
        hovers.append(f"{written(pieces[-1])}<br>{output['final']}: the target’s own")
    graph, slots = _laid(parents)
    place = places(graph)
    leaves = sum(not graph.out_degree(slot) for slot in graph)
    drawn = figure(
        f"Step {step['index'] + 1}",
        "depth in the draft",
        "",
        height=max(ROW * leaves, LEAST) + 120,
        key=True,
    )
    x, y = [], []
    for above, below in graph.edges:
        x += [len(above), len(below), None]
        y += [place[above], place[below], None]
    line = {"color": COLOURS["ignored"], "width": 1}
    drawn.add_scatter(x=x, y=y, mode="lines", line=line, hoverinfo="skip", showlegend=False)
    for kind in dict.fromkeys(status[1:]):
        these = [node for node in range(1, len(pieces)) if status[node] == kind]
        drawn.add_scatter(
            name=kind,
            x=[len(slots[node]) for node in these],
            y=[place[slots[node]] for node in these],
            mode="markers+text",
            text=[written(pieces[node], 14) for node in these],
            textposition="top center",
            marker={"size": 12, "color": COLOURS[kind]},
            hovertext=[hovers[node] for node in these],
            hoverinfo="text",
        )
    deepest = max(map(len, graph))
    drawn.update_xaxes(dtick=1, tick0=0, range=[-0.4, deepest + 0.6], zeroline=False)
    drawn.update_yaxes(
        showticklabels=False, showgrid=False, zeroline=False, range=[leaves - 0.5, -0.9]
    )
    return drawn


def _odds(nodes: Mapping, node: int) -> str:
    odds = [f"{name} {nodes[name][node]:.3f}" for name in "qp" if nodes[name][node] is not None]
    return "<br>".join([written(nodes["piece"][node]), ", ".join(odds), str(nodes["status"][node])])


def _laid(parents: Sequence[int]) -> tuple[nx.DiGraph, list[tuple[int, ...]]]:
    """Return the tree, and the slot (see ``viz.mean_tree``) of each node. Node 0 is the root. parents: the parent of
    each further node."""
    slots: list[tuple[int, ...]] = [()]
    graph = nx.DiGraph()
    graph.add_node(())
    for parent in parents:
        above = slots[parent]
        slots.append((*above, graph.out_degree(above)))
        graph.add_edge(above, slots[-1])
    return graph, slots


def rule_figure(
    words: Sequence[str], p: Sequence[float], q: Sequence[float], counts: Sequence[int]
) -> go.Figure:
    """Draw p, q, and the shares of the words that the tosses gave. counts: how often each word came."""
    tosses = sum(counts)
    drawn = figure(f"{tosses:,} tosses of the rule", "", "probability", key=True, barmode="group")
    came = [count / tosses for count in counts]
    bars = (
        ("q, the draft", q, "draft"),
        ("p, the target", p, "verify"),
        ("came", came, "accepted"),
    )
    for name, shares, colour in bars:
        drawn.add_bar(name=name, x=list(words), y=list(shares), marker_color=COLOURS[colour])
    return drawn


def length_figure(alpha: float, cost: float, longest: int = 16) -> go.Figure:
    """Draw tokens per step and speedup over the draft length.

    alpha: the chance that a drafted token is accepted. cost: the cost of a drafted token, in passes.
    """
    lengths = list(range(longest + 1))
    gained = [sum(alpha**i for i in range(k + 1)) for k in lengths]
    speed = [gain / (1 + cost * k) for k, gain in zip(lengths, gained, strict=True)]
    best = max(lengths, key=lambda k: speed[k])
    drawn = figure(
        f"α {alpha:.2f}, c {cost:.2f}: best k is {best}",
        "k, tokens drafted in a step",
        "",
        key=True,
    )
    drawn.add_scatter(
        name="times as fast as plain decoding",
        x=lengths,
        y=speed,
        mode="lines+markers",
        line={"color": COLOURS["accepted"]},
    )
    drawn.add_scatter(
        name="tokens a step", x=lengths, y=gained, line={"color": COLOURS["draft"], "dash": "dash"}
    )
    return drawn


def passes_figure(
    measured: Sequence[Sequence[float]], machines: Sequence[Mapping], bytes: int
) -> go.Figure:
    """Draw the cost of a pass by its number of rows, in passes over one row: measured, and by data sheets.

    measured: [[rows, milliseconds]]. machines: {"name", "bandwidth" in GB/s, "arithmetic" in GFLOP/s}.
    bytes: the size of the measured target's weights.
    """
    first = measured[0][1]
    drawn = figure(
        "What a pass costs by its rows",
        "rows in one pass",
        "passes over one row",
        key=True,
        height=400,
    )
    rows = [count for count, _ in measured if count <= MOST_ROWS]
    drawn.add_scatter(
        name=f"measured: the target of these runs, {bytes / 1e6:.0f} MB",
        x=rows,
        y=[max(1.0, took / first) for _, took in measured[: len(rows)]],
        mode="lines+markers",
        line={"color": COLOURS["accepted"]},
    )
    for machine in machines:
        counts = [2 ** (i / 3) for i in range(28)]
        memory = 2 * MODEL / machine["bandwidth"]
        costs = [max(1.0, 2 * MODEL * count / machine["arithmetic"] / memory) for count in counts]
        drawn.add_scatter(name=machine["name"], x=counts, y=costs, line={"dash": "dot"})
    return drawn.update_xaxes(type="log").update_yaxes(type="log")


def experts_figure(targets: Sequence[Mapping]) -> go.Figure:
    """Draw the share of experts that a pass leaves out, by its rows. targets: {"name", "idle": the shares for 1, 2 ...
    rows}."""
    drawn = figure(
        "Experts that no row needs", "rows in one pass", "share of all experts", key=True
    )
    for target, colour in zip(targets, ("accepted", "draft"), strict=True):
        drawn.add_scatter(
            name=target["name"],
            x=list(range(1, len(target["idle"]) + 1)),
            y=list(target["idle"]),
            mode="lines+markers",
            line={"color": COLOURS[colour]},
        )
    return drawn.update_yaxes(range=[0, 1])
