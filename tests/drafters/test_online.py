"""Online speculative decoding: what is kept of a refusal, that acceptance climbs, and that no other draft changes."""

import copy

import pytest
import torch

from engine.core.memory import Memory
from engine.core.sampling import Sampling
from engine.methods.shared import private_draft
from engine.methods.shared.private_draft import (
    MOST_POINTS,
    POINT,
    History,
    Learner,
    Passage,
    PrivateDraft,
    own_weights,
    structure_of,
)
from engine.model.language_model import LanguageModel
from engine.parts.loading import Models
from engine.parts.opening import language_model
from engine.rules import verifier
from tests.drafters.writing import begun, built, steps_of, text_of
from tests.engine.tiny import VOCABULARY, tiny_hf_model, tiny_model
from tests.verifiers.step_errors import step_error
from tests.verifiers.tiny import shared_models

PROMPTS = [[3, 5, 7, 3, 5], [9, 2, 6, 5], [1, 8, 2], [30, 2, 11]]
LEARNING = {"milliseconds": 0.0, "every": 1, "rate": 0.02, "length": 3, "stop_below": 0.0}


@pytest.fixture(scope="module")
def models():
    """Return a target and a draft that differs from it, so that few drafted tokens are accepted at first."""
    return Models(tiny_model(), {"draft": tiny_model(seed=3)})


def law(*likely):
    found = torch.full((VOCABULARY,), 1e-4)
    found[list(likely)] = 0.3
    return found / found.sum()


def test_a_window_has_the_laws_of_its_refused_tokens():
    passage = Passage(list(range(300)))
    for place in (4, 150, 170, 290):
        passage.add(place, law(place % 50))
    tokens, inside, ids, p = passage.window(2)
    assert tokens == list(range(170 - 128, 170)), "what stood before the refused token"
    assert [tokens[at] for at in inside] == [149, 169], "the tokens behind which it was refused"
    assert ids[:, 0].tolist() == [0, 20] and p[0, 0] == pytest.approx(float(law(0)[0]))
    assert passage.window(0)[0] == [0, 1, 2, 3]
    small = Passage([1, 2])
    small.add(1, torch.tensor([0.2, 0.8]))
    assert small.window(0)[2].tolist() == [[1, 0]], "a vocabulary of two"


def test_what_is_kept_of_a_step_is_what_the_target_said(models):
    memory = Memory()
    made = built("online", models, **LEARNING | {"every": 256})
    steps = steps_of(models, made, PROMPTS[0], 20, memory=memory)
    text = [*PROMPTS[0], *text_of(steps)]
    passage = made._passage
    refused = [step.position + len(step.output) - 1 for step in steps if step.final == "recovered"]
    assert passage.places == refused and len(refused) > 5
    assert text[: len(passage.tokens)] == passage.tokens
    for place, ids, p in zip(passage.places, passage.ids, passage.p, strict=True):
        truth = models.target.session(64).extend(text[:place]).softmax(-1)
        assert int(ids[0]) == text[place], "greedy: what the target wrote in its place"
        assert torch.allclose(p, truth[ids.long()], atol=1e-5)


def share(steps):
    """Return the share of the judged draft tokens that were accepted."""
    states = [state for step in steps for state in step.verdict.status]
    return states.count("accepted") / max(1, len(states) - states.count("ignored"))


def test_acceptance_climbs_and_the_text_stays(models):
    shared = copy.deepcopy(models.part("draft").model.state_dict())
    memory, shares = Memory(), []
    plain = {
        count: text_of(steps_of(models, "none", given, 30)) for count, given in enumerate(PROMPTS)
    }
    for _ in range(4):
        for count, prompt in enumerate(PROMPTS):
            steps = steps_of(models, "online", prompt, 30, memory=memory, **LEARNING)
            assert text_of(steps) == plain[count]
            shares.append(share(steps))
    assert sum(shares[-4:]) > sum(shares[:4]) + 4 * 0.1
    shown = steps[-1].tree.exhibits[0].to_dict(str)["series"][0]["y"]
    assert sum(shown[-3:]) > sum(shown[:3]), "the curve climbs, too"
    now = models.part("draft").model.state_dict()
    assert all(torch.equal(shared[name], now[name]) for name in shared), "nobody else's draft moved"
    memory.reset()
    again = steps_of(models, "online", PROMPTS[0], 30, memory=memory, **LEARNING)
    assert share(again) == shares[0], "nothing is left after a reset"


def test_a_step_after_learning_writes_the_target_law(monkeypatch):
    """Branch by branch, with weights that were updated between the earlier steps."""
    updates, update = [], PrivateDraft.update
    monkeypatch.setattr(PrivateDraft, "update", lambda own: (updates.append(1), update(own)))
    models = shared_models(4, once=True)
    options = LEARNING | {"length": 2, "rate": 0.1}

    make = lambda: built("online", models, **options)
    rule = verifier("rejection")
    assert step_error(models, make, rule, Sampling(0.7), (1, 2, 0, 1, 2), 2, dice=1) < 1e-5
    assert updates


@pytest.mark.parametrize(("milliseconds", "learns"), [(0.01, False), (100.0, True)])
def test_the_budget_decides_whether_it_learns(models, milliseconds, learns):
    options = LEARNING | {"milliseconds": milliseconds}
    steps = steps_of(models, "online", PROMPTS[0], 30, **options)
    rows = dict(steps[-1].tree.exhibits[-1].to_dict(str)["rows"])
    assert (rows["updates of your copy of the draft"] > 0) == learns
    assert rows["refusals to learn from, over all of your texts"] > 5
    assert text_of(steps) == text_of(steps_of(models, "none", PROMPTS[0], 30))


def test_weights_from_the_top_learn_as_far_as_they_fit():
    module = tiny_hf_model(tie_word_embeddings=True)
    view = structure_of(module)
    assert view.lm_head.weight is module.lm_head.weight
    every = own_weights(view)
    assert len(every) == len(list(module.parameters()))
    assert view.lm_head.weight is view.model.embed_tokens.weight is not module.lm_head.weight
    small = structure_of(module)
    most = sum(weight.nbytes for weight in small.model.layers[2].mlp.parameters()) + 200
    own = own_weights(small, most)
    assert sum(weight.nbytes for weight in own) <= most
    assert small.model.layers[0].mlp.up_proj.weight is module.model.layers[0].mlp.up_proj.weight
    assert small.model.norm.weight is not module.model.norm.weight


@pytest.mark.parametrize("architecture", ["gemma2", "gpt2", "gpt_oss"])
def test_drafts_of_other_architectures_learn(architecture):
    """And the copy reads with what it learned: it gives the target's likely token more probability than before."""
    shared = tiny_model(architecture)
    private = PrivateDraft(shared, 0.05)
    passage = private.begin([3, 5, 7, 3, 5])
    private.failed(passage, 5, law(9))
    before = shared.session(8).extend(passage.tokens).softmax(-1)[9]
    for _ in range(8):
        private.update()
    assert private.model.session(8).extend(passage.tokens).softmax(-1)[9] > 2 * before
    assert shared.session(8).extend(passage.tokens).softmax(-1)[9] == before


def test_a_target_may_have_more_tokens_than_its_draft():
    """Text and laws contain tokens that the draft can neither read nor write."""
    private = PrivateDraft(tiny_model(), 0.05)
    passage = private.begin([3, VOCABULARY + 2, 7])
    wide = torch.zeros(VOCABULARY + 3)
    wide[[9, VOCABULARY + 2]] = 0.5
    private.failed(passage, 3, wide)

    def chance():
        return private.model.session(8).extend([3, 0, 7]).softmax(-1)[9]

    before = chance()
    for _ in range(4):
        private.update()
    assert chance() > 1.5 * before


def test_an_update_that_is_not_finite_changes_nothing():
    private = PrivateDraft(tiny_model(), 0.05)
    passage = private.begin([3, 5, 7])
    private.failed(passage, 3, law(9))
    private.update()
    learned = [weight.clone() for weight in private._learner._own]
    passage.p[0][0] = float("nan")
    private.update()
    assert private.version == 1
    assert all(map(torch.equal, learned, private._learner._own))


def test_the_prompt_stays_while_the_text_grows(models):
    """From the prompt's length, a reader renewed in mid-text knows where the constraint's text begins."""
    made = built("online", models, **LEARNING)
    for _ in begun(models, made, PROMPTS[0]):
        assert made.start.prompt == tuple(PROMPTS[0])
        assert made._reader._prompt_length == len(PROMPTS[0])
    assert made._version, "the reader was renewed"


def test_it_is_counted_while_another_run_writes(monkeypatch, models):
    private = PrivateDraft(models.part("draft"), 0.01)
    private.begin([1, 2])

    def size(passage):
        private._passages.append(Passage([3]))
        return 8

    monkeypatch.setattr(Passage, "nbytes", property(size))
    assert private.nbytes == 8


def test_a_compiled_draft_learns_through_its_module():
    shared = language_model(tiny_hf_model(), None, "draft")
    assert type(shared) is not LanguageModel
    learner = Learner(shared, 0.05)
    assert type(learner.model) is LanguageModel
    one = shared.session(8).extend([3, 5, 7])
    assert torch.allclose(learner.model.session(8).extend([3, 5, 7]), one, atol=1e-4)


def test_old_texts_are_forgotten(monkeypatch, models):
    monkeypatch.setattr(private_draft, "MOST_TOKENS", 20)
    private = PrivateDraft(models.part("draft"), 0.01)
    for _ in range(5):
        private.failed(private.begin(range(9)), 4, law(2))
    assert len(private._passages) == 2 and private.nbytes == 2 * (8 * 9 + 8 + 16 * 8)


def test_a_long_history_is_halved():
    history = History()
    for _ in range(MOST_POINTS):
        history.see(POINT, POINT)
    history.see(0, POINT)
    assert len(history.points) == 1 + MOST_POINTS // 2 - 1 and history.width == 2 * POINT
    assert history.points[0] == 1.0
