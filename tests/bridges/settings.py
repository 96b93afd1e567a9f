"""Recommended settings, and the lines of a record that lead to one."""

from engine.bridges.recommended import Recommended

POSITIONS = (
    {"position": 1, "reached": 200, "accepted": 160},
    {"position": 2, "reached": 160, "accepted": 120},
    {"position": 3, "reached": 100, "accepted": 50},
)
"""20 of 200 steps drafted two tokens only, and kept both. Of all drafts, 160, 120 and 50 kept the first, two and three tokens."""


def setting(drafter="chain", size=3, **changes) -> Recommended:
    usual = {"target": "big", "draft": "small", "verifier": "greedy", "positions": POSITIONS}
    return Recommended(drafter=drafter, size=size, **(usual | changes))


def measured(drafter: str, size: int, ratio: float, **more) -> dict:
    """A ``setting`` line of one text, or of more."""
    line = {"kind": "setting", "drafter": drafter, "options": {}, "size": size, "ratio": ratio}
    return {**line, "verifier": "rejection", "prompts": 24, "texts": 1, **more}


def record(**answer) -> list[dict]:
    half = [
        {**each, "reached": each["reached"] // 2, "accepted": each["accepted"] // 2}
        for each in POSITIONS
    ]
    measured = {
        "kind": "acceptance",
        "drafter": "chain",
        "options": {},
        "size": 3,
        "positions": half,
    }
    usual = {"drafter": "chain", "options": {}, "size": 3, "verifier": "rejection", "off_above": 9}
    return [
        {
            "kind": "tuning",
            "schema": 1,
            "target": {"name": "big"},
            "draft": {"name": "small"},
            "sampling": {"temperature": 0.8},
        },
        {
            **measured,
            "prompt_kind": "story",
            "positions": [{"position": 1, "reached": 9, "accepted": 0}],
        },
        {**measured, "prompt_kind": "story"},
        {**measured, "prompt_kind": "code"},
        {**measured, "prompt_kind": "code", "size": 2},
        {**measured, "prompt_kind": "code", "verifier": "block"},
        {
            "kind": "answer",
            "sentence": "",
            "why": {"cause": "pays", "sentence": ""},
            **usual,
            **answer,
        },
    ]
