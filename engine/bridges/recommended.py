"""The setting that a tuning record recommends, with its measured figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from engine.bridges.acceptance_numbers import survival
from engine.bridges.step_counts import whole
from engine.errors import UserError

PLAIN = "none"
TREES = ("eagle", "mtp")
"""Drafters whose draft is a tree if its width is more than one."""
COUNTS, SHARES = {"depth", "top_k", "max_ngram", "min_ngram"}, {"factor", "least_chance"}
"""Options that are copied to other engines' settings: COUNTS must be whole numbers, SHARES numbers."""
LARGEST = 1024  # the largest value of these options
USUAL_DEPTH = 8
"""The depth of an EAGLE tree whose options do not name one."""


@dataclass(frozen=True)
class Recommended:
    """A recommended setting, with data on its models.

    target, draft: names of models; "" if the record has none. drafter, verifier: keys of this engine. size: tokens, or
    nodes of a tree, drafted in a step. off_above: the number of texts at a time above which plain decoding is faster;
    None if there is none.
    positions: counts as in an ``acceptance`` line, over all prompts. checkpoint: folder or Hub name of the drafter's
    weights; "" if unknown. eagle3: whether the weights are EAGLE-3's; None if unknown. drafted: the mean
    number of tokens drafted in a step; None if the record does not count them. ratio: the speed for one text as a
    multiple of plain decoding's; None if unknown. instead_of: the recommended setting, if the engine cannot express
    that one and this setting takes its place.
    models: the measured models with their sizes, in words; "" if the record has none. tried: size -> how fast this
    drafter was with this size for one text, in words; only the sizes with a known speed.
    """

    target: str
    draft: str
    drafter: str
    size: int
    verifier: str
    options: Mapping[str, object] = field(default_factory=dict)
    temperature: float = 0.0
    off_above: int | None = None
    positions: tuple[Mapping, ...] = ()
    checkpoint: str = ""
    eagle3: bool | None = None
    drafted: float | None = None
    ratio: float | None = None
    instead_of: Recommended | None = None
    models: str = ""
    tried: Mapping[int, str] = field(default_factory=dict)

    @property
    def in_full(self) -> Recommended:
        """The setting for an engine that never ends a chain early: its size is the mean number of tokens drafted in a
        step, rounded."""
        if self.drafter != "chain" or self.drafted is None:
            return self
        return replace(self, size=max(1, min(self.size, round(self.drafted))))

    @property
    def rates(self) -> list[float] | None:
        """For each position up to ``size``, the rounded share of drafts that were kept up to and including it; None if
        a position was not measured."""
        shares = survival(self.positions[: self.size])
        if shares is None or len(shares) < self.size:
            return None
        return [round(share, 4) for share in shares]

    @property
    def depth(self) -> int:
        """The depth of the draft tree, for the drafters in ``TREES``."""
        return min(int(self.options.get("depth") or USUAL_DEPTH), self.size)

    @property
    def width(self) -> int:
        """The number of candidates below each node of the draft tree, for the drafters in ``TREES``; 1 is a chain."""
        depth = int(self.options.get("depth") or USUAL_DEPTH)
        return int(self.options.get("top_k") or -(-self.size // depth))


def recommended(lines: Iterable[Mapping], name: str) -> Recommended:
    """The setting in the last answer of a record. name: the name of the record. Raises UserError, one sentence, if
    there is no answer, if it recommends plain decoding, or if it is broken."""
    lines = list(lines)
    answers = [line for line in lines if line.get("kind") == "answer"]
    if not answers:
        raise UserError(f"{name} has no answer yet; `python -m engine tune` writes one at its end.")
    try:
        return read_setting(answers[-1], lines, name)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise UserError(f"The answer in {name} is broken.") from None


def read_setting(answer: Mapping, lines: list[Mapping], name: str) -> Recommended:
    """The setting in an ``answer`` line, or in a ``setting`` line with the entry ``off_above``. lines: the record, for
    the names and the counts. Raises UserError if it is plain decoding; a broken line may also raise KeyError,
    TypeError, ValueError or AttributeError."""
    drafter, size, options = answer["drafter"], answer["size"], dict(answer.get("options") or {})
    if drafter in (None, PLAIN):
        why = (answer.get("why") or {}).get("sentence") or ""
        raise UserError(
            f"{name} recommends plain decoding, so there is nothing to export. {why}".strip()
        )
    about = next((line for line in lines if line.get("kind") == "tuning"), {})
    off = answer.get("off_above")
    counted = _counted(lines, answer, options)
    if not isinstance(drafter, str) or isinstance(size, bool) or not 1 <= size <= 1024:
        raise ValueError
    if off is not None and not 1 <= off <= 1 << 20:
        raise ValueError
    for option in COUNTS & options.keys():
        whole(options[option], LARGEST)
    if not all(0 <= options[option] <= LARGEST for option in SHARES & options.keys()):
        raise ValueError
    return Recommended(
        target=_name(about, "target"),
        draft=_name(about, "draft"),
        drafter=drafter,
        size=int(size),
        verifier=str(answer["verifier"]),
        options=options,
        temperature=float((about.get("sampling") or {}).get("temperature") or 0.0),
        off_above=None if off is None else int(off),
        positions=_positions(counted),
        drafted=_drafted(counted),
        ratio=_positive(answer.get("ratio")),
        models=" with ".join(filter(None, (_sized(about, role) for role in ("target", "draft")))),
        tried=_tried(lines, answer, options),
    )


def _positive(value: object, below: float = 1e9) -> float | None:
    """The value as a float; None unless it is a number between 0 and ``below``."""
    number = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < below
    return float(value) if number else None


def _tried(lines: list[Mapping], answer: Mapping, options: Mapping) -> dict[int, str]:
    """``Recommended.tried``. Sizes of a chain differ in their options, too, so these are compared for other drafters
    only."""
    told = {}
    for line in lines:
        same = all(line.get(name) == answer[name] for name in ("drafter", "verifier"))
        same &= answer["drafter"] == "chain" or (line.get("options") or {}) == options
        ratio, size = _positive(line.get("ratio")), line.get("size")
        if line.get("kind") == "setting" and line.get("texts") == 1 and same and ratio:
            how = "checked by running it"
            if line.get("checked") is None:
                count = whole(line.get("prompts") or 0)
                how = f"predicted after {count} prompt{'s' if count != 1 else ''}"
            told[whole(size)] = f"{ratio:.2f} times plain decoding for one text, {how}"
    return told


def _sized(about: Mapping, role: str) -> str:
    """A model's name and its number of parameters; "" if there is no such model."""
    name, count = _name(about, role), _positive((about.get(role) or {}).get("parameters"), 1e13)
    return f"{name} ({count / 1e6:,.1f} M)" if name and count else name


def _name(about: Mapping, role: str) -> str:
    return str((about.get(role) or {}).get("name") or "")


def _counted(lines: list[Mapping], answer: Mapping, options: Mapping) -> list[Mapping]:
    """The ``acceptance`` lines that hold this setting's counts. If there is one line for all prompts, it is the only
    one; otherwise there is a line for each kind of prompt. A later line replaces an earlier line for the same kind."""
    latest: dict[object, Mapping] = {}
    recommended_key = answer["drafter"], options, answer["size"], answer["verifier"]
    for line in lines:
        rule = line.get("verifier", answer["verifier"])
        key = line.get("drafter"), line.get("options") or {}, line.get("size"), rule
        if line.get("kind") == "acceptance" and key == recommended_key:
            latest[line.get("prompt_kind")] = line
    return [latest["all"]] if "all" in latest else list(latest.values())


def _drafted(counted: list[Mapping]) -> float | None:
    if not counted or not all(line.get("steps") and "drafted" in line for line in counted):
        return None
    drafted, steps = (sum(whole(line[name]) for line in counted) for name in ("drafted", "steps"))
    return drafted / max(1, steps)


def _positions(counted: list[Mapping]) -> tuple[Mapping, ...]:
    """The counts of these lines, summed for each position; () if a line has no count of how often a position was
    reached."""
    reached, accepted = Counter(), Counter()
    for line in counted:
        for entry in line.get("positions", ()):
            if "reached" not in entry:
                return ()
            reached[entry["position"]] += entry["reached"]
            accepted[entry["position"]] += entry["accepted"]
    return tuple(
        {"position": place, "reached": reached[place], "accepted": accepted[place]}
        for place in sorted(reached)
    )
