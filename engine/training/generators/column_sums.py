"""Works sums column by column, from the ones upwards. Every line needs only sums of single digits, so a small model can
learn it.

After the columns, a line names the written digits in reading order, and the result repeats them.
"""

from __future__ import annotations

PLACES = ["ones", "tens", "hundreds", "thousands", "ten thousands"]


def _digit(number: int, place: int) -> int:
    return number // 10**place % 10


def _add(a: int, b: int) -> tuple[list[str], list[int]]:
    steps, written, carry = [], [], 0
    for place in range(max(len(str(a)), len(str(b)))):
        x, y = _digit(a, place), _digit(b, place)
        total = x + y + carry
        shown = f"{x} + {y}" if place == 0 else f"{x} + {y} + {carry}"
        carry = total // 10
        written.append(total % 10)
        steps.append(f"{shown} = {total}, write {total % 10}, carry {carry}")
    return _last_carry(steps, written, carry)


def _subtract(a: int, b: int) -> tuple[list[str], list[int]]:
    """The steps of a - b by column, and the written digits, the ones first. Requires a >= b."""
    steps, written, borrow = [], [], 0
    for place in range(len(str(a))):
        x, y = _digit(a, place), _digit(b, place)
        rest = f"- {y}" if place == 0 else f"- {y} - {borrow}"
        difference, borrow = x - y - borrow, int(x - y - borrow < 0)
        written.append(difference % 10)
        shown = f"{x} {rest}" + (f", borrow: 1{x} {rest}" if borrow else "")
        steps.append(f"{shown} = {difference % 10}, write {difference % 10}, borrow {borrow}")
    return steps, written


def _multiply(a: int, b: int) -> tuple[list[str], list[int]]:
    """The steps of a * b by column, and the written digits, the ones first. Requires b < 10."""
    steps, written, carry = [], [], 0
    for place in range(len(str(a))):
        x = _digit(a, place)
        total = x * b + carry
        shown = f"{x} * {b} = {x * b}"
        if place:
            shown += f", {x * b} + {carry} = {total}"
        carry = total // 10
        written.append(total % 10)
        steps.append(f"{shown}, write {total % 10}, carry {carry}")
    return _last_carry(steps, written, carry)


def _last_carry(steps: list[str], written: list[int], carry: int) -> tuple[list[str], list[int]]:
    return (steps + [f"write {carry}"], written + [carry]) if carry else (steps, written)


OPERATIONS = {
    "+": ("Add", _add, lambda a, b: a + b),
    "-": ("Subtract", _subtract, lambda a, b: a - b),
    "*": ("Multiply", _multiply, lambda a, b: a * b),
}


def value(a: int, operator: str, b: int) -> int:
    return OPERATIONS[operator][2](a, b)


def column_steps(a: int, operator: str, b: int) -> list[str]:
    """The texts of the steps: one for each column, and a last one that names the written digits in reading order."""
    steps, written = OPERATIONS[operator][1](a, b)
    lines = [f"{place}: {step}" for place, step in zip(PLACES, steps, strict=False)]
    named = [f"{place} {digit}" for place, digit in zip(PLACES, written, strict=False)]
    return [*lines, ", ".join(reversed(named))]


def in_lines(a: int, operator: str, b: int) -> str:
    steps = column_steps(a, operator, b)
    return "\n".join(f"{step.capitalize()}." for step in steps)


def in_a_sentence(a: int, operator: str, b: int) -> str:
    """The sum with its columns in one sentence, which ends with `a + b = c`."""
    shown = f"{a} {operator} {b}"
    return f"{shown}: {'; '.join(column_steps(a, operator, b))}. {shown} = {value(a, operator, b)}"


def is_easy(a: int, operator: str, b: int) -> bool:
    """Whether a sum is easy: a product of numbers up to ten, a sum or difference of numbers up to twenty, or one of two
    multiples of ten."""
    if operator == "*":
        return max(a, b) <= 10
    return max(a, b, value(a, operator, b)) <= 20 or a % 10 == b % 10 == 0


def worked(a: int, operator: str, b: int) -> str:
    """The sum with its result: directly if it is easy, else with its columns."""
    if is_easy(a, operator, b):
        return f"{a} {operator} {b} = {value(a, operator, b)}"
    return in_a_sentence(a, operator, b)
