"""Grammars, each in a process of its own, so that no grammar can fill, block or crash this process.

``engine.chat.grammar_process`` explains why. One process is started for a tokenizer, when it is first needed. Each text
that follows a grammar has a fork of this process. The number of forks is bounded: the forks of texts that have waited
longest for their next step are ended. When such a text goes on, it gets a new fork, which follows the text from its
beginning.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from engine.chat.grammar_process import ANY, REASON
from engine.chat.wanted import CLIENT, LOOK, check_wanted

PROGRAM = Path(__file__).with_name("grammar_process.py")
LAYOUT = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
"""The layout of a document: one line, as ``json.dumps`` writes it."""
MOST_REFUSALS = 256  # the most grammars whose refusal is remembered
MOST_WAITING = 4  # the most idle processes that wait for another text with their grammar


@dataclass(frozen=True)
class Bounds:
    """Limits for grammars. Times are seconds of computing.

    making: for compiling a grammar. masking: for one answer about the next token. megabytes: for each process.
    text, token: all answers about one text, except the first, may take ``text`` seconds, and ``token`` more for each
    committed token.
    processes: the most processes. beginning: the most texts that begin at once, each of which may compile a grammar.
    """

    making: float = 3.0
    masking: float = 1.0
    text: float = 3.0
    token: float = 0.02
    megabytes: int = 64
    processes: int = 16
    beginning: int = 2


class Refused(Exception):
    """The grammar cannot be compiled, or no token may follow the text. The message is the grammar engine's reason."""

    def anew(self) -> Refused:
        """A new exception with the same message and no traceback, so that it holds no frames."""
        return type(self)(*self.args)


class TooMuch(Refused):
    """The grammar exceeds its limits."""


class Next(NamedTuple):
    """The tokens that may come next in a text.
    forced: tokens that must come. mask: one bit per token of the vocabulary: whether it may come after the forced
    tokens. The mask is None if every token may come, and empty if it was not requested. If the request was about a
    single token, the mask is one byte: whether this token may come."""

    forced: list[int]
    mask: bytes | None


class GrammarTokenizer:
    """A tokenizer and the process that holds it."""

    numbers = itertools.count()

    def __init__(
        self, tokenizer: str, width: int, vocabulary: int, end: int, bounds: Bounds = Bounds()
    ) -> None:
        """tokenizer: the JSON of the tokenizers library. width: at least the number of its tokens. vocabulary: width of
        the target's logits. end: the token that ends a text; it is less than ``width`` and ``vocabulary``."""
        message = {"tokenizer": tokenizer, "width": width, "vocabulary": vocabulary, "end": end}
        self._told = json.dumps(message).encode()
        self.bounds, self.number = bounds, next(self.numbers)
        self._refusal: Refused | None = None
        self._stop: Callable[[], object] = lambda: None
        self._forget()
        _tokenizers.add(self)

    def fork(self) -> Connection:
        """A pipe to a new fork. Raises Refused for a tokenizer that cannot be used. A refused tokenizer is not tried
        again, unless its process ended without a reason, for lack of memory at that moment for instance."""
        with self._lock:
            if self._refusal is not None:
                raise self._refusal.anew()
            for _ in range(2):  # a process may have ended unseen
                if self._door is None:
                    self._start()
                ours, theirs = socket.socketpair()
                with theirs:
                    try:
                        socket.send_fds(self._door, [b"f"], [theirs.fileno()])
                        return Connection(ours.detach())
                    except OSError:
                        self._door = None
                        self._stop()
            raise TooMuch

    def _start(self) -> None:
        try:
            self._door = self._started()
        except Refused as refusal:
            if not isinstance(refusal, TooMuch):
                self._refusal = refusal.anew()
            self._stop()
            raise

    def _started(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        limits = (self.bounds.making, self.bounds.masking, self.bounds.megabytes)
        with theirs:
            process = subprocess.Popen(
                # -P: the program's folder holds modules named like Python's own
                [sys.executable, "-P", str(PROGRAM), str(theirs.fileno()), *map(str, limits)],
                pass_fds=[theirs.fileno()],
                # a single heap: a thread's own heap would take much of the memory that a grammar may have
                env=os.environ | {"MALLOC_ARENA_MAX": "1"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        self._stop = weakref.finalize(self, _end, self.number, process, ours)
        self._stop.atexit = False
        pipe = Connection(os.dup(ours.fileno()))
        try:
            pipe.send_bytes(self._told)
            answer = pipe.recv_bytes()
        except (EOFError, OSError):
            raise TooMuch from None
        finally:
            pipe.close()
        if answer.startswith(REASON):
            raise Refused(answer[1:].decode(errors="replace"))
        return ours

    def _forget(self) -> None:
        """Reset to having no process. In a forked process this leaves the parent's process alone."""
        self._lock, self._door = threading.Lock(), None


def _end(number: int, process: subprocess.Popen, door: socket.socket) -> None:
    """End a tokenizer's process. Python may call this function wherever it frees a tokenizer, so the function waits for
    no lock."""
    _pool.gone.append(number)
    door.close()
    process.kill()
    process.wait()


class GrammarText:
    """One text that follows the grammar of a JSON schema."""

    def __init__(self, tokenizer: GrammarTokenizer, schema: str, escapes: str | None) -> None:
        """schema: valid JSON. escapes: the letters that may follow a backslash in a string; None allows all of
        JSON's."""
        layout = LAYOUT if escapes is None else LAYOUT | {"json_allowed_escapes": escapes}
        self._making = {"schema": schema, "layout": layout}
        self.tokenizer, self.pipe = tokenizer, None
        digest = hashlib.sha256(json.dumps(self._making).encode()).digest()
        self.key = (tokenizer.number, digest)
        self.lock = threading.Lock()
        self._begun = False
        self._written: list[int] = []
        self._told = 0  # the number of tokens of ``_written`` that its process has received
        self._spent = 0.0

    def commit(self, tokens: Sequence[int]) -> None:
        self._written += tokens

    def after(self, tokens: Sequence[int], most: int = 0, test: int | None = None) -> Next:
        """What may follow the committed tokens and ``tokens``: up to ``most`` forced tokens, then the mask of the next
        token. test: if not None, the answer only says whether this token may follow.

        Raises Refused.
        """
        wish = {"after": list(tokens), "most": most, "test": test}
        first, self._begun = not self._begun, True
        ready = _pool.ready(self) if first else None
        # Only a text that begins and has no grammar yet waits for its turn.
        with _pool.turn() if first and not ready else nullcontext(), _pool.slots, self.lock:
            opened = self.pipe is None
            if opened:
                self.pipe, self._told = _pool.open(self, ready), 0
                wish |= self._making | {"begins": first}
            else:
                _pool.touch(self)
            wish["committed"] = self._written[self._told :]
            self._told = len(self._written)
            try:
                answer = self._answer(wish, first)
            except Refused as refusal:
                if opened and not self._written and not tokens:
                    _pool.refuse(self.key, refusal)
                raise
        if answer.startswith(ANY):
            return Next([], None)
        (count,) = struct.unpack_from("<I", answer, 1)
        forced = list(struct.unpack_from(f"<{count}I", answer, 5))
        return Next(forced, answer[5 + 4 * count :])

    def _answer(self, wish: dict, first: bool) -> bytes:
        try:
            self.pipe.send_bytes(json.dumps(wish).encode())
            while first and not self.pipe.poll(LOOK):
                check_wanted(lambda: _pool.end(self))
            answer = self.pipe.recv_bytes()
        except (EOFError, OSError):  # the system has ended it
            _pool.end(self)
            raise TooMuch from None
        if not first:
            self._spent += struct.unpack_from("<d", answer)[0]
        bounds = self.tokenizer.bounds
        if self._spent > bounds.text + bounds.token * len(self._written):
            _pool.end(self)
            raise TooMuch
        if answer[8:].startswith(REASON):
            raise Refused(answer[9:].decode(errors="replace"))
        return answer[8:]

    def close(self) -> None:
        """End the text. Python may call this method wherever it frees objects, so the method waits for no lock."""
        _pool.ended.append(self)


class Pool:
    """The forks of all tokenizers: forks that serve texts, in order of last use, and idle forks that wait for a text
    with their grammar."""

    def __init__(self, processes: int) -> None:
        self._most = processes
        self._texts: OrderedDict[GrammarText, None] = OrderedDict()
        self._waiting: OrderedDict[tuple, Connection] = OrderedDict()
        self._refusals: OrderedDict[tuple, Refused] = OrderedDict()
        self.ended: deque[GrammarText] = deque()
        self.gone: deque[int] = deque()  # numbers of tokenizers
        self.forget()

    def ready(self, text: GrammarText) -> Connection | None:
        """An idle process that already has the text's grammar, or None. Raises Refused if the grammar was refused
        before."""
        with self._lock:
            self._tidy()
            if text.key in self._refusals:
                raise self._refusals[text.key].anew()
            return self._waiting.pop(text.key, None)

    def open(self, text: GrammarText, ready: Connection | None) -> Connection:
        """A process for a text that has none. ready: an idle process with the text's grammar, which is used if it is
        not None. Raises Refused if the grammar was refused before."""
        pipe = ready or self.ready(text) or text.tokenizer.fork()
        with self._lock:
            self._texts[text] = None
            self._make_room(text)
        return pipe

    @contextmanager
    def turn(self) -> Iterator[None]:
        """A context in which one text begins. Texts wait for it in order of arrival, and each client has at most one
        text in it. Raises Unwanted."""
        mine = (CLIENT.get(), object())
        with self._moved:
            self._line.append(mine)
        try:
            while not self._due(mine):
                check_wanted()
            yield
        finally:
            with self._moved:
                self._line.remove(mine)
                self._moved.notify_all()

    def _due(self, mine: tuple[str, object]) -> bool:
        """Wait a short time until ``mine`` is among the first in line. Returns whether it is."""
        with self._moved:
            return self._moved.wait_for(lambda: mine in self._first(), LOOK)

    def _first(self) -> list[tuple[str, object]]:
        first = {}
        for entry in self._line:
            first.setdefault(entry[0] or entry, entry)
        return list(first.values())[: Bounds.beginning]

    def _tidy(self) -> None:
        """Keep the processes of ended texts idle for other texts with the same grammar, and end idle processes of freed
        tokenizers."""
        while self.ended:
            text = self.ended.popleft()
            pipe, text.pipe = text.pipe, None
            self._texts.pop(text, None)
            if pipe is not None:
                self._stop_waiting(text.key)
                self._waiting[text.key] = pipe
        while len(self._waiting) > MOST_WAITING:
            self._stop_waiting(next(iter(self._waiting)))
        while self.gone:
            number = self.gone.popleft()
            for key in [key for key in self._waiting if key[0] == number]:
                self._stop_waiting(key)

    def _stop_waiting(self, key: tuple) -> None:
        pipe = self._waiting.pop(key, None)
        if pipe is not None:
            pipe.close()

    def _make_room(self, newest: GrammarText) -> None:
        while self._waiting and len(self._texts) + len(self._waiting) > self._most:
            self._stop_waiting(next(iter(self._waiting)))
        for text in list(self._texts):
            if len(self._texts) <= self._most:
                return
            if text is not newest and text.lock.acquire(blocking=False):
                self._close(text)
                text.lock.release()

    def _close(self, text: GrammarText) -> None:
        self._texts.pop(text, None)
        if text.pipe is not None:
            text.pipe.close()
            text.pipe = None

    def end(self, text: GrammarText) -> None:
        """End the text's process. The caller holds the text's lock."""
        with self._lock:
            self._close(text)

    def touch(self, text: GrammarText) -> None:
        with self._lock:
            self._texts.move_to_end(text)

    def refuse(self, key: tuple, refusal: Refused) -> None:
        """Remember that this grammar was refused."""
        with self._lock:
            self._refusals[key] = refusal.anew()
            if len(self._refusals) > MOST_REFUSALS:
                self._refusals.popitem(last=False)

    def forget(self) -> None:
        """Reset to having no processes. In a forked process this leaves the parent's processes alone."""
        self._lock = threading.Lock()
        self.slots = threading.BoundedSemaphore(self._most)
        self._moved = threading.Condition()
        self._line: list[object] = []
        """Texts that are beginning, in order of arrival. The first of them have their turn."""
        for text in list(self._texts):
            text.lock = threading.Lock()
            self._close(text)
        for key in list(self._waiting):
            self._stop_waiting(key)


_tokenizers: weakref.WeakSet[GrammarTokenizer] = weakref.WeakSet()
_pool = Pool(Bounds.processes)


def _forked() -> None:
    _pool.forget()
    for tokenizer in _tokenizers:
        tokenizer._forget()


os.register_at_fork(after_in_child=_forked)
