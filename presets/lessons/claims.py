"""Checks whether the lessons' claims are true of the finished runs."""

from collections.abc import Iterator

from engine.errors import UserError
from presets.lessons import entries, lesson


def untrue_claims() -> Iterator[str]:
    """Yield one line for each claim that is not true, each question whose answer is too close, each screen that is left
    out, and each invalid lesson.

    A lesson becomes invalid if a question no longer has an answer, or a moment that it shows no longer occurs.
    """
    for entry in entries():
        try:
            content = lesson(entry.name)
        except UserError as error:
            yield str(error)
            continue
        yield from content["left_out"]
        for screen in content["screens"]:
            for question in directives_of(screen, "predict"):
                if question.get("close"):
                    place = f"{entry.path.name}, “{screen['title']}”"
                    yield f"{place}: too close to ask: {question['lanes']} by {question.get('least', question.get('most'))}"
            for claim in directives_of(screen, "claim"):
                for condition in claim["holds"]:
                    if not condition["true"]:
                        place = f"{entry.path.name}, “{screen['title']}”"
                        yield f"{place}: not true: {condition['condition']} (it is {condition['is']})"


def directives_of(screen: dict, kind: str) -> list[dict]:
    """Return the directives of this kind in the text of a screen. kind: "claim" or "predict"."""
    directives = [
        node["directive"]
        for node in screen["text"]
        if isinstance(node, dict) and "directive" in node
    ]
    return [directive for directive in directives if directive["kind"] == kind]
