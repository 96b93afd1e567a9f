"""Makes a datastore from a text file: `python -m engine datastore TEXT --out DIR`."""

from collections.abc import Iterator
from pathlib import Path

from transformers import AutoTokenizer

from engine.errors import UserError
from engine.methods.shared.datastore_part import MOST_TOKENS, write_datastore
from engine.text_file import text_of

MOST_BYTES = 16 * MOST_TOKENS
"""A longer file is refused unread: it would have more tokens than a datastore holds."""

AT_ONCE = 1 << 20  # characters that are tokenized at once, up to the end of a line


def make_datastore(text: Path, folder: Path, target: str) -> int:
    """Write the tokens of a UTF-8 text, by the tokenizer of ``target``, to a folder; returns their number.

    Raises UserError for a file that is not a text, is empty or too large, and if nothing can be written.
    """
    content = _read(text)
    try:
        tokenizer = AutoTokenizer.from_pretrained(target, trust_remote_code=False)
    except Exception as error:  # transformers raises many kinds for one cause
        raise UserError(f"There is no tokenizer to open at {target}.") from error
    tokens: list[int] = []
    for piece in _pieces(content):
        tokens += tokenizer(piece, add_special_tokens=False, verbose=False)["input_ids"]
        if len(tokens) > MOST_TOKENS:
            break
    try:
        write_datastore(folder, tokens, tokenizer)
    except OSError as error:
        raise UserError(f"{folder.name} cannot be written: {error.strerror}.") from None
    return len(tokens)


def _read(text: Path) -> str:
    if text.is_file() and text.stat().st_size > MOST_BYTES:
        raise UserError(
            f"{text.name} has more than {MOST_BYTES / 1e6:,.0f} MB; a datastore holds at most "
            f"{MOST_TOKENS:,} tokens."
        )
    content = text_of(text)
    if "\0" in content:
        raise UserError(f"{text.name} is not a text: it holds null characters.")
    if not content.strip():
        raise UserError(f"{text.name} is empty.")
    return content


def _pieces(content: str) -> Iterator[str]:
    start = 0
    while start < len(content):
        end = content.find("\n", start + AT_ONCE) + 1 or len(content)
        yield content[start:end]
        start = end
