"""The lines of a tuning as text for a terminal: the answer, its reasons, and tables. Estimates are kept apart from
measurements."""

from collections.abc import Iterable, Mapping, Sequence

from engine.core.options import Value

MOST_POSITIONS, MOST_ROWS = 8, 8


def told(lines: Iterable[Mapping]) -> str:
    """The text for these lines; "" if they hold no answer."""
    last = {_key(line): line for line in lines}  # a later line replaces an earlier one
    by_kind: dict[str, list[Mapping]] = {}
    for line in last.values():
        by_kind.setdefault(line["kind"], []).append(line)
    if "answer" not in by_kind:
        return ""
    (answer,) = by_kind["answer"]
    parts = [
        answer["sentence"],
        f"{answer['why']['cause'].capitalize()}. {answer['why']['sentence']}",
    ]
    settings = by_kind.get("setting", [])
    most = max((line["prompts"] for line in settings), default=0)
    settings = [
        line for line in settings if line["prompts"] >= most - 1
    ]  # settings with fewer prompts are too uncertain
    parts += ["\nThe best by texts at a time:", *_speeds(_best_by_texts(settings))]
    parts += ["\nOne text at a time:", *_speeds(_fastest(settings, 1))]
    shown = answer.get("best_tried", answer)
    acceptance = [line for line in by_kind.get("acceptance", []) if _names(line) == _names(shown)]
    parts += [
        f"\n`{shown['drafter']}`, size {shown['size']}: share kept of the tokens that are reached, by place"
    ]
    parts += _places(acceptance)
    machines = dict.fromkeys(line["machine"] for line in by_kind.get("estimate", []))
    for name in machines:
        own = [line for line in by_kind["estimate"] if line["machine"] == name]
        parts += [
            f"\nAn estimate for {name}; nothing was measured there:",
            *_speeds(_best_by_texts(own)),
        ]
    return "\n".join(parts) + "\n"


def _names(line: Mapping) -> tuple[Value, ...]:
    return tuple(line[name] for name in ("drafter", "size", "verifier"))


def _key(line: Mapping) -> tuple:
    names = (
        "drafter",
        "size",
        "verifier",
        "prompt_kind",
        "texts",
        "machine",
        "what",
        "rows",
        "context",
    )
    own = () if line["kind"] in ("answer", "tuning") else tuple(line.get(name) for name in names)
    return line["kind"], *own


def _fastest(settings: Sequence[Mapping], texts: int) -> list[Mapping]:
    """The settings for this many texts at a time, ``MOST_ROWS`` at most. Settings whose speed was checked come first,
    then those whose speed is only predicted; within each group, the fastest comes first."""
    own = [line for line in settings if line["texts"] == texts]
    return sorted(own, key=lambda line: (line["checked"] is None, -line["ratio"]))[:MOST_ROWS]


def _best_by_texts(settings: Sequence[Mapping]) -> list[Mapping]:
    counts = sorted({line["texts"] for line in settings})
    return [_fastest(settings, count)[0] for count in counts]


def _speeds(settings: Sequence[Mapping]) -> list[str]:
    rows = [
        f"{'texts':>5}  {'drafter':15} {'size':>4}  {'rule':13} {'tokens/s':>8} {'plain':>8} {'ratio':>6}"
    ]
    for line in settings:
        speed = line["predicted"] if line["checked"] is None else line["checked"]
        how = (
            "predicted"
            if line["checked"] is None
            else f"checked; predicted {line['predicted']:.1f}"
        )
        how = "estimate" if line["kind"] == "estimate" else how
        rows.append(
            f"{line['texts']:5}  {line['drafter']:15} {line['size']:4}  {line['verifier']:13} {speed:8.1f} {line['plain']:8.1f} "
            f"{line['ratio']:6.2f}  {how}"
        )
    return rows


def _places(acceptance: Sequence[Mapping]) -> list[str]:
    rows = []
    for line in sorted(
        acceptance, key=lambda line: (line["prompt_kind"] != "all", line["prompt_kind"])
    ):
        places = [place for place in line["positions"] if place["reached"]][:MOST_POSITIONS]
        shares = "".join(f"{place['accepted'] / place['reached']:6.0%}" for place in places)
        rows.append(
            f"  {line['prompt_kind']:14} {line['new_tokens'] / line['steps']:5.2f} tokens a step {shares}"
        )
    return rows
