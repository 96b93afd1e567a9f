"""Each visitor has a memory of their own, which is kept for a while or until they end it."""

from app.memories import Memories
from engine.core.memory import Store


class Learned(Store):
    nbytes = 10


def test_everybody_has_a_memory_of_their_own():
    memories = Memories(most=2)
    memories.of("ann").store("key", Learned)
    assert memories.of("ann").nbytes == 10
    assert memories.of("bob").nbytes == 0
    memories.of("bob").store("key", Learned)
    memories.of("ann")
    memories.of("cid").store("key", Learned)
    assert memories.of("ann").nbytes == 10, "seen after bob, who has gone"
    assert memories.of("bob").nbytes == 0
    memories.leave("ann")
    assert memories.of("ann").nbytes == 0
    memories.leave("nobody")


def test_made_up_visitors_erase_each_other_and_nobody_who_is_here():
    memories = Memories(most=3, here={"ann"}.__contains__)
    memories.of("ann").store("key", Learned)
    memories.of("bob").store("key", Learned)
    for number in range(9):
        memories.of(str(number))
    assert memories.of("bob").nbytes == 10, "others have nothing to lose"
    for number in range(9):
        memories.of(str(number)).store("key", Learned)
    assert (memories.of("ann").nbytes, memories.of("bob").nbytes) == (10, 0)


def test_a_memory_waits_for_a_browser_that_was_cut_off():
    memories = Memories(seconds=60)
    memories.of("ann").store("key", Learned)
    memories.cut_off("ann")
    memories.sweep()
    assert memories.of("ann").nbytes == 10
    late = Memories(seconds=-1)
    for name in ("ann", "bob"):
        late.of(name).store("key", Learned)
        late.cut_off(name)
    late.of("bob")
    late.cut_off("nobody")
    late.sweep()
    assert (late.of("ann").nbytes, late.of("bob").nbytes) == (0, 10), "bob is back"
