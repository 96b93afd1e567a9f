"""Each visitor has a memory of their own, which is kept for a while or until they end it."""

from app.memories import Memories
from app.settings import LIMITS
from engine.memory import Store


class Learned(Store):
    nbytes = 10


def test_everybody_has_a_memory_of_their_own():
    memories = Memories(most=2)
    memories.of("ann").store("key", Learned)
    assert memories.of("ann").nbytes == 10
    assert memories.of("bob").nbytes == 0
    memories.of("ann")
    memories.of("cid")
    assert memories.of("ann").nbytes == 10, "seen after bob, who has gone"
    memories.leave("ann")
    assert memories.of("ann").nbytes == 0
    memories.leave("nobody")


def test_there_is_a_bound():
    assert 1 <= LIMITS.memories <= 256
