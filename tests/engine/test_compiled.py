"""Compiled passes against the module's own: same weights, same numbers, any tree."""

import copy
import logging
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.fast.cpu import passes, store
from engine.fast.cpu.compiled_model import CompiledModel, CompiledSession, compiled_model
from engine.fast.cpu.store import _make_room
from engine.fast.gpu.static_model import JoinedModel
from engine.model.language_model import LanguageModel
from engine.parts.opening import language_model
from tests.engine.tiny import VOCABULARY, tiny_hf_model
from tests.grids import some
from tests.many_graphs import many_graphs  # noqa: F401 - a fixture of every test

ROPE = {
    "rope_type": "llama3", "rope_theta": 10000.0, "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}  # fmt: skip
BIASED = {
    "attention_bias": True,
    "mlp_bias": True,
    "rope_parameters": ROPE,
    "tie_word_embeddings": True,
    "head_dim": 24,
}
CASES = {
    "llama": ("llama", {}),
    "llama, biases, scaled rope, tied head, wide heads": ("llama", BIASED),
    "llama, a k head for each q head, another activation": ("llama", {"num_key_value_heads": 4, "hidden_act": "gelu"}),
    "mistral, window": ("mistral", {}),
    "qwen2, biases, windows": ("qwen2", {}),
    "qwen3, norms of q and k": ("qwen3", {}),
    "gemma2, soft caps, windows": ("gemma2", {}),
    "gemma3, windows, two rotary bases": ("gemma3", {}),
    "gpt2, learned positions": ("gpt2", {}),
}  # fmt: skip
FEATURES = (0, 2, 3)
PREFIX, TREE = 30, [-1, 0, 0, 1, 1, 2, 3, 6, 5]


def tokens(count: int, seed: int) -> list[int]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(VOCABULARY, (count,), generator=generator).tolist()


@pytest.fixture(params=some(CASES, lambda name: name != "llama"))
def pair(request):
    """Return (the model through its module, the model compiled), each on its own copy of the weights. A plain llama does
    nothing that one with biases does not do too, and most tests below read it."""
    architecture, changes = CASES[request.param]
    plain = tiny_hf_model(architecture, **changes)
    randomise_vectors(plain)
    return both(plain)


def randomise_vectors(model) -> None:
    """Give biases and norms random values, because their first values 0 and 1 would hide errors."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) * 0.2)


def both(plain) -> tuple[LanguageModel, LanguageModel]:
    module = language_model(copy.deepcopy(plain), None, "module", lean=False)
    fast = language_model(plain, None, "compiled")
    assert type(module) is JoinedModel and type(fast) is CompiledModel
    return module, fast


def read(model: LanguageModel) -> list[torch.Tensor]:
    """Return everything that a session returns for a prompt, a tree in parts, commits and a chain."""
    session = model.session(16, FEATURES)
    seen = [session.prefill(tokens(PREFIX, 1))]
    drafted = tokens(len(TREE), 2)
    seen += session.feed(drafted[:4], TREE[:4])
    seen += session.feed(drafted[4:], TREE[4:])
    session.commit([0, 1, 3, 6])
    seen += session.feed(tokens(3, 3), [-1, 0, 1])
    session.commit([0, 1])
    seen.append(session.extend(tokens(5, 4)))
    seen += session.feed(tokens(1, 5), [-1])
    return seen


def test_everything_is_the_same(pair):
    module, fast = pair
    for got, expected in zip(read(fast), read(module), strict=True):
        torch.testing.assert_close(got, expected, atol=3e-5, rtol=1e-4)


def test_sessions_share_the_graph_and_nothing_else(llama):
    """Two sessions take turns, one of them grows past its first columns, and a third takes over a prompt."""
    alone = llama.session(16)
    alone.prefill(tokens(20, 1))
    expected = [alone.feed([row], [-1])[0] for row in tokens(3, 2)]
    one, other = llama.session(16), llama.session(16)
    one.prefill(tokens(20, 1))
    other.prefill(tokens(200, 3))
    third = llama.session(16)
    third.take_over(one, 20)
    for session in (one, third):
        for row, logits in zip(tokens(3, 2), expected, strict=True):
            other.feed([row], [-1])
            torch.testing.assert_close(session.feed([row], [-1])[0], logits)


def test_logits_are_the_callers_own(llama):
    session = llama.session(16)
    first, _ = session.feed([3], [-1])
    before = first.clone()
    session.feed([9], [0])
    assert torch.equal(first, before)


@pytest.fixture(scope="module")
def llama() -> LanguageModel:
    return language_model(tiny_hf_model("llama"), None, "llama")


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("DRAFTSCOPE_CACHE", str(tmp_path))
    return tmp_path / "compiled"


def logits_of(model: LanguageModel) -> torch.Tensor:
    return model.session(16).feed([3, 8, 11], [-1, 0, 0])[0]


def test_graphs_are_made_once_a_model(folder, monkeypatch):
    plain, other = tiny_hf_model("llama"), tiny_hf_model("llama", seed=1)
    first = logits_of(compiled_model(copy.deepcopy(plain), None, "first"))
    assert len(list(folder.iterdir())) == 2, "one for any number of rows, one for five"
    converted = []
    convert = store._converted
    monkeypatch.setattr(store, "_converted", lambda *given: converted.append(1) or convert(*given))
    again = logits_of(compiled_model(copy.deepcopy(plain), None, "again"))
    assert torch.equal(again, first) and not converted
    assert not torch.allclose(logits_of(compiled_model(other, None, "other")), first)
    assert len(converted) == 1 and len(list(folder.iterdir())) == 4
    for file in folder.iterdir():
        file.write_bytes(b"broken")
    assert torch.equal(logits_of(compiled_model(plain, None, "third")), first)


def test_without_a_folder_it_is_compiled_all_the_same(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DRAFTSCOPE_CACHE", str(tmp_path / "file"))
    assert isinstance(compiled_model(tiny_hf_model("llama"), None, "t"), CompiledModel)


def test_the_folder_stays_within_its_bounds(tmp_path):
    for age, name in enumerate(["d.blob.4711", "c.blob", "b.blob", "a.blob"]):  # d: not finished
        (tmp_path / name).write_bytes(b"12345")
        os.utime(tmp_path / name, (age, age))
    _make_room(tmp_path, 10)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.blob", "b.blob"]


def no_openvino():
    raise ImportError


def wrong_numbers(graph, *rest):
    """Compile the graph of another model in place of this one."""
    state = {name: tensor + 0.05 for name, tensor in graph.state_dict().items()}
    changed = copy.deepcopy(graph)
    changed.load_state_dict(state)
    settings = store.settings(store.threads())  # OpenVINO's own choice may be bf16
    made = store.core().compile_model(_CONVERTED(changed, *rest[:1]), "CPU", settings)
    return store.Compiled(made, bytes)


_CONVERTED = store._converted
TROUBLES = {
    "OpenVINO is not installed": ("llama", {}, ("core", no_openvino)),
    "other numbers": ("llama", {}, ("compiled", wrong_numbers)),
    "runs through its own module": ("gpt_oss", {}, None),
}


@pytest.mark.parametrize("words", TROUBLES)
def test_what_cannot_be_compiled_keeps_its_own_passes(words, monkeypatch, caplog):
    """The same text comes out, and the log has one line that says why."""
    architecture, changes, broken = TROUBLES[words]
    if broken is not None:
        for room in (store, passes):
            monkeypatch.setattr(room, *broken, raising=False)
    with caplog.at_level(logging.WARNING, "engine.fast.cpu"):
        module, fast = (
            language_model(tiny_hf_model(architecture, **changes), None, "Some", lean=lean)
            for lean in (False, True)
        )
    assert type(fast) is JoinedModel
    (line,) = [
        record.message for record in caplog.records if record.name.startswith("engine.fast.cpu")
    ]
    assert line.startswith(("Some runs", "OpenVINO is not")) and words in line
    assert "\n" not in line
    torch.testing.assert_close(logits_of(fast), logits_of(module))


def test_features_that_cannot_be_compiled_come_from_the_module(monkeypatch, caplog):
    module, fast = both(tiny_hf_model("llama"))
    read = prefilled(fast)

    def broken(*_):
        raise RuntimeError("no such operation")

    monkeypatch.setattr(passes, "compiled", broken)
    found = []
    for model in (module, fast):
        session = model.session(8, (0, 2))
        session.take_over(read if model is fast else prefilled(module), 9)
        found.append(session.feed([3, 8], [-1, 0]))
    for got, expected in zip(*reversed(found), strict=True):
        torch.testing.assert_close(got, expected, atol=3e-5, rtol=1e-4)
    assert [record.message for record in caplog.records] == [
        "Features of compiled come from its own module: no such operation"
    ]


def test_the_sets_of_features_used_last_are_kept_and_a_session_keeps_its_own(monkeypatch):
    monkeypatch.setattr(passes, "MOST_SETS", 1)
    model = language_model(tiny_hf_model(), None, "llama")
    first = model.session(64, (1,))
    first.prefill([5, 7, 9])
    expected, features = first.feed([3], [-1])
    first.drop()
    model.session(64, (2,))
    assert [entry.features for entry in model.passes._feature_graphs] == [(), (2,)]
    monkeypatch.setattr(model.passes, "_graphs", None)  # nothing is made again
    again, same = first.feed([3], [-1])
    assert torch.equal(again, expected) and torch.equal(same, features)


def test_features_that_compute_other_numbers_are_never_used(monkeypatch):
    """Neither when they are first requested nor later."""
    module, fast = both(tiny_hf_model("llama"))
    monkeypatch.setattr(passes, "compiled", wrong_numbers)
    fast.expect((0, 2), 2)
    for model in (module, fast):
        session = model.session(8, (0, 2))
        assert type(session) is not CompiledSession


def prefilled(model: LanguageModel):
    session = model.session(8)
    session.prefill(tokens(9, 1))
    return session


def test_bf16_keeps_the_modules_own_passes():
    model = language_model(tiny_hf_model("llama").bfloat16(), None, "t")
    assert type(model) is JoinedModel and logits_of(model).dtype == torch.bfloat16


def test_a_graph_that_is_tried_beside_a_text_reads_its_own_columns():
    """A trial passes columns of its own in place of the text's; each call must read the columns that it was given."""
    model = language_model(tiny_hf_model(), None, "llama")
    graphs = model.passes.graphs_with(()).graphs

    def tried():
        return graphs.general(graphs._example(4), (0,), lambda logits: logits.copy())

    first, session = tried(), model.session(64)
    session.prefill([5, 7, 9])
    before, _ = session.feed(range(3, 23), range(-1, 19))
    for _ in range(2):
        session.drop()
        assert np.allclose(tried(), first, atol=1e-4)
        again, _ = session.feed(range(3, 23), range(-1, 19))
        assert torch.allclose(again, before, atol=1e-4)


def test_a_text_after_another_finds_its_buffers_empty():
    """The memory of a text that has ended is used again; not even NaN in it reaches the next text."""
    model = CompiledModel(tiny_hf_model("llama"), None, "again")
    session = model.session(64)
    expected = session.extend(tokens(20, 1))
    buffer = session._cache._buffer
    buffer.numbers.fill_(float("nan"))
    other = model.session(64)
    assert other._cache._buffer is not buffer  # the first text still lives
    del session
    third = model.session(64)
    assert third._cache._buffer is buffer
    assert torch.equal(third.extend(tokens(20, 1)), expected)


def test_a_buffer_that_was_outgrown_is_used_again():
    model = CompiledModel(tiny_hf_model("llama"), None, "growing")
    session = model.session(64)
    buffer, text = session._cache._buffer, tokens(300, 2)
    expected = session.extend(text)
    assert session._cache._buffer is not buffer
    assert model.session(64)._cache._buffer is buffer
    again = model.session(512)
    assert torch.allclose(again.extend(text), expected, atol=1e-4)
