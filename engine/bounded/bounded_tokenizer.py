"""Tokenizers of strangers' models: opened, and texts split, in a bounded process (``engine.bounded.bounded_process``).

Decoding stays in this process, because every step needs it; the bounded process refuses a tokenizer whose decoder may
lengthen a text or search it for patterns.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from transformers import AutoTokenizer

from engine.bounded.bounded_process import BoundedProcess
from engine.errors import UserError
from engine.printable import one_line

PROGRAM = Path(__file__).with_name("tokenizer_process.py")


@dataclass(frozen=True)
class Bounds:
    """Limits for one text: seconds of computing, megabytes of address space, number of tokens. Opening a tokenizer may
    take ten times as many seconds."""

    seconds: float = 3.0
    megabytes: int = 1536
    tokens: int = 1_000_000


class Splitter:
    """Splits texts into tokens, one text at a time."""

    def __init__(self, bounds: Bounds = Bounds()) -> None:
        self._process = BoundedProcess(
            PROGRAM, bounds.seconds, (bounds.megabytes, bounds.tokens), "tokenizers are run"
        )

    def split(self, folder: str, name: str, text: str, how: Mapping) -> list[int]:
        """The tokens of a text. folder: the folder of the tokenizer. name: the name of the tokenizer's model, for error
        messages. how: arguments of the tokenizer's call. Raises UserError, and UnicodeError for a text that is not
        valid Unicode."""
        text.encode()
        answer = self._process.answer({"folder": folder, "text": text, "how": how})
        if "tokens" not in answer:
            reason = one_line(answer["refusal"].replace(folder, name), 160)
            raise UserError(f"The tokenizer of {name} is refused: {reason}.")
        return answer["tokens"]

    def close(self) -> None:
        """End the process if there is one."""
        self._process.close()


splitter = Splitter()
_STRANGE: set[str] = set()


def distrust(folder: str | Path) -> None:
    """Mark the tokenizer in this folder as a stranger's, for later calls of ``open_tokenizer``."""
    _STRANGE.add(str(folder))


def open_tokenizer(folder: str | Path, name: str):
    """The tokenizer in a folder. If it was marked by ``distrust``, it splits texts in the bounded process. name: the
    name of its model, for error messages. Raises UserError."""
    strange = str(folder) in _STRANGE
    if strange:
        splitter.split(
            str(folder), name, "", {}
        )  # opening it there first shows that it may be opened here
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            folder, trust_remote_code=False, local_files_only=True
        )
    except (
        BaseException
    ) as error:  # exceptions of many kinds; the tokenizers library's panics are BaseExceptions
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        raise UserError(f"The tokenizer of {name} cannot be opened.") from error
    return _bounded(tokenizer, str(folder), name) if strange else tokenizer


def _bounded(tokenizer, folder: str, name: str):
    """The same tokenizer; calls that split a text go to the bounded process."""

    class Bounded(type(tokenizer)):
        def __call__(self, text, **how):
            return {"input_ids": splitter.split(folder, name, text, how)}

        def encode(self, text, **how):
            return self(text, **how)["input_ids"]

        def tokenize(self, text, **how):
            return self.convert_ids_to_tokens(self.encode(text, add_special_tokens=False))

    tokenizer.__class__ = Bounded
    return tokenizer
