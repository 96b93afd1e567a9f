"""Rows that a draft model reads before they are asked for: the same drafts, in fewer calls."""

import copy

import pytest
import torch

from engine.core.sampling import Sampling
from engine.core.tree import ROOT
from engine.fast.cpu import ahead
from engine.fast.cpu.columns import FIRST
from engine.fast.cpu.compiled_model import CompiledModel
from engine.methods.shared.draft_model import DraftReader
from engine.methods.shared.read_ahead import ReadAhead, RowsAhead
from engine.model.language_model import LanguageModel
from tests.engine.tiny import VOCABULARY, tiny_hf_model
from tests.many_graphs import many_graphs  # noqa: F401 - a fixture of every test

GREEDY = Sampling(temperature=0.0)
FEATURES = (0, 1, 2)  # the same ones everywhere: others take other graphs
PROMPT = [5, 3, 8, 1, 9]  # as many rows as a graph of the passes below has


@pytest.fixture(scope="module")
def pair():
    """Return the same weights, through the module and compiled."""
    module = tiny_hf_model("llama", num_hidden_layers=2)  # a call of seven rows is fourteen layers
    plain = LanguageModel(copy.deepcopy(module), None, "plain")
    compiled = CompiledModel(module, None, "compiled")
    compiled.expect_chains()
    assert compiled.ahead.blocks == ahead.BLOCKS
    return plain, compiled


def close(one, other) -> bool:
    return torch.allclose(one, other, atol=1e-4)


@pytest.mark.parametrize("count", ahead.BLOCKS)
@pytest.mark.parametrize("fresh", [1, 2, 3])
def test_a_call_gives_the_logits_of_as_many_passes(pair, count, fresh):
    """After one and two tokens, for which there is a graph, and three, for which there is none; twice in a row, so that
    the second call reads the columns that the first one wrote."""
    sessions = [model.session(32) for model in pair]
    for session in sessions:
        session.prefill(PROMPT)
    for turn in range(2):
        tokens = [7, 4, 6][:fresh]
        expected, found = (session.read_ahead(tokens, count).logits for session in sessions)
        assert found.shape == (count, VOCABULARY) and close(expected, found)
        for session in sessions:
            assert session.rows == count - 1
            session.commit(range(min(turn + 1, count - 1)))
    one, other = (session.feed([1, 2, 3], [-1, 0, -1])[0] for session in sessions)
    assert close(one, other)


def test_the_rows_ahead_can_have_other_children(pair):
    """A tree may branch off below rows that were read ahead."""
    sessions = [model.session(32) for model in pair]
    for session in sessions:
        session.prefill(PROMPT)
        session.read_ahead([7], 4)
    one, other = (session.feed([1, 2], [0, 1])[0] for session in sessions)
    assert close(one, other)


def test_features_come_with_the_logits(pair):
    sessions = [model.session(32, FEATURES) for model in pair]
    for session in sessions:
        session.prefill(PROMPT)
    for given, more in ((([7, 4], 4), {}), (([3], 2), {"text": False})):
        one, other = (session.read_ahead(*given, **more) for session in sessions)
        assert one.tokens == other.tokens and one.tokens == one.logits.argmax(-1).tolist()
        assert close(one.logits, other.logits) and close(one.features, other.features)


def test_a_reader_has_the_states_of_the_rows_that_it_took(pair):
    readers = [DraftReader(model, VOCABULARY, GREEDY, features=FEATURES) for model in pair]
    found = []
    for reader in readers:
        q, states = reader.read(PROMPT, 4), []
        for node in range(4):
            q = reader.expand([node], [int(q.argmax())], [node - 1 if node else ROOT])[0]
            states.append(reader.states)
        found.append(torch.cat(states))
    assert close(*found)


def test_a_text_may_outgrow_its_buffers(pair):
    plain, compiled = (model.session(8) for model in pair)
    for session in (plain, compiled):
        session.prefill(PROMPT * 25)
    for _ in range(5):
        assert close(plain.read_ahead([7, 4], 2).logits, compiled.read_ahead([7, 4], 2).logits)
        plain.commit(range(1))
        compiled.commit(range(1))
    assert compiled.length > FIRST >= len(PROMPT * 25)


def chain_of(reader: DraftReader, context: list[int], length: int, expected: int) -> list:
    """Return q after the text, and after each token of a chain of likeliest tokens."""
    q, parent = reader.read(context, expected), ROOT
    laws = [q]
    for node in range(length - 1):
        q = reader.expand([node], [int(q.argmax())], [parent])[0]
        laws.append(q)
        parent = node
    reader.keep(list(range(length - 2)))
    return laws


def test_drafts_are_the_same_in_fewer_calls(pair, monkeypatch):
    plain = DraftReader(pair[0], VOCABULARY, GREEDY)
    reader = DraftReader(pair[1], VOCABULARY, GREEDY)
    calls, session = [], type(reader._session)
    feed = session.feed
    monkeypatch.setattr(session, "feed", lambda *given: calls.append(1) or feed(*given))
    context = list(PROMPT)
    for length in (4, 4, 2, 5, 7, 7, 1):
        expected = chain_of(plain, context, length, 1)
        found = chain_of(reader, context, length, 7)
        assert all(close(one, other) for one, other in zip(expected, found, strict=True))
        tokens = [int(q.argmax()) for q in expected]
        context += [*tokens[: max(0, length - 2)], 3]
    assert len(calls) < 23 - 7  # the laws above, less one for each text
    assert reader.passes >= plain.passes  # rows that nobody asked for count too


def test_a_drafter_with_another_idea_reads_for_itself(pair):
    """Another token than the likeliest, or another parent, is read in a pass of its own."""
    readers = [DraftReader(model, VOCABULARY, GREEDY) for model in pair]
    for reader in readers:
        q = reader.read(PROMPT, 4)
        second = int(q.topk(2).indices[1])
        reader.expand([0], [second], [ROOT])
    one, other = (reader.expand([1], [int(q.argmax())], [ROOT]) for reader in readers)
    assert close(one, other)


def test_a_cut_head_or_another_vocabulary_is_not_read_ahead(pair):
    assert DraftReader(pair[1], VOCABULARY, GREEDY)._ahead is not None
    assert DraftReader(pair[1], VOCABULARY - 1, GREEDY)._ahead is None
    tokens = torch.arange(VOCABULARY)
    assert DraftReader(pair[1], VOCABULARY, GREEDY, head_tokens=tokens)._ahead is None


def test_large_models_and_windows_have_no_such_graphs(monkeypatch):
    monkeypatch.setattr("engine.fast.cpu.fixed.MOST_PARAMETERS", 10)
    assert CompiledModel(tiny_hf_model("llama"), None, "large").ahead.blocks == ()
    monkeypatch.undo()
    assert CompiledModel(tiny_hf_model("mistral"), None, "windows").ahead.blocks == ()


def test_a_graph_with_other_numbers_is_not_used(monkeypatch):
    model = CompiledModel(tiny_hf_model("llama"), None, "planted")
    monkeypatch.setattr(ahead, "close", lambda *pair: False)
    session, plain = model.session(32), LanguageModel(model.model, None, "plain").session(32)
    assert close(session.read_ahead([3], 2).logits, plain.read_ahead([3], 2).logits)
    assert model.ahead.graph(2, FIRST) is None


POLICY = [  # reads of the last chains, wanted now, room, rows read before, rows
    ((), 7, 99, 0, 7),  # nothing is known yet
    ((), 5, 99, 0, 4),
    ((1, 1, 1), 7, 99, 0, 1),  # chains stop at once
    ((2, 2, 1, 2), 7, 99, 0, 2),
    ((7, 7, 7, 6), 7, 99, 0, 7),
    ((7, 7, 7, 6), 3, 99, 0, 2),  # the text ends soon
    ((), 6, 99, 0, 7),  # one row in vain costs less than two calls
    ((), 1, 99, 0, 1),
    ((4, 4, 4), 7, 99, 0, 4),
    ((), 7, 6, 0, 4),  # no row lies beyond the context
    ((), 7, 1, 0, 1),
    ((), 5, 99, 7, 4),  # a longer chain goes on as the last ones did
    ((11, 12, 11), 5, 99, 7, 4),
    ((9, 9, 9), 5, 99, 7, 2),
    ((7, 7, 7), 5, 99, 7, 1),
    ((2, 2, 12), 5, 99, 7, 4),
]


def test_the_number_of_rows_follows_the_last_chains():
    for wanted, most, room, before, rows in POLICY:
        policy = ReadAhead((2, 4, 7))
        for reads in wanted:
            policy.saw(reads)
        assert policy.rows(most, room, before) == rows, (wanted, most, room, before)
    assert ReadAhead(()).rows(9, 99) == 1, "there are no blocks"


def test_a_chain_goes_on_in_further_calls(pair):
    """Eleven rows take two calls; the trees below them are those of plain passes."""
    sessions = [model.session(32) for model in pair]
    for session in sessions:
        session.prefill(PROMPT)
    found = [session.read_ahead([7], 7).logits for session in sessions]
    assert close(*found)
    token = int(found[0][-1].argmax())
    assert close(*(session.read_ahead([token], 4, text=False).logits for session in sessions))
    assert [session.rows for session in sessions] == [10, 10]
    assert close(*(session.feed([1, 2], [9, 3])[0] for session in sessions))


def test_no_call_goes_on_below_a_tree(pair):
    """Rows that were read for other branches are no part of the chain, so a further row is read alone."""
    rows = RowsAhead(pair[1].session(32), lambda logits: logits)
    logits = rows.begin(PROMPT, 4)
    for row in range(3):
        taken, found = rows.take(int(logits.argmax()), row - 1, True)
        logits = found.q
        assert taken == row and rows.read == 0
    rows._expected = 11
    rows._session.feed([2], [-1])
    assert rows.take(int(logits.argmax()), 2, True) is None and rows.read == 0


def test_a_chain_that_goes_on_is_counted(pair):
    rows = RowsAhead(pair[1].session(32), lambda logits: logits)
    logits, read = rows.begin(PROMPT, 11), rows.read
    for row in range(10):
        taken, found = rows.take(int(logits.argmax()), row - 1, True)
        logits = found.q
        read += rows.read
        assert taken == row
    assert read == 11


def test_a_chain_ends_with_the_context(pair):
    """Rows are read ahead only while they fit."""
    model = pair[1]
    text = [1 + place % 7 for place in range(model.max_context - 3)]
    rows = RowsAhead(model.session(64), lambda logits: logits)
    rows.begin(text, 7)
    assert rows.read == 4 and rows._session.length + rows._session.rows == model.max_context
