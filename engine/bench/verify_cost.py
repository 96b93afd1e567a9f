"""What a pass of the target over several rows costs, compared with a one-token step."""

import time
from statistics import median

from engine.target.language_model import LanguageModel

PREFIX = 256
REPEATS = 30


def verify_costs(target: LanguageModel, nodes: tuple[int, ...] = (0, 4, 8, 16)) -> dict[int, float]:
    """Median milliseconds of a pass over the root and so many nodes of a chain, interleaved."""
    session = target.session(PREFIX + max(nodes) + 1)
    room = min(PREFIX, target.max_context - max(nodes) - 1)
    tokens = [token % target.vocab_size for token in range(room)]
    session.prefill(tokens)
    taken: dict[int, list[float]] = {count: [] for count in nodes}
    for turn in range(REPEATS + 3):
        for count in nodes:
            began = time.perf_counter()
            session.feed(tokens[: count + 1], range(-1, count))
            elapsed = time.perf_counter() - began
            session.commit([])
            if turn >= 3:
                taken[count].append(1000 * elapsed)
    return {count: median(times) for count, times in taken.items()}
