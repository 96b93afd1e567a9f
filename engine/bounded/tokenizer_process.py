"""The process that opens strangers' tokenizers and splits texts (``engine.bounded.bounded_tokenizer`` starts it by its
path).

A tokenizer's file holds rules that may lengthen or search a text without end. The system ends this process, even inside
one of these operations, if it computes for too long or requests too much memory.

Arguments: the file descriptor from which requests are read; the most seconds of computing for splitting one text
(opening a tokenizer may take ten times as many); the most megabytes of memory; the most tokens of a text.
"""

import json
import os
import resource
import signal
import sys
from multiprocessing.connection import Connection

OPENING = 10
"""Opening a tokenizer may take this many times the seconds allowed for splitting one text."""
MOST_HELD = 4
LONGEST = 10_000  # the most characters of a token
GROWTH = 4
"""The greatest factor by which a decoder may lengthen a text."""
PLAIN = (
    "ByteLevel", "WordPiece", "Metaspace", "BPEDecoder", "CTC", "ByteFallback", "Fuse", "Strip",
)  # fmt: skip
"""Kinds of decoders that keep the text of a token about as long as the token itself."""


class Refused(Exception):
    """The tokenizer is refused. The message is the reason, as the end of a sentence."""


def main(descriptor: int, seconds: float, megabytes: int, tokens: int) -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    sys.modules["torch"] = None  # type: ignore[assignment]  # texts need none, and it takes seconds
    from transformers import AutoTokenizer
    from transformers.utils import logging

    logging.set_verbosity_error()
    most = megabytes << 20
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pipe, held = Connection(descriptor), {}
    while True:
        try:
            wish = json.loads(pipe.recv_bytes())
        except EOFError:  # the requesting process has ended
            return
        try:
            folder = wish["folder"]
            if folder not in held:
                signal.setitimer(signal.ITIMER_PROF, OPENING * seconds)
                while len(held) >= MOST_HELD:
                    del held[next(iter(held))]
                held[folder] = opened(AutoTokenizer, folder)
            signal.setitimer(signal.ITIMER_PROF, seconds)
            split_tokens = list(held[folder](wish["text"], **wish["how"])["input_ids"])
            answer: dict[str, object] = {"tokens": split_tokens}
            if len(split_tokens) > tokens:
                answer = {"refusal": f"it makes more than {tokens:,} tokens of a text"}
        except MemoryError:
            answer = {"refusal": "it takes too much memory"}
        except Refused as reason:
            answer = {"refusal": str(reason)}
        except BaseException as error:  # noqa: BLE001 - a stranger's file; panics of Rust are no Exceptions
            answer = {"refusal": str(error)[:500] or type(error).__name__}
        signal.setitimer(signal.ITIMER_PROF, 0)
        pipe.send_bytes(json.dumps(answer).encode())


def opened(auto, folder: str):
    """The tokenizer in this folder. Raises Refused if decoding with it may lengthen texts or take long, because
    decoding is done in another process, at every step."""
    tokenizer = auto.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    if not tokenizer.is_fast:
        raise Refused("it is none of the tokenizers library")
    if max(map(len, tokenizer.get_vocab()), default=0) > LONGEST:
        raise Refused(f"it has a token of more than {LONGEST:,} characters")
    decoder = json.loads(tokenizer.backend_tokenizer.to_str())["decoder"]
    if growth(decoder) > GROWTH:
        raise Refused("its decoder lengthens texts")
    return tokenizer


def growth(decoder: dict | None) -> float:
    """The greatest factor by which a decoder lengthens a text. Raises Refused for a decoder of an unknown kind, and for
    one that searches for patterns."""
    if decoder is None:
        return 1.0
    kind = decoder["type"]
    if kind == "Sequence":
        whole = 1.0
        for part in decoder["decoders"]:
            whole *= growth(part)
        return whole
    if kind == "Replace":
        searched = decoder["pattern"].get("String")
        if not searched:
            raise Refused("its decoder searches for a pattern")
        return max(1.0, len(decoder["content"].encode()) / len(searched.encode()))
    if kind not in PLAIN:
        raise Refused(f"it has a decoder {kind}, which is not known here")
    return 1.0


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
