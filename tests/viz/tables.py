"""Tables for the pure functions of the drawing code: each row is an expression and its expected value. The tables of a
test file are evaluated on one page, with the helpers of ``functions.js``."""

from collections.abc import Mapping
from pathlib import Path

STEP = "toy.step([[-1, 'accepted'], [-1, 'rejected'], [0, 'ignored']], ['n0', 'x'])"
BARE = "toy.step([], ['y'])"
MODEL = f"toy.model({STEP}, {BARE}, {STEP})"

Cases = Mapping[str, tuple[str, object]]


def cases(**tables: Cases) -> dict[str, tuple[str, object]]:
    """Return the rows of these tables, each under its table's name and its own."""
    return {f"{name}: {case}": row for name, rows in tables.items() for case, row in rows.items()}


def results(page, wanted: Cases) -> dict[str, object]:
    """Return case -> value of its expression on this page."""
    page.add_script_tag(content=(Path(__file__).parent / "functions.js").read_text("utf-8"))
    tries = ", ".join(f"() => ({expression})" for expression, _ in wanted.values())
    found = page.evaluate(
        f"[{tries}].map((work) => {{ try {{ return work(); }} catch (e) {{ return String(e); }} }})"
    )
    return dict(zip(wanted, found, strict=True))
