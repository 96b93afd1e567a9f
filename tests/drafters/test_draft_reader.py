"""The draft model's side of a text: whose tokens q is over, and the rows that are read once only."""

import pytest
import torch

from engine.core.sampling import Sampling
from engine.core.tree import ROOT
from engine.methods.shared.draft_model import DraftReader
from engine.model.language_model import LanguageModel
from tests.engine.tiny import VOCABULARY, tiny_hf_model

PROMPT = [5, 3, 8, 1, 9, 2]


@pytest.fixture(scope="module")
def draft() -> LanguageModel:
    return LanguageModel(tiny_hf_model("llama"), None, "draft")


@torch.no_grad()
def logits_after(tokens: list[int]) -> torch.Tensor:
    """logits [V] of the draft's weights, by transformers alone."""
    return tiny_hf_model("llama")(torch.tensor([tokens])).logits[0, -1]


@pytest.mark.parametrize("vocabulary", [VOCABULARY - 2, VOCABULARY, VOCABULARY + 3])
def test_q_is_over_the_targets_tokens(draft, vocabulary):
    """A token that the draft model lacks has probability 0, and one that the target lacks takes none of the rest."""
    q = DraftReader(draft, vocabulary, Sampling(temperature=1.0)).read(PROMPT)
    common = min(vocabulary, VOCABULARY)
    expected = torch.zeros(vocabulary)
    expected[:common] = logits_after(PROMPT)[:common].softmax(-1)
    assert q.shape == (vocabulary,) and torch.allclose(q, expected, atol=1e-5)


def test_accepted_rows_are_not_read_again(draft, monkeypatch):
    reader = DraftReader(draft, VOCABULARY, Sampling())
    session, fresh = type(reader._session), []
    extend = session.extend
    monkeypatch.setattr(
        session, "extend", lambda self, tokens: fresh.append(len(tokens)) or extend(self, tokens)
    )
    reader.read(PROMPT)
    for node, token in enumerate([7, 4, 6]):
        reader.expand([node], [token], [node - 1 if node else ROOT])
    reader.keep([0, 1, 2])
    q = reader.read([*PROMPT, 7, 4, 6, 3])
    assert fresh == [len(PROMPT), 1], "only the token that the target added is new"
    assert int(q.argmax()) == int(logits_after([*PROMPT, 7, 4, 6, 3]).argmax())
