"""Whether what the lessons say is true of the finished runs."""

from collections.abc import Iterator

from engine.errors import UserError
from presets.lessons import entries, lesson


def untrue_claims() -> Iterator[str]:
    """One line for each claim that does not hold, and for each lesson that cannot be read: its question has no
    answer any more, or the moment that it shows does not come."""
    for entry in entries():
        try:
            screens = lesson(entry.name)["screens"]
        except UserError as error:
            yield str(error)
            continue
        for screen in screens:
            for claim in claims_of(screen):
                for one in claim["holds"]:
                    if not one["true"]:
                        place = f"{entry.path.name}, “{screen['title']}”"
                        yield f"{place}: not true: {one['condition']} (it is {one['is']})"


def claims_of(screen: dict) -> list[dict]:
    """The claims on a screen."""
    found = [
        node["directive"]
        for node in screen["text"]
        if isinstance(node, dict) and "directive" in node
    ]
    return [one for one in found if one["kind"] == "claim"]
