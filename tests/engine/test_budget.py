"""Graphs beyond one for each model share a budget of bytes, and results do not depend on how large it is."""

import gc
import threading
import weakref
from dataclasses import dataclass

import pytest
import torch

from engine.core.load import Expected
from engine.core.threads import halved
from engine.errors import UserError
from engine.fast.cpu import budget as room
from engine.fast.cpu.budget import LACKING, Budget, Family, wanted_bytes
from engine.fast.cpu.compiled_model import CompiledModel
from engine.fast.cpu.pace import Pace
from engine.model.layers import Layers
from engine.parts.opening import language_model
from tests.engine.test_compiled import both, tokens
from tests.engine.tiny import tiny_hf_model
from tests.many_graphs import many_graphs  # noqa: F401 - a fixture of every test


@dataclass
class Graph:
    name: str
    nbytes: int = 100


@pytest.fixture
def small(monkeypatch) -> Budget:
    """Return a budget for the graphs of the models that a test opens, enough for about three graphs of ``tiny``. No
    graph is read from the cache folder, because a graph read from a file counts fewer bytes than the same graph made
    here."""
    monkeypatch.setattr("engine.fast.cpu.store.MOST_KEPT", -1)
    made = Budget(3 * sizes_of_a_tiny_graph())
    monkeypatch.setattr(room, "graph_memory", lambda: made)
    return made


def sizes_of_a_tiny_graph() -> int:
    model = CompiledModel(tiny_hf_model("llama"), None, "tiny")
    model.session(16).feed([3], [-1])
    return model.passes.graphs_with(()).graphs.of(1).nbytes


def test_the_setting_is_a_number_of_bytes_and_another_is_refused_in_a_sentence():
    for text, expected in (
        ("1 GB", 10**9),
        ("1.5GB", 1_500_000_000),
        ("300 mb", 300_000_000),
        ("0 MB", 0),
    ):
        assert wanted_bytes(text) == expected
    for text in ("much", "1", "-1 GB", "1 TB", "GB", "1 GB 2", "١ GB"):
        with pytest.raises(UserError, match="DRAFTSCOPE_GRAPH_MEMORY must be"):
            wanted_bytes(text)


def test_the_least_recently_used_graphs_go():
    budget = Budget(300)
    family: Family[Graph] = Family(budget)
    for name in "abc":
        family.of(name, lambda name=name: Graph(name))
    family.of("a", pytest.fail)
    for _ in range(LACKING):
        assert family.of("d", lambda: Graph("d")) is None
    assert family.of("d", lambda: Graph("d", 150)).name == "d"
    held = {name for name in "abcd" if family.of(name, lambda: None) is not None}
    assert held == {"a", "d"} and budget.used == 250


def test_passes_do_without_a_graph_until_it_is_worth_making():
    budget, made = Budget(100), []
    family: Family[Graph] = Family(budget)

    def make(name: str) -> Graph:
        made.append(name)
        return Graph(name)

    for _ in range(3):
        assert family.of("a", lambda: make("a")).name == "a"
    for _ in range(LACKING):
        family.of("b", lambda: make("b"))
        family.of("c", lambda: make("c"), ahead=True)
    assert made == ["a"]
    family.of("b", lambda: make("b"))
    family.of("c", lambda: make("c"), ahead=True)
    assert made == ["a", "b"], "no pass lacked c"
    assert len(budget) == 1 and budget.used == 100


def test_what_no_pass_wants_yet_leaves_room():
    budget = Budget(400)
    family: Family[Graph] = Family(budget)
    family.of("first", lambda: Graph("first"))  # from here on the size of a graph is known
    for name in "abc":
        family.of(name, lambda name=name: Graph(name), ahead=True)
    assert budget.used == 200
    for name in "de":
        assert family.of(name, lambda name=name: Graph(name)).name == name
    assert budget.used == 400


def test_a_server_that_tries_its_drafters_spares_the_budget():
    budget = Budget(1000)
    family: Family[Graph] = Family(budget)
    with budget.spared():
        for name in 2 * LACKING * "abcd":
            family.of(name, lambda name=name: Graph(name))
            assert budget.used == 100
    assert family.of("d", lambda: Graph("d")).name == "d"


def test_a_graph_larger_than_the_budget_or_of_no_use_is_made_once_and_not_held():
    for graph in (Graph("a", 101), None):
        budget, made = Budget(100), []
        family: Family[Graph] = Family(budget)
        for _ in range(3):
            assert family.of("a", lambda graph=graph, made=made: made.append(1) or graph) is None
        assert len(made) == 1 and budget.used == 0


def test_graphs_go_with_their_model():
    budget = Budget(300)
    families = [Family(budget) for _ in range(2)]
    for family in families:
        family.of("a", lambda: Graph("a"))
    del family, families[0]
    gc.collect()
    assert budget.used == 100 and families[0].of("a", pytest.fail).name == "a"


class Owner(Graph):
    """A graph that owns other graphs, which are dropped with it."""

    def __init__(self, budget: Budget, nbytes: int) -> None:
        super().__init__("owner", nbytes)
        self.own: Family[Graph] = Family(budget)
        self.own.of("own", lambda: Graph("own", 10))


def test_graphs_of_graphs_go_with_their_model():
    """And what they took is free again, to the byte."""
    budget = Budget(300)
    for _ in range(5):
        family: Family[Graph] = Family(budget)
        for name in "ab":
            family.of(name, lambda: Owner(budget, 100))
        assert budget.used == 220
        del family
        assert budget.used == 0 and len(budget) == 0
    family = Family(budget)
    assert family.of("a", lambda: Owner(budget, 290)) is not None
    for _ in range(LACKING):
        assert family.of("b", pytest.fail) is None
    assert family.of("b", lambda: Graph("b", 300)).name == "b"
    assert budget.used == 300 and len(budget) == 1


def test_the_garbage_collector_may_free_a_family_while_its_graph_goes():
    """At each of the moments at which it may run. All that it frees is young, so nothing older is looked at."""
    thresholds = gc.get_threshold()
    try:
        for moment in range(1, 60):
            budget = Budget(300)
            old, new = Family(budget), Family(budget)
            old.of("a", lambda: Graph("old", 300))
            for _ in range(LACKING):
                new.of("a", pytest.fail)
            gc.collect(0)
            gc.disable()
            cycle = [old]
            cycle.append(cycle)
            del cycle, old
            gc.set_threshold(moment)
            gc.enable()
            assert new.of("a", lambda: Graph("new")).name == "new"
            gc.set_threshold(*thresholds)
            gc.collect(0)
            assert budget.used == 100 and len(budget) == 1
    finally:
        gc.set_threshold(*thresholds)
        gc.enable()


def with_features(model):
    model.expect((1, 2), 0, Expected(20, 60))


def with_chains(model):
    model.expect_chains((), Expected(20, 60))  # in buffers of one capacity


def with_stretches(model):
    model.prepare_stretches([1], 0)
    session = model.session(64)
    session.prefill(tokens(20, 1))
    session.through([5], Layers(stop=1), [-1])


def with_heads(model):
    model.head(torch.zeros(1, model.hidden_size))


def on_half_of_the_threads(model):
    with halved():
        model.session(64).feed(tokens(30, 1), range(-1, 29))


@pytest.mark.parametrize(
    "drafts", [with_features, with_chains, with_stretches, with_heads, on_half_of_the_threads]
)
def test_a_model_that_has_drafted_is_freed_with_its_graphs(drafts, monkeypatch):
    monkeypatch.setattr("engine.fast.cpu.calls.threads", lambda: 2)
    monkeypatch.setattr("engine.fast.cpu.calls.PACE", Pace())  # has seen no slow passes
    held = Budget(10**9)
    monkeypatch.setattr(room, "graph_memory", lambda: held)
    model = CompiledModel(tiny_hf_model("llama", num_hidden_layers=2), None, "tiny")
    drafts(model)
    assert len(held)
    gone = weakref.ref(model), weakref.ref(model.model)
    del model
    gc.collect()
    assert [each() for each in gone] == [None, None]
    assert len(held) == held.used == 0


def test_a_pass_does_not_wait_while_another_thread_makes_a_graph():
    budget, making, done = Budget(300), threading.Event(), threading.Event()
    family: Family[Graph] = Family(budget)

    def slow() -> Graph:
        making.set()
        assert done.wait(30)
        return Graph("a")

    thread = threading.Thread(target=family.of, args=("a", slow))
    thread.start()
    assert making.wait(30)
    assert family.of("b", lambda: Graph("b")) is None
    done.set()
    thread.join()
    assert family.of("a", pytest.fail).name == "a"
    assert family.of("b", lambda: Graph("b")) is not None


def test_a_small_budget_is_kept_and_changes_no_result(small):
    """Passes of many sizes, with and without features, at first in a budget of three graphs, then in none."""
    module, fast = both(tiny_hf_model("llama"))
    most = 0
    for features in ((), (1, 3)):
        sessions = [model.session(64, features) for model in (module, fast)]
        fast.expect(features, 16, Expected(20, 200))
        for count in (20, 1, 5, 9, 13, 17, 3, 40, 1, 130, 1, 9):
            found = [one.feed(tokens(count, count), range(-1, count - 1)) for one in sessions]
            for expected, other in zip(*found, strict=True):
                if expected is not None:
                    torch.testing.assert_close(other, expected, atol=5e-5, rtol=1e-4)
            for one in sessions:
                one.commit(range(count))
            most = max(most, small.used)
            assert small.used <= small.most
    assert most > 0 and len(small) >= 2


def assert_same_texts(models, features) -> None:
    """Assert that both read a prompt and a chain with these features and give the same numbers."""
    found = []
    for model in models:
        session = model.session(64, features)
        session.prefill(tokens(20, 1))
        found.append(session.feed(tokens(30, 2), range(-1, 29)))
    for expected, other in zip(*found, strict=True):
        if expected is not None:
            torch.testing.assert_close(other, expected, atol=5e-5, rtol=1e-4)


def test_a_model_without_a_budget_has_one_graph(monkeypatch):
    """Its features, too, come from that graph."""
    monkeypatch.setattr(room, "graph_memory", lambda: Budget(0))
    module, fast = both(tiny_hf_model("llama"))
    fast.expect((0, 2), 8, Expected(20, 200))
    fast.expect_chains()
    fast.prepare_exits([1, 2])
    assert fast.stretches.way(Layers(stop=1)) is None
    assert_same_texts((module, fast), (0, 2))
    assert len(fast.passes.graphs_with((0, 2)).graphs.fixed._budget) == 0


def test_one_graph_returns_all_features_that_were_wanted():
    """So the weights are not held once for each set of features."""
    wanted = ((1,), (2, 0), ())
    module, fast = both(tiny_hf_model("llama"))
    for features in wanted:
        assert_same_texts((module, fast), features)
    assert len({id(fast.passes.graphs_with(each).graphs.general) for each in wanted}) == 1


def test_graphs_on_half_of_the_threads_are_in_the_budget(monkeypatch):
    """Where there is no room, a pass takes all threads."""
    monkeypatch.setattr("engine.fast.cpu.calls.threads", lambda: 2)
    monkeypatch.setattr("engine.fast.cpu.calls.PACE", Pace())  # has seen no slow passes
    for most, count in ((10**9, 1), (0, 0)):
        held = Budget(most)
        monkeypatch.setattr(room, "graph_memory", lambda held=held: held)
        model = CompiledModel(tiny_hf_model("llama"), None, "tiny")
        before = len(held)
        with halved():
            model.session(64).feed(tokens(30, 1), range(-1, 29))
        assert len(held) - before == count


def test_joined_weights_are_the_module_s_own(tmp_path, monkeypatch):
    """The graph's joined matrices are no second copy, and the module gives the same numbers as before."""
    monkeypatch.setenv("DRAFTSCOPE_CACHE", str(tmp_path))  # nothing was compiled before
    module = tiny_hf_model("llama")
    expected = module(torch.tensor([[3, 8, 5]])).logits
    model = language_model(module, None, "tiny")
    assert isinstance(model, CompiledModel)
    attention = model.model.model.layers[0].self_attn
    query, key = (each.weight.untyped_storage() for each in (attention.q_proj, attention.k_proj))
    assert query.data_ptr() == key.data_ptr()
    module.set_attn_implementation("sdpa")
    torch.testing.assert_close(module(torch.tensor([[3, 8, 5]])).logits, expected)


def test_a_large_model_has_no_second_copy_of_its_graph(monkeypatch):
    """Neither for half of the threads nor for its head and its exits; these and features have the module's numbers."""
    monkeypatch.setattr("engine.fast.cpu.fixed.MOST_PARAMETERS", 1000)
    held = Budget(10**9)
    monkeypatch.setattr(room, "graph_memory", lambda: held)
    module, fast = both(tiny_hf_model("llama"))
    found = []
    for model in (module, fast):
        model.prepare_exits([1, 2])
        session = model.session(64, (0, 3))
        session.prefill(tokens(9, 1))
        with halved():
            states = session.through([5], Layers(stop=2), [-1])
        session.drop()
        logits, features = session.feed(tokens(5, 2), range(-1, 4))
        found.append((logits, features, states, model.head(model.norm(states))))
    for expected, other in zip(*found, strict=True):
        torch.testing.assert_close(other, expected, atol=5e-5, rtol=1e-4)
    assert len(held) == 0


def test_a_bench_has_room_for_all_graphs_and_others_have_the_budget_again():
    held = Budget(100)
    with held.unbounded():
        assert held.put((1, "a"), Graph("a")) and held.put((1, "b"), Graph("b"))
        assert not held.lacks((1, "c"), 10**9, ahead=True)
    assert held.lacks((1, "c"), 100, ahead=False) and held.most == 100
