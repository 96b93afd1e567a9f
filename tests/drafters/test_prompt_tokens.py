"""Prompt tokens: their file, what the target predicts at them, and the two drafters that use them, `ppd` and `lud`."""

import json

import pytest
import torch
from safetensors.torch import save_file

from engine.core.tree import ROOT, DraftTree
from engine.errors import UserError
from engine.methods.shared.prompt_tokens_part import KIND, PromptTokens
from engine.parts.loading import Models
from tests.drafters.writing import begun, built, steps_of, text_of, usual
from tests.engine.tiny import tiny_model

PROMPT = [5, 9, 2, 40, 7, 7, 12, 5, 9, 2]


@pytest.fixture(scope="module")
def target():
    return tiny_model("llama")


def standing_for(target, *members):
    """Return prompt tokens that hold the embeddings of these tokens, one list of tokens per member."""
    made = PromptTokens(len(members[0]), len(members), target.hidden_size)
    ids = torch.tensor(members).T  # [K, E]
    made.embeddings.data.copy_(target.embed(ids))
    return made.requires_grad_(False)


def run(key, target, part, rule, sampling=None, count=24, **options):
    models = Models(target, {} if part is None else {"ppd": part})
    steps = steps_of(models, usual(key, models, **options), PROMPT, count, sampling, rule)
    return text_of(steps), steps


def logits_after(target, text):
    return target.session(len(text)).extend(text)


def test_the_target_says_at_them_what_it_would_say_after_their_tokens(target):
    """Each of two members sees its own token at the place before, and the token kept last."""
    part = standing_for(target, [3, 8], [30, 11])
    models, written = Models(target, {"ppd": part}), list(PROMPT)
    drafter = built("lud", models, sure=0.0)
    for step in begun(models, drafter, PROMPT, 12, rule="lud"):
        kept = [*written, *step.output[:-1]]
        written += step.output
        if step.stop is None:
            places = [[[3], [30]], [[3, 8], [30, 11]]]
            for law, members in zip(drafter._marginals, places, strict=True):
                said = torch.stack([logits_after(target, [*kept, *tokens]) for tokens in members])
                torch.testing.assert_close(law, said.mean(0).softmax(-1), rtol=1e-3, atol=1e-4)
    assert len(written) == len(PROMPT) + 12


def test_a_unit_ends_where_the_model_is_unsure_and_stays_unchecked(target):
    part = standing_for(target, [3, 8, 11])
    plain, _ = run("none", target, None, "greedy")
    never, steps = run("lud", target, part, "lud", sure=1.0)
    assert never == plain and not any(len(step.tree) for step in steps)
    text, steps = run("lud", target, part, "lud", sure=0.0)
    assert text != plain, "nobody checks, and these placeholders know nothing"
    assert [len(step.tree) for step in steps[:3]] == [0, 3, 3]
    for step in steps:
        assert step.verdict.status == ["accepted"] * len(step.tree)
        assert step.verdict.final_token == step.logits[len(step.tree)].argmax()
    shown = steps[1].verdict.exhibits[0]
    assert shown.rows[0][2] == pytest.approx(
        float(steps[1].logits[0].softmax(-1)[steps[1].tree.tokens[0]])
    )
    sure = sorted(q for step in steps for q in step.tree.q)
    _, steps = run("lud", target, part, "lud", sure=sure[len(sure) // 2])
    assert 0 < min(q for step in steps for q in step.tree.q) >= sure[len(sure) // 2]


def test_prompt_tokens_stand_where_the_step_is_likeliest_to_end(target):
    """Root .4, first .6 * .3, second .6 * .7 * .55, and its child .6 * .7 * .45, with nothing after it."""
    part = standing_for(target, [3])
    drafter = built("ppd", Models(target, {"ppd": part}), asked=3)
    tree = DraftTree()
    first = tree.draw(ROOT, 1, q=0.6)
    second = tree.draw(first, 2, q=0.7)
    last = tree.draw(second, 3, q=0.45)
    assert drafter._likeliest_ends(tree) == [ROOT, second, last]
    proposal = drafter._asking_behind(tree, [ROOT, last], PROMPT)
    assert list(proposal.probes.parents) == [ROOT, last]


def test_members_and_places_see_their_own_line(target):
    part = standing_for(target, [3, 8, 4], [30, 11, 9])
    drafter = built("ppd", Models(target, {"ppd": part}))
    tree = DraftTree()
    node = tree.draw(ROOT, 1)
    proposal = drafter._asking_behind(tree, [ROOT, node], PROMPT)
    assert list(proposal.probes.parents) == [-1, -1, 1, 2, 3, 4, node, node, 7, 8, 9, 10]


@pytest.mark.parametrize("key", ["ppd", "lud"])
def test_they_stand_within_the_context(key):
    """GPT-2 has no position beyond its context."""
    target = tiny_model("gpt2", n_positions=24)
    part = standing_for(target, [3, 8, 11])
    plain, _ = run("none", target, None, "greedy", count=40)
    found, steps = run(key, target, part, "greedy", count=40)
    assert found == plain and len(found) == 24 - len(PROMPT)
    assert steps[0].draft.probes is not None and steps[-1].draft.probes is None


def test_a_pass_has_few_of_their_rows(target):
    part = standing_for(target, list(range(30)))
    _, steps = run("ppd", target, part, "greedy", asked=16, budget=8)
    asked = [len(step.draft.probes) for step in steps if step.draft.probes is not None]
    assert max(asked) == 60, "behind two nodes"


def test_a_published_checkpoint_loads_and_ours_comes_back(target, tmp_path):
    rows = torch.randn(6, 32)
    published, own = tmp_path / "published", tmp_path / "own"
    published.mkdir()
    save_file({"prompt_embeddings": rows}, published / "adapter_model.safetensors")
    config = {"peft_type": "PROMPT_TUNING", "num_special_tokens": 3, "num_virtual_tokens": 6}
    config["virtual_tokens_per_special_token"] = 2
    (published / "adapter_config.json").write_text(json.dumps(config))
    found = KIND.load(str(published), target, None, "cpu")
    assert (found.places, found.members) == (3, 2)
    assert torch.equal(found.embeddings[1, 0], rows[2])
    found.save(own, {"epochs": 1})
    again = KIND.load(str(own), target, None, "cpu")
    torch.testing.assert_close(again.embeddings, found.embeddings, rtol=0.01, atol=0.01)


@pytest.mark.parametrize(
    "tensors, config, told",
    [
        ({"prompt_embeddings": torch.zeros(4, 16)}, {}, r"\[rows, 32\] is needed"),
        ({"prompt_embeddings": torch.zeros(4)}, {}, "has the shape"),
        ({"prompt_embeddings": torch.zeros(65, 32)}, {}, "65 rows, where at most 64"),
        ({"weight": torch.zeros(4, 32)}, {}, "the tensor prompt_embeddings and no other"),
        ({"prompt_embeddings": torch.zeros(4, 32)}, {"virtual_tokens_per_special_token": 3}, "do not divide"),
        ({"prompt_embeddings": torch.zeros(4, 32)}, {"virtual_tokens_per_special_token": "2"}, "do not divide"),
        ({"prompt_embeddings": torch.zeros(4, 32)}, [], "not a JSON object"),
    ],
)  # fmt: skip
def test_a_wrong_one_is_refused_in_one_sentence(target, tmp_path, tensors, config, told):
    save_file(tensors, tmp_path / "adapter_model.safetensors")
    (tmp_path / "adapter_config.json").write_text(json.dumps(config))
    with pytest.raises(UserError, match=told) as found:
        KIND.load(str(tmp_path), target, None, "cpu")
    assert "\n" not in str(found.value) and str(found.value).endswith(".")
