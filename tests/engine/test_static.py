"""Passes on static buffers, padded to a size, write what the plain passes write."""

import torch

from engine.core.decode import decode
from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.fast.gpu.buffer_sets import MARGIN
from engine.fast.gpu.inputs import ROWS, DeviceRows, Size, StepInputs
from engine.methods.chain.drafter import ChainDrafter
from engine.methods.dyspec.drafter import DySpecDrafter
from engine.methods.prompt_lookup.drafter import PromptLookupDrafter
from engine.model.language_model import LanguageModel
from engine.parts.opening import language_model
from engine.rules import verifier
from tests.engine.tiny import VOCABULARY, tiny_hf_model

PROMPT = [3, 14, 15, 9, 2, 6, 5, 35, 8, 9, 7, 9, 2, 6]
TREE = ([1, 2, 3, 4, 5, 6], [-1, 0, 0, 1, 2, 4])  # the root, and two branches below it
CHAIN = {"length": 3, "stop_below": 0.0}
TREES = {"budget": 7, "depth": 4, "width": 3, "sharpness": 2.0, "stop_below": 0.0}


def model_of(architecture: str, static: bool, seed: int = 0) -> LanguageModel:
    module = tiny_hf_model(architecture, seed)
    return language_model(module, None, architecture, lean=False, static=static)


def pair(architecture: str, seed: int = 0) -> tuple[LanguageModel, LanguageModel]:
    return model_of(architecture, False, seed), model_of(architecture, True, seed)


def drafters(draft: LanguageModel):
    yield ChainDrafter(CHAIN, draft, VOCABULARY)
    yield DySpecDrafter(TREES, draft, VOCABULARY)
    yield PromptLookupDrafter({"length": 5, "max_ngram": 2, "min_ngram": 1})


def steps_of(target, drafter, rule="greedy", sampling=None, recorded=True, count=14, prompt=PROMPT):
    sampling = sampling or Sampling()
    request = TextRequest(drafter, verifier(rule), sampling, prompt, count)
    return list(decode(target, request, recorded))


def texts(steps) -> list[list[int]]:
    return [step.output for step in steps]


def test_features_are_the_same():
    plain, static = (model.session(20, (0, 2, 3)) for model in pair("llama"))
    for session in (plain, static):
        session.prefill(PROMPT)
    torch.testing.assert_close(plain.feed(*TREE)[1], static.feed(*TREE)[1], atol=2e-5, rtol=1e-4)


def test_nothing_of_a_padded_row_is_left_behind():
    """Buffers that trees of other sizes and a longer text have used start afresh."""
    plain, static = pair("mistral")
    worn = static.session(30)
    worn.prefill(PROMPT * 2)
    worn.feed(list(range(20)), [-1] * 20)
    buffers, other = worn._buffers, static.session(30)
    assert other._buffers is not buffers
    del worn
    fresh, expected = static.session(30), plain.session(30)
    assert fresh._buffers is buffers
    for session in (fresh, expected):
        session.prefill(PROMPT[:3])
        session.feed(*TREE)
        session.commit([0, 2, 4, 5])
    torch.testing.assert_close(
        fresh.feed([9], [-1])[0], expected.feed([9], [-1])[0], atol=2e-5, rtol=1e-4
    )


def test_growing_beyond_the_buffers(monkeypatch):
    monkeypatch.setattr("engine.fast.gpu.buffer_sets.MARGIN", 0)
    monkeypatch.setattr("engine.fast.gpu.buffer_sets.SMALLEST", 1)
    plain, static = pair("llama")
    one, other = (ChainDrafter(CHAIN, plain, VOCABULARY) for _ in range(2))
    assert texts(steps_of(static, one, count=40)) == texts(steps_of(plain, other, count=40))


def test_sampled_chains_stay_on_the_device():
    """Also with a draft padded to more tokens, and with several settings; graphs of old settings are released."""
    plain, static = pair("llama")
    padded = language_model(
        tiny_hf_model("llama", 8, vocab_size=VOCABULARY + 9), None, "s", lean=False, static=True
    )
    for sampling in (Sampling(0.7, seed=1), Sampling(1.2, top_p=0.8, seed=2), Sampling()):
        one, other = (ChainDrafter(CHAIN, padded, VOCABULARY) for _ in range(2))
        rule = "greedy" if sampling.greedy else "rejection"
        expected = steps_of(plain, one, rule, sampling, count=20)
        found = steps_of(static, other, rule, sampling, recorded=False, count=20)
        assert texts(found) == texts(expected)
        assert all(step.tree.ids is not None for step in found if len(step.tree))
    kept = [key[0][0] for one in _free_sets(padded) for key in one._passes if len(key) == 4]
    assert len({law for law in kept if not law.greedy}) <= 1 and Sampling() in kept


def test_the_end_of_a_text_captures_no_shorter_chains():
    """Only at the end of the context are chains shorter, because there is no room for more."""
    for room, counts in ((128, {3}), (len(PROMPT) + 9, {1, 2, 3})):
        plain, static = pair("gpt2")
        for model in (plain, static):
            model.max_context = room
        one, other = ChainDrafter(CHAIN, plain, VOCABULARY), ChainDrafter(CHAIN, static, VOCABULARY)
        arguments = "rejection", Sampling(0.8, seed=6)
        expected = steps_of(plain, one, *arguments, count=11)
        assert texts(steps_of(static, other, *arguments, recorded=False, count=11)) == texts(
            expected
        )
        passes = [key for one in _free_sets(static) for key in one._passes if len(key) == 4]
        assert {key[2] for key in passes} <= counts
        assert {len(step.tree) for step in expected} > {3}


def _free_sets(model):
    with model.buffer_sets._guard:
        model.buffer_sets._collect()
    return model.buffer_sets._free


def test_sizes():
    assert [Size.of(count, 0).rows for count in (1, 3, 8, 9, 65, 129)] == [1, 4, 8, 16, 96, 160]
    assert Size.of(161, 0) is None
    assert Size.of(1, 31).words == 1 and Size.of(2, 31).words == 2
    assert Size.of(65, 0).words == 4  # 96 rows take three words; sizes are powers of two
    for rows in ROWS:
        size = Size.of(rows, 7)
        assert size.scratch >= rows + 7
        inputs = StepInputs(size, torch.device("cpu"))
        inputs.load(DeviceRows([1], 3, [0] * 8, [1 << 7]))
        assert size.scratch <= MARGIN
        assert inputs.bits.shape == (1, rows, size.words)


def test_without_capture_the_plain_way_goes_on():
    plain, refused = pair("llama")
    refused.buffer_sets.usable = False
    for recorded in (True, False):
        drafts = ChainDrafter(CHAIN, refused, VOCABULARY), ChainDrafter(CHAIN, plain, VOCABULARY)
        assert texts(steps_of(refused, drafts[0], recorded=recorded)) == texts(
            steps_of(plain, drafts[1])
        )
