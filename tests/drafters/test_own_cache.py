"""Drafts on a part of the target's own cache: the text of plain decoding, what selectors choose, and what a view computes."""

from types import SimpleNamespace

import pytest
import torch

from engine.bench.long_prompts import KINDS, MIDDLE, long_prompts
from engine.core.exhibits import Gauge, Token
from engine.core.sampling import Sampling
from engine.errors import UserError
from engine.methods.own_cache.drafter import OwnCacheDrafter
from engine.methods.shared.gear import Gear
from engine.methods.shared.longheads import turned
from engine.methods.shared.lserve import LServe
from engine.methods.shared.part_of_cache import SELECTORS
from engine.methods.shared.part_of_cache_shown import strip
from engine.methods.shared.quantspec import QuantSpec, rounded
from engine.methods.shared.selector import Past, attention, best_and_recent, pooled
from engine.methods.shared.sentencekv import SentenceKV
from engine.methods.shared.snapkv import SnapKV
from engine.methods.shared.speckv import SpecKV
from engine.methods.shared.specpc import SpecKVPC, SpecPC
from engine.model.cache_view import CacheView
from engine.parts.loading import Models, load_models
from engine.parts.opening import language_model
from presets import family
from tests.drafters.writing import built, drafted, steps_of, text_of
from tests.engine.tiny import CONFIGS, tiny_hf_model

KEY = "own_cache"
PROMPT = [(7 * place + place // 5) % 61 for place in range(40)]
SAMPLED = Sampling(0.8, seed=4)


@pytest.fixture(scope="module")
def embedded():
    return load_models(family(), OwnCacheDrafter.may_use(), "float32", "cpu")


@pytest.fixture(scope="module")
def prompts(embedded):
    tokenizer = embedded.target.tokenizer
    texts = long_prompts(500, lambda text: len(tokenizer(text).input_ids), False)
    return {kind: tokenizer(text).input_ids for kind, text in texts.items()}


# ---- The text -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plain(embedded, prompts):
    return text_of(steps_of(embedded, "none", prompts["question"], 32))


WHOLE = ("streaming", "quantspec", "gear")
"""Selectors that choose no columns by what is looked for."""


@pytest.mark.parametrize("selector", SELECTORS)
def test_the_greedy_text_of_the_embedded_target(embedded, prompts, plain, selector, monkeypatch):
    """With about an eighth of the columns, which is not enough to keep everything. No column is read twice, and the
    budget is kept."""
    made, taken, take = [], [], CacheView.take
    monkeypatch.setitem(SELECTORS, selector, remembered(SELECTORS[selector], made))
    monkeypatch.setattr(CacheView, "take", lambda own, chosen: taken.append(take(own, chosen)))
    steps = steps_of(
        embedded, KEY, prompts["question"], 32, selector=selector, length=4, budget=64, sinks=4
    )
    assert text_of(steps) == plain
    assert sum(len(step.verdict.accepted) for step in steps) > len(plain) // 3
    gauge = steps[-1].tree.exhibits[0]
    assert isinstance(gauge, Gauge) and gauge.value < 0.5
    if selector not in WHOLE:
        assert len(taken) > 2 and made[0].places
        for places in made[0].places.values():
            assert places.shape[1] == 64
            for head in places:
                assert len(set(head.tolist())) == 64 and int(head.max()) < made[0]._length


def remembered(cls, made):
    class Remembered(cls):
        def __init__(self, *given):
            super().__init__(*given)
            made.append(self)

    return Remembered


KINDS_OF_CHOICE = ["snapkv", "sentencekv", "lserve", "gear"]
PAIRS = [(name, KINDS_OF_CHOICE[place % 4]) for place, name in enumerate(CONFIGS)]
"""Windows, soft caps, sinks of attention, groups of heads, learned positions: each with one way of choosing."""


@pytest.mark.parametrize("architecture, selector", PAIRS)
def test_the_sampled_text_of_every_architecture(architecture, selector):
    models = Models(language_model(tiny_hf_model(architecture), None, "tiny", lean=False))
    plain = text_of(steps_of(models, "none", PROMPT, 20, SAMPLED, "sampler_match"))
    options = {"selector": selector, "budget": 12, "sinks": 2, "length": 3}
    steps = steps_of(models, KEY, PROMPT, 20, SAMPLED, "sampler_match", **options)
    assert text_of(steps) == plain and len(drafted(steps)) > 2


@pytest.mark.parametrize("architecture, selector", PAIRS)
def test_a_budget_that_holds_the_text_drafts_what_the_target_writes(architecture, selector):
    models = Models(language_model(tiny_hf_model(architecture), None, "tiny", lean=False))
    steps = steps_of(models, KEY, PROMPT, 24, selector=selector, budget=900, length=5)
    whole = [step for step in steps[:-1] if len(step.verdict.accepted) == len(step.tree)]
    assert len(whole) == len(steps) - 1 == 3


def test_a_budget_larger_than_the_prompt_is_said(embedded, prompts):
    (first, *_) = steps_of(embedded, KEY, prompts["list"], 6, budget=2000)
    assert first.tree.exhibits[0].note.startswith("The budget holds the whole text")


# ---- The view -----------------------------------------------------------------------------------


@pytest.mark.parametrize("watch", [None, lambda *_: None], ids=["unwatched", "watched"])
@pytest.mark.parametrize("lean", [False, True])
@pytest.mark.parametrize("architecture", ["llama", "gemma2"])
def test_a_view_reads_as_the_module_does_with_the_other_columns_masked(architecture, lean, watch):
    """Of the module itself, with eager attention and a mask of numbers; layers with a window keep all that they see. Where nobody watches
    a compiled target, its views are compiled."""
    module = tiny_hf_model(architecture, layer_types=["full_attention"] * 3)
    target = language_model(module, None, "tiny", lean=lean)
    session = target.session(64)
    session.prefill(PROMPT)
    kept, rows = [0, 3, 4, 11, 30, 38, 39], [5, 9, 2]
    places = torch.tensor(kept)
    view, compiled = CacheView(session, watch), []
    if lean:
        read = type(target).read_view
        target.read_view = lambda *given: compiled.append(given) or read(target, *given)
    view.take(lambda layer, keys, values: (keys[:, :, places], values[:, :, places]))
    logits = torch.cat([view.feed(rows[:1]), view.feed(rows[1:])])
    count = len(PROMPT) + len(rows)
    seen = torch.ones(count, count).tril().bool()
    hidden = [place for place in range(len(PROMPT)) if place not in kept]
    seen[len(PROMPT) :, hidden] = False
    module.set_attn_implementation("eager")
    mask = torch.zeros(1, 1, count, count).masked_fill(~seen, torch.finfo(torch.float32).min)
    expected = module(torch.tensor([[*PROMPT, *rows]]), attention_mask=mask).logits[0, -3:]
    assert torch.allclose(logits, expected, atol=1e-4)
    assert len(compiled) == (2 if lean and watch is None else 0)


# ---- What selectors choose ----------------------------------------------------------------------


def test_weights_and_the_columns_that_stay():
    torch.manual_seed(0)
    queries, keys = torch.randn(4, 3, 8), torch.randn(2, 20, 8)
    weights = attention(queries, keys, 17)
    assert weights.shape == (2, 6, 20) and torch.allclose(weights.sum(-1), torch.ones(2, 6))
    row = (queries[3, 1] @ keys[1, :19].T).softmax(0)
    assert torch.allclose(weights[1, 4, :19], row, atol=1e-6) and float(weights[1, 4, 19]) == 0
    scores = torch.zeros(1, 20)
    scores[0, 5] = 1
    assert pooled(scores)[0].nonzero()[:, 0].tolist() == [2, 3, 4, 5, 6, 7, 8]
    assert best_and_recent(pooled(scores), 10, 3).tolist() == [[2, 3, 4, 5, 6, 7, 8, 17, 18, 19]]


class Planted(Past):
    """A cache of 64 columns of noise in one layer. The last queries of one head look for column 20, those of the other
    head for column 41."""

    def __init__(self):
        torch.manual_seed(2)
        self.columns = torch.randn(1, 2, 64, 8) * 0.1
        self.columns[0, 0, 20, 0] = self.columns[0, 1, 41, 1] = 6
        session = SimpleNamespace(length=64, columns=lambda layer: (self.columns, self.columns))
        super().__init__(session, range(65), lambda token: "." if token % 8 == 7 else "a", None)
        self.continuation = lambda count: []
        self.draft = lambda: SimpleNamespace(model=None, columns=session.columns)
        self.queries_of = lambda session, count: self.queries(count)

    def queries(self, count, after=()):
        rows = torch.zeros(2, 4, 8)
        rows[0, :, 0], rows[1, :, 1] = 1, 0.8
        return {0: rows}, 61


def test_what_the_draft_model_looks_for_is_read_by_all_heads():
    past, selector = Planted(), SpecPC(32, 2)
    selector.begin(past)
    selector.chosen(0, past.columns, past.columns)
    for head in selector.places[0].tolist():
        assert {20, 41, *range(48, 64)} <= set(head)


@pytest.mark.parametrize(
    "cls, heads", [(SnapKV, 2), (SpecKV, 2), (SpecKVPC, 2), (SentenceKV, 2), (LServe, 1)]
)
def test_what_is_looked_for_is_read(cls, heads):
    """LServe leaves half of the heads the text's ends."""
    past, selector = Planted(), cls(16, 2)
    selector.begin(past)
    assert selector.changes(past)
    keys, _ = selector.chosen(0, past.columns, past.columns)
    assert keys.shape == (1, 2, 16, 8)
    read = [20 in selector.places[0][0].tolist(), 41 in selector.places[0][1].tolist()]
    assert sum(read) == heads
    assert [float(keys[0, head].max()) > 5 for head in (0, 1)] == read
    picture = strip([(0, selector.places[0])], list(range(64)))  # three tokens a cell
    assert picture.columns[1] == Token(3) and len(picture.values[0]) == 22
    assert sum(cell * 3 for cell in picture.values[0][:-1]) + picture.values[0][
        -1
    ] == pytest.approx(16)


def test_rounding_to_four_bits_and_to_two_with_what_mends_it():
    torch.manual_seed(1)
    keys = torch.randn(1, 2, 64, 8) * torch.tensor([1.0, 30.0, *[1.0] * 6])  # an outlying channel
    coarse = QuantSpec(64, 4).coarse(keys, True)
    step = (keys.unflatten(2, (2, 32)).amax(3) - keys.unflatten(2, (2, 32)).amin(3)) / 15
    wrong = (keys - coarse).abs().unflatten(2, (2, 32))
    assert (wrong <= step[:, :, :, None] / 2 + 1e-5).all()
    assert len(coarse[0, 0, :32, 1].unique()) <= 16
    mended = Gear(64, 4)
    plain = mended.stepped(keys, True, 2)
    assert (mended.coarse(keys, True) - keys).norm() < 0.8 * (plain - keys).norm()
    assert torch.equal(rounded(torch.ones(1, 1, 2, 3), 3, 4), torch.ones(1, 1, 2, 3))


def test_a_key_that_is_moved_is_what_it_would_have_been_there():
    target = language_model(tiny_hf_model(), None, "tiny", lean=False)
    session, near, far = target.session(64), 5, 31
    session.prefill([*PROMPT[:near], 7, *PROMPT[near + 1 : far], 7])
    keys, values = session.columns(
        0
    )  # those of the first layer depend on a token and its place alone
    rotary = target.model.base_model.rotary_emb(values, torch.tensor([[far - near]]))
    moved = turned(keys[0, :, near : near + 1], *rotary)
    assert torch.allclose(moved, keys[0, :, far:], atol=1e-5)


# ---- Mistakes -----------------------------------------------------------------------------------


def test_mistakes_are_told_in_one_sentence(embedded):
    with pytest.raises(UserError, match="A budget of 4 columns has no room for the first 4 tokens"):
        built(OwnCacheDrafter, embedded, budget=4, sinks=4)
    with pytest.raises(UserError, match="speckv needs a draft model"):
        built(OwnCacheDrafter, Models(embedded.target), selector="speckv")
    hybrid = load_models(family("hybrid"), {}, "float32", "cpu")
    with pytest.raises(UserError, match="recurrent state"):
        built(OwnCacheDrafter, hybrid)


def test_layers_that_all_have_a_window_are_left_as_they_are():
    models = Models(language_model(tiny_hf_model("mistral"), None, "tiny", lean=False))
    (first, *_) = steps_of(models, KEY, PROMPT, 6)
    (words,) = first.tree.exhibits
    assert words.lines == [
        "All layers have a sliding window, so a draft pass reads what the target reads."
    ]


# ---- Prompts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", [True, False])
def test_long_prompts_fit_and_hold_their_answer_in_the_middle(asked):
    def count(text):
        return len(text.split())

    made = long_prompts(2000, count, asked)
    assert made == long_prompts(2000, count, asked) and tuple(made) == KINDS
    for kind, text in made.items():
        assert 1800 < count(text) <= 2000, kind
    marks = {
        "needle": "third stone",
        "question": made["question"][-90:].partition(", tell?")[0][-9:],
    }
    for kind in MIDDLE if asked else ():
        place = made[kind].index(marks[kind]) / len(made[kind])
        assert 0.35 < place < 0.65
