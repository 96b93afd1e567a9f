"""Clover: the attention decoder, trees in which each branch passes its state on, and files of other targets."""

import pytest
import torch

from engine.core.sampling import Sampling
from engine.errors import UserError
from engine.methods.clover.part import USUAL_HEADS, AttentionDecoder
from engine.methods.medusa.part import MedusaHeads
from engine.methods.shared.head_ranks import FIELD
from engine.parts.files import write_part
from engine.parts.kinds import kind_of
from tests.drafters.writing import parameters_made, steps_of, with_heads
from tests.engine.tiny import tiny_hf_model
from tests.training.lessons import student_of
from tests.verifiers.tiny import shared_models

VOCABULARY = 16


def test_the_attention_decoder_weighs_the_value_by_a_cosine_in_each_head():
    torch.manual_seed(0)
    decoder = AttentionDecoder(8, 2, 1e-6).requires_grad_(False)
    x, y = torch.randn(8), torch.randn(8)
    norm = x / (x.square().mean() + 1e-6).sqrt()
    q, k, v = decoder.q(norm), decoder.k(y), decoder.v(y)
    expected = x.clone()
    for part in (slice(0, 4), slice(4, 8)):
        expected[part] += v[part] * (q[part] @ k[part]) / (q[part].norm() * k[part].norm())
    torch.testing.assert_close(decoder(x, y), expected)


@pytest.fixture(scope="module")
def models():
    return shared_models(VOCABULARY)


def said(models, text, drafted):
    """Return logits after a text that ends with the root and the tokens drafted behind it, computed from scratch."""
    heads, model = models.part("clover"), models.target
    table = model.model.get_output_embeddings().weight
    features = model.session(64, (model.layers,)).prefill(text[:-1])
    hidden = heads.states(features[None], table[text[1:]][None])[0, -1]
    embedding = None
    for token in drafted:
        embedding = table[token]
        hidden = heads.next(hidden, embedding)
    return model.head(heads.spoken(hidden, embedding)[None])[0]


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(1.0, seed=3)], ids=["greedy", "drawn"])
def test_trees_hold_what_the_cell_says_behind_each_branch(models, sampling):
    text, deepest = [3, 5, 7], 0
    for step in steps_of(models, "clover", text, 20, sampling, budget=9):
        for parent in range(-1, len(step.tree)):
            children = [step.tree.tokens[node] for node in step.tree.children(parent)]
            if children:
                path = [step.tree.tokens[node] for node in step.tree.path(parent)]
                best = said(models, text, path).argsort(descending=True).tolist()
                assert children == best[: len(children)]
        deepest = max(deepest, step.tree.deepest)
        text = text + step.output
    assert deepest > 1


def test_behind_forced_tokens_it_goes_on_from_their_states(models):
    tree = with_heads("clover", models, budget=3).propose([3, 5, 7, 9], 8)
    assert set(tree.sources) == {"head 2"}
    best = said(models, [3, 5, 7], [9]).argsort(descending=True).tolist()
    assert tree.tokens == best[: len(tree)]


def test_heads_are_as_many_as_the_figures_or_as_usual_and_others_are_refused(models, tmp_path):
    heads, load = models.part("clover"), kind_of("clover_heads").load
    for figures, count in (({}, USUAL_HEADS), ({FIELD: [[0.5, 0.25]] * 3}, 3)):
        heads.save(tmp_path, figures)
        assert len(load(str(tmp_path), models.target, None, "cpu")) == count

    MedusaHeads.tiny(models.target).save(tmp_path / "medusa", {})
    for folder, told in (
        ("medusa", "its weights have other names"),
        ("nowhere", "no set of Clover"),
    ):
        with pytest.raises(UserError, match=told) as caught:
            load(str(tmp_path / folder), models.target, None, "cpu")
        assert "\n" not in str(caught.value)


def test_many_layers_are_refused_before_any_is_made(models, tmp_path, monkeypatch):
    heads = models.part("clover")
    tensors = {name: each for name, each in heads.state_dict().items() if "augmenting" not in name}
    write_part(
        tmp_path, tensors | {f"augmenting.layers.{n}.x": torch.zeros(1) for n in range(64)}, {}
    )
    made = parameters_made(monkeypatch)
    with pytest.raises(UserError, match="is missing"):
        kind_of("clover_heads").load(str(tmp_path), models.target, None, "cpu")
    assert {weight.device.type for weight in made} == {"meta"}


def test_a_target_with_other_layers_is_refused_before_it_trains():
    module = tiny_hf_model("gpt2")
    with pytest.raises(UserError, match="layers of the kind gpt2 are not supported") as told:
        student_of("clover", module).start()
    assert str(told.value).endswith(".") and "\n" not in str(told.value)
