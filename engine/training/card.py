"""Writes the measured section of the model card, with figures and unselected samples, between two marks in the
card."""

from __future__ import annotations

from pathlib import Path

from engine.training.sources import ORIGINS

BEGIN, END = "<!-- measured -->", "<!-- /measured -->"


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _losses(figures: dict) -> str:
    names = [n.removeprefix("bpb ") for n in figures["target"] if n.startswith("bpb ")]
    rows = [[n, *(f"{figures[m][f'bpb {n}']:.2f}" for m in ("target", "draft"))] for n in names]
    return _table(["bits per byte, held out", "target", "draft"], rows)


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.0%}"


def _operations(figures: dict) -> str:
    rows = [[name, _percent(share)] for name, share in figures["operations"].items()]
    return _table(["right answers, greedy, held out", "target"], rows)


def _accepted(figures: dict) -> str:
    runs = figures["runs"]
    drafters = list(next(iter(runs.values())))
    rows = [[w, *(f"{of[d]['mean accepted']:.2f}" for d in drafters)] for w, of in runs.items()]
    return _table(["mean accepted tokens, greedy", *drafters], rows)


def _by_depth(figures: dict) -> str:
    rows = [
        [workload, drafter, *map(_percent, run["by depth"])]
        for workload, of in figures["runs"].items()
        for drafter, run in of.items()
    ]
    depths = len(rows[0]) - 2
    return _table(
        ["accepted ÷ reached", "drafter", *(f"depth {d + 1}" for d in range(depths))], rows
    )


def _divergences(figures: dict) -> str:
    compared = figures.get("divergences")
    if not compared:
        return ""
    by_divergence = compared["found"]
    kinds = list(next(iter(by_divergence.values())))
    rows = [[name, *(f"{values[k]:.3f}" for k in kinds)] for name, values in by_divergence.items()]
    said = f"The draft's start, aligned on the same {compared['tokens']:,} tokens with each divergence:"
    return said + "\n\n" + _table(["divergence", *kinds], rows)


def _samples(figures: dict) -> str:
    parts = []
    for workload, samples in figures["samples"].items():
        parts.append(f"### {workload}\n")
        for sample in samples:
            greedy, drawn = (f"{sample['prompt']}⟦{sample[k]}⟧" for k in ("greedy", "drawn"))
            parts.append(f"~~~text\n{greedy}\n~~~\n\nT 0.8:\n\n~~~text\n{drawn}\n~~~\n")
    return "\n".join(parts)


def _parts(figures: dict) -> str:
    tables = [
        f"With `parts/{name}` in its place:\n\n" + _accepted({"runs": runs})
        for name, runs in figures.get("parts", {}).items()
    ]
    return "\n\n".join(tables)


def _sources(figures: dict) -> str:
    """A table of how much text the target learned from, by source. For sources that generate text without limit, the
    table does not say how often they were used."""
    read = figures.get("sources")
    if not read:
        return ""
    last = read[max(read, key=int)]
    rows = []
    for name, tokens in last["tokens"].items():
        origin, licence = ORIGINS.get(name, ("made by `engine/training/generators`", "Apache-2.0"))
        times = last["readings"].get(name)
        rows.append(
            [name, f"{tokens / 1e6:.2f} M", f"{times:.1f}" if times else "–", origin, licence]
        )
    return _table(["text", "tokens read", "readings", "origin", "licence"], rows)


def _curve(figures: dict) -> str:
    """A table of the target's loss at about a dozen points of the training."""
    points = figures.get("target.curve")
    if not points:
        return ""
    chosen = points[:: max(1, len(points) // 12)]
    rows = [[f"{tokens / 1e6:.1f} M", f"{loss:.2f}"] for _, tokens, loss, _ in chosen]
    return _table(["tokens read", "loss of the target"], rows)


def measured(figures: dict) -> str:
    parts = [
        _losses(figures),
        _operations(figures),
        _sources(figures),
        _curve(figures),
        _accepted(figures),
        _parts(figures),
        _by_depth(figures),
        _divergences(figures),
        (
            "## Unpicked samples\n\nThe first five held-out prompts of each workload, at most 96 new tokens, greedy and "
            "at temperature 0.8 (seeds 0 to 4); ⟦the model's part⟧."
        ),
        _samples(figures),
    ]
    return "\n\n".join(part for part in parts if part)


def update(path: Path, figures: dict) -> None:
    """Replace the text between the two marks in the card at `path`."""
    text = path.read_text("utf-8")
    head, rest = text.split(BEGIN, 1)
    tail = rest.split(END, 1)[1]
    path.write_text(f"{head}{BEGIN}\n\n{measured(figures)}\n{END}{tail}", "utf-8")
