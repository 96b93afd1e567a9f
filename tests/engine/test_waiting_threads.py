"""How torch's threads wait for each other is set before torch is loaded."""

import os
import subprocess
import sys

import pytest

SEEN = """
import os, sys
class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            print(os.environ.get("GOMP_SPINCOUNT"), flush=True)
            os._exit(0)
sys.meta_path.insert(0, Watch())
import {}
"""


def seen(module, **own):
    """Return the spin count that torch finds when this module is the first that is loaded. The process ends there, before
    torch and all else is loaded."""
    names = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")
    environment = {name: value for name, value in os.environ.items() if name not in names} | own
    command = [sys.executable, "-c", SEEN.format(module)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize("module", ["app.settings", "engine.training.__main__", "engine.run"])
def test_it_is_set_before_torch_is_loaded(module):
    assert seen(module) == "1000"


def test_the_user_s_own_setting_stays():
    assert seen("engine.run", GOMP_SPINCOUNT="5") == "5"
    assert seen("engine.run", OMP_WAIT_POLICY="active") == "None"
