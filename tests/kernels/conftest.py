"""Where the kernels' tests run.

Triton decides when it is imported whether kernels are interpreted. So what is run under the
interpreter (interpreted/) gets a process of its own, in which TRITON_INTERPRET is set; the rest,
compiling among it, needs a process in which it is not.
"""

import os

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
collect_ignore = [] if INTERPRETED else ["interpreted"]
collect_ignore_glob = ["test_*.py"] if INTERPRETED else []
