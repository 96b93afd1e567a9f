"""The lines of a tuning as text for a terminal: the answer, why, tables, estimates apart from what was measured."""

from collections.abc import Iterable, Mapping, Sequence

from engine.core.options import Value

MOST_POSITIONS, MOST_ROWS = 8, 8


def told(lines: Iterable[Mapping]) -> str:
    """Empty where there is no answer."""
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
    most = max((one["prompts"] for one in settings), default=0)
    settings = [
        one for one in settings if one["prompts"] >= most - 1
    ]  # the others are hardly known
    parts += ["\nThe best by texts at a time:", *_speeds(_best_by_texts(settings))]
    parts += ["\nOne text at a time:", *_speeds(_fastest(settings, 1))]
    shown = answer.get("best_tried", answer)
    acceptance = [one for one in by_kind.get("acceptance", []) if _names(one) == _names(shown)]
    parts += [
        f"\n`{shown['drafter']}`, size {shown['size']}: share kept of the tokens that are reached, by place"
    ]
    parts += _places(acceptance)
    machines = dict.fromkeys(one["machine"] for one in by_kind.get("estimate", []))
    for name in machines:
        own = [one for one in by_kind["estimate"] if one["machine"] == name]
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
    """Checked ones first."""
    own = [one for one in settings if one["texts"] == texts]
    return sorted(own, key=lambda one: (one["checked"] is None, -one["ratio"]))[:MOST_ROWS]


def _best_by_texts(settings: Sequence[Mapping]) -> list[Mapping]:
    counts = sorted({one["texts"] for one in settings})
    return [_fastest(settings, count)[0] for count in counts]


def _speeds(settings: Sequence[Mapping]) -> list[str]:
    rows = [
        f"{'texts':>5}  {'drafter':15} {'size':>4}  {'rule':13} {'tokens/s':>8} {'plain':>8} {'ratio':>6}"
    ]
    for one in settings:
        speed = one["predicted"] if one["checked"] is None else one["checked"]
        how = (
            "predicted" if one["checked"] is None else f"checked; predicted {one['predicted']:.1f}"
        )
        how = "estimate" if one["kind"] == "estimate" else how
        rows.append(
            f"{one['texts']:5}  {one['drafter']:15} {one['size']:4}  {one['verifier']:13} {speed:8.1f} {one['plain']:8.1f} "
            f"{one['ratio']:6.2f}  {how}"
        )
    return rows


def _places(acceptance: Sequence[Mapping]) -> list[str]:
    rows = []
    for one in sorted(
        acceptance, key=lambda one: (one["prompt_kind"] != "all", one["prompt_kind"])
    ):
        places = [place for place in one["positions"] if place["reached"]][:MOST_POSITIONS]
        shares = "".join(f"{place['accepted'] / place['reached']:6.0%}" for place in places)
        rows.append(
            f"  {one['prompt_kind']:14} {one['new_tokens'] / one['steps']:5.2f} tokens a step {shares}"
        )
    return rows
