"""Tokenizers of strangers' models: kept within bounds, and texts split as they split them."""

import json
from pathlib import Path

import pytest
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from engine.bounded import bounded_tokenizer
from engine.bounded.bounded_tokenizer import Bounds, Splitter, distrust, open_tokenizer
from engine.chat.prompt_reading import read_prompt
from engine.errors import UserError
from engine.parts.loading import ModelPaths
from engine.parts.models import open_model
from engine.parts.size_limits import Allowed, admit
from engine.run import RunRequest, open_run
from presets import family
from tests.engine.tiny import tiny_model
from tests.pairs import strangers_pair

TEXTS = ["", "Once upon a time 😀 Zoë\n", "a hi", "<|endoftext|>"]
DOUBLING = [normalizers.Replace("a", "aa")] * 33
ENDLESS = Regex("(a+)+$")
SEARCHED = "a" * 60 + "!"


def words() -> Tokenizer:
    made = Tokenizer(
        models.BPE({"a": 0, "h": 1, "i": 2, "!": 3, " ": 4, "?": 5}, [], unk_token="?")
    )
    made.decoder = decoders.ByteLevel()
    return made


def normalised(how) -> Tokenizer:
    made = words()
    made.normalizer = how
    return made


def split() -> Tokenizer:
    made = words()
    made.pre_tokenizer = pre_tokenizers.Split(ENDLESS, "isolated")
    return made


def decoding(*how) -> Tokenizer:
    made = words()
    made.decoder = decoders.Sequence(list(how))
    return made


def long_token() -> Tokenizer:
    made = words()
    made.add_tokens(["x" * 20_000])
    return made


RUNNING = {
    "a text that doubles": (lambda: normalised(normalizers.Sequence(DOUBLING)), "a hi", "memory|computes|brought"),
    "a search without end": (lambda: normalised(normalizers.Replace(ENDLESS, "b")), SEARCHED, "computes|retry-limit"),
    "a split without end": (split, SEARCHED, "computes|retry-limit"),
    "a text that doubles a little": (
        lambda: normalised(normalizers.Sequence(DOUBLING[:12])), "a" * 10, "more than 10,000 tokens"
    ),
}  # fmt: skip
OPENING = {
    "a decoder that doubles": (lambda: decoding(*[decoders.Replace("a", "aa")] * 33), "lengthens"),
    "a decoder that searches": (lambda: decoding(decoders.Replace(ENDLESS, "b")), "searches"),
    "a decoder of its own pieces": (lambda: decoding(decoders.Fuse(), decoders.Replace("", "b")), "searches"),
    "a token without end": (long_token, "more than 10,000 characters"),
}  # fmt: skip


@pytest.fixture(scope="module")
def splitter():
    made = Splitter(Bounds(seconds=0.5, megabytes=512, tokens=10_000))
    yield made
    made.close()


def folder_of(tokenizer: Tokenizer, folder: Path) -> str:
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder)
    return str(folder)


@pytest.mark.parametrize("kind", RUNNING)
def test_a_text_without_bounds_is_refused_and_the_next_is_split(splitter, tmp_path, kind):
    make, text, why = RUNNING[kind]
    folder = folder_of(make(), tmp_path / "m")
    assert splitter.split(folder, "m", "h", {}) == [1]
    with pytest.raises(UserError, match=f"^The tokenizer of m is refused: .*({why})") as told:
        splitter.split(folder, "m", text, {})
    assert str(tmp_path) not in str(told.value)
    assert splitter.split(folder, "m", "hi", {}) == [1, 2]


@pytest.mark.parametrize("kind", OPENING)
def test_what_would_be_dangerous_at_every_step_is_not_opened(splitter, tmp_path, kind):
    make, why = OPENING[kind]
    with pytest.raises(UserError, match=why):
        splitter.split(folder_of(make(), tmp_path), "m", "h", {})


def doubling_added_tokens(told: dict) -> None:
    """Added tokens are normalised when the file is opened."""
    token = {"id": 0, "content": "a", "single_word": False, "lstrip": False, "rstrip": False}
    told["added_tokens"] = [{**token, "normalized": True, "special": False}]
    one = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
    told["normalizer"] = {"type": "Sequence", "normalizers": [one] * 33}


def test_a_file_that_fills_memory_when_it_is_opened_is_refused(splitter, tmp_path):
    """Such a file is written here, and opened nowhere but there."""
    folder = folder_of(words(), tmp_path)
    file = tmp_path / "tokenizer.json"
    told = json.loads(file.read_text())
    doubling_added_tokens(told)
    file.write_text(json.dumps(told))
    with pytest.raises(UserError, match=r"^The tokenizer of m is refused"):
        splitter.split(folder, "m", "", {})
    assert splitter.split(folder_of(words(), tmp_path / "other"), "m", "h", {}) == [1]


@pytest.mark.parametrize("special", [True, False])
def test_texts_are_split_as_ever(special):
    folder = family().target
    ours = AutoTokenizer.from_pretrained(folder)
    for text in TEXTS:
        found = bounded_tokenizer.splitter.split(folder, "m", text, {"add_special_tokens": special})
        assert found == ours(text, add_special_tokens=special)["input_ids"]


def test_a_stranger_s_tokenizer_is_another_s_equal(tmp_path):
    """With a template that adds tokens, spaces of SentencePiece, and a decoder that takes them back."""
    made = Tokenizer(models.Unigram([("<s>", 0.0), ("▁hi", -1.0), ("▁", -2.0), ("a", -3.0)], 0))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    made.post_processor = processors.TemplateProcessing("<s> $A", None, [("<s>", 0)])
    folder = folder_of(made, tmp_path / "m")
    trusted = open_tokenizer(folder, "m")
    distrust(folder)
    strange = open_tokenizer(folder, "m")
    assert isinstance(strange, type(trusted)) and strange.get_vocab() == trusted.get_vocab()
    for text in ("hi a", "a", ""):
        tokens = trusted(text)["input_ids"]
        assert strange(text)["input_ids"] == strange.encode(text) == tokens
        assert strange.tokenize(text) == trusted.tokenize(text)
        assert strange.decode(tokens) == trusted.decode(tokens)
    with pytest.raises(UnicodeError):
        strange("\ud800")


def test_a_trusted_tokenizer_that_gives_up_is_one_sentence(tmp_path):
    model = tiny_model()
    model.tokenizer = open_tokenizer(folder_of(split(), tmp_path), "m")
    with pytest.raises(
        UserError, match="^The tokenizer of llama fails on this text: .*retry-limit"
    ):
        read_prompt(model, SEARCHED)


def test_a_visitor_s_model_has_its_texts_split_elsewhere(splitter, tmp_path, monkeypatch):
    """From the visitor's wish to the run: what is admitted is run within bounds."""
    monkeypatch.setattr(bounded_tokenizer, "splitter", splitter)
    # transformers gives its own rules to some kinds, not to this one
    folder = strangers_pair(tmp_path)[1]
    file = folder / "tokenizer.json"
    told = json.loads(file.read_text())
    one = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
    told["normalizer"] = {"type": "Sequence", "normalizers": [one] * 33}
    file.write_text(json.dumps(told))
    admit(str(folder), Allowed((str(tmp_path),)))
    request = RunRequest("a hi", ModelPaths(str(folder)), drafter="none", max_new_tokens=2)
    with pytest.raises(UserError, match="^The tokenizer of stranger-small is refused"):
        open_run(request)
    open_model.forget(str(folder))
