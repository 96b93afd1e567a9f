"""Merges all draft trees of a run into one, which counts how often each branch was drafted, reached and accepted."""

from pathlib import Path

import networkx as nx
import plotly.graph_objects as go

from engine.trace import Trace
from viz.look import COLOURS, GRID, figure

LEGEND = (
    "depth in the draft<br>A larger dot was drafted more often, a bluer one kept more often;"
    "<br>the number is the share of steps that kept it."
)

Slot = tuple[int, ...]
"""The place of a node in its tree: the rank among its siblings of each node on the path from the root."""

DRAWN = 96  # slots in the figure; the graph holds all of them
ROW, LEAST, MOST = 15, 150, 540
"""Pixels per leaf, and the fewest and the most pixels for all leaves together."""
TOLD = 0.05
"""The smallest share of steps that is written beside its slot."""


def mean_tree(trace: Trace) -> nx.DiGraph:
    """Return a graph with one node per slot; () is the root.

    Each node counts the steps in which its slot was drafted (filled), reached (the walk stood at its
    parent), judged and kept (accepted). Drafted, reached and kept are also given as shares of the run's steps.
    """
    graph = nx.DiGraph()
    graph.add_node((), drafted=0, reached=0, judged=0, kept=0)
    for step in trace.steps:
        for name in ("drafted", "reached", "judged", "kept"):
            graph.nodes[()][name] += 1
        _lay(graph, step)
    steps = max(1, len(trace.steps))
    for slot, data in graph.nodes(data=True):
        data["depth"] = len(slot)
        data["rank"] = slot[-1] if slot else 0
        for name in ("drafted", "reached", "kept"):
            data[f"{name}_share"] = data[name] / steps
    return graph


def _lay(graph: nx.DiGraph, step: dict) -> None:
    nodes = step["nodes"]
    walk = {entry["node"] for entry in step["distributions"]}
    judged = {entry["node"] for entry in step["judgements"]}
    slots: dict[int, Slot] = {-1: ()}
    families: dict[int, int] = {}
    for node, parent in enumerate(nodes["parent"]):
        rank = families.get(parent, 0)
        families[parent] = rank + 1
        slot = slots[node] = (*slots[parent], rank)
        if slot not in graph:
            graph.add_node(slot, drafted=0, reached=0, judged=0, kept=0)
            graph.add_edge(slot[:-1], slot)
        data = graph.nodes[slot]
        data["drafted"] += 1
        data["reached"] += parent in walk
        data["judged"] += node in judged
        data["kept"] += nodes["status"][node] == "accepted"


def write_graphml(graph: nx.DiGraph, path: str | Path) -> None:
    """Write the tree to a GraphML file; its nodes are named root, 0, 0.1, 0.1.0 and so on."""
    nx.write_graphml(nx.relabel_nodes(graph, slot_name), path)


def graphml(graph: nx.DiGraph) -> str:
    """Return the tree as GraphML text."""
    return "\n".join(nx.generate_graphml(nx.relabel_nodes(graph, slot_name)))


def slot_name(slot: Slot) -> str:
    return ".".join(str(rank) for rank in slot) or "root"


def mean_tree_figure(graph: nx.DiGraph) -> go.Figure:
    """Draw the mean tree, depth to the right. Size shows how often a slot was drafted, colour how often it was kept."""
    shown = _most_drafted(graph)
    place = places(graph.subgraph(shown))
    leaves = sum(not graph.subgraph(shown).out_degree(slot) for slot in shown)
    inside = min(max(ROW * leaves, LEAST), MOST)
    dot = min(22.0, 0.95 * inside / leaves)  # neighbours in a column are a leaf apart
    drawn = figure("The run’s mean tree", LEGEND, "", height=inside + 170)
    edges = list(graph.subgraph(shown).edges)
    for kept, color, width in ((False, GRID, 1.5), (True, COLOURS["accepted"], 2.5)):
        x, y = [], []
        for above, below in edges:
            if bool(graph.nodes[below]["kept"]) is kept:
                x += [len(above), len(below), None]
                y += [place[above], place[below], None]
        line = {"color": color, "width": width}
        drawn.add_scatter(x=x, y=y, mode="lines", line=line, hoverinfo="skip")
    data = [graph.nodes[slot] for slot in shown]
    drawn.add_scatter(
        x=[len(slot) for slot in shown],
        y=[place[slot] for slot in shown],
        mode="markers+text",
        text=[
            f"{entry['kept_share']:.0%}" if slot and entry["kept_share"] >= TOLD else ""
            for slot, entry in zip(shown, data, strict=True)
        ],
        textposition="top center",
        textfont={"size": 12},
        marker={
            "size": [max(7.0, dot * entry["drafted_share"] ** 0.5) for entry in data],
            "color": [entry["kept_share"] ** 0.5 for entry in data],
            "colorscale": [[0, "#d5dae2"], [1, COLOURS["accepted"]]],
            "cmin": 0,
            "cmax": 1,
            "opacity": 1,
            "line": {"width": 1, "color": COLOURS["ignored"]},
        },
        hovertext=[_hover(slot, graph.nodes[slot]) for slot in shown],
        hoverinfo="text",
    )
    drawn.update_layout(showlegend=False)
    deepest = max(map(len, shown))
    drawn.update_layout(margin={"l": 20, "b": 110})
    drawn.update_xaxes(dtick=1, tick0=0, range=[-0.4, deepest + 0.4], zeroline=False)
    drawn.update_yaxes(
        showticklabels=False, showgrid=False, zeroline=False, range=[leaves - 0.5, -1.5]
    )
    return drawn


def _hover(slot: Slot, data: dict) -> str:
    if not slot:
        return f"root, {data['drafted']} steps"
    return (
        f"choice {slot_name(tuple(rank + 1 for rank in slot))}<br>drafted {data['drafted']}, "
        f"reached {data['reached']}, judged {data['judged']}, kept {data['kept']} times"
    )


def _most_drafted(graph: nx.DiGraph) -> list[Slot]:
    """Return the DRAWN slots that were drafted most often. A slot is drafted at most as often as its parent, so no slot
    loses its parent."""
    order = sorted(graph.nodes, key=lambda s: (-graph.nodes[s]["drafted"], len(s), s))
    return order[:DRAWN]


def places(graph: nx.DiGraph) -> dict[Slot, float]:
    """Return slot -> y: leaves stand below one another, parents in the middle of their leaves."""
    span: dict[Slot, tuple[int, int]] = {}
    leaves = 0
    for slot in nx.dfs_postorder_nodes(_sorted(graph), ()):
        below = sorted(graph.successors(slot))
        if below:
            span[slot] = (span[below[0]][0], span[below[-1]][1])
        else:
            span[slot] = (leaves, leaves)
            leaves += 1
    return {slot: (first + last) / 2 for slot, (first, last) in span.items()}


def _sorted(graph: nx.DiGraph) -> nx.DiGraph:
    ordered = nx.DiGraph()
    ordered.add_nodes_from(sorted(graph.nodes))
    ordered.add_edges_from(sorted(graph.edges))
    return ordered
