"""Where the kernels' tests run.

Triton decides on import whether kernels are interpreted. So the tests under the interpreter
(interpreted/) get a process of their own, in which TRITON_INTERPRET is set; the other tests,
including those that compile, need a process in which it is not set.
"""

import os

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
collect_ignore = [] if INTERPRETED else ["interpreted"]
collect_ignore_glob = ["test_*.py"] if INTERPRETED else []
