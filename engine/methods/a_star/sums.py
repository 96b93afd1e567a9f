"""How right a worked sum is so far, checked by arithmetic. The form is the one in which the embedded models work sums."""

import re

EQUATION = re.compile(r"(\d+)((?: [-+*] \d+)+) = (\d+)(?:, write (\d), carry (\d+))?")
TERM = re.compile(r" ([-+*]) (\d+)")
LINE = re.compile(
    r"[A-Z][a-z ]+: (?:[\d +*=,:-]|write|carry|borrow)+\.|[A-Z][a-z ]+ \d(?:, [a-z ]+ \d)*\.|Answer: \d+"
)


def share_right(text: str) -> float:
    """The share of the statements of a text that are right; 1 for a text without any. Statements are equations such as
    ``8 + 7 + 1 = 16``, read from the left, and the digits that are then written and carried: ``write 6, carry 1``. A line that has not
    the form of a worked sum is a wrong statement."""
    outcomes = []
    for first, rest, total, written, carried in EQUATION.findall(text):
        value = int(first)
        for sign, number in TERM.findall(rest):
            change = int(number)
            value = value * change if sign == "*" else value + (change if sign == "+" else -change)
        outcomes.append(value == int(total))
        if written:
            outcomes.append((int(carried), int(written)) == divmod(int(total), 10))
    outcomes += [False for line in text.split("\n") if line.strip() and not LINE.fullmatch(line)]
    return sum(outcomes) / len(outcomes) if outcomes else 1.0
