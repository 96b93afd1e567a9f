"""What the self-check costs: python -m tests.engine.self_check_cost [MODEL DIR]

Opens the embedded target, or another model, and makes the check even if the architecture is proven. The times
are processor seconds on one thread, because a busy machine does not change those.
"""

import sys
import time

import torch
from transformers import AutoModelForCausalLM

from engine.model import self_check
from engine.model.proven import proven_way
from engine.parts.opening import language_model
from presets import family


def main(path: str) -> None:
    module = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval()
    torch.set_num_threads(1)
    way = proven_way(module)
    print(f"{type(module).__name__}: {'no check' if way else 'checked'} at opening")
    for attempt in ("first", "second"):  # the first check is also a warm-up
        begun = time.process_time()
        expected = self_check.readings(module)
        read = time.process_time()
        model = language_model(module, None, "target")
        opened = time.process_time()
        alike = self_check.same_chains(model, expected) and self_check.same_trees(model, expected)
        ended = time.process_time()
        module = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval()
        print(
            f"{attempt} check: {read - begun:.2f} s by the module, {ended - opened:.2f} s by the engine, "
            f"{'alike' if alike else 'DIFFERENT'}; {len(expected)} prefixes"
        )


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else family().target)
