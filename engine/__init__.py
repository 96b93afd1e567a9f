"""Draftscope's engine: speculative decoding with real models, one step at a time.

``open_run(RunRequest(...))`` is the entry for the page, the command line and scripts; ``engine.core.decode.decode`` is
the loop that it runs, ``engine.batch.together.decode_together`` the same loop for several texts at once.
"""

import os

if "OMP_WAIT_POLICY" not in os.environ:
    # Torch's threads wait for each other some hundred times in a pass. By default they spin for milliseconds, so that on
    # a busy machine the waiting thread holds the core that the other thread needs, and a pass takes ten times as long.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")  # libgomp reads it when torch is loaded
