"""Datastores: lookups against a search, files that are refused, and the command that makes them."""

import json
import shutil
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.__main__ import main
from engine.errors import UserError
from engine.methods.shared import datastore_part as datastores
from engine.methods.shared.datastore_part import Datastore, open_datastore
from engine.parts.loading import load_models
from engine.training.counted_parts import datastore as recipe
from presets import KINDS, family, prompts
from tests.engine.tiny import tiny_model

TEXT = "The cat sat on the mat.\nThe cat sat on the hat.\n"
NEEDS = {"datastore": "datastore"}


def places(tokens, run):
    """All positions of a run in a list, found by brute force."""
    size = len(run)
    return [at for at in range(len(tokens) - size + 1) if tokens[at : at + size] == run]


@settings(max_examples=200, deadline=None)
@given(
    tokens=st.lists(st.integers(0, 3), max_size=40),
    context=st.lists(st.integers(0, 3), min_size=1, max_size=8),
    most=st.integers(1, 6),
    length=st.integers(1, 4),
)
def test_lookups_against_a_search(tokens, context, most, length):
    store = Datastore(np.array(tokens, dtype=np.int64))
    standing = [n for n in range(1, min(most, len(context)) + 1) if places(tokens, context[-n:])]
    found = store.longest(context, most)
    assert (found and found.length) == (max(standing) if standing else None)
    if found is not None:
        expected = places(tokens, context[-found.length :])
        assert found.last - found.first == len(expected)
        after = [tokens[at + found.length :][:length] for at in expected]
        assert sorted(store.continuations(found, length)) == sorted(after)


def test_large_ids_are_ordered_as_numbers():
    tokens = [65_536, 1, 256, 65_536, 2, 256, 70_000, 1]
    store = Datastore(np.array(tokens))
    assert [tokens[at:] for at in store._order] == sorted(tokens[at:] for at in range(8))


def test_of_many_occurrences_some_are_looked_at_from_first_to_last():
    tokens = [token for number in range(1000) for token in (7, 8 + number)]
    store = Datastore(np.array(tokens))
    looked = [path[0] - 8 for path in store.continuations(store.find([7]), 1)]
    assert 32 <= len(looked) <= 64 and looked[0] == 0 and looked[-1] >= 960


def test_a_lookup_reads_a_few_places_of_a_long_text():
    rng = np.random.default_rng(0)

    class Counted(Datastore):
        reads = 0

        def _bound(self, first, last, depth, token):
            self.reads += (last - first).bit_length()
            return super()._bound(first, last, depth, token)

    def reads(size):
        store = Counted(rng.integers(0, 50, size))
        for start in range(0, 500, 10):
            store.longest(store.tokens[start : start + 16].tolist(), 16)
        return store.reads

    assert reads(100_000) < 2 * reads(1000), "a hundred times the text"


# ---- Files --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a good datastore for the embedded target. Tests spoil copies of it."""
    place = tmp_path_factory.mktemp("good")
    (place / "text.txt").write_text(TEXT, "utf-8")
    datastores.make_datastore(place / "text.txt", place / "store", family().target)
    return place / "store"


def opened(path):
    return load_models(family().with_parts({"datastore": str(path)}), NEEDS).part("datastore")


def test_a_text_comes_back_as_it_was_also_in_pieces_put_together(folder, tmp_path, monkeypatch):
    tokenizer = load_models(family(), {}).target.tokenizer
    assert tokenizer.decode(opened(folder).tokens) == TEXT
    monkeypatch.setattr(datastores, "AT_ONCE", 5)
    (tmp_path / "text.txt").write_text(TEXT * 3, "utf-8")
    datastores.make_datastore(tmp_path / "text.txt", tmp_path / "s", family().target)
    assert opened(tmp_path / "s").tokens.tolist() == tokenizer(TEXT * 3)["input_ids"]


def refused(path):
    with pytest.raises(UserError) as told:
        opened(path)
    assert str(told.value).endswith(".") and "\n" not in str(told.value)
    return str(told.value)


def zipped(folder):
    np.savez(folder / "tokens.npz", tokens=np.array([1], dtype=np.uint16))
    (folder / "tokens.npz").rename(folder / "tokens.npy")


def shaped(*shape):
    """Return a change that leaves a file whose header promises this shape, without any data."""

    def spoil(folder):
        with (folder / "tokens.npy").open("wb") as file:
            header = {"descr": "<u2", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)

    return spoil


def save(array):
    return lambda folder: np.save(folder / "tokens.npy", array)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda folder: (folder / "config.json").unlink(),
        lambda folder: (folder / "config.json").write_text("[]"),
        lambda folder: (folder / "config.json").write_text('{"kind": "draft"}'),
        lambda folder: (folder / "tokens.npy").unlink(),
        lambda folder: (folder / "tokens.npy").write_bytes(b"\x93NUMPY"),
        lambda folder: (folder / "tokens.npy").write_bytes(b"PK\x03\x04 and no more"),
        lambda folder: (folder / "config.json").write_text("[" * 100_000),
        zipped,
        shaped(1 << 40),
        shaped(1 << 80),
        shaped(1 << 32, 1 << 32),
        save(np.array([{"a": 1}], dtype=object)),
        save(np.array([0.5])),
        save(np.array([[1, 2]], dtype=np.uint16)),
        save(np.array([], dtype=np.uint16)),
        save(np.array([2**32 - 1], dtype=np.uint32)),
    ],
)
def test_what_is_no_datastore_is_refused_with_a_sentence(folder, tmp_path, spoil):
    bad = Path(shutil.copytree(folder, tmp_path / "bad"))
    spoil(bad)
    assert refused(bad) == "There is no datastore to open at bad."
    assert refused(tmp_path / "nowhere") == "There is no datastore to open at nowhere."


def test_one_of_another_tokenizer_is_refused(folder, tmp_path):
    other = Path(shutil.copytree(folder, tmp_path / "other"))
    np.save(other / "tokens.npy", np.load(folder / "tokens.npy") + 1)  # different tokens
    assert "another tokenizer" in refused(other)
    np.save(other / "tokens.npy", np.array([60_000], dtype=np.uint16))  # not a token of the target
    open_datastore.cache_clear()
    assert "another tokenizer" in refused(other)


def test_tokens_beyond_the_head_of_a_target_are_refused(folder):
    """The target's tokenizer knows these tokens, but its head has no logits for them."""
    target = tiny_model()
    target.tokenizer = load_models(family(), {}).target.tokenizer
    with pytest.raises(UserError, match="holds the token .* which llama cannot write") as told:
        datastores.KIND.load(str(folder), target, None, "cpu")
    assert str(told.value).endswith(".")


def test_a_tokenizer_with_more_tokens_will_do(folder):
    target = load_models(family(), {}).target
    longer = type(target.tokenizer).from_pretrained(family().target)
    tokens = opened(folder).tokens
    before = datastores.tokenizer_digest(longer, tokens)
    longer.add_tokens(["<new>"])
    assert datastores.tokenizer_digest(longer, tokens) == before


def test_a_large_one_is_refused(folder, monkeypatch):
    open_datastore.cache_clear()
    monkeypatch.setattr(datastores, "MOST_TOKENS", 5)
    assert "at most 5" in refused(folder)
    open_datastore.cache_clear()


# ---- The command --------------------------------------------------------------------------------


def test_the_command_makes_what_a_run_looks_up_in(tmp_path, capsys):
    (tmp_path / "text.txt").write_text(TEXT, "utf-8")
    store = str(tmp_path / "store")
    assert main(["datastore", str(tmp_path / "text.txt"), "--out", store]) == 0
    run = ["run", "--drafter", "rasd", "--part", f"datastore={store}", "--option", "budget=2"]
    trace = tmp_path / "run.ndjson"
    asked = ["--prompt", "The cat sat", "--max-new-tokens", "4", "--trace", str(trace)]
    assert main([*run, *asked]) == 0
    first = json.loads(trace.read_text("utf-8").splitlines()[1])
    titles = [exhibit["title"] for exhibit in first["drafter"]["exhibits"]]
    assert "Match in the datastore" in titles


def test_a_byte_order_mark_is_not_in_the_datastore(tmp_path):
    stores = []
    for name, mark in (("plain", ""), ("marked", "\ufeff")):
        text, store = tmp_path / name, tmp_path / f"{name}-store"
        text.write_bytes((mark + TEXT.replace("\n", "\r\n")).encode())
        assert main(["datastore", str(text), "--out", str(store)]) == 0
        stores.append(opened(store).tokens.tolist())
    assert stores[0] == stores[1]


@pytest.mark.parametrize(
    "content, most, told",
    [
        (None, 9, "cannot be read"), (b"\xff\xfe\x00a", 9, "not UTF-8"), (b"a\0b", 9, "null characters"),
        (b" \n", 9, "is empty"), (b"word " * 50, 9, "more than"), (TEXT.encode(), 5, "at most 5"),
    ],
)  # fmt: skip
def test_what_is_no_text_is_refused_with_a_sentence(
    tmp_path, monkeypatch, capsys, content, most, told
):
    monkeypatch.setattr(datastores, "MOST_BYTES", 100)
    monkeypatch.setattr(datastores, "MOST_TOKENS", most)
    if content is not None:
        (tmp_path / "text.txt").write_bytes(content)
    store = tmp_path / "store"
    assert main(["datastore", str(tmp_path / "text.txt"), "--out", str(store)]) == 2
    said = capsys.readouterr().err
    assert told in said and said.count("\n") == 1 and not store.exists()


# ---- The datastore that ships --------------------------------------------------------------------


def test_its_recipe_makes_it(tmp_path):
    shutil.copytree(family().target, tmp_path / "target", ignore=shutil.ignore_patterns("model*"))
    recipe(Namespace(models=tmp_path, tokens=2000, seed=0))
    made = opened(tmp_path / "parts" / "datastore").tokens
    shipped = load_models(family(), NEEDS).part("datastore").tokens
    assert 2000 <= len(made) < len(shipped) and (made == shipped[: len(made)]).all()


def test_no_prompt_that_ships_stands_in_the_datastore_that_ships():
    models = load_models(family(), NEEDS)
    text = models.target.tokenizer.decode(models.part("datastore").tokens)
    assert len(text) > 100_000
    held_out = [card["prompt"].strip() for kind in KINDS for card in prompts(kind)]
    assert not [prompt for prompt in held_out if prompt in text]
