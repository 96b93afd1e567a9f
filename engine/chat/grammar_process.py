"""The process that holds grammars over one tokenizer (``engine.chat.grammar`` starts it by its path).

A schema comes from a stranger, and the cost of its grammar cannot be known beforehand: its regular expressions are
expanded when the grammar is made and again while texts follow it. So the grammar of every text has a process
of its own: a fork of this one, which shares the tokenizer, with limits on time and memory. The system ends a fork that
exceeds them.

Arguments: a socket; the most seconds of computing for an answer that makes a grammar, and for any other answer;
megabytes of memory besides those of the tokenizer.
"""

import fcntl
import json
import os
import resource
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection

MASK, ANY, REASON = b"m", b"a", b"r"
"""The first byte of an answer. After MASK come the number of forced tokens, these tokens, and one bit per token of the
vocabulary: whether it may come next (no bits if not requested). ANY: every token may come. After REASON: a text."""
TOKENIZER_SECONDS, TOKENIZER_MEGABYTES = 30, 2048
NICE = 10  # the lower priority of a text that begins


def main(descriptor: int, making: float, masking: float, megabytes: int) -> None:
    import llguidance

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    most = TOKENIZER_MEGABYTES << 20
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # forks that have ended leave nothing behind
    door = socket.socket(fileno=descriptor)
    pipe = Connection(os.dup(descriptor))
    signal.setitimer(signal.ITIMER_PROF, TOKENIZER_SECONDS)
    settings = json.loads(pipe.recv_bytes())
    try:
        tokenizer = llguidance.LLTokenizer(
            settings["tokenizer"], settings["width"], settings["end"]
        )
    except Exception as error:  # noqa: BLE001 - of the tokenizer's form
        pipe.send_bytes(REASON + str(error).encode())
        return
    pipe.send_bytes(ANY)
    signal.setitimer(signal.ITIMER_PROF, 0)
    while True:
        message, descriptors, _, _ = socket.recv_fds(door, 1, 1)
        if not message:  # the requesting process has ended
            return
        if os.fork() == 0:
            door.close()
            pipe.close()
            bound(megabytes)
            answer_all(Connection(descriptors[0]), tokenizer, settings, (making, masking))
            os._exit(0)
        os.close(descriptors[0])


def bound(megabytes: int) -> None:
    """Limit the growth of this process's memory to ``megabytes``."""
    if not os.path.exists("/proc/self/statm"):  # the system does not report a process's size
        return
    with open("/proc/self/statm", encoding="ascii") as file:
        pages = int(file.read().split()[0])
    most = pages * resource.getpagesize() + (megabytes << 20)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def answer_all(pipe: Connection, tokenizer, told: dict, seconds: tuple[float, float]) -> None:
    """Answer requests one after another, each within its limit on computing. An answer begins with the seconds of
    computing that it took."""
    text = None

    def done(wish: dict) -> bytes:
        nonlocal text
        if "schema" in wish:
            text, old = None, text
            text = GrammarText.of(old, tokenizer, wish, told["end"], told["vocabulary"])
        return text.answer(wish["committed"], wish["after"], wish["most"], wish["test"])

    while True:
        try:
            wish = json.loads(pipe.recv_bytes())
        except EOFError:
            return
        began = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, seconds["schema" not in wish])
        try:
            if wish.get("begins"):
                with ended_by(pipe):
                    answer = behind_others(partial(done, wish))
            else:
                answer = done(wish)
        except MemoryError:
            answer = REASON + b"it takes too much memory"
        except Exception as error:  # noqa: BLE001 - of the grammar engine
            answer = REASON + (str(error) or type(error).__name__).encode()
        signal.setitimer(signal.ITIMER_PROF, 0)
        pipe.send_bytes(struct.pack("<d", time.process_time() - began) + answer)


@contextmanager
def ended_by(pipe: Connection) -> Iterator[None]:
    """A context within which the system ends this process if the other end of the connection is closed, even in the
    middle of a computation."""
    flags = fcntl.fcntl(pipe, fcntl.F_GETFL)
    fcntl.fcntl(pipe, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(pipe, fcntl.F_SETFL, flags | os.O_ASYNC)
    try:
        yield
    finally:
        fcntl.fcntl(pipe, fcntl.F_SETFL, flags)


def behind_others(work: Callable[[], bytes]) -> bytes:
    """The result of ``work``, done at low priority: a text that begins must not slow down texts that are under way. A
    lowered priority belongs to a thread and cannot be raised again, so the work has a thread of its own."""
    with ThreadPoolExecutor(1, initializer=lambda: os.nice(NICE)) as pool:
        return pool.submit(work).result()


class Failed(Exception):
    """The grammar engine cannot go on after these tokens; the message is its reason."""


class GrammarText:
    """One text with the state of its grammar, inside the process."""

    def __init__(self, tokenizer, wish: dict, end: int, vocabulary: int) -> None:
        from llguidance import LLMatcher

        self._tokenizer, self._wish, self._end = tokenizer, wish, end
        self._bits = (1 << vocabulary) - 1
        self._bytes = (vocabulary + 7) // 8
        self._grammar = LLMatcher.grammar_from_json_schema(wish["schema"], overrides=wish["layout"])
        self._committed: list[int] = []
        self._begin()

    @classmethod
    def of(cls, old, tokenizer, wish, end, vocabulary) -> "GrammarText":
        """A new text. old: the last text of this process, or None; its grammar is used again if the schema is the
        same."""
        if old is not None and old._wish["schema"] == wish["schema"] and old._matcher.reset():
            old._committed, old._ended = [], False
            return old
        return cls(tokenizer, wish, end, vocabulary)

    def _begin(self) -> None:
        from llguidance import LLMatcher

        self._matcher = LLMatcher(self._tokenizer, self._grammar, log_level=0)
        self._check()
        self._ahead = 0
        self._follow(self._committed)

    def answer(
        self, committed: Sequence[int], after: Sequence[int], most: int, test: int | None = None
    ) -> bytes:
        """Commit tokens. Then return up to ``most`` tokens that must follow ``after``, and the mask for the next token;
        or, if ``test`` is not None, whether the token ``test`` may follow ``after``."""
        self._commit(committed)
        if self._ended or self._end in after:
            return ANY
        try:
            if self._consume(after) < len(after):
                return ANY
            if test is not None:
                return MASK + struct.pack("<I", 0) + bytes([self._may(test)])
            forced, mask = self._forced(most)
        finally:
            self._go_back()
        bits = b"" if mask is None else mask.to_bytes(self._bytes, "little")
        return MASK + struct.pack(f"<{len(forced) + 1}I", len(forced), *forced) + bits

    def _go_back(self) -> None:
        """Return to the committed text. A grammar that failed is compiled again, because the tokens after which it
        failed may never be committed."""
        if not self._matcher.is_error():
            self._matcher.rollback(self._ahead)
            self._ahead = 0
        if self._matcher.is_error():
            self._begin()

    def _commit(self, tokens: Sequence[int]) -> None:
        self._committed += tokens
        self._follow(tokens)

    def _follow(self, tokens: Sequence[int]) -> None:
        """Move past committed tokens. Raises Failed if the grammar does not allow them."""
        self._ended = self._end in tokens
        kept = tokens[: tokens.index(self._end)] if self._ended else tokens
        if self._consume(kept) < len(kept):
            raise Failed("the text left the grammar")
        self._ahead = 0

    def _consume(self, tokens: Sequence[int]) -> int:
        """Move past the tokens up to the first that the grammar does not allow. Returns their number."""
        count = self._matcher.try_consume_tokens(list(tokens))
        self._check()
        self._ahead += count
        return count

    def _may(self, token: int) -> bool:
        if token == self._end:
            return self._matcher.is_accepting()
        return self._consume([token]) == 1

    def _forced(self, most: int) -> tuple[list[int], int | None]:
        forced: list[int] = []
        while True:
            try:
                mask = self._mask()
            except Failed:
                if not forced:
                    raise
                return forced, None
            token = mask.bit_length() - 1
            if mask.bit_count() != 1 or len(forced) == most:
                return forced, mask
            if token == self._end:
                return [*forced, token], None
            self._consume([token])
            forced.append(token)

    def _mask(self) -> int:
        """An int whose bit i says whether token i may come next. Raises Failed if none may."""
        mask = int.from_bytes(self._matcher.compute_bitmask(), "little") & self._bits
        self._check()
        if not mask:
            raise Failed("NoExtensionBias")
        return mask

    def _check(self) -> None:
        if self._matcher.is_error():
            raise Failed(self._matcher.get_error())


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]))
