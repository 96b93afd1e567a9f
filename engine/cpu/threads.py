"""How many threads compiled graphs compute with."""

from functools import cache

import torch


@cache
def threads() -> int:
    return torch.get_num_threads()
