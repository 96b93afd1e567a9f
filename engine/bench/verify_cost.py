"""The cost of a pass of the target over several rows, compared with a one-token step."""

import time
from statistics import median

from engine.core.threads import torch_threads
from engine.model.language_model import LanguageModel
from engine.model.session import Session

PREFIX = 256
ROUNDS, IN_A_ROW, SETTLED = 8, 8, 3


def verify_costs(target: LanguageModel, nodes: tuple[int, ...] = (0, 4, 8, 16)) -> dict[int, float]:
    """Median milliseconds of a pass over the root and each number of nodes of a chain, measured in
    turns."""
    session = target.session(PREFIX + max(nodes) + 1)
    room = min(PREFIX, target.max_context - max(nodes) - 1)
    tokens = [token % target.vocab_size for token in range(room)]
    session.prefill(tokens)
    taken: dict[int, list[float]] = {count: [] for count in nodes}
    with torch_threads(target.torch_threads):
        for _ in range(ROUNDS + 1):
            for count in nodes:
                # passes of one text have one shape; the first passes after a change of shape are
                # not counted
                times = [_timed(session, tokens[: count + 1]) for _ in range(IN_A_ROW)]
                taken[count] += times[SETTLED:]
    return {count: median(times[IN_A_ROW - SETTLED :]) for count, times in taken.items()}


def _timed(session: Session, chain: list[int]) -> float:
    began = time.perf_counter()
    session.feed(chain, range(-1, len(chain) - 1))
    elapsed = time.perf_counter() - began
    session.commit([])
    return 1000 * elapsed
