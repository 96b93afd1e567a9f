"""The compiling of a graph counts for no step, though it happens in one."""

from types import SimpleNamespace

import pytest
import torch

from engine.core import step
from engine.fast.cpu.budget import Budget, Family


class Graph:
    nbytes = 1


@pytest.fixture
def pass_time(monkeypatch):
    """Return a function that lets seconds pass on the clock of steps."""
    now = [0.0]
    monkeypatch.setattr(step, "time", SimpleNamespace(perf_counter=lambda: now[0]))

    def go_on(seconds: float) -> None:
        now[0] += seconds

    return go_on


def test_a_pass_that_is_compiled_first_takes_no_longer(pass_time):
    """Also where one graph compiles another for itself, and where compiling fails."""
    family = Family(Budget(10))

    def slowly(make=Graph):
        pass_time(5)
        return make()

    def within():
        return family.of("inner", slowly)

    def broken():
        raise OSError

    clock = step.Clock(torch.device("cpu"), precise=False)
    pass_time(1)
    assert clock.lap() == 1000
    for key, make in (("plain", Graph), ("nested", within), ("none", lambda: None)):
        pass_time(2)
        family.of(key, lambda make=make: slowly(make))
        assert clock.lap() == 2000
    with pytest.raises(OSError):
        family.of("broken", lambda: slowly(broken))
    pass_time(3)
    assert clock.lap() == 3000
