"""Proves, on small models, that a method leaves the target's law unchanged, or refutes it by the smallest
counterexample found.

Three claims are tested with every rule that claims to be exact for the drafter's proposals. At temperature 0, the text
equals the text of plain decoding. Under a rule that keeps the text of plain sampling, the sampled text equals it for
the same seed. Under other rules, the law of the tokens of a step is computed by enumerating all random choices, and
compared with the target's law.
"""

import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import torch

from engine.core.chance import Chance
from engine.core.options import resolve
from engine.core.sampling import Sampling, distribution
from engine.core.text import TextRequest
from engine.core.threads import torch_threads
from engine.errors import UserError
from engine.loops import run_loop
from engine.methods import Drafter
from engine.parts.loading import Models
from engine.parts.opening import language_model
from engine.printable import one_line
from engine.proof.enumeration import Path
from engine.proof.memo import MemoModel, remembering
from engine.proof.step_law import (
    LENGTH,
    CoinsDiffer,
    Counterexample,
    Reader,
    StepLaw,
    TextEnded,
    draft_at,
    furthest,
    step_law,
)
from engine.proof.tiny_parts import tiny_parts, tiny_target
from engine.rules import Verifier, verifier

EXACT = 1e-5
"""The largest difference between two probabilities that counts as zero, because laws are float32."""
TOKENS = 20
"""The length of the texts that are compared."""
SECONDS = 100.0
"""Computing time after which no further case is begun. It is processor time, so a busy machine proves as many cases as
an idle machine."""
MOST_BRANCHES = 40_000
"""A case with more branches is left out."""

ENOUGH = 12
"""A law counts as proven after at least this number of cases. The number is large enough to include the cases with the
longer prompts."""

RUNS = 12_000
DEVIATIONS = 6.0
"""The largest deviation, in standard deviations of a probability measured in RUNS runs, that counts as chance. A false
alarm has probability 10^-8."""

PROMPTS: tuple[Path, ...] = ((1,), (1, 2), (1, 2, 0, 1, 2), (0, 1, 0, 1, 0, 1))
SAMPLINGS = (
    Sampling(1.0),
    Sampling(0.7),
    Sampling(1.0, top_p=0.8),
    Sampling(0.7, top_k=3, top_p=0.97),
)
SEEDS = (1, 2)
SIZES = ((3, None), (4, None), (4, 0))
"""Pairs of the vocabulary's size and the token that ends a text, or None."""


@dataclass
class RuleProof:
    """The proof for one rule.

    how: the kind of claim, in words. cases, branches: how many were computed. error: the largest difference of a
    probability.
    left_out: the number of cases with too many branches, or for which there was no time. enumerated: whether all
    branches of each case were computed.
    """

    rule: str
    how: str
    cases: int = 0
    branches: int = 0
    error: float = 0.0
    left_out: int = 0
    enumerated: bool = False
    counterexample: Counterexample | None = None


@dataclass
class Proof:
    """The proofs for one drafter. kinds: the kinds of draw that the drafter declares. rules: one proof per rule."""

    key: str
    kinds: tuple[str, ...]
    rules: list[RuleProof] = field(default_factory=list)

    @property
    def exact(self) -> bool:
        """Whether at least one rule was tested, and no counterexample was found."""
        return bool(self.rules) and not any(rule.counterexample for rule in self.rules)


class _TooMany(Exception):
    pass


def prove(
    cls: type[Drafter],
    rules: list[type[Verifier]],
    tell: Callable[[str], None] = lambda line: None,
    seconds: float = SECONDS,
    most: int = 10**9,
) -> Proof:
    """Prove or refute that the drafter is exact with each of these rules that claims it. seconds: computing time after
    which no further case is begun. most: the most cases per rule.

    Raises UserError, one sentence, if the drafter cannot be proven: it fails, it does not use the speculative loop, it
    draws from another source than ``self.chance``, or it needs more than a tiny model has.
    """
    if cls.loop != "speculative":
        raise UserError(
            f"The method {cls.key} takes its steps in the loop {cls.loop}; only steps of the speculative loop are proven here."
        )
    with torch_threads(1):  # the models are tiny
        return _proof(cls, rules, tell, time.process_time() + seconds, most)


def _proof(
    cls: type[Drafter], rules: list, tell: Callable[[str], None], until: float, most: int
) -> Proof:
    drawn, greedy = cls.kinds(Sampling(1.0)), cls.kinds(Sampling())
    proof = Proof(cls.key, tuple(sorted(drawn | greedy)))
    bench = _Bench(cls)
    bench.check_repeats()
    claims = [
        rule
        for rule in rules
        if any(rule.lossless_with(k) and rule.judges(cls.shape, k) for k in (greedy, drawn))
    ]
    # rules that are proven by texts come first; rules that are enumerated share the remaining time
    texts = [claim for claim in claims if claim.only_greedy or claim.same_text]
    enumerated = [claim for claim in claims if claim not in texts]
    for rule in [*texts, *enumerated]:
        tell(f"{cls.key} with {rule.key} …")
        if rule.only_greedy:
            shown = bench.greedy_texts(rule)
        elif not (rule.lossless_with(drawn) and rule.judges(cls.shape, drawn)):
            continue
        elif rule.same_text:
            shown = bench.sampled_texts(rule)
        else:
            remaining = len(enumerated) - enumerated.index(rule)
            now = time.process_time()
            shown = bench.laws(rule, now + (until - now) / remaining, most)
        if shown.enumerated and not shown.counterexample and shown.cases < ENOUGH:
            raise UserError(
                f"The method {cls.key} cannot be proven with the rule {rule.key} in this time: only {shown.cases} cases were "
                "small enough. Give its class a trial = {...} with options that make small drafts, or take more --seconds."
            )
        proof.rules.append(shown)
    return proof


class _Bench:
    """Runs the drafter on tiny models."""

    def __init__(self, cls: type[Drafter]) -> None:
        self.cls = cls
        self._models: dict[tuple[int, int | None], Models] = {}
        self._truths: dict[int, Models] = {}
        self._sampled_cases = 0
        try:
            self.settings = resolve(cls.key, cls.options, {**small(cls), **cls.trial})
        except UserError as error:
            raise UserError(
                f"The trial options of the method {cls.key} do not fit: {error}"
            ) from None

    def models(self, vocabulary: int, end: int | None = None) -> Models:
        """A tiny target and the drafter's parts. If the drafter needs no part other than a draft model, the models
        remember their results."""
        if (vocabulary, end) not in self._models:
            target = tiny_target(vocabulary, end_token=end)
            parts = tiny_parts(
                target, [self.cls], lambda module: language_model(module, None, "tiny", lean=False)
            )
            apart = self.cls.uses_target or not {
                *self.cls.needs.values(),
                *self.cls.may_use().values(),
            } <= {"draft"}
            self._models[vocabulary, end] = parts if apart else remembering(parts)
        return self._models[vocabulary, end]

    def truth(self, models: Models) -> Models:
        """The models from which the expected law is computed: their target remembers its results. The law under test is
        computed with ``models`` themselves."""
        if isinstance(models.target, MemoModel):
            return models
        return self._truths.setdefault(id(models), replace(models, target=MemoModel(models.target)))

    def make(self, models: Models) -> Drafter:
        return self.cls.build(self.settings, models)

    def check_repeats(self) -> None:
        """Raises UserError if the drafter makes different drafts for the same random choices."""
        models = self.models(4)
        for sampling in (Sampling(1.0, seed=5), Sampling()):
            drafts = []
            for seed in range(3):
                torch.manual_seed(seed)
                steps = self._steps(
                    models,
                    "rejection" if sampling.temperature else "greedy",
                    sampling,
                    PROMPTS[2],
                    8,
                )
                drafts.append(
                    [(step.tree.tokens, step.tree.parents, step.output) for step in steps]
                )
            if any(draft != drafts[0] for draft in drafts):
                raise UserError(
                    f"The method {self.cls.key} cannot be proven: with the same chances, its drafts differ from run to run. "
                    "Draw with self.chance, which the run owns, and keep nothing from run to run."
                )

    def greedy_texts(self, rule: type[Verifier]) -> RuleProof:
        """Compare the texts at temperature 0 with those of plain decoding."""
        proof = RuleProof(rule.key, "the text of plain decoding at temperature 0")
        return self._texts(proof, rule, [Sampling()])

    def sampled_texts(self, rule: type[Verifier]) -> RuleProof:
        proof = RuleProof(rule.key, "the text of plain sampling with the same seed")
        return self._texts(
            proof,
            rule,
            [
                Sampling(sampling.temperature, sampling.top_k, sampling.top_p, seed)
                for sampling in SAMPLINGS
                for seed in SEEDS
            ],
        )

    def _texts(
        self, proof: RuleProof, rule: type[Verifier], samplings: list[Sampling]
    ) -> RuleProof:
        for (vocabulary, end), prompt, sampling in itertools.product(
            ((4, None), (16, None), (4, 0)), PROMPTS, samplings
        ):
            models = self.models(vocabulary, end)
            steps = self._steps(models, rule.key, sampling, prompt, TOKENS, rule)
            got = [token for step in steps for token in step.output]
            expected = plain(self.truth(models), sampling, prompt, TOKENS)
            proof.cases += 1
            if got != expected:
                at = next(
                    (i for i, (a, b) in enumerate(zip(got, expected, strict=False)) if a != b), 0
                )
                proof.counterexample = Counterexample(
                    rule.key, sampling, vocabulary, prompt, *draft_at(steps, at), tuple(expected[:at]),
                    tuple(expected), tuple(got), texts=True,
                )  # fmt: skip
                return proof
        return proof

    def _steps(
        self, models, rule_key, sampling, prompt, count, rule: type[Verifier] | None = None
    ) -> list:
        judge = rule() if rule is not None else verifier(rule_key)
        request = TextRequest(self.make(models), judge, sampling, prompt, count)
        return list(run_loop(models.target, request))

    def laws(self, rule: type[Verifier], until: float, most: int) -> RuleProof:
        """Compare the laws of steps with the target's, from the smallest case to the largest."""
        proof = RuleProof(rule.key, "the law of a step, all branches enumerated", enumerated=True)
        for vocabulary, end, prompt, sampling, before in cases():
            if proof.cases >= most or time.process_time() > until:
                proof.left_out += 1
                continue
            try:
                law = self._law(rule, vocabulary, end, prompt, sampling, before, until)
            except _TooMany:
                proof.left_out += 1
                continue
            if law is None:
                continue
            if self._sampled_cases:
                proof.how, proof.enumerated = f"the law of a step, measured {RUNS} times", False
            proof.cases, proof.branches = proof.cases + 1, proof.branches + law.branches
            proof.error = max(proof.error, law.error)
            if law.error > EXACT:
                shorter = map(law.shortened, range(1, LENGTH + 1))
                law = next(law for law in shorter if law.error > EXACT)
                proof.counterexample = furthest(rule.key, sampling, vocabulary, law)
                return proof
        return proof

    def _law(self, rule, vocabulary, end, prompt, sampling, before, until) -> StepLaw | None:
        """The law of the step after ``before`` steps; None if the text may end before that step."""
        models, count = self.models(vocabulary, end), 0

        def check() -> None:
            nonlocal count
            count += 1
            if count > MOST_BRANCHES or time.process_time() > until + 20:
                raise _TooMany

        try:
            return step_law(
                models,
                lambda: self.make(models),
                rule(),
                sampling,
                prompt,
                before,
                check=check,
                truth=self.truth(models),
            )
        except TextEnded:
            return None
        except CoinsDiffer:
            return self._sampled(rule, models, sampling, prompt, before)
        except (ValueError, IndexError, RuntimeError, TypeError, AttributeError, KeyError) as error:
            reason = one_line(f"{type(error).__name__}: {error}")
            raise UserError(
                f"The method {self.cls.key} cannot be proven with the rule {rule.key}: {reason}. A rule tosses one coin, "
                "case.chance.toss(), for each judgement that has one, and draws with case.chance.draw."
            ) from error

    def _sampled(self, rule, models, sampling, prompt, before) -> StepLaw | None:
        """The law of a step, estimated from many runs, for a rule that uses one coin for several nodes and so cannot be
        enumerated. Probabilities that differ from the target's by no more than chance explains are set to the
        target's."""
        if before or self._sampled_cases >= 2:
            raise _TooMany
        self._sampled_cases += 1
        truth = self.truth(models)
        reader, counts, trees = Reader(truth, sampling, prompt=prompt), Counter(), []
        for seed in range(RUNS):
            drawn = Sampling(sampling.temperature, sampling.top_k, sampling.top_p, seed)
            request = TextRequest(self.make(models), rule(), drawn, prompt, LENGTH + 1)
            step = next(run_loop(models.target, request))
            counts[tuple(step.output[:LENGTH])] += 1
            if len(trees) < 50:
                trees.append((1.0, step.tree, tuple(step.output)))
        law: dict[Path, float] = {}
        for output, count in counts.items():
            for path, weight in reader.law(prompt, output).items():
                law[path] = law.get(path, 0.0) + count / RUNS * weight
        expected = reader.law(prompt, ())
        for path in {*law, *expected}:
            p, got = expected.get(path, 0.0), law.get(path, 0.0)
            if abs(got - p) <= DEVIATIONS * (max(p * (1 - p), 1 / RUNS) / RUNS) ** 0.5:
                law[path] = p
        return StepLaw(law, expected, prompt, RUNS, trees)


def cases() -> Iterator[tuple[int, int | None, Path, Sampling, int]]:
    """Yields (vocabulary, end token, prompt, sampling, number of earlier steps), small cases first."""
    for (vocabulary, end), before in itertools.product(SIZES, (0, 1, 2)):
        if end is not None and before:
            continue
        for prompt, sampling in itertools.product(PROMPTS, SAMPLINGS):
            yield vocabulary, end, prompt, sampling, before


def small(cls: type[Drafter]) -> dict[str, int]:
    """Small values for a drafter's integer options, because lengths and sizes multiply the branches."""
    values = {}
    for option in cls.options:
        if option.type == "int" and isinstance(option.default, int):
            low = option.minimum if option.minimum is not None else 0
            values[option.name] = int(
                min(max(low, 3), option.maximum if option.maximum is not None else 3)
            )
    return values


def plain(models: Models, sampling: Sampling, prompt: Path, count: int) -> list[int]:
    """The tokens that the target writes without drafts: its own draw at each position."""
    chance, text = Chance.of(sampling.seed), list(prompt)
    while len(text) < len(prompt) + count:
        logits = models.target.session(len(text)).extend(tuple(text))
        if sampling.greedy:
            token = int(logits.argmax())
        else:
            token = chance.judging.draw(distribution(logits, sampling), len(text))
        text.append(token)
        if token in models.target.end_tokens:
            break
    return text[len(prompt) :]
