"""Hidden transfer: the maps' file, pseudo states that are the same in training and in a run, and their draft."""

import pytest
import torch

from engine.core.sampling import Sampling
from engine.core.seen import Draft
from engine.core.tree import ROOT, DraftTree
from engine.errors import UserError
from engine.methods.hidden_transfer.part import KIND, TransferMaps
from engine.parts.files import write_part
from engine.parts.loading import Models
from tests.drafters.writing import steps_of, text_of
from tests.engine.tiny import tiny_hf_model, tiny_model
from tests.training.lessons import learn, lesson, student_of

TOKENS = torch.tensor([[5, 9, 2, 40, 7, 7, 12, 30], [1, 8, 8, 3, 60, 2, 2, 9]])
PROMPT = TOKENS[0].tolist()


def noisy_maps(layers):
    """Maps close to the identity, each with its own noise."""
    torch.manual_seed(1)
    made = TransferMaps(layers, 32)
    for each in made.maps:
        each.weight.data.copy_(torch.eye(32) + 0.3 * torch.randn(32, 32))
    return made.requires_grad_(False)


@pytest.mark.parametrize("architecture", ["llama", "gpt2"])
def test_pseudo_states_are_trained_as_they_are_read_in_a_run(architecture):
    """Two pseudo states join at layer 1 and one at layer 2, after the root and after a node of the same pass."""
    module = tiny_hf_model(architecture).requires_grad_(False)
    part, target = noisy_maps([1, 1, 2]), tiny_model(architecture)
    asked = [3, 4]
    found = student_of("hidden_transfer", module).logits(part, TOKENS, asked)
    for window, text in enumerate(TOKENS.tolist()):
        session, tree = target.session(32), DraftTree()
        node = tree.draw(ROOT, text[4])
        tree.draw(ROOT, 50)
        session.prefill(text[:3])
        probes = part.probes([ROOT, node], len(tree))
        seen = session.look(Draft(text[3], tree, 4, probes))
        for index in range(len(asked)):
            rows = seen.probes[list(part.rows_behind(index, len(asked)))]
            torch.testing.assert_close(found[window, index], rows, rtol=1e-3, atol=1e-3)


def test_they_learn_and_what_would_be_kept_is_counted():
    module = tiny_hf_model("llama").requires_grad_(False)
    student = student_of("hidden_transfer", module, places=2, asked=6)
    part = student.start().requires_grad_(True)
    assert part.layers == (1, 1), "the middle of three layers"
    tokens = torch.randint(61, (8, 20), generator=torch.Generator().manual_seed(2))
    losses = learn(lambda index: student.loss(part, lesson(student, tokens, index)), part, 30)
    assert sum(losses[-8:]) < 0.9 * sum(losses[:8])
    part.requires_grad_(False)
    said = student.logits(part, TOKENS, [2])[0, 0].argmax(-1)
    given = TOKENS[:1].clone()
    given[0, 4:6] = said  # predicted after token 2, beyond the token that its own law gives
    kept = student.accepted(part, lesson(student, given))
    assert kept[0, 3] == 2 and kept.shape == given.shape and kept[0, 0] == 0


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_the_text_of_plain_decoding(temperature):
    """The places join at different layers, and the stack in the trace shows where."""
    models = Models(tiny_model("llama"), {"hidden_transfer": noisy_maps([1, 2])})
    plain, steps = (
        steps_of(models, key, PROMPT, 24, Sampling(temperature, seed=4), "sampler_match")
        for key in ("none", "hidden_transfer")
    )
    assert text_of(steps) == text_of(plain)
    assert sum(len(step.tree) for step in steps) > 3
    said, stack = steps[2].tree.exhibits
    assert [layer.state for layer in stack.layers] == ["adapter", "adapter", "run"]
    assert "place 2" in stack.layers[1].label and "pseudo states stand" in said.note.lower()


@pytest.mark.parametrize(
    "layers, config, told",
    [
        ([1], [3], "the target's 3 layers|target's 3 below"),
        ([1], [0], "only layers with one"),
        ([2, 1], [2, 1], "fall"),
        ([1], "1", "no list of whole numbers"),
        ([1], [True], "no list of whole numbers"),
        ([1], [], "0 places"),
    ],
)
def test_a_wrong_one_is_refused_in_one_sentence(tmp_path, layers, config, told):
    tensors = TransferMaps(layers, 32).state_dict()
    write_part(tmp_path, tensors, {"transfer_layers": config})
    with pytest.raises(UserError, match=told) as found:
        KIND.load(str(tmp_path), tiny_model("llama"), None, "cpu")
    assert "\n" not in str(found.value) and str(found.value).endswith(".")


def test_a_target_without_a_middle_is_refused_by_the_recipe():
    module = tiny_hf_model("llama")
    with pytest.raises(UserError, match="does not fit") as found:
        student_of("hidden_transfer", module, places=3, apart=1).start()
    assert str(found.value).endswith(".")
