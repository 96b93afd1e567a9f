"""Where the kernels' tests run.

Triton decides on import whether kernels are interpreted. So the tests under the interpreter
(interpreted/) get a process of their own, in which TRITON_INTERPRET is set; the other tests,
including those that compile, need a process in which it is not set. Where there is a GPU, the same
tests also run without the interpreter, on compiled kernels; those that treat the CPU as a GPU do not.
"""

import torch

from tests.kernels.device import INTERPRETED

ON_THE_CPU = ["interpreted/test_in_models.py", "interpreted/test_bench_kernels.py"]

if INTERPRETED:
    collect_ignore_glob = ["test_*.py"]
else:
    collect_ignore = ON_THE_CPU if torch.cuda.is_available() else ["interpreted"]
