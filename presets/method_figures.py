"""More figures of a finished trace: those that characterise single methods, see ``presets.figures``."""

from collections import Counter
from collections.abc import Callable, Iterator

from engine.trace import Trace
from presets.figures import coins, drafting, kept, share


def shown(trace: Trace, kind: str) -> Iterator[dict]:
    """The exhibits of this kind, step by step."""
    for step in trace.steps:
        for exhibit in (step.get("drafter") or {}).get("exhibits", ()):
            if exhibit["kind"] == kind:
                yield exhibit


def unwanted(step: dict, node: int) -> bool:
    """Whether a drafted token was not the target's favourite in its place."""
    places = {place["node"]: place["p"] for place in step["distributions"]}
    top = places.get(step["nodes"]["parent"][node])
    return bool(top) and max(top, key=lambda entry: entry[2])[0] != step["nodes"]["token"][node]


def kept_unwanted(trace: Trace) -> int:
    """Kept tokens that were not the target's favourite in their place; only a lossy rule keeps these at temperature
    0."""
    return sum(unwanted(step, node) for step in trace.steps for node in kept(step))


def kept_forced(trace: Trace) -> int:
    """Kept tokens that a schema forced."""
    return sum(s["nodes"]["source"][node] == "forced" for s in trace.steps for node in kept(s))


def healed(trace: Trace) -> int:
    """Characters that were taken back from the prompt, if the first new token spells all of them."""
    text = trace.run.get("constraint", {}).get("text", "")
    first = next(piece for step in trace.steps for piece in step["output"]["pieces"])
    return len(text) if first.startswith(text) else 0


def siblings_kept(trace: Trace) -> int:
    """The most children of one node that were kept in a step."""
    counts = (Counter(step["nodes"]["parent"][node] for node in kept(step)) for step in trace.steps)
    return max((max(count.values()) for count in counts if count), default=0)


def repeated_siblings(trace: Trace) -> int:
    """Drafted tokens that repeat the token of a sibling."""

    def repeated(nodes: dict) -> int:
        pairs = Counter(zip(nodes["parent"], nodes["token"], strict=True))
        return sum(count - 1 for count in pairs.values())

    return sum(repeated(step["nodes"]) for step in trace.steps)


def branching(trace: Trace, forks: bool) -> int:
    """Steps whose draft forks, or with ``forks`` false does not."""

    def forked(step: dict) -> bool:
        return max(Counter(step["nodes"]["parent"]).values()) > 1

    return sum(forked(step) == forks for step in drafting(trace))


def lopsided(trace: Trace) -> int:
    """Steps whose draft has several first tokens, but continues from only one of them, to level three at least."""

    def alone(nodes: dict) -> bool:
        first = [node for node, parent in enumerate(nodes["parent"]) if parent == -1]
        going_on = [node for node in first if node in nodes["parent"]]
        return len(first) > 1 and len(going_on) == 1 and max(nodes["depth"]) >= 3

    return sum(alone(step["nodes"]) for step in drafting(trace))


def undrafted(trace: Trace) -> int:
    return sum(not step["nodes"]["token"] for step in trace.steps)


def draft_lengths(trace: Trace) -> int:
    """How many different numbers of tokens were drafted in a step; zero counts as one of them."""
    return len({len(step["nodes"]["token"]) for step in trace.steps})


def updates(trace: Trace) -> int:
    """How often the draft has learned, according to its own table."""
    rows = (row for table in shown(trace, "table") for row in table["rows"])
    return max((row[1] for row in rows if str(row[0]).startswith("updates of")), default=0)


def fuzzy_error(trace: Trace) -> float:
    """Mean distance of EasySpec's fuzzy laws from the true ones, according to its own tables."""
    tables = [t for t in shown(trace, "table") if t["title"].startswith("How far the fuzzy")]
    errors = [row[1] for table in tables for row in table["rows"]]
    return share(sum(errors), len(errors))


def pace(trace: Trace, part: slice) -> float:
    """Tokens a step in a part of the run."""
    steps = trace.steps[part]
    return share(sum(len(step["output"]["tokens"]) for step in steps), len(steps))


def meter_gap(trace: Trace) -> float:
    """The largest distance of a meter below its mark."""
    gaps = (g["mark"] - g["value"] for g in shown(trace, "gauge") if g.get("mark") is not None)
    return max(gaps, default=0.0)


def gauge_share(trace: Trace) -> float:
    """The value of the run's first gauge, as a share of its scale."""
    first = next(shown(trace, "gauge"), None)
    return 0.0 if first is None else share(first["value"] or 0.0, first["maximum"])


def skip_sets(trace: Trace) -> int:
    """How many different sets of layers drafted."""
    return len({str(exhibit["layers"]) for exhibit in shown(trace, "layers")})


def exits(trace: Trace) -> int:
    """After how many different layers a draft left the target."""
    stacks = ([one["state"] for one in stack["layers"]] for stack in shown(trace, "layers"))
    return len({stack.index("exit") for stack in stacks if "exit" in stack})


def most_passes(trace: Trace) -> int:
    """The most denoising passes after which a place of a block was filled."""
    tables = [table for table in shown(trace, "table") if "filled in pass" in table["columns"]]
    at = tables[0]["columns"].index("filled in pass") if tables else 0
    return max((row[at] for table in tables for row in table["rows"]), default=0)


def filled_because(trace: Trace, reason: str) -> int:
    """Places of blocks that were filled for a reason that begins with ``reason``."""
    tables = [table for table in shown(trace, "table") if "why" in table["columns"]]
    rows = ((row, table["columns"].index("why")) for table in tables for row in table["rows"])
    return sum(str(row[at]).startswith(reason) for row, at in rows)


def off_path(trace: Trace) -> int:
    """Positions of lattices whose path does not take the likeliest candidate."""
    return sum(row > 0 for lattice in shown(trace, "lattice") for row in lattice["path"])


def ended_blocks(trace: Trace) -> int:
    """Blocks that end where a line or a sentence ends."""
    lines = (line for words in shown(trace, "words") for line in words["lines"])
    return sum(str(line).startswith("The block ends with") for line in lines)


def overlaps(trace: Trace) -> int:
    """Steps in which two lanes worked at the same time."""

    def both(spans: list[dict]) -> bool:
        return any(
            one["lane"] != other["lane"]
            and max(one["start"], other["start"]) < min(one["end"], other["end"])
            for one in spans
            for other in spans
        )

    return sum(both(step.get("spans") or []) for step in trace.steps)


def tossed(trace: Trace) -> int:
    """Judgements that a coin decided, kept or refused."""
    return coins(trace, kept_by_chance=True) + coins(trace, kept_by_chance=False)


def judged_as(trace: Trace, *rules: str) -> int:
    """Judgements by one of these rules."""
    return sum(entry["rule"] in rules for step in trace.steps for entry in step["judgements"])


def kept_retrieved(trace: Trace) -> int:
    """Kept tokens that were looked up, and that the draft model had not drafted itself."""
    looked_up = ("this text", "datastore")
    return sum(s["nodes"]["source"][node] in looked_up for s in trace.steps for node in kept(s))


def pruned(trace: Trace) -> int:
    """Looked-up tokens that did not enter the draft."""
    tables = [table for table in shown(trace, "table") if "Outcome" in table["columns"]]
    return sum(row[-1] == "pruned" for table in tables for row in table["rows"])


def last_gauge(trace: Trace, title: str) -> float:
    """The last value of the gauge whose title begins so; not a number where there is none."""
    values = [one["value"] for one in shown(trace, "gauge") if one["title"].startswith(title)]
    return values[-1] if values else float("nan")


def turned_down(trace: Trace) -> int:
    """How often the likeliest of some candidates did not have the best score, by a rule's own tables."""
    tables = [table for table in shown(trace, "table") if table["columns"][-1] == "score"]
    return sum(max(row[-1] for row in t["rows"]) > t["rows"][0][-1] for t in tables)


def most_decided(trace: Trace) -> int:
    """The most tokens that one pass over several texts decided."""
    return max((len(step["output"]["tokens"]) for step in trace.steps), default=0)


METHOD_FIGURES: dict[str, Callable[[Trace], float]] = {
    "kept_unwanted": kept_unwanted,
    "kept_forced": kept_forced,
    "healed": healed,
    "siblings_kept": siblings_kept,
    "repeated_siblings": repeated_siblings,
    "forked_steps": lambda trace: branching(trace, forks=True),
    "unforked_steps": lambda trace: branching(trace, forks=False),
    "lopsided_steps": lopsided,
    "undrafted_steps": undrafted,
    "draft_lengths": draft_lengths,
    "updates": updates,
    "fuzzy_error": fuzzy_error,
    "first_pace": lambda trace: pace(trace, slice(8)),
    "last_pace": lambda trace: pace(trace, slice(-8, None)),
    "meter_gap": meter_gap,
    "gauge_share": gauge_share,
    "skip_sets": skip_sets,
    "exits": exits,
    "most_passes": most_passes,
    "anchored": lambda trace: filled_because(trace, "near the anchor"),
    "agreed": lambda trace: filled_because(trace, "the same in"),
    "ended_blocks": ended_blocks,
    "off_path": off_path,
    "overlaps": overlaps,
    "tossed": tossed,
    "saved": lambda trace: judged_as(trace, "saved"),
    "carried": lambda trace: judged_as(trace, "carried"),
    "passed": lambda trace: judged_as(trace, "passed"),
    "kept_retrieved": kept_retrieved,
    "pruned": pruned,
    "valid_at_most": lambda trace: last_gauge(trace, "Chance of a valid text"),
    "turned_down": turned_down,
    "most_decided": most_decided,
    "tested": lambda trace: last_gauge(trace, "Tokens tested"),
    "tested_share": lambda trace: (
        last_gauge(trace, "Tokens tested") / trace.run["target"]["vocab_size"]
    ),
}
