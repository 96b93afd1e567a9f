"""OmniDraft: how tokens are spelled and merged, what is learned from a text, and that a reset removes all of it."""

import copy
import gc
import weakref

import pytest
import torch
from tokenizers import decoders

from engine.core.memory import Memory
from engine.core.sampling import Sampling
from engine.errors import UserError
from engine.methods.omnidraft.online_head import OnlineHead
from engine.methods.omnidraft.run_cache import RunCache
from engine.methods.shared.foreign_draft_part import _together, foreign_draft
from engine.methods.shared.spelling import Spelling, spelling_of
from engine.parts.loading import Models
from engine.parts.opening import language_model
from engine.rules import verifier
from engine.training.tokenizer import train_tokenizer
from tests.drafters.writing import built, steps_of, text_of
from tests.engine.tiny import VOCABULARY, tiny_model
from tests.grids import some
from tests.verifiers.step_errors import step_error
from tests.verifiers.tiny import shared_models

PROMPTS = [[3, 5, 7, 3, 5], [9, 40, 6, 5], [1, 58, 2]]
QUIET = {"milliseconds": 0.0, "every": 256, "length": 4, "threshold": 1.0}
TEXT = ["the other mother went there and then the weather was better than that " * 3]


def opened(module):
    return language_model(module, None, "other", lean=False)


@pytest.fixture(scope="module")
def models():
    target = tiny_model()
    torch.manual_seed(1)
    return Models(target, {"omnidraft": foreign_draft(VOCABULARY, target.model, opened, 0.5)})


def test_every_token_is_spelled_with_the_same_bytes():
    target, draft = train_tokenizer(TEXT, 290), train_tokenizer([TEXT[0][::-1], *TEXT], 270)
    target.add_special_tokens({"additional_special_tokens": ["<|user|>"]})
    found = spelling_of(target, draft, (len(target) + 2, len(draft)), ("one", "other"))
    for token in range(len(target)):
        run = found.runs[token]
        assert run and draft.decode(run) == target.decode([token])
    assert found.runs[len(target) :] == ((), ()), "rows of a padding"
    assert found.runs[target.eos_token_id] == (draft.eos_token_id,)
    assert len(found.runs[target.convert_tokens_to_ids("<|user|>")]) > 1
    assert any(len(run) > 1 for run in found.runs)
    assert {found.runs[one][0] for one in found.same.values()} == set(found.same)
    ids = target(TEXT[0]).input_ids
    assert draft.decode(found.spelled(ids)) == TEXT[0]
    p = torch.rand(len(found.runs)).softmax(-1)
    law = found.first_law(p, len(draft))
    start = draft.convert_tokens_to_ids("t")
    begins = [token for token, run in enumerate(found.runs) if run and run[0] == start]
    assert float(law[start]) == pytest.approx(float(p[begins].sum()))


def test_a_tokenizer_that_is_not_byte_level_is_refused():
    tokenizer = train_tokenizer(TEXT, 270)
    other = copy.deepcopy(tokenizer)
    other.backend_tokenizer.decoder = decoders.WordPiece()
    with pytest.raises(UserError, match=r"tokenizer of strange is not a byte-level one.*\.$"):
        spelling_of(tokenizer, other, (len(tokenizer), len(other)), ("own", "strange"))


def test_a_tokenizer_with_more_tokens_than_its_model_is_refused():
    tokenizer = train_tokenizer(TEXT, 270)
    rows = len(tokenizer), len(tokenizer)
    assert spelling_of(tokenizer, tokenizer, rows, ("own", "draft")).runs[-1]
    with pytest.raises(UserError, match="tokenizer of draft has tokens that its model has not"):
        spelling_of(tokenizer, tokenizer, (rows[0], rows[1] - 1), ("own", "draft"))


def test_a_spelling_holds_no_model():
    """The spelling is made once for a pair of models, and freed with it."""
    target, draft = (tiny_model(vocab_size=300) for _ in range(2))
    target.tokenizer = draft.tokenizer = train_tokenizer(TEXT, 270)
    first = _together(target, draft)
    assert _together(target, draft).spelling is first.spelling
    gone = weakref.ref(draft)
    del first, draft
    gc.collect()
    assert gone() is None


def test_runs_are_known_once_their_tokens_came():
    spelling = Spelling(((0,), (1,), (0, 1), (0, 1, 1), (1, 0)), ("a", "b"))
    cache = RunCache(spelling, most=2)
    assert cache.token((0,)) == 0 and cache.token((0, 1)) is None and not cache.grows((0,))
    assert [one.tolist() for one in cache.closing(())] == [[0, 1], [0, 1]]
    assert cache.see([0, 3, 3]) == 1
    assert cache.grows((0,)) and cache.grows((0, 1)) and not cache.grows((0, 1, 1))
    assert cache.token((0, 1)) is None and cache.token((0, 1, 1)) == 3
    assert [one.tolist() for one in cache.closing(())] == [[1], [1]], "0 may go on"
    assert cache.see([2, 4]) == 2 and len(cache) == 2
    assert cache.token((0, 1, 1)) is None, "the oldest went"
    assert [one.tolist() for one in cache.closing((0,))] == [[1], [2]]
    assert set(cache._longer) == {(0,), (1,)} == set(cache._behind), "nothing is left of it"


def test_the_head_learns_which_states_are_kept():
    head, states = OnlineHead(8), torch.randn(2, 8, generator=torch.Generator().manual_seed(0))
    for _ in range(60):
        head.learn(states[0], True)
        head.learn(states[1], False)
    assert head.chance(states[0]) > 0.9 and head.chance(states[1]) < 0.2


def test_runs_are_merged_from_the_second_time_on(models):
    """The text is always the target's; a reset removes everything that was learned."""
    memory, merged = Memory(), []
    first = len(steps_of(models, "omnidraft", PROMPTS[0], 30, **QUIET))
    for _ in range(2):
        count = 0
        for prompt in PROMPTS:
            steps = steps_of(models, "omnidraft", prompt, 30, memory=memory, **QUIET)
            assert text_of(steps) == text_of(steps_of(models, "none", prompt, 30))
            count += sum(step.tree.sources.count("merged run") for step in steps)
        merged.append(count)
    assert merged[1] > merged[0]
    again = steps_of(models, "omnidraft", PROMPTS[0], 30, memory=memory, **QUIET)
    kept = sum(len(step.verdict.accepted) for step in again)
    memory.reset()
    fresh = steps_of(models, "omnidraft", PROMPTS[0], 30, memory=memory, **QUIET)
    assert len(fresh) == first and kept >= sum(len(step.verdict.accepted) for step in fresh)
    rows = again[-2].tree.exhibits[0].to_dict(str)["rows"]
    assert all(row[0].startswith("“") for row in rows)


def test_it_learns_from_refusals_in_its_own_vocabulary(models):
    memory = Memory()
    made = built("omnidraft", models, **QUIET | {"every": 2, "rate": 0.02})
    spelling = models.part("omnidraft").spelling
    steps = steps_of(models, made, PROMPTS[0], 30, memory=memory)
    text = [*PROMPTS[0], *text_of(steps)]
    passage = made._passage
    assert passage.tokens == spelling.spelled(text)[: len(passage.tokens)]
    assert made._learned.private.version > 2
    places = zip(passage.places, passage.ids, passage.p, strict=True)
    whole = spelling.spelled(text)
    inner = [(place, int(ids[0])) for place, ids, p in places if float(p[0]) == 1.0]
    assert inner and all(whole[place] == one for place, one in inner), "the rest of written runs"
    assert len(inner) == len(passage.places) - made._learned.private.failures


LEARNING = {"every": 1, "rate": 0.1}
STEPS = [LEARNING | {"length": 2}, LEARNING | {"length": 3}, {"every": 256, "length": 3}]


@pytest.mark.parametrize("changes", some(STEPS, lambda case: case["length"] == 2))
def test_a_step_with_known_runs_writes_the_target_law(changes):
    """Branch by branch, with runs of one token and of two, learned runs and runs left behind."""
    models = shared_models(4, once=True)
    options = QUIET | {"threshold": 0.95} | changes

    make = lambda: built("omnidraft", models, **options)
    rule = verifier("rejection")
    assert step_error(models, make, rule, Sampling(1.0), (1, 2, 0, 3, 2), 1, dice=1) < 1e-5
