"""A prompt that is read in the same pass as the first draft."""

import pytest
import torch

from engine.core.decode import decode
from engine.core.prompt import PromptReading
from engine.core.sampling import Sampling
from engine.core.seen import Draft
from engine.core.text import TextRequest
from engine.core.tree import DraftTree
from engine.model.language_model import LanguageModel
from engine.model.session import PREFILL_ROWS, Session
from engine.parts.opening import language_model
from engine.rules import verifier
from tests.engine.test_compiled import both, tokens
from tests.engine.test_decode import PROMPT, Oracle
from tests.engine.tiny import tiny_hf_model
from tests.many_graphs import many_graphs  # noqa: F401 - a fixture of every test

PARENTS = [-1, -1, 0, 2, 2, 1]
PATH = [0, 1, 3, 5]  # rows of the root, and of nodes 0, 2 and 4


@pytest.fixture
def passes(monkeypatch) -> list[int]:
    """Return a list that gets the number of rows of every pass of a session."""
    rows: list[int] = []
    read = Session._read

    def noted(session, given, *rest, **named):
        rows.append(len(given.tokens))
        return read(session, given, *rest, **named)

    monkeypatch.setattr(Session, "_read", noted)
    return rows


def draft(position: int, parents=PARENTS) -> Draft:
    tree = DraftTree()
    for parent, token in zip(parents, tokens(len(parents), 5), strict=True):
        tree.draw(parent, token)
    return Draft(7, tree, position)


def seen(session: Session, first: Draft) -> list[torch.Tensor]:
    """Return the logits of a first pass over a draft, and of a second pass after a path was committed."""
    logits = session.look(first).logits
    session.commit(PATH[: 1 + len(first.tree)])
    return [logits, session.look(draft(first.position + len(PATH))).logits]


@pytest.mark.parametrize("architecture", ["llama", "qwen2"])
@pytest.mark.parametrize("length", [1, 40])
def test_the_logits_are_those_of_two_passes(architecture, length, passes):
    """Qwen2 attends through windows that are shorter than the longest prompt."""
    module, fast = both(tiny_hf_model(architecture))
    prompt, found = tokens(length, 3), []
    for model, postpones in ((module, False), (module, True), (fast, False), (fast, True)):
        session = model.session(64)
        passes.clear()
        session.prefill(prompt, later=postpones)
        assert session.postponed == (length if model is fast and postpones else 0)
        found.append(seen(session, draft(length + 1)))
        assert passes[0] == (length + 1 + len(PARENTS) if model is fast and postpones else length)
        assert session.length == length + len(PATH) and session.rows == 1 + len(PARENTS)
    for other in found[1:]:
        for one, same in zip(found[0], other, strict=True):
            torch.testing.assert_close(one, same, atol=1e-4, rtol=1e-4)


def test_more_rows_than_one_pass_may_have_are_read_in_two(passes):
    length, nodes = PREFILL_ROWS - 3, 3
    model, found = language_model(tiny_hf_model("llama"), None, "t"), []
    for postpones in (False, True):
        session = model.session(64)
        passes.clear()
        session.prefill(tokens(length, 3), later=postpones)
        found.append(session.look(draft(length + 1, range(-1, nodes - 1))).logits)
        assert passes == [length, 1 + nodes]
    assert torch.equal(*found)


def written(model: LanguageModel, reading: PromptReading | None, uses_target=False) -> list:
    text = model.session(64)
    drafter = Oracle(PROMPT + [int(token) for token in likeliest_text(text)])
    drafter.uses_target = uses_target
    request = TextRequest(drafter, verifier("greedy"), Sampling(), PROMPT, 16)
    return list(decode(model, request, reading=reading))


def likeliest_text(session: Session) -> list[int]:
    """Return sixteen tokens by plain passes."""
    found = [int(session.extend(PROMPT).argmax())]
    while len(found) < 16:
        found.append(int(session.extend(found[-1:]).argmax()))
    return found


def test_a_text_without_a_reading_of_its_own_is_read_with_its_first_draft(passes):
    model = language_model(tiny_hf_model("llama"), None, "t")
    eager = written(model, PromptReading(PROMPT[:-1]))
    passes.clear()
    at_once = written(model, None)
    read = [rows for rows in passes if rows != 1]
    assert read[1] == len(PROMPT) + 10, "the first pass after the plain text's own"
    assert [step.output for step in at_once] == [step.output for step in eager]
    assert at_once[0].milliseconds["verify"] == 0 < at_once[0].prefill_milliseconds
    assert at_once[1].milliseconds["verify"] > 0 == at_once[1].prefill_milliseconds
    assert eager[0].milliseconds["verify"] > 0
    for one, same in zip(at_once, eager, strict=True):
        torch.testing.assert_close(one.logits, same.logits, atol=1e-4, rtol=1e-4)


def test_a_drafter_that_reads_through_the_target_finds_the_prompt_read():
    model = language_model(tiny_hf_model("llama"), None, "t")
    assert written(model, None, uses_target=True)[0].milliseconds["verify"] > 0
