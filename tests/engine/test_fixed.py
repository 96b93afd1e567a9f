"""Graphs for a fixed number of rows: made once, and used where they fit and give the same numbers."""

import pytest
import torch

from engine.core.load import Expected
from engine.fast.cpu import fixed, passes
from engine.fast.cpu.budget import Budget
from engine.fast.cpu.compiled_model import CompiledModel
from engine.fast.cpu.fixed import SIZES, fixed_sizes
from engine.fast.cpu.store import compiled
from engine.parts.opening import language_model
from tests.engine.test_compiled import FEATURES, both, logits_of, tokens, wrong_numbers
from tests.engine.tiny import tiny_hf_model
from tests.many_graphs import many_graphs  # noqa: F401 - a fixture of every test


@pytest.fixture
def made(monkeypatch) -> list[int | None]:
    """Return a list that gets the number of rows of every graph that is made; None means any number."""
    rows: list[int | None] = []

    def noted(graph, example, described, sizes=None):
        rows.append(sizes[0][0] if sizes else None)
        return compiled(graph, example, described, sizes)

    monkeypatch.setattr(passes, "compiled", noted)
    return rows


def test_a_pass_takes_the_smallest_number_that_it_fits_and_each_graph_is_made_once(made):
    model = language_model(tiny_hf_model("llama"), None, "t")
    made.clear()
    for _ in range(2):
        for rows in (1, 3, 9, 10, 16, 17, 18, 40):
            logits, _ = model.session(64).feed(tokens(rows, 1), range(-1, rows - 1))
            assert len(logits) == rows
    assert sorted(made) == list(SIZES)


def test_what_is_expected_is_made_beforehand(made):
    model = language_model(tiny_hf_model("llama"), None, "t")
    model.expect(FEATURES, 12)
    assert made[-4:] == [1, 5, 9, 13]
    made.clear()
    session = model.session(64, FEATURES)
    session.feed(tokens(13, 1), range(-1, 12))
    session.commit([0])
    assert not made


def test_a_text_grows_through_all_capacities(made):
    """The numbers of the module, before and after each buffer is full, from one graph for each number of rows."""
    module, fast = both(tiny_hf_model("llama"))
    made.clear()
    sessions = [model.session(16) for model in (module, fast)]
    for count in (120, 3, 4, 3, 124, 3, 250, 3):
        expected, found = (session.extend(tokens(count, count)) for session in sessions)
        torch.testing.assert_close(found, expected, atol=5e-5, rtol=1e-4)
    assert made.count(5) == 1


def cannot_be_made(*_):
    raise RuntimeError("no such size")


@pytest.mark.parametrize(
    ("instead", "told"),
    [(wrong_numbers, "it gives other numbers"), (cannot_be_made, "no such size")],
)
def test_a_graph_that_is_wrong_or_cannot_be_made_is_not_used(monkeypatch, caplog, instead, told):
    module, fast = both(tiny_hf_model("llama"))

    def changed(graph, example, described, sizes=None):
        return instead(graph, example) if sizes else compiled(graph, example, described)

    monkeypatch.setattr(passes, "compiled", changed)
    with caplog.at_level("INFO", "engine.fast.cpu.store"):
        torch.testing.assert_close(logits_of(fast), logits_of(module), atol=3e-5, rtol=1e-4)
    (said,) = [record.getMessage() for record in caplog.records]
    assert said == f"There is no graph for 5 rows: {told}"


def test_models_with_many_parameters_have_one_graph(made, monkeypatch):
    assert fixed_sizes(fixed.MOST_PARAMETERS + 1) == ()
    monkeypatch.setattr(fixed, "MOST_PARAMETERS", 1000)
    model = language_model(tiny_hf_model("llama"), None, "t")
    model.session(64).feed([3], [-1])
    assert made == [None]


@pytest.mark.parametrize("tied", [False, True])
def test_a_table_of_embeddings_counts_only_as_a_head(made, monkeypatch, tied):
    """A draft model with the target's table is as small as its layers and its own head."""
    module = tiny_hf_model("llama")
    if tied:
        module.lm_head.weight = module.get_input_embeddings().weight
    weights = sum(weight.numel() for weight in module.parameters())
    monkeypatch.setattr(fixed, "MOST_PARAMETERS", weights - 1)
    language_model(module, None, "t").session(64).feed([3], [-1])
    assert made == ([None] if tied else [None, 1])


def test_a_host_with_little_memory_has_one_graph_a_model(made, monkeypatch):
    """It gives the numbers of the module."""
    monkeypatch.setattr("engine.fast.cpu.budget.graph_memory", lambda: Budget(0))
    module, fast = both(tiny_hf_model("llama"))
    made.clear()
    fast.expect(FEATURES, 12, Expected(20, 300))
    fast.expect_chains()
    assert made == [None]
    torch.testing.assert_close(logits_of(fast), logits_of(module), atol=3e-5, rtol=1e-4)
    assert made == [None]


def test_a_graph_made_in_mid_text_leaves_the_text_s_columns_alone():
    """In one session: many rows, then a graph for a usual number of rows is made, then many rows again."""
    found = []
    for model in both(tiny_hf_model("llama")):
        session = model.session(64)
        session.prefill(tokens(9, 1))
        first, _ = session.feed(tokens(20, 2), range(-1, 19))
        session.commit(range(20))
        if isinstance(model, CompiledModel):
            model.expect((), 2)
        second, _ = session.feed(tokens(20, 3), range(-1, 19))
        found.append(torch.cat([first, second]))
    torch.testing.assert_close(found[1], found[0], atol=3e-5, rtol=1e-4)
