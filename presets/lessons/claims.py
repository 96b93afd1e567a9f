"""Whether the lessons' claims are true of the finished runs."""

from collections.abc import Iterator

from engine.errors import UserError
from presets.lessons import entries, lesson


def untrue_claims() -> Iterator[str]:
    """One line for each claim that does not hold, and for each lesson that cannot be read because a question no longer
    has an answer, or the moment that the lesson shows no longer occurs."""
    for entry in entries():
        try:
            screens = lesson(entry.name)["screens"]
        except UserError as error:
            yield str(error)
            continue
        for screen in screens:
            for asked in directives_of(screen, "predict"):
                if asked.get("close"):
                    place = f"{entry.path.name}, “{screen['title']}”"
                    yield f"{place}: too close to ask: {asked['lanes']} by {asked.get('least', asked.get('most'))}"
            for claim in directives_of(screen, "claim"):
                for one in claim["holds"]:
                    if not one["true"]:
                        place = f"{entry.path.name}, “{screen['title']}”"
                        yield f"{place}: not true: {one['condition']} (it is {one['is']})"


def directives_of(screen: dict, kind: str) -> list[dict]:
    """The directives of this kind, claims or questions, in the text of a screen."""
    found = [
        node["directive"]
        for node in screen["text"]
        if isinstance(node, dict) and "directive" in node
    ]
    return [one for one in found if one["kind"] == kind]
