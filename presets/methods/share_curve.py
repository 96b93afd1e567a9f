"""The figure of ``specvlm_video``: tokens a step against the share of the picture or film that the draft model sees."""

import json
from collections.abc import Mapping, Sequence

from engine.core.exhibits import Curve, Exhibit, Series
from engine.run import RunRequest, open_run
from engine.scenes.film_talk import DESCRIBE_FILM
from engine.scenes.scene_talk import DESCRIBE
from presets.families import family

SHARES = (0.0, 0.1, 0.2, 0.5, 1.0)
ASKED = {"pictures": DESCRIBE + " ![](scene:{})", "films": DESCRIBE_FILM + " ![](film:{})"}
NUMBERS = range(100, 112)
LENGTH, TOKENS = 6, 56

Measured = Mapping[str, Mapping[float, float]]
"""Subject, "pictures" or "films" -> share of the patches -> tokens a step over all texts."""


def measured() -> Measured:
    return {
        name: {share: tokens_a_step("specvlm_video", prompt, share=share) for share in SHARES}
        for name, prompt in ASKED.items()
    }


def tokens_a_step(
    drafter: str, prompt: str, numbers: Sequence[int] = NUMBERS, **options: float
) -> float:
    """Return the tokens a step of this drafter, over its texts about the scenes or films of these numbers. prompt: with
    {} for the number."""
    tokens = steps = 0
    for number in numbers:
        run = open_run(
            RunRequest(
                prompt.format(number),
                family("captions"),
                drafter,
                {"length": LENGTH, "stop_below": 0.0, **options},
                max_new_tokens=TOKENS,
                recorded=False,
            )
        )
        for _ in run.steps():
            pass
        summary = json.loads(run.summary())
        tokens, steps = tokens + summary["new_tokens"], steps + summary["steps"]
    return round(tokens / steps, 3)


def exhibits(found: Measured) -> list[Exhibit]:
    note = f"{len(NUMBERS)} held-out pictures and films described at temperature 0; up to {LENGTH} tokens drafted in a step, all of them read."
    return [
        Curve(
            title="What a draft keeps by what it sees",
            x=list(SHARES),
            series=[Series(name, list(of.values())) for name, of in found.items()],
            x_label="share of the patches that the draft sees",
            y_label="tokens a step",
            note=note,
        )
    ]
