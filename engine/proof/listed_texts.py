"""Texts under a constraint that lists all valid texts, for a target that is a table. Every law of whole texts can then
be computed: the target's law, the law of masked decoding, and the laws that rules approach."""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from engine.core.chance import Chance
from engine.core.constraint import Constraint
from engine.core.decode import decode
from engine.core.drafter import Drafter
from engine.core.memory import Memory
from engine.core.rule import Judgement, Verdict, Verifier
from engine.core.sampling import Sampling
from engine.core.target import Target
from engine.core.text import TextRequest
from engine.proof.enumeration import (
    Law,
    Oracle,
    OracleDraftChance,
    OracleJudgeChance,
    Path,
    branches,
)
from engine.proof.step_law import Remembering

END = 0
ROOM = 8  # the most tokens of a text


class Listed(Constraint):
    """The constraint that the text must be one of ``texts``, which are given without the token that ends them."""

    key = "listed"

    def __init__(self, texts: Sequence[Path], vocabulary: int) -> None:
        self._texts, self._vocabulary = [(*text, END) for text in texts], vocabulary
        self.text: Path = ()

    def allowed(self, continuation: Sequence[int]) -> Tensor | None:
        path = (*self.text, *continuation)
        size = len(path)
        follow = {text[size] for text in self._texts if len(text) > size and text[:size] == path}
        if not follow:
            return None
        mask = torch.zeros(self._vocabulary, dtype=torch.bool)
        mask[list(follow)] = True
        return mask

    def commit(self, tokens: Sequence[int]) -> None:
        self.text += tuple(tokens)
        self.committed += len(tokens)


class Laws:
    """The laws of these texts after a prompt, at temperature 1."""

    def __init__(self, target, prompt: Path, texts: Sequence[Path]) -> None:
        self._texts = [(*text, END) for text in texts]
        self._rows: dict[Path, list[float]] = {}
        for path in {text[:place] for text in self._texts for place in range(len(text))}:
            logits = target.session(len(prompt) + ROOM).extend((*prompt, *path))
            self._rows[path] = logits.double().softmax(-1).tolist()

    def free(self, path: Path) -> float:
        """The probability that a text of the target, without the constraint, begins with ``path``."""
        share = 1.0
        for place, token in enumerate(path):
            share *= self._rows[path[:place]][token]
        return share

    def valid(self, prefix: Path = ()) -> float:
        """The probability that the target, without the constraint, completes ``prefix`` to a valid text."""
        texts = [text for text in self._texts if text[: len(prefix)] == prefix]
        return sum(map(self.free, texts)) / self.free(prefix)

    def masked(self, worth: Callable[[Path], float] = lambda prefix: 1.0) -> Law:
        """The law of masked decoding, in which p of each token is also multiplied by ``worth`` of the prefix that ends
        with this token."""
        law: Law = {}
        for text in self._texts:
            law[text] = 1.0
            for place in range(len(text)):
                path = text[:place]
                follow = {
                    listed[place]: self._rows[path][listed[place]] * worth(listed[: place + 1])
                    for listed in self._texts
                    if listed[:place] == path
                }
                law[text] *= follow[text[place]] / sum(follow.values())
        return law

    def whole(self) -> Law:
        """The global law: the target's law of texts, conditioned on the text being valid."""
        return {text: self.free(text) / self.valid() for text in self._texts}


def apart(one: Mapping[Path, float], other: Mapping[Path, float]) -> float:
    """Total variation: the largest difference between the two probabilities of any set of texts."""
    return sum(abs(one.get(text, 0.0) - other.get(text, 0.0)) for text in {*one, *other}) / 2


def written(
    target: Target,
    drafter: Drafter,
    rule: Verifier,
    prompt: Path,
    constraint: Constraint,
    seed: int = 0,
    memory: Memory | None = None,
    chance: Chance | None = None,
) -> Path:
    """Write one text under a constraint, at temperature 1. Returns its tokens."""
    request = TextRequest(
        drafter,
        rule,
        Sampling(1.0, seed=seed),
        prompt,
        ROOM,
        memory=memory,
        chance=chance,
        constraint=constraint,
    )
    return tuple(token for step in decode(target, request) for token in step.output)


def every_text(write: Callable[[Verifier, Chance], Path], rule: Callable[[], Verifier]) -> tuple:
    """Enumerate all random choices. Return two numbers for each text: its probability; and the sum, over all branches
    that write it, of the branch's probability times the weight that the rule gives to its text. write: writes a text
    with a rule and a source of randomness. rule: makes the rule."""
    law: Law = {}
    weighed: Law = {}

    def program(oracle: Oracle) -> tuple[Path, float]:
        judge = RememberingAll(rule())
        text = write(judge, Chance(OracleDraftChance(oracle), EveryDraw(oracle, judge)))
        oracle.weigh(judge.judgements)
        return text, sum(getattr(judge, "log_weights", ()))

    for (text, log_weight), oracle in branches(program):
        law[text] = law.get(text, 0.0) + oracle.weight
        weight = oracle.weight * float(torch.tensor(log_weight).double().exp())
        weighed[text] = weighed.get(text, 0.0) + weight
    return law, weighed


class EveryDraw(OracleJudgeChance):
    """A source of randomness in which final tokens lead to branches, too, because further steps follow them."""

    def draw(self, p: Tensor, position: int) -> int:
        return self.oracle.choose(p)


class RememberingAll(Remembering):
    """A rule that remembers the judgements of all its verdicts, besides the last verdict."""

    def __init__(self, rule: Verifier) -> None:
        super().__init__(rule)
        self.judgements: list[Judgement] = []

    def judge(self, case) -> Verdict:
        super().judge(case)
        self.judgements += self.verdict.judgements
        return self.verdict
