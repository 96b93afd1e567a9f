"""What a visitor's memory keeps, what it forgets, and when."""

import threading
from dataclasses import dataclass

from engine.core.memory import Memory, Store


@dataclass
class Held(Store):
    size: int

    @property
    def nbytes(self) -> int:
        return self.size


def kept(memory: Memory, *keys) -> list[bool]:
    """Return which of these stores still exist. Looking does not count as use."""
    return [key in memory._stores for key in keys]


def test_a_store_is_made_once_and_found_again_until_all_is_forgotten():
    memory = Memory(limit=100)
    first = memory.store(("a", "target"), lambda: Held(10))
    assert memory.store(("a", "target"), lambda: Held(99)) is first
    assert memory.store(("a", "other target"), lambda: Held(20)) is not first
    assert memory.nbytes == 30
    memory.reset()
    assert memory.nbytes == 0 and memory.store(("a", "target"), lambda: Held(20)).size == 20
    assert Memory().store(("a", "target"), lambda: Held(1)) is not first, "two visitors"


def test_the_one_used_longest_ago_is_forgotten_first_and_what_learning_adds_is_trimmed():
    memory = Memory(limit=100)
    for key in "abc":
        memory.store(key, lambda: Held(30))
    memory.store("a", lambda: Held(30))  # used again
    growing = memory.store("d", lambda: Held(30))
    assert kept(memory, *"abcd") == [True, False, True, True] and memory.nbytes == 90
    growing.size = 60
    assert memory.nbytes > memory.limit
    memory.trim()
    assert kept(memory, *"abcd") == [True, False, False, True] and memory.nbytes == 90


def test_a_store_that_alone_is_too_large_serves_one_run_and_is_not_kept():
    memory = Memory(limit=100)
    memory.store("small", lambda: Held(10))
    assert memory.store("huge", lambda: Held(101)).size == 101
    assert kept(memory, "huge") == [False] and memory.nbytes <= memory.limit
    assert memory.store("huge", lambda: Held(102)).size == 102, "it is made anew"


def test_stores_may_come_while_others_are_counted():
    """A run that is cancelled trims the memory while another run is in a step."""
    memory, made = Memory(), []

    class Slow(Held):
        @property
        def nbytes(self):
            if not made:
                made.append(threading.Thread(target=memory.store, args=("late", lambda: Held(1))))
                made[0].start()
                made[0].join(0.2)
            return self.size

    memory._stores["slow"] = Slow(10)
    memory._stores["other"] = Held(5)
    memory.trim()
    made[0].join()
    assert kept(memory, "slow", "late") == [True, True]
