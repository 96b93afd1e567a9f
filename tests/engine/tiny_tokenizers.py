"""Tokenizers of a few dozen tokens each, one for every way in which the tokens of a text are joined."""

from functools import cache
from pathlib import Path

from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE, WordLevel, WordPiece
from transformers import PreTrainedTokenizer, PreTrainedTokenizerFast

WORDS = ("the", "fox", "ran", "it", "s")
MARKS = (".", ",", "!", "'")
SPECIAL = ("<unk>", "<s>", "</s>")


def _letters() -> dict[int, str]:
    """Return the printable character of each byte in byte-level BPE, by the table of GPT-2."""
    whole = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in whole]
    return {byte: chr(byte) for byte in whole} | {
        byte: chr(256 + place) for place, byte in enumerate(others)
    }


def decoded(tokenizer, tokens) -> str:
    return tokenizer.decode(tokens, skip_special_tokens=False, clean_up_tokenization_spaces=False)


def _fast(model, decoder=None) -> PreTrainedTokenizerFast:
    backend = Tokenizer(model)
    if decoder is not None:
        backend.decoder = decoder
    unk, bos, eos = SPECIAL
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token=unk, bos_token=bos, eos_token=eos
    )


def _numbered(tokens) -> dict[str, int]:
    return {token: number for number, token in enumerate(dict.fromkeys(tokens))}


@cache
def byte_level() -> PreTrainedTokenizerFast:
    """Return a tokenizer with all bytes, words with a space before them, and tokens that hold parts of two
    characters."""
    letters = _letters()
    parts = [b"\xf0\x9f", b"\x8c\xb3\xf0", b"\x9f\x8c", b" \xe2", b"\x82\xac ", b"\xef\xbf\xbd"]
    words = [f" {word}".encode() for word in WORDS] + [word.encode() for word in WORDS]
    spelled = ["".join(letters[byte] for byte in part) for part in [*words, *parts]]
    found = _fast(BPE(_numbered([*SPECIAL, *letters.values(), *spelled]), []), decoders.ByteLevel())
    found.backend_tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return found


def _sentence_pieces() -> list[str]:
    named = [f"<0x{byte:02X}>" for byte in range(256)]
    words = [f"▁{word}" for word in WORDS] + list(WORDS)
    return [*SPECIAL, *named, "▁", *words, *MARKS, "▁.", "€"]


@cache
def llama() -> PreTrainedTokenizerFast:
    """Return a tokenizer like those of Llama 2 and Mistral: one space at the beginning of a text is dropped, and bytes
    are tokens by their names."""
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    return _fast(
        BPE(_numbered(_sentence_pieces()), [], byte_fallback=True, unk_token="<unk>"),
        decoders.Sequence([*steps, decoders.Strip(" ", 1, 0)]),
    )


@cache
def metaspace() -> PreTrainedTokenizerFast:
    """Return a tokenizer like those of T5 and ALBERT: the first token loses its space."""
    words = [f"▁{word}" for word in WORDS] + list(WORDS)
    return _fast(BPE(_numbered([*SPECIAL, *words, *MARKS, "▁"]), []), decoders.Metaspace())


@cache
def word_piece() -> PreTrainedTokenizerFast:
    """Return a tokenizer like that of BERT: tokens are separate words unless they begin with ##; no space stands before
    a full stop."""
    return _fast(
        WordPiece(
            _numbered([*SPECIAL, *WORDS, *MARKS, "##s", "##ing", "##e", "abcdef"]),
            unk_token="<unk>",
        ),
        decoders.WordPiece(prefix="##", cleanup=True),
    )


@cache
def word_ends() -> PreTrainedTokenizerFast:
    """Return a tokenizer like those of GPT-1 and XLM: a token marks the end of its word, and the next token makes the
    space."""
    words = [f"{word}</w>" for word in WORDS] + list(WORDS)
    return _fast(BPE(_numbered([*SPECIAL, *words, *MARKS]), []), decoders.BPEDecoder("</w>"))


@cache
def cleaned() -> PreTrainedTokenizerFast:
    """Return a tokenizer whose decoder takes spaces out of the whole text: the piece of a token depends on the token
    before it."""
    steps = [decoders.Replace("▁", " "), decoders.Fuse(), decoders.Replace("'▁s", "'s")]
    words = [f"▁{word}" for word in WORDS] + list(WORDS)
    steps += [decoders.Replace("' s", "'s"), decoders.Replace(" .", ".")]
    return _fast(BPE(_numbered([*SPECIAL, *words, *MARKS, "▁."]), []), decoders.Sequence(steps))


@cache
def words_alone() -> PreTrainedTokenizerFast:
    """Return a tokenizer without a decoder: a space stands between all tokens."""
    return _fast(WordLevel(_numbered([*SPECIAL, *WORDS, *MARKS]), unk_token="<unk>"))


class Plain(PreTrainedTokenizer):
    """A tokenizer in Python, whose own code joins the tokens."""

    model_input_names = ["input_ids"]

    def __init__(self, **settings) -> None:
        self._words = [*SPECIAL, *WORDS, *MARKS]
        super().__init__(unk_token="<unk>", bos_token="<s>", eos_token="</s>", **settings)

    @property
    def vocab_size(self) -> int:
        return len(self._words)

    def get_vocab(self) -> dict[str, int]:
        return _numbered(self._words)

    def _tokenize(self, text, **settings):
        return text.split()

    def _convert_token_to_id(self, token):
        return self.get_vocab().get(token, 0)

    def _convert_id_to_token(self, index):
        return self._words[index] if index < len(self._words) else None

    def convert_tokens_to_string(self, tokens):
        return "_".join(tokens)

    def save_vocabulary(self, folder, prefix=None):
        path = Path(folder) / "words.txt"
        path.write_text("\n".join(self._words), "utf-8")
        return (str(path),)


@cache
def in_python() -> PreTrainedTokenizer:
    """Return a tokenizer whose own Python code joins the tokens."""
    return Plain()


MAKERS = {
    maker.__name__: maker
    for maker in (
        byte_level,
        llama,
        metaspace,
        word_piece,
        word_ends,
        cleaned,
        words_alone,
        in_python,
    )
}
"""Each makes its tokenizer once."""
