"""Every drafter with every verifier that calls itself lossless with it."""

import copy
import dataclasses
from functools import cache, partial

import pytest

from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.loops import run_loop
from engine.methods import drafters
from engine.methods.asap.rule import Asap
from engine.methods.awrs.rule import Awrs
from engine.methods.chain.drafter import ChainDrafter
from engine.proof.step_law import Reader
from engine.rules import verifier, verifiers
from engine.rules.leaf_to_root import LeafToRoot
from engine.rules.spectr import SpecTr
from tests.drafters.writing import built, steps_of, text_of
from tests.engine.tiny import generated
from tests.grids import some
from tests.statistics import p_value, power
from tests.verifiers.step_errors import step_error
from tests.verifiers.tiny import remembered_models, shared_models

EXACT = 1e-5  # float32 laws; the planted biases are a thousand times larger
PROMPT = (1, 2, 0, 1, 2)

CASES = {  # vocabulary, sampling, steps before the one under test
    "t1": (4, Sampling(1.0), 0),
    "t0.7": (3, Sampling(0.7), 1),
    "top_p": (4, Sampling(1.0, top_p=0.8), 2),
    "top_k": (4, Sampling(0.7, top_k=3, top_p=0.97), 1),
}
FEWEST = {"top_2": (4, Sampling(1.0, top_k=2), 1)}
"""A case with few branches."""
COUNT = 20  # tokens of the texts that are compared
TEXT_SAMPLINGS = [Sampling(1.0, seed=1), Sampling(0.7, seed=2), Sampling(1.0, 8, 0.9, seed=3)]
WORDS = (3, 5, 7, 3, 5)


def small(vocabulary, end_token=None):
    """Return tiny models. Those with few tokens, on which steps are enumerated, make each pass once."""
    return shared_models(vocabulary, end_token=end_token, once=vocabulary <= 4)


def lossless_pairs(sampling):
    """Yield the pairs (drafter, rule) in which the rule is lossless with the drafter."""
    for cls in enumerable():
        for rule in verifiers().values():
            fits = sampling.greedy or not rule.only_greedy
            kinds = cls.kinds(sampling)
            if fits and rule.judges(cls.shape, kinds) and rule.lossless_with(kinds):
                yield cls, verifier(rule.key)


def named(cases, few=lambda *case: True):
    """Return cases for ``parametrize``. few: whether ``make test`` takes a case that is ``usual``."""
    return [
        pytest.param(
            *case,
            id="-".join(getattr(x, "key", x) for x in case),
            marks=() if usual(*case) and few(*case) else pytest.mark.exhaustive,
        )
        for case in cases
    ]


def usual(cls, rule, *_):
    """Return whether ``make test`` takes the pair. Some rules are tried there with one drafter of each shape only:
    those that judge whole branches, which test_branches shows exact on any tree of such a shape, and those that do
    something of their own only under a constraint."""
    few = isinstance(rule, LeafToRoot | Asap | Awrs)
    return not few or cls.key in ("chain", "rsd_c", "multi_chain")


def enumerable():
    """Return the drafters whose parts the tiny family has, and whose loop verifies every token."""
    at_hand = small(4).parts.keys()
    for cls in drafters().values():
        if cls.loop == "speculative" and cls.needs.keys() <= at_hand:
            yield cls


@cache
def exact_keys():
    return [
        cls.key
        for cls in enumerable()
        if verifier("rejection").lossless_with(cls.kinds(Sampling(1.0)))
    ]


def maker(cls, models, **options):
    return partial(built, cls, models, **options)


def text(models, make, rule, sampling, prompt, count):
    request = TextRequest(make(), verifier(rule), sampling, prompt, count)
    return text_of(run_loop(models.target, request))


def memo(vocabulary, end_token=None):
    return remembered_models(vocabulary, end_token)


# ---- Exact, branch by branch --------------------------------------------------------------------


def weighs(cls, rule):
    """Return whether the rule weighs this drafter's draws by a law of its own. SpecTr leaves some draws to rejection
    sampling. A rule that ignores q is shown exact on any tree by test_exactness, and with each drafter by the texts
    below."""
    left = isinstance(rule, SpecTr) and "iid" not in cls.kinds(Sampling(1.0))
    return not (rule.same_text or left)


def cases(cls, rule):
    """Return the cases for this pair: two of the four, which alternate between drafters. It is one case if the rule
    weighs nothing itself, or if test_branches shows it exact."""
    if not weighs(cls, rule):
        return list(FEWEST)
    two = list(CASES)[list(drafters()).index(cls.key) % 2 :: 2]
    return two[:1] if isinstance(rule, LeafToRoot | Asap) else two


PAIRS = list(lossless_pairs(Sampling(1.0)))
WEIGHED = [pair for pair in PAIRS if weighs(*pair)]
PLAIN_SHAPES = ("chain", "rsd_c", "multi_chain", "dyspec", "suffix")
"""Drafters of chains, of drawn trees and of fixed ones: with these ``make test`` enumerates the rules that ignore q, and
SpecTr where it leaves the draws to rejection sampling."""


def in_turn(pairs):
    """Return whether ``make test`` takes a pair: of each drafter one, the rules in turn, besides each rule with
    PLAIN_SHAPES and with the drafter of its name. What a drafter does with its sessions, and what the loop does at an
    end of text, depend on no rule."""
    rules_of, taken = {}, set()
    for cls, rule in filter(lambda pair: usual(*pair), pairs):
        rules_of.setdefault(cls, []).append(rule)
        if cls.key in (rule.key, *PLAIN_SHAPES):
            taken.add((cls, rule.key))
    for place, (cls, rules) in enumerate(rules_of.items()):
        taken.add((cls, rules[place % len(rules)].key))
    return lambda cls, rule: (cls, rule.key) in taken


def told_apart(cls, rule, case):
    """Return whether ``make test`` takes this case of this pair. Each drafter meets its two cases in turn, one with
    each rule that weighs its draws; a rule that weighs nothing meets the PLAIN_SHAPES."""
    if not weighs(cls, rule):
        return cls.key in PLAIN_SHAPES
    weighing = [other for one, other in WEIGHED if one is cls and usual(one, other)]
    both = cases(cls, rule)
    return len(weighing) == 1 or case == both[_place(rule, weighing) % len(both)]


def _place(rule, rules):
    return [one.key for one in rules].index(rule.key)


@pytest.mark.parametrize(
    "cls, rule, case",
    named(((*pair, case) for pair in PAIRS for case in cases(*pair)), told_apart),
)
def test_a_step_writes_the_target_law(cls, rule, case):
    vocabulary, sampling, steps_before = (CASES | FEWEST)[case]
    models = (small if cls.uses_target else memo)(vocabulary)
    assert step_error(models, maker(cls, models), rule, sampling, PROMPT, steps_before) < EXACT


REAL = [
    pair for pair in WEIGHED if not (pair[0].uses_target or isinstance(pair[1], LeafToRoot | Asap))
]


@pytest.mark.parametrize("cls, rule", named(REAL, in_turn(REAL)))
def test_with_the_real_sessions(cls, rule):
    """The same through the KV caches and the tree attention, after two steps."""
    models = small(4)
    error = step_error(models, maker(cls, models), rule, Sampling(1.0, top_k=2), PROMPT, 2, dice=4)
    assert error < EXACT


@pytest.mark.parametrize("cls, rule", named(WEIGHED, in_turn(WEIGHED)))
def test_an_end_of_text_among_the_drafted(cls, rule):
    models = (small if cls.uses_target else memo)(4, end_token=0)
    sampling = Sampling(0.7, top_p=0.9)
    assert step_error(models, maker(cls, models), rule, sampling, PROMPT) < EXACT


class DropsUnlikely(ChainDrafter):
    """A fault: a confidence stop that looks at the drawn token and throws it away."""

    def propose(self, context, max_depth):
        tree = super().propose(context, max_depth)
        unlikely = [node for node, q in enumerate(tree.q) if q < 0.4]
        return tree.truncated(unlikely[0]) if unlikely else tree


class KeepsUnlikely(ChainDrafter):
    """The confidence stop without the fault: the drawn token is kept, and nothing is drafted after it."""

    def propose(self, context, max_depth):
        tree = super().propose(context, max_depth)
        unlikely = [node for node, q in enumerate(tree.q) if q < 0.4]
        return tree.truncated(unlikely[0] + 1) if unlikely else tree


class HidesItsSampling(ChainDrafter):
    """A fault: tokens are drawn at one temperature, and declared at another."""

    def _pick(self, q, drawn):
        return super()._pick(q.sqrt(), drawn)


@pytest.mark.parametrize("wrong", [DropsUnlikely, HidesItsSampling])
def test_a_planted_bias_is_caught(wrong):
    models, rule = memo(4), verifier("rejection")
    assert step_error(models, maker(wrong, models), rule, Sampling(1.0), PROMPT) > 100 * EXACT
    rule = verifier("sampler_match")  # which these faults cannot bias
    assert step_error(models, maker(wrong, models), rule, Sampling(1.0), PROMPT) < EXACT


def test_a_stop_that_keeps_the_drawn_token_is_exact():
    models, rule = memo(4), verifier("rejection")
    error = step_error(models, maker(KeepsUnlikely, models), rule, Sampling(1.0), PROMPT)
    assert error < EXACT


# ---- The same text ------------------------------------------------------------------------------


@cache
def plain(sampling, end_token=None):
    models = small(16, end_token)
    return text(models, maker(drafters()["none"], models), "rejection", sampling, WORDS, COUNT)


@pytest.mark.parametrize("key", exact_keys())
def test_sampler_match_writes_the_text_of_plain_decoding(key):
    """Also where one of its later tokens ends the text, with another sampling. Every drafter meets two of the three
    samplings, because the rule ignores the law that a token was drawn from."""
    sampling = TEXT_SAMPLINGS[exact_keys().index(key) % 2]
    assert len(plain(sampling)) == COUNT
    assert matched(key, sampling) == plain(sampling)
    sampling, whole = TEXT_SAMPLINGS[2], plain(TEXT_SAMPLINGS[2])
    end = next(token for place, token in enumerate(whole) if place == whole.index(token) > 7)
    ended = plain(sampling, end)
    assert ended == whole[: whole.index(end) + 1] == matched(key, sampling, end)


LONG = {
    "jacobi": {"window": 64},
    "lookahead": {"window": 16, "ngram": 6},
    "aggressive": {"length": 512},
}
"""Options that ask for more than a context of 64 tokens holds."""


@pytest.mark.parametrize("key", exact_keys())
def test_a_text_of_one_token_is_written_on_to_the_end_of_the_context(key):
    steps = steps_of(small(16), key, [3], 100, **LONG.get(key, {}))
    assert text_of(steps) == to_the_end()
    assert steps[-1].stop == "context"


@cache
def to_the_end():
    return text_of(steps_of(small(16), "none", [3], 100))


def matched(key, sampling, end_token=None):
    models = small(16, end_token)
    return text(models, maker(drafters()[key], models), "sampler_match", sampling, WORDS, COUNT)


def rules_in_turn():
    """Return every lossless pair at temperature 0, where all rules accept the target's likeliest token. ``make test``
    takes each rule with plain decoding and with PLAIN_SHAPES, and one rule for each drafter whose greedy text the test
    above does not compare."""
    pairs, alone = list(lossless_pairs(Sampling())), {}
    for place, (cls, _) in enumerate(pairs):
        if cls.key not in exact_keys():
            alone.setdefault(cls, []).append(pairs[place])
    taken = {id(each[place % len(each)]) for place, each in enumerate(alone.values())}
    return some(pairs, lambda pair: pair[0].key in ("none", *PLAIN_SHAPES) or id(pair) in taken)


@pytest.mark.parametrize("cls, rule", rules_in_turn())
def test_temperature_zero_writes_the_text_of_generate(cls, rule):
    models = small(16)
    written = text(models, maker(cls, models), rule.key, Sampling(), WORDS, COUNT)
    assert written == of_generate()


@cache
def of_generate():
    model = copy.deepcopy(small(16).target.model)
    model.set_attn_implementation("sdpa")
    return generated(model, list(WORDS), COUNT)


# ---- With the real streams of chance: a test with a stated error rate ---------------------------

SAMPLES = 500
FALSE_ALARM = 1e-3  # of all the comparisons below together
ENDS = Sampling(0.7, top_k=6, top_p=0.95)


def first_two(models, make, rule, samples):
    """The first two tokens of runs whose seeds are 0, 1, 2 ..."""
    for seed in range(samples):
        sampling = dataclasses.replace(ENDS, seed=seed)
        written = []
        for step in run_loop(models.target, TextRequest(make(), rule, sampling, PROMPT, 6)):
            written += step.output
            if len(written) >= 2:
                break
        yield tuple(written[:2])


def two_token_law(models):
    law = {}
    for path, weight in Reader(models, ENDS).law(PROMPT, ()).items():
        law[path[:2]] = law.get(path[:2], 0.0) + weight
    return law


WAYS = {"none", "chain", "dyspec", "multi_chain", "mdsd", "suffix", "jacobi"}
"""One drafter for each way of drawing, and two that learn or read ahead."""


@pytest.mark.parametrize("key", some(exact_keys(), WAYS.__contains__))
def test_the_first_tokens_of_many_runs(key):
    """Sampler-match is covered by the comparison of texts, which shows more."""
    models = (small if drafters()[key].uses_target else memo)(8)
    law = two_token_law(models)
    drawn = first_two(models, maker(drafters()[key], models), verifier("rejection"), SAMPLES)
    assert p_value(drawn, law) > FALSE_ALARM / len(exact_keys())


def test_many_runs_show_a_planted_bias():
    """And any bias that moves a quarter of the probability to the likeliest text.

    The enumeration finds smaller biases; this test covers the streams and the noise.
    """
    models = memo(8)
    law = two_token_law(models)
    likeliest = max(law, key=law.get)
    biased = {path: 0.75 * weight + 0.25 * (path == likeliest) for path, weight in law.items()}
    assert power(law, biased, SAMPLES, FALSE_ALARM / len(exact_keys())) > 0.9
    drawn = first_two(models, maker(DropsUnlikely, models), verifier("rejection"), SAMPLES)
    assert p_value(drawn, law) < FALSE_ALARM / len(exact_keys())
