"""A target with a recurrent state: trees are read in one pass, and the state is that after the kept path."""

import pytest
import torch

from engine.errors import UserError
from engine.methods.shared.private_draft import own_weights, use_plain_attention
from engine.model.hybrid import HybridModel
from engine.model.layers import EVERY
from engine.model.states import mixers_of
from engine.model.structure import structure_of
from engine.parts.loading import Models
from engine.parts.opening import language_model
from tests.drafters.writing import begun
from tests.engine.test_constraint import Cycle
from tests.engine.tiny import generated
from tests.sweep.comparing import random_module
from tests.sweep.tiny_configs import config_of

PREFIX = [5, 9, 23, 40, 7, 9, 23]
TOKENS = [31, 12, 9, 60, 44, 3, 17, 80, 25]
PARENTS = [-1, 0, 0, 1, 1, 3, 2, 5, 6]
PATHS = [[0, 1, 3, 5, 7], [0, 1, 4], [0, 2, 6, 8]]
EXACT = {"atol": 1e-5, "rtol": 0}


@pytest.fixture(scope="module")
def model() -> HybridModel:
    """Two layers with a state, and attention between and after them."""
    config = config_of("granitemoehybrid")
    return language_model(random_module(config), None, "tiny hybrid")


@pytest.fixture(scope="module")
def draft() -> HybridModel:
    """It keeps a state, too."""
    return language_model(random_module(config_of("bamba"), seed=4), None, "draft")


@pytest.fixture(scope="module")
def expected() -> list[int]:
    """Return the text of ``generate`` of an untouched copy."""
    module = random_module(config_of("granitemoehybrid"))
    return generated(module, PREFIX, 20, eos_token_id=-1)


@pytest.fixture
def session(model):
    started = model.session(16)
    started.prefill(PREFIX)
    return started


def alone(model, tokens):
    """Return the logits after each of these tokens, which are read one by one after the prefix."""
    session = model.session(16)
    session.prefill(PREFIX)
    found = []
    for token in tokens:
        found.append(session.feed([token], [-1])[0])
        session.commit([0])
    return torch.cat(found)


def test_a_tree_is_read_as_each_of_its_paths(model, session):
    """The tree is read in two passes, as draft models do; rows of the second descend from rows of the first."""
    first, _ = session.feed(TOKENS[:4], PARENTS[:4])
    second, _ = session.feed(TOKENS[4:], PARENTS[4:])
    logits = torch.cat([first, second])
    for path in PATHS:
        expected = alone(model, [TOKENS[row] for row in path])
        torch.testing.assert_close(logits[path], expected, **EXACT)


@pytest.mark.parametrize("path", [*PATHS, [0], []])
def test_the_text_goes_on_behind_the_kept_path(model, session, path):
    session.feed(TOKENS, PARENTS)
    session.commit(path)
    logits, _ = session.feed([2, 4], [-1, 0])
    expected = alone(model, [*(TOKENS[row] for row in path), 2, 4])[-2:]
    torch.testing.assert_close(logits, expected, **EXACT)


def test_a_long_prompt_is_read_in_parts(model):
    prompt = torch.arange(300).mul(31).remainder(97).tolist()
    whole, parts = model.session(16), model.session(16)
    parts.prefill_rows = 64
    for session in (whole, parts):
        session.prefill(prompt)
    found = [session.feed([3], [-1])[0] for session in (whole, parts)]
    torch.testing.assert_close(*found, **EXACT)


def test_what_was_read_is_taken_back_and_taken_over(model, session):
    other = model.session(16)
    session.extend([31, 12])
    other.take_over(session, len(PREFIX) + 1)
    session.rewind(len(PREFIX) + 1)
    expected = alone(model, [31, 9])[-1:]
    for one in (session, other):
        torch.testing.assert_close(one.feed([9], [-1])[0], expected, **EXACT)


def test_transitions_multiply_up_along_a_path(model, session):
    """What is left of the state falls with every token, by a share that does not depend on the rows beside it."""
    session.feed(TOKENS, PARENTS)
    session.commit(PATHS[0])
    left = session.transitions
    assert left.shape == (len(TOKENS), len(model.mixers))
    for row, parent in enumerate(PARENTS):
        assert ((0 < left[row]) & (left[row] < (1 if parent < 0 else left[parent]))).all()


@pytest.mark.parametrize("key", ["stree", "dyspec", "chain", "reflective"])
def test_the_text_is_the_modules_own(model, draft, expected, key):
    found, states = written(model, draft, key)
    assert found == expected
    if key == "stree":
        assert all(len(rows) > 2 for rows in states)


def steps_of(model, draft, key, constraint=None):
    return begun(Models(model, {"draft": draft}), key, PREFIX, 20, constraint=constraint)


def written(model, draft, key):
    tokens, states = [], []
    for step in steps_of(model, draft, key):
        tokens += step.output
        states += tables_of(step)
    return tokens, states


def tables_of(step):
    """Return the rows of the step's table on the remaining share of the state; [] if it has no such table."""
    return [one.rows for one in step.tree.exhibits if one.title.startswith("Share of")]


class Often(Cycle):
    EVERY = 1


def test_behind_forced_tokens_the_table_tells_of_the_rows_below_them(model, draft):
    """Each row of the table is compared with a plain chain: the root, the forced tokens, the path to the node."""
    text, seen = list(PREFIX), 0
    for step in steps_of(model, draft, "stree", Often()):
        tree = step.tree
        forced = [node for node, source in enumerate(tree.sources) if source == "forced"]
        own = [node for node in range(len(tree)) if node not in forced]
        if forced and own:
            seen += 1
            (rows,) = tables_of(step)
            paths = [forced, *(tree.path(node) for node in own)]
            assert [row[1].id for row in rows] == [tree.tokens[path[-1]] for path in paths]
            assert [row[0] for row in rows] == ["root", *(len(p) - len(forced) for p in paths[1:])]
            for row, path in zip(rows, paths, strict=True):
                left = left_after(model, text, [tree.tokens[node] for node in path])
                assert row[2:] == pytest.approx(left, rel=1e-4)
        text += step.output
    assert seen, "nothing was drafted behind forced tokens; the test would see nothing"


def left_after(model, text, path):
    """Return the share of the state before the root (text[-1]) that remains after the root and this path."""
    session = model.session(16)
    session.prefill(text[:-1])
    chain = [text[-1], *path]
    session.feed(chain, range(-1, len(path)))
    session.commit(range(len(chain)))
    return session.transitions[-1].tolist()


def test_a_copy_reads_with_its_own_states(model):
    """A draft that learns is such a copy."""
    view = structure_of(model.model)
    use_plain_attention(view)
    expected, _ = model.session(16).feed(PREFIX, range(-1, len(PREFIX) - 1))
    given = torch.tensor([PREFIX])
    torch.testing.assert_close(view(given).logits[0], expected, **EXACT)
    own_weights(view, 1 << 30)
    with torch.no_grad():
        for mixer in mixers_of(view).values():
            mixer.in_proj.weight.zero_()
    assert not torch.allclose(view(given).logits[0], expected, atol=1e-3)


def test_own_layers_are_refused(session):
    with pytest.raises(UserError, match="own layers"):
        session.through([1], EVERY, [-1])
