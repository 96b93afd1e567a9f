"""The model card's measured part: figures and unpicked samples, put between two marks of the card."""

from __future__ import annotations

from pathlib import Path

BEGIN, END = "<!-- measured -->", "<!-- /measured -->"


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _losses(figures: dict) -> str:
    names = [n.removeprefix("bpb ") for n in figures["target"] if n.startswith("bpb ")]
    rows = [[n, *(f"{figures[m][f'bpb {n}']:.2f}" for m in ("target", "draft"))] for n in names]
    return _table(["bits per byte, held out", "target", "draft"], rows)


def _acceptance(figures: dict) -> str:
    by_workload = figures["mean accepted"]
    kinds = list(next(iter(by_workload.values())))
    rows = [[w, *(f"{values[k]:.2f}" for k in kinds)] for w, values in by_workload.items()]
    return _table(["mean accepted tokens, greedy", *kinds], rows)


def _samples(figures: dict) -> str:
    parts = []
    for workload, samples in figures["samples"].items():
        parts.append(f"### {workload}\n")
        for sample in samples:
            text = f"{sample['prompt']}⟦{sample['answer']}⟧"
            parts.append("~~~text\n" + text + "\n~~~\n")
    return "\n".join(parts)


def measured(figures: dict) -> str:
    copies = ", ".join(
        f"{name.removeprefix('copy ')} {value:.0%}"
        for name, value in figures["target"].items()
        if name.startswith("copy ")
    )
    return "\n\n".join(
        [
            _losses(figures),
            f"Held-out copies without a slip (target, greedy): {copies}.",
            _acceptance(figures),
            (
                "## Unpicked samples\n\nGreedy, at most 96 new tokens, the first five held-out prompts of each workload; "
                "⟦the model's part⟧."
            ),
            _samples(figures),
        ]
    )


def update(path: Path, figures: dict) -> None:
    """Replace what stands between the marks of the card at `path`."""
    text = path.read_text("utf-8")
    head, rest = text.split(BEGIN, 1)
    tail = rest.split(END, 1)[1]
    path.write_text(f"{head}{BEGIN}\n\n{measured(figures)}\n{END}{tail}", "utf-8")
