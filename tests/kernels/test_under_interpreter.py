"""Every kernel against its reference, run on the CPU by Triton's interpreter."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.exhaustive
def test_kernels_agree_with_their_references():
    pytest.importorskip("triton")
    environment = os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    environment.pop("PYTEST_CURRENT_TEST", None)
    command = [sys.executable, "-m", "pytest", "--durations=8", str(HERE / "interpreted")]
    run = subprocess.run(
        command, env=environment, cwd=HERE.parents[1], check=False, capture_output=True, text=True
    )
    print(run.stdout)
    assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-2000:]
