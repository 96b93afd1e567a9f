"""Tables for the pure functions of the drawing code: an expression and what it must give. Those of a file are evaluated on
one page, with the small worlds of ``functions.js``."""

from collections.abc import Mapping
from pathlib import Path

STEP = "toy.step([[-1, 'accepted'], [-1, 'rejected'], [0, 'ignored']], ['n0', 'x'])"
BARE = "toy.step([], ['y'])"
MODEL = f"toy.model({STEP}, {BARE}, {STEP})"

Cases = Mapping[str, tuple[str, object]]


def cases(**tables: Cases) -> dict[str, tuple[str, object]]:
    """The rows of these tables, each by the names of its table and its own."""
    return {f"{name}: {case}": row for name, rows in tables.items() for case, row in rows.items()}


def results(page, wanted: Cases) -> dict[str, object]:
    """What every expression gives on this page, by case."""
    page.add_script_tag(content=(Path(__file__).parent / "functions.js").read_text("utf-8"))
    tries = ", ".join(f"() => ({expression})" for expression, _ in wanted.values())
    found = page.evaluate(
        f"[{tries}].map((work) => {{ try {{ return work(); }} catch (e) {{ return String(e); }} }})"
    )
    return dict(zip(wanted, found, strict=True))
