"""Compressed files of weights: the same tensors, and hostile files are refused before they fill the memory."""

import gzip
import json

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import save, save_file

from engine.errors import UserError
from engine.parts.digest import digest_of
from engine.parts.files import read_tensors
from engine.parts.stored_file import compress, entries, tensors_in, weights_at

NAME = "model.safetensors"
TENSORS = {"a": torch.arange(6.0).view(2, 3), "b": torch.tensor([1, -2], dtype=torch.int8)}


@pytest.fixture
def packed(tmp_path):
    save_file(TENSORS, tmp_path / NAME)
    compress(tmp_path / NAME)
    return weights_at(tmp_path, NAME)


def test_a_compressed_file_holds_the_same(packed, tmp_path):
    assert [file.name for file in tmp_path.iterdir()] == [f"{NAME}.gz"]
    assert entries(packed) == {"a": ((2, 3), "F32"), "b": ((2,), "I8")}
    found = tensors_in(packed)
    assert all(found[name].equal(tensor) for name, tensor in TENSORS.items())
    assert digest_of(tmp_path) is not None


def test_the_plain_file_comes_first(packed, tmp_path):
    save_file({"c": torch.zeros(1)}, tmp_path / NAME)
    assert list(read_tensors(tmp_path, "part")) == ["c"]


def header(told: object, data: bytes = b"") -> bytes:
    text = json.dumps(told).encode()
    return gzip.compress(len(text).to_bytes(8, "little") + text + data)


def one(**changes) -> dict:
    return {"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4], **changes}}


HOSTILE = {
    "no gzip": lambda whole: b"PK" + whole,
    "cut off": lambda whole: whole[:-20],
    "another header": lambda whole: gzip.compress(b"\xff" * 64),
    "no object": lambda whole: header([1]),
    "no entry": lambda whole: header({"a": 1}),
    "a shape of letters": lambda whole: header(one(shape="3")),
    "more bytes than it tells": lambda whole: header(one(), bytes(20 << 20)),
    "fewer bytes than it tells": lambda whole: header(one(), b"12"),
    "other tensors": lambda whole: gzip.compress(save(TENSORS)[:-1]),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused(packed, tmp_path, name):
    packed.write_bytes(HOSTILE[name](packed.read_bytes()))
    with pytest.raises((OSError, SafetensorError)):
        tensors_in(packed)
    with pytest.raises(UserError, match="damaged"):
        read_tensors(tmp_path, "part")
