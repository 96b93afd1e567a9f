"""A text whose target tells only some of p is drawn from the target's law all the same: every branch of chance is added up,
the engine's own draws among them."""

from functools import cache
from types import SimpleNamespace

import pytest
import torch

from engine.core.chance import Chance
from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.loops import run_loop
from engine.methods import drafter as drafter_class
from engine.proof.enumeration import Law, Oracle, OracleDraftChance, branches
from engine.proof.listed_texts import EveryDraw, RememberingAll
from engine.proof.step_law import Reader
from engine.rules import verifier
from engine.serving import served_text, sglang_questions, vllm_questions
from engine.serving.engine_address import read
from engine.serving.served_target import QUESTIONS, ServedTarget
from tests.engine.small_engine import NAME, SmallEngine
from tests.verifiers.test_pairs import maker
from tests.verifiers.tiny import remembered_models

VOCABULARY, LENGTH, EXACT = 6, 3, 1e-5
PROMPT = (1, 2, 0, 1, 2)
SAMPLED = Sampling(1.0)


@cache
def models():
    return remembered_models(VOCABULARY)


class TinyServed(ServedTarget):
    """The tiny target behind an engine in this process. Requests and answers are those that would go over the wire."""

    def __init__(self, engine: SmallEngine, kind: str) -> None:
        address = read(f"{kind}://here:1/{NAME}")

        def ask(path: str, body: dict) -> object:
            status, answer = engine.answer(path, body)
            assert status == 200
            return answer

        self._client = SimpleNamespace(ask=ask, address=address)
        self._questions = QUESTIONS[kind]
        self.served_name = self.name = NAME
        self.model = SimpleNamespace(generation_config=None)
        self.vocab_size, self.max_context, self.end_tokens = VOCABULARY, 64, frozenset()


@cache
def rows(prompt):
    logits = [models().target.row(prompt[: end + 1], ())[0] for end in range(len(prompt))]
    return torch.stack(logits).log_softmax(-1)


def error(kind: str, drafter: str, rule: str, draw, length: int = LENGTH) -> float:
    """Return the distance between the law of the first step and the target's law. draw(oracle, p): how the engine
    draws."""
    law: Law = {}
    reader = Reader(models(), SAMPLED, length=length)

    def program(oracle: Oracle):
        judge = RememberingAll(verifier(rule))
        engine = SmallEngine(lambda prompt: rows(tuple(prompt)), lambda p, seed: draw(oracle, p))
        chance = Chance(OracleDraftChance(oracle), EveryDraw(oracle, verifier(rule)))
        make = maker(drafter_class(drafter), models())
        request = TextRequest(make(), judge, SAMPLED, PROMPT, length, chance=chance)
        step = next(run_loop(TinyServed(engine, kind), request))
        oracle.weigh(judge.judgements)
        return tuple(step.output)

    for output, oracle in branches(program):
        if oracle.weight:
            for path, weight in reader.law(PROMPT, output).items():
                law[path] = law.get(path, 0.0) + oracle.weight * weight
    truth = reader.law(PROMPT, ())
    assert abs(sum(law.values()) - 1) < EXACT
    return max(abs(law.get(path, 0.0) - truth.get(path, 0.0)) for path in {*law, *truth})


def truly(oracle: Oracle, p) -> int:
    return oracle.choose(torch.where(p > 1e-9, p, 0.0))  # a banned token is left about e^-100


@pytest.fixture(autouse=True)
def few_known(monkeypatch):
    """Let a draft model know two of the six tokens only, so that a rejection often leaves a token that it does not
    know."""
    for module in (served_text, vllm_questions, sglang_questions):
        monkeypatch.setattr(module, "KNOWN", 2)


@pytest.mark.parametrize(
    ("kind", "drafter", "rule", "length"),
    [
        ("vllm", "chain", "rejection", LENGTH),
        ("vllm", "chain", "block", LENGTH),
        pytest.param("vllm", "rsd_c", "traversal", LENGTH, marks=pytest.mark.exhaustive),
        ("vllm", "prompt_lookup", "rejection", LENGTH),
        ("sglang", "chain", "rejection", 2),
        pytest.param("sglang", "rsd_c", "rejection", 2, marks=pytest.mark.exhaustive),
    ],
)
def test_the_law_is_the_targets(kind, drafter, rule, length):
    assert error(kind, drafter, rule, truly, length) < EXACT


def test_a_planted_bias_is_seen():
    """An engine that draws evenly."""

    def evenly(oracle: Oracle, p) -> int:
        return oracle.choose((p > 1e-9).double())

    assert error("vllm", "chain", "rejection", evenly) > 1000 * EXACT


def test_a_token_of_which_only_the_sum_is_known_is_never_kept(monkeypatch):
    monkeypatch.setattr(served_text, "final_token", lambda verdict, seen: verdict.final_token)
    assert error("vllm", "chain", "rejection", truly) > 1000 * EXACT
