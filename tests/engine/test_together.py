"""Several texts share one pass per round, and each is the same as when it is written alone."""

from dataclasses import replace

import pytest
import torch

from engine.batch.together import Budget, decode_together
from engine.core.decode import decode
from engine.core.load import GUESS
from engine.core.options import resolve
from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.fast.gpu.text_buffers import TextBuffers
from engine.methods import drafter as drafter_class
from engine.methods.chain.drafter import ChainDrafter
from engine.methods.dyspec.drafter import DySpecDrafter
from engine.methods.none.drafter import NoDrafter
from engine.methods.prompt_lookup.drafter import PromptLookupDrafter
from engine.model.language_model import LanguageModel
from engine.model.session import Session
from engine.parts.loading import load_models
from engine.parts.opening import language_model, load_language_model
from engine.rules import verifier
from presets import family, prompts
from tests.drafters.writing import text_of
from tests.engine.family import offered
from tests.engine.tiny import CONFIGS, VOCABULARY, tiny_hf_model
from tests.grids import some

LONG = [3, 14, 15, 9, 2, 6, 5, 35, 8, 9, 7, 9, 2, 6]  # longer than the windows
PROMPTS = [LONG, LONG[:3], [7], LONG]
COUNTS = [9, 17, 5, 14]  # they end in different rounds
CHAIN = {"length": 3, "stop_below": 0.25}
TREES = {"budget": 7, "depth": 4, "width": 3, "sharpness": 2.0, "stop_below": 0.0}


def model_of(architecture: str, static: bool | None = False, lean: bool = False) -> LanguageModel:
    return language_model(tiny_hf_model(architecture), None, architecture, lean, static)


@pytest.fixture(scope="module")
def draft() -> LanguageModel:
    return language_model(tiny_hf_model("llama", seed=5), None, "draft")


def requests(draft, rule="greedy", temperature=0.0, skip=()) -> list[TextRequest]:
    """Four texts with four kinds of drafts: trees, chains and copies of various sizes, and none."""
    drafters = [
        DySpecDrafter(TREES, draft, VOCABULARY),
        PromptLookupDrafter({"length": 5, "max_ngram": 2, "min_ngram": 1}),
        NoDrafter({}),
        ChainDrafter(CHAIN, draft, VOCABULARY),
    ]
    given = zip(drafters, PROMPTS, COUNTS, strict=True)
    return [
        TextRequest(drafter, verifier(rule), Sampling(temperature, seed=index), prompt, count)
        for index, (drafter, prompt, count) in enumerate(given)
        if index not in skip
    ]


def alone(target, one: TextRequest, recorded=True) -> list:
    return list(decode(target, one, recorded))


def together(target, several, recorded=True) -> list[list]:
    steps = [[] for _ in several]
    for index, step in decode_together(target, several, recorded):
        steps[index].append(step)
    return steps


def assert_same(found: list[list], expected: list[list]) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        assert [step.output for step in ours] == [step.output for step in theirs]
        assert [step.index for step in ours] == list(range(len(ours)))
        assert [step.stop for step in ours] == [step.stop for step in theirs]
        assert ours[0].prefill_milliseconds > 0


@pytest.fixture
def passes(monkeypatch) -> list[int]:
    """Return a list that gets the number of sequences in each pass on static buffers."""
    seen, feed = [], TextBuffers.feed
    monkeypatch.setattr(
        TextBuffers,
        "feed",
        lambda self, given, *a: seen.append(len(given)) or feed(self, given, *a),
    )
    return seen


@pytest.mark.parametrize("architecture", sorted(CONFIGS))
def test_greedy_texts_are_those_of_one_at_a_time(architecture, draft, passes):
    target = model_of(architecture)
    expected = [alone(target, one) for one in requests(draft)]
    assert not passes
    found = together(target, requests(draft))
    assert_same(found, expected)
    assert passes == [4] * max(len(steps) for steps in found)


@pytest.mark.parametrize(("rule", "temperature"), [("rejection", 0.9), ("sampler_match", 0.7)])
def test_sampled_texts_too(rule, temperature, draft):
    target = model_of("mistral")
    expected = [alone(target, one) for one in requests(draft, rule, temperature)]
    assert_same(together(target, requests(draft, rule, temperature)), expected)


def test_nobody_records(draft):
    target, plain = model_of("llama", static=True), model_of("llama")
    expected = [alone(plain, one) for one in requests(draft, "rejection", 0.8)]
    found = together(target, requests(draft, "rejection", 0.8), recorded=False)
    assert_same(found, expected)
    assert all(step.p is None for steps in found for step in steps)


class Watching(NoDrafter):
    """Keeps the hidden states that it is given: of the prompt, and of each step."""

    feature_layers = (1, 2)

    def begin(self, start):
        self.given = [start.features]

    def observe(self, kept):
        self.given.append(kept.features)


def test_a_compiled_target_reads_for_all_in_one_session(draft, passes, monkeypatch):
    """Their prompts differ, two are the same, and drafters get the hidden states of different layers."""
    target, read = model_of("qwen3", lean=True, static=None), []

    def several() -> list[TextRequest]:
        watching = Watching({})
        watching.feature_layers = (2,)
        made = [one.drafter for one in requests(draft)]
        drafters = [made[0], made[1], Watching({}), made[3], watching]
        prompts = [PROMPTS[0], PROMPTS[1], PROMPTS[0], PROMPTS[2], PROMPTS[1]]
        given = zip(drafters, prompts, [*COUNTS, 7], strict=True)
        return [TextRequest(one, verifier("greedy"), Sampling(), *more) for one, *more in given]

    expecting, finding = several(), several()
    expected = [alone(target, one) for one in expecting]
    feed = Session.feed
    monkeypatch.setattr(
        Session, "feed", lambda self, *given: read.append(self.model) or feed(self, *given)
    )
    found = together(target, finding)
    assert_same(found, expected)
    assert read.count(target) == max(map(len, found)) and not passes
    for one, other in zip(expecting, finding, strict=True):
        for mine, own in zip(
            *(getattr(each.drafter, "given", []) for each in (one, other)), strict=True
        ):
            assert mine.shape[1] == 32 * len(one.drafter.feature_layers)
            torch.testing.assert_close(own, mine, atol=1e-4, rtol=1e-4)


def test_prompts_of_one_token_and_trees_beyond_the_largest_pass(draft, passes):
    """If no pass can serve all texts, each text gets its own pass."""

    class Wide(NoDrafter):
        def propose(self, context, max_depth):
            tree = super().propose(context, max_depth)
            for token in range(VOCABULARY):
                child = tree.draw(-1, token, source="wide")
                for other in range(3) if max_depth > 1 else ():
                    tree.draw(child, other, source="wide")
            return tree

    target = model_of("llama")
    several = [
        TextRequest(made({}), verifier("greedy"), Sampling(), [7 + index], 6)
        for index, made in enumerate((Wide, NoDrafter))
    ]
    expected = [alone(target, one) for one in several]
    assert_same(together(target, several), expected)
    assert 0 < len(passes) < max(len(steps) for steps in expected)


def test_an_end_of_text_ends_one_text_only(draft):
    target = model_of("llama")
    first = [step.output for step in alone(target, requests(draft)[0])]
    target.end_tokens = frozenset([first[1][-1]])
    expected = [alone(target, one) for one in requests(draft)]
    assert {steps[-1].stop for steps in expected} >= {"eos"}
    assert_same(together(target, requests(draft)), expected)


@pytest.mark.parametrize("lean", [False, True])
def test_a_text_begins_where_another_ends(lean, draft, passes, monkeypatch):
    """In one pass for both places, and where a lean target reads for one after the other."""
    target = model_of("qwen3", lean=lean, static=None if lean else False)
    expected = [alone(target, one) for one in requests(draft)]
    several, closed = requests(draft), []
    for index, one in enumerate(several):
        monkeypatch.setattr(one.drafter, "close", lambda index=index: closed.append(index))
    found, under_way = [[] for _ in several], []
    for index, step in decode_together(target, several, places=2):
        found[index].append(step)
        open_ones = {n for n, steps in enumerate(found) if steps and steps[-1].stop is None}
        under_way.append(len(open_ones))
        assert set(range(index)) - open_ones <= {*closed}, "a text that has ended is closed"
    assert_same(found, expected)
    assert max(under_way) == 2 and sorted(closed) == [0, 1, 2, 3]
    assert set(passes) == (set() if lean else {2})


OTHERS = some(sorted(CONFIGS), {"mistral", "gemma2", "gpt2", "gpt_oss"}.__contains__)
"""With windows, with windows in some layers and caps, with learned positions, with sinks; the first test above takes all
architectures through the same passes."""


@pytest.mark.parametrize("architecture", OTHERS)
def test_texts_go_on_while_a_long_prompt_is_read(architecture, draft, passes, monkeypatch):
    """With prompts read a part a round, all texts are what they are alone; drafts are short meanwhile."""
    target, long = model_of(architecture), LONG * 4
    read, prefill = [], Session.prefill

    def noted(self, tokens, *more, **named):
        if self.model is target:
            read.append(len(tokens))
        return prefill(self, tokens, *more, **named)

    monkeypatch.setattr(Session, "prefill", noted)

    def several() -> list[TextRequest]:
        made = requests(draft)
        late = ChainDrafter({"length": 5, "stop_below": 0.0}, draft, VOCABULARY)
        early = [
            replace(one, prompt=prompt)
            for one, prompt in zip(made, ([7], [9], [3], [5]), strict=True)
        ]
        return [*early, TextRequest(late, verifier("greedy"), Sampling(), long, 20)]

    expected = [alone(target, one) for one in several()]
    read.clear()
    budget = Budget(rows=20, part=8)
    found, before = [[] for _ in expected], []
    for index, step in decode_together(target, several(), budget=budget):
        if not found[-1] and index < 4:
            going = sum(not steps or steps[-1].stop is None for steps in found[:4])
            before.append((step.tree.deepest, budget.deepest(max(1, going), True)))
        found[index].append(step)
    assert [text_of(steps) for steps in found] == [text_of(steps) for steps in expected]
    assert sum(read) == len(long) - 1 and max(read) <= budget.rows
    assert len(before) > 8, "the others took steps while it was read"
    assert all(depth <= most for depth, most in before) and budget.deepest(4, True) == 2
    assert max(step.tree.deepest for step in found[-1]) > 2, (
        "alone, its drafts are as long as they were"
    )
    assert passes, "and the passes are shared"


def test_a_text_begins_with_the_shares_that_were_kept_of_the_others():
    """Its own share is not known yet: it is the mean of the others', and theirs stay as they are."""

    class Refused(NoDrafter):
        """A drafter of one token that the target rejects. It notes the shares in each pass."""

        def begin(self, start):
            super().begin(start)
            self.shares = []

        def propose(self, context, max_depth):
            tree = super().propose(context, max_depth)
            if max_depth:
                tree.draw(-1, (context[-1] + 1) % VOCABULARY, source="refused")
            return tree

        def observe(self, kept):
            self.shares.append(kept.load.chances)

    target = model_of("llama")
    several = [
        TextRequest(Refused({}), verifier("greedy"), Sampling(), [7 + index], count)
        for index, count in enumerate((4, 12, 4))
    ]
    for _ in decode_together(target, several, places=2):
        pass
    first, second, third = (request.drafter.shares for request in several)
    assert first[0] == pytest.approx([GUESS, GUESS]), "nothing is known of the first two"
    assert third[0] == second[len(first)]
    assert third[0][0] == pytest.approx(third[0][1]), "the third takes over what the second has"
    assert third[0][1] < first[-1][1] < GUESS


def test_closing_closes_every_drafter(draft, monkeypatch):
    several, closed = requests(draft), []
    for one in several:
        monkeypatch.setattr(one.drafter, "close", lambda one=one: closed.append(one))
    steps = decode_together(model_of("llama"), several)
    next(steps)
    steps.close()
    assert closed == several


@pytest.mark.exhaustive
def test_the_embedded_family():
    """All drafters share one pass per round, except SmartSpec, which drafts by the texts in its pass. The target
    is read through its module, because the lean path reads one text after the other."""
    known = [drafter_class(key) for key in offered() if key != "smartspec"]
    classes = [cls for cls in known if cls.loop == "speculative"]
    needs = {role: kind for cls in classes for role, kind in cls.needs.items()}
    models = load_models(family(), needs)
    target = load_language_model(family().target)
    plain = language_model(_module(family().target), models.target.tokenizer, "t", lean=False)
    texts = [prompts("story")[0]["prompt"], prompts("code")[0]["prompt"]]
    several = []
    for index, cls in enumerate(classes):
        options = resolve(cls.key, cls.options, {})
        prompt = models.target.tokenizer(texts[index % 2])["input_ids"]
        several.append((cls, options, prompt, 6 + index))

    def made(target):
        own = replace(models, target=target)
        return [
            TextRequest(cls.build(options, own), verifier("greedy"), Sampling(), prompt, count)
            for cls, options, prompt, count in several
        ]

    expected = [alone(target, one) for one in made(target)]
    found = together(plain, made(plain))
    for ours, theirs in zip(found, expected, strict=True):
        assert [step.output for step in ours] == [step.output for step in theirs]


def _module(path):
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(path)
