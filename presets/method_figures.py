"""Further figures of a finished trace, each for one method or a few; see ``presets.figures``."""

from collections import Counter
from collections.abc import Callable, Iterator

from engine.trace import Trace
from presets.figures import coins, drafting, kept, share


def shown(trace: Trace, kind: str) -> Iterator[dict]:
    """Yield the drafter's exhibits of this kind, step by step."""
    for step in trace.steps:
        for exhibit in (step.get("drafter") or {}).get("exhibits", ()):
            if exhibit["kind"] == kind:
                yield exhibit


def unwanted(step: dict, node: int) -> bool:
    """Return whether a drafted token was not the target's likeliest token in its place."""
    places = {place["node"]: place["p"] for place in step["distributions"]}
    top = places.get(step["nodes"]["parent"][node])
    return bool(top) and max(top, key=lambda entry: entry[2])[0] != step["nodes"]["token"][node]


def kept_unwanted(trace: Trace) -> int:
    """Return the number of accepted tokens that were not the target's likeliest; at temperature 0 only a lossy rule
    accepts such tokens."""
    return sum(unwanted(step, node) for step in trace.steps for node in kept(step))


def kept_forced(trace: Trace) -> int:
    """Return the number of accepted tokens that a schema forced."""
    return sum(s["nodes"]["source"][node] == "forced" for s in trace.steps for node in kept(s))


def healed(trace: Trace) -> int:
    """Return how many characters healing took back from the prompt; 0 unless the first new token spells all of them."""
    text = trace.run.get("constraint", {}).get("text", "")
    first = next(piece for step in trace.steps for piece in step["output"]["pieces"])
    return len(text) if first.startswith(text) else 0


def siblings_kept(trace: Trace) -> int:
    """Return the most children of one node that were accepted in a step."""
    counts = (Counter(step["nodes"]["parent"][node] for node in kept(step)) for step in trace.steps)
    return max((max(count.values()) for count in counts if count), default=0)


def repeated_siblings(trace: Trace) -> int:
    """Return the number of drafted nodes that repeat the token of a sibling."""

    def repeated(nodes: dict) -> int:
        pairs = Counter(zip(nodes["parent"], nodes["token"], strict=True))
        return sum(count - 1 for count in pairs.values())

    return sum(repeated(step["nodes"]) for step in trace.steps)


def branching(trace: Trace, forks: bool) -> int:
    """Return the number of steps whose draft forks; with ``forks`` false, of steps whose draft does not fork."""

    def forked(step: dict) -> bool:
        return max(Counter(step["nodes"]["parent"]).values()) > 1

    return sum(forked(step) == forks for step in drafting(trace))


def lopsided(trace: Trace) -> int:
    """Return the number of steps whose draft has several first tokens, but continues only one of them, to depth 3 or
    more."""

    def alone(nodes: dict) -> bool:
        first = [node for node, parent in enumerate(nodes["parent"]) if parent == -1]
        going_on = [node for node in first if node in nodes["parent"]]
        return len(first) > 1 and len(going_on) == 1 and max(nodes["depth"]) >= 3

    return sum(alone(step["nodes"]) for step in drafting(trace))


def undrafted(trace: Trace) -> int:
    return sum(not step["nodes"]["token"] for step in trace.steps)


def draft_lengths(trace: Trace) -> int:
    """Return how many different draft sizes, in tokens, the steps have; 0 counts as a size."""
    return len({len(step["nodes"]["token"]) for step in trace.steps})


def updates(trace: Trace) -> int:
    """Return how many updates the draft model has made, according to the drafter's table."""
    rows = (row for table in shown(trace, "table") for row in table["rows"])
    return max((row[1] for row in rows if str(row[0]).startswith("updates of")), default=0)


def fuzzy_error(trace: Trace) -> float:
    """Return the mean distance of EasySpec's fuzzy laws from the true laws, according to the drafter's tables."""
    tables = [t for t in shown(trace, "table") if t["title"].startswith("How far the fuzzy")]
    errors = [row[1] for table in tables for row in table["rows"]]
    return share(sum(errors), len(errors))


def pace(trace: Trace, part: slice) -> float:
    """Return the tokens a step in a part of the run. part: a slice of its steps."""
    steps = trace.steps[part]
    return share(sum(len(step["output"]["tokens"]) for step in steps), len(steps))


def meter_gap(trace: Trace) -> float:
    """Return the largest distance of a gauge below its mark; 0 if no gauge has a mark."""
    gaps = (g["mark"] - g["value"] for g in shown(trace, "gauge") if g.get("mark") is not None)
    return max(gaps, default=0.0)


def gauge_share(trace: Trace) -> float:
    """Return the value of the run's first gauge as a share of its maximum."""
    first = next(shown(trace, "gauge"), None)
    return 0.0 if first is None else share(first["value"] or 0.0, first["maximum"])


def skip_sets(trace: Trace) -> int:
    """Return how many different sets of layers drafted."""
    return len({str(exhibit["layers"]) for exhibit in shown(trace, "layers")})


def exits(trace: Trace) -> int:
    """Return after how many different layers a draft left the target."""
    stacks = ([layer["state"] for layer in stack["layers"]] for stack in shown(trace, "layers"))
    return len({stack.index("exit") for stack in stacks if "exit" in stack})


def most_passes(trace: Trace) -> int:
    """Return the latest denoising pass in which a place of a block was filled."""
    tables = [table for table in shown(trace, "table") if "filled in pass" in table["columns"]]
    at = tables[0]["columns"].index("filled in pass") if tables else 0
    return max((row[at] for table in tables for row in table["rows"]), default=0)


def filled_because(trace: Trace, reason: str) -> int:
    """Return the number of places in blocks that were filled for a reason that begins with ``reason``."""
    tables = [table for table in shown(trace, "table") if "why" in table["columns"]]
    rows = ((row, table["columns"].index("why")) for table in tables for row in table["rows"])
    return sum(str(row[at]).startswith(reason) for row, at in rows)


def off_path(trace: Trace) -> int:
    """Return the number of lattice positions at which the path does not take the likeliest candidate."""
    return sum(row > 0 for lattice in shown(trace, "lattice") for row in lattice["path"])


def ended_blocks(trace: Trace) -> int:
    """Return the number of blocks that end where a line or a sentence ends."""
    lines = (line for words in shown(trace, "words") for line in words["lines"])
    return sum(str(line).startswith("The block ends with") for line in lines)


def overlaps(trace: Trace) -> int:
    """Return the number of steps in which two of the step's lanes of work overlap in time."""

    def both(spans: list[dict]) -> bool:
        return any(
            one["lane"] != other["lane"]
            and max(one["start"], other["start"]) < min(one["end"], other["end"])
            for one in spans
            for other in spans
        )

    return sum(both(step.get("spans") or []) for step in trace.steps)


def tossed(trace: Trace) -> int:
    """Return the number of judgements that a coin decided."""
    return coins(trace, kept_by_chance=True) + coins(trace, kept_by_chance=False)


def judged_as(trace: Trace, *rules: str) -> int:
    """Return the number of judgements by one of these rules."""
    return sum(entry["rule"] in rules for step in trace.steps for entry in step["judgements"])


def kept_retrieved(trace: Trace) -> int:
    """Return the number of accepted tokens that were looked up and not drafted by the draft model."""
    looked_up = ("this text", "datastore")
    return sum(s["nodes"]["source"][node] in looked_up for s in trace.steps for node in kept(s))


def pruned(trace: Trace) -> int:
    """Return the number of looked-up tokens that did not enter the draft."""
    tables = [table for table in shown(trace, "table") if "Outcome" in table["columns"]]
    return sum(row[-1] == "pruned" for table in tables for row in table["rows"])


def last_gauge(trace: Trace, title: str) -> float:
    """Return the last value of the gauges whose titles begin with ``title``; NaN if there is none."""
    values = [gauge["value"] for gauge in shown(trace, "gauge") if gauge["title"].startswith(title)]
    return values[-1] if values else float("nan")


def turned_down(trace: Trace) -> int:
    """Return how often the likeliest candidate did not have the best score, according to the rule's tables."""
    tables = [table for table in shown(trace, "table") if table["columns"][-1] == "score"]
    return sum(max(row[-1] for row in t["rows"]) > t["rows"][0][-1] for t in tables)


def most_decided(trace: Trace) -> int:
    """Return the most tokens that one step decided."""
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
