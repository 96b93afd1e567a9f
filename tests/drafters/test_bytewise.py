"""Byte by byte: a step keeps the target's law with any two vocabularies, and nearly right ways of judging letters do not."""

from functools import cache

import pytest

from engine.core.sampling import Sampling
from engine.methods import drafter
from engine.methods.bytewise.drafter import BytewiseDrafter
from engine.methods.bytewise.rule import Bytewise
from engine.methods.shared.spelling import ForeignDraft, Spelling, spelling_of
from engine.parts.loading import Models, load_models
from engine.parts.opening import language_model
from engine.proof.tiny_parts import tiny_module, tiny_target
from engine.rules import verifier
from engine.training.tokenizer import train_tokenizer
from presets import family
from tests.drafters.writing import begun, built, steps_of
from tests.statistics import same_law
from tests.verifiers.passes import passing_once
from tests.verifiers.step_errors import step_error

EXACT, BIASED = 1e-5, 1e-3
PROMPT = (1, 2, 0, 3, 2)
# tokens of letters 0 and 1: several ways to write the same letters, and tokens that only one side has
WRITTEN = ((0,), (1,), (0, 1), (0, 1, 0))
DRAFTED = ((0,), (1,), (1, 0))
RUNS = ((0,), (1,), (0, 1), (0, 2))


@pytest.fixture(scope="module")
def models():
    target = passing_once(tiny_target(len(WRITTEN)))
    draft = language_model(tiny_module(len(DRAFTED), 5, None, 1), None, "draft", lean=False)
    draft = passing_once(draft)
    spelling = Spelling(RUNS, ("a", "b", "ba"), WRITTEN, DRAFTED, 2)
    return Models(target, {"omnidraft": ForeignDraft(draft, spelling)})


def error(models, cls, rule, length, sampling, seen=0):
    return step_error(
        models, lambda: built(cls, models, length=length), rule, sampling, PROMPT, seen
    )


@pytest.mark.parametrize("length", [1, 2, 3, 4])
@pytest.mark.parametrize("sampling", [Sampling(1.0), Sampling(0.7, top_k=3)])
def test_a_step_writes_the_target_law(models, length, sampling):
    """Branch by branch, with tokens of several letters on both sides."""
    assert error(models, BytewiseDrafter, verifier("bytewise"), length, sampling, 1) < EXACT


class WholeString(BytewiseDrafter):
    """A fault: it keeps only the nodes on the way to the end of the whole string. So whether the first token ends there
    depends on letters that were drawn later, and that are judged."""

    def _draft_string(self, tree, length, max_depth):
        super()._draft_string(tree, length, max_depth)
        way = tree.path(len(tree) - 1) if len(tree) else []
        for node in range(len(tree)):
            if node not in way:
                tree.tokens[node] = len(WRITTEN) - 1  # a token that cannot end there


class OtherTemperature(BytewiseDrafter):
    """A fault: it declares flatter laws than those its letters were drawn from."""

    def _draft_string(self, tree, length, max_depth):
        super()._draft_string(tree, length, max_depth)
        tree.aside.laws.copy_(tree.aside.laws.sqrt() / tree.aside.laws.sqrt().sum(-1, keepdim=True))


class EndsSurely(Bytewise):
    """A fault: if all letters of a token were accepted, it takes that token more often than the target ends its token
    there."""

    def trial_of(self, p, tree, draws):
        trial = super().trial_of(p, tree, draws)
        trial.p[tree.tokens[draws[0].node]] *= 1.5
        trial.p /= trial.p.sum()
        return trial


@pytest.mark.parametrize(
    "cls, rule",
    [
        (OtherTemperature, Bytewise()),
        (WholeString, Bytewise()),
        (BytewiseDrafter, EndsSurely()),
    ],
)
def test_nearly_right_ways_are_biased(models, cls, rule):
    assert error(models, cls, rule, 3, Sampling(1.0)) > BIASED


def test_letters_are_bytes_and_the_special_tokens_of_both():
    text = ["the other mother went there 🦊 and then é " * 3]
    target, draft = train_tokenizer(text, 290), train_tokenizer([text[0][::-1], *text], 270)
    target.add_special_tokens({"additional_special_tokens": ["<|user|>"]})
    spelled = spelling_of(target, draft, (len(target) + 1, len(draft)), ("one", "other"))
    for tokenizer, strings in ((target, spelled.written), (draft, spelled.drafted)):
        ids = tokenizer(text[0]).input_ids
        assert bytes(letter for token in ids for letter in strings[token]) == text[0].encode()
    end = spelled.written[target.eos_token_id]
    assert end == spelled.drafted[draft.eos_token_id] and end[0] >= 256
    assert spelled.written[target.convert_tokens_to_ids("<|user|>")] == ()
    assert spelled.written[len(target)] == (), "a row of a padding"


@cache
def embedded():
    return load_models(family(), drafter("bytewise").needs, "float32", "cpu")


def test_bytes_are_kept_more_often_than_whole_tokens_guessed_right():
    """The same drafts on the embedded models, judged byte by byte and as single guesses."""
    models = embedded()
    prompt = models.target.tokenizer("Once upon a time").input_ids
    kept = {}
    for rule in ("bytewise", "rejection"):
        kept[rule] = 0
        for seed in range(8):
            steps = steps_of(
                models, "bytewise", prompt, 24, Sampling(1.0, seed=seed), rule, length=16
            )
            kept[rule] += 24 / len(steps)
    assert kept["bytewise"] > 1.05 * kept["rejection"]


COUNT, BYTES, FALSE_ALARM = 400, 9, 1e-3


def beginnings(cls, rule, first):
    """Return the first bytes of many texts of the embedded target. first: the seed of the first text."""
    models, texts = embedded(), []
    prompt = models.target.tokenizer("Then they saw a").input_ids
    written = models.part("omnidraft").spelling.written
    for seed in range(first, first + COUNT):
        text, options = [], {"length": 12} if cls.needs else {}
        for step in begun(models, cls, prompt, BYTES, Sampling(1.0, seed=seed), rule, **options):
            text += [letter for token in step.output for letter in written[token]]
            if len(text) >= BYTES:
                break
        texts.append(tuple(text[:BYTES]))
    return texts


@pytest.mark.exhaustive
def test_the_embedded_target_s_bytes_have_the_law_of_plain_decoding():
    """Two samples, three bytes at a time. Letters that came from other laws than they say are found out."""
    plain = beginnings(drafter("none"), "rejection", COUNT)
    ours = beginnings(BytewiseDrafter, "bytewise", 0)
    biased = beginnings(OtherTemperature, "bytewise", 0)
    parts = [slice(start, start + 3) for start in range(0, BYTES, 3)]

    def alike(texts):
        return [
            same_law([one[part] for one in plain], [one[part] for one in texts]) for part in parts
        ]

    assert min(alike(ours)) > FALSE_ALARM / len(parts)
    assert min(alike(biased)) < FALSE_ALARM / len(parts)
