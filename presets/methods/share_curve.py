"""The figure of ``specvlm_video``: how many tokens a step keeps, by the share of the picture that the draft model sees."""

import json
from collections.abc import Mapping, Sequence

from engine.core.exhibits import Curve, Exhibit, Series
from engine.run import RunRequest, open_run
from presets.families import family

SHARES = (0.0, 1 / 9, 3 / 9, 5 / 9, 1.0)
SCENES = range(100, 112)
LENGTH, TOKENS = 6, 48
PROMPT = "describe the picture. ![](scene:{})"


def measured() -> dict[float, float]:
    """Share -> tokens a step over all captions."""
    return {share: tokens_a_step(share) for share in SHARES}


def tokens_a_step(share: float, scenes: Sequence[int] = SCENES) -> float:
    tokens = steps = 0
    for scene in scenes:
        run = open_run(
            RunRequest(
                PROMPT.format(scene),
                family("captions"),
                "specvlm_video",
                {"length": LENGTH, "share": share, "stop_below": 0.0},
                max_new_tokens=TOKENS,
                recorded=False,
            )
        )
        for _ in run.steps():
            pass
        told = json.loads(run.summary())
        tokens, steps = tokens + told["new_tokens"], steps + told["steps"]
    return round(tokens / steps, 3)


def exhibits(found: Mapping[float, float]) -> list[Exhibit]:
    note = f"Captions of {len(SCENES)} held-out scenes at temperature 0; up to {LENGTH} tokens drafted in a step, all of them read."
    return [
        Curve(
            title="What a draft keeps by what it sees",
            x=list(found),
            series=[Series("tokens a step", list(found.values()))],
            x_label="share of the patches that the draft sees",
            y_label="tokens a step",
            note=note,
        )
    ]
