"""Published block drafters with heads open from one folder and draft what the formulas of their layout say; what cannot be
read is refused by name."""

import pytest
import torch

from engine.core.sampling import Sampling
from engine.errors import UserError
from engine.parts.kinds import kind_of
from engine.parts.loading import Models
from engine.proof.tiny_parts import tiny_module, tiny_target
from tests.drafters.writing import steps_of
from tests.engine.block_layouts import (
    AUX,
    LAYER,
    RANK,
    V,
    authors,
    block_states,
    speculators,
    tensors,
    written,
)
from tests.engine.eagle_cells import checkpoint

PROMPT = [3, 5, 7, 3, 5]
HEADS = {"dspark": "spark_heads", "lattice": "candidate_selector"}


@pytest.fixture(scope="module")
def target():
    return tiny_target(V)


def opened(target, path, key):
    """The block drafter and the heads, from the same folder."""
    roles = {"diffusion": "denoiser", key: HEADS[key]}
    parts = {role: kind_of(kind).load(path, target, None, "cpu") for role, kind in roles.items()}
    return Models(target, parts, dict.fromkeys(roles, path))


def first_block(target, w, anchored):
    """Return states and logits at the places of the first block, by the formulas. Its root is the last token of the
    prompt."""
    plain = tiny_module(V, 2, None, 2)
    plain.load_state_dict(target.model.state_dict())
    with torch.no_grad():
        states = plain(torch.tensor([PROMPT]), output_hidden_states=True).hidden_states
        features = torch.cat([states[aux][0, :-1] for aux in AUX], -1)
        rows = plain.get_input_embeddings()(torch.tensor([PROMPT[-1], 0, 0, 0]))
        hidden = block_states(w, features, rows)[0 if anchored else 1 :]
        return hidden, hidden @ plain.lm_head.weight.T


@pytest.mark.parametrize(
    ("config", "anchored"),
    [
        (speculators("dspark", markov_rank=RANK), True),
        (speculators("dspark", markov_rank=RANK, sample_from_anchor=False), False),
        (authors(), True),
    ],
)
def test_dspark_drafts_as_its_layout_says(target, tmp_path, config, anchored):
    w = tensors("dspark")
    models = opened(target, written(tmp_path / "d", config, "dspark"), "dspark")
    hidden, logits = first_block(target, w, anchored)
    w1, w2 = w["markov_head.markov_w1.weight"], w["markov_head.markov_w2.weight"]
    tokens, chances = [PROMPT[-1]], []
    for state, row in zip(hidden, logits, strict=True):
        before = w1[tokens[-1]]
        odds = w["confidence_head.proj.weight"][0] @ torch.cat([state, before])
        chances.append(float((odds + w["confidence_head.proj.bias"][0]).sigmoid()))
        tokens.append(int((row + w2 @ before).argmax()))
    assert len(tokens) == (5 if anchored else 4)
    step = steps_of(models, "dspark", PROMPT, 12, adaptive=False, length=7)[0]
    assert step.tree.tokens == tokens[1:]
    assert len({int(row.argmax()) for row in logits} ^ set(tokens[1:])) > 0, "the head matters"
    step = steps_of(models, "dspark", PROMPT, 12, row_cost=0.001, length=7)[0]
    rows = step.tree.exhibits[1].to_dict(str)["rows"]
    assert [row[2] for row in rows] == pytest.approx(chances, abs=1e-3)


def test_dflash2_selects_as_its_layout_says(target, tmp_path):
    w = tensors("dflash2")
    path = written(tmp_path / "d", speculators("dflash2", selector_rank=RANK), "dflash2")
    hidden, logits = first_block(target, w, False)
    before, after = (
        w[f"candidate_selector.{one}_codebook"] for one in ("predecessor", "successor")
    )
    projection, token, expected = w["candidate_selector.hidden_projection.weight"], PROMPT[-1], []
    for state, row in zip(hidden, logits, strict=True):
        alone, candidates = row.topk(5)
        scores = alone + after[candidates] @ (before[token] * (projection @ state))
        token = int(candidates[scores.argmax()])
        expected.append((token, dict(zip(candidates.tolist(), scores.softmax(-1).tolist()))))
    models = opened(target, path, "lattice")
    step = steps_of(models, "lattice", PROMPT, 12, length=3, candidates=5)[0]
    assert step.tree.tokens == [token for token, _ in expected]
    assert step.tree.tokens != logits.argmax(-1).tolist(), "the selector matters"
    step = steps_of(models, "lattice", PROMPT, 12, Sampling(1.0, seed=2), length=1, candidates=5)[0]
    law, q = step.tree.laws[0], expected[0][1]
    assert {int(one) for one in law.nonzero()} == q.keys()
    assert law[list(q)].tolist() == pytest.approx(list(q.values()), abs=1e-5)


def test_a_head_of_fewer_tokens_is_read_by_its_table(target, tmp_path):
    """d2t holds offsets, and the rows of lm_head are the drafter's own."""
    known, w = torch.tensor([1, 4, 5, 8]), tensors("dspark")
    w |= {"d2t": known - torch.arange(4), "lm_head.weight": torch.randn(4, LAYER["hidden_size"])}
    w["markov_head.markov_w2.weight"] = w["markov_head.markov_w2.weight"][:4]
    config = speculators("dspark", draft_vocab_size=4)
    models = opened(target, str(checkpoint(tmp_path / "d", config, w)), "dspark")
    hidden, _ = first_block(target, w, True)
    token, expected = PROMPT[-1], []
    for state in hidden:
        bias = w["markov_head.markov_w2.weight"] @ w["markov_head.markov_w1.weight"][token]
        token = int(known[(w["lm_head.weight"] @ state + bias).argmax()])
        expected.append(token)
    step = steps_of(models, "dspark", PROMPT, 12, adaptive=False, length=7)[0]
    assert step.tree.tokens == expected


def other(kind="dspark", **changes):
    return {**speculators(kind), **changes}


def without(key):
    return {name: value for name, value in speculators("dspark").items() if name != key}


REFUSED = {
    "sample_from_anchor: the entry is missing": without("sample_from_anchor"),
    "mask_token_id: it does not say": other(mask_token_id=None),
    "aux layer ids: it does not say": without("aux_hidden_state_layer_ids"),
    "its aux layer ids or hidden size do not fit": other(aux_hidden_state_layer_ids=[1, 9]),
    "masks with the token 99": other(mask_token_id=99),
    "speculators_model_type: 'xpress'": other(speculators_model_type="xpress"),
    "layer_types: layers with a sliding window": other(
        transformer_layer_config={**LAYER, "layer_types": ["sliding_attention"] * 2}
    ),
    "transformer_layer_config is missing": without("transformer_layer_config"),
}


@pytest.mark.parametrize("words", REFUSED)
def test_a_trap_is_refused_by_name(target, tmp_path, words):
    path = written(tmp_path / "d", REFUSED[words], "dspark")
    with pytest.raises(UserError, match=words):
        opened(target, path, "dspark")


def test_heads_are_refused_by_name(target, tmp_path):
    def refused(name, words, change=None, config=None, key="dspark"):
        w = tensors("dspark" if key == "dspark" else "dflash2")
        w |= change or {}
        path = str(checkpoint(tmp_path / name, config or speculators("dspark"), w))
        with pytest.raises(UserError, match=words):
            models = opened(target, path, key)
            steps_of(models, key, PROMPT, 3)

    gated = other(markov_head_type="gated")
    refused("gated", "markov_head_type: only vanilla", config=gated)
    wide = {"confidence_head.proj.weight": torch.zeros(1, 40)}
    refused("confidence", "confidence_head: it reads 40 numbers", wide)
    refused(
        "rank",
        "markov_w2.weight has the shape",
        {"markov_head.markov_w2.weight": torch.zeros(V, 9)},
    )
    wide = {"candidate_selector.hidden_projection.weight": torch.zeros(RANK, 40)}
    refused("width", "reads states of 40 numbers", wide, speculators("dflash2"), "lattice")
    convolved = {"layers.0.mlp_conv.base_kernel": torch.zeros(2, 2, 16)}
    refused("conv", "convolutions: ", convolved, speculators("dflash2"), "lattice")
