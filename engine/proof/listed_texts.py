"""Texts under a constraint that lists them, on a target that is a table, so that every law of whole texts can be worked out:
the target's own, that of masked decoding, and those that a rule comes to."""

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
ROOM = 8  # tokens that a text may have


class Listed(Constraint):
    """texts: each without the token that ends it."""

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
    """The laws of these texts behind a prompt, at temperature 1."""

    def __init__(self, target, prompt: Path, texts: Sequence[Path]) -> None:
        self._texts = [(*text, END) for text in texts]
        self._rows: dict[Path, list[float]] = {}
        for path in {text[:place] for text in self._texts for place in range(len(text))}:
            logits = target.session(len(prompt) + ROOM).extend((*prompt, *path))
            self._rows[path] = logits.double().softmax(-1).tolist()

    def free(self, path: Path) -> float:
        """The probability that a text of the target, without the constraint, begins so."""
        share = 1.0
        for place, token in enumerate(path):
            share *= self._rows[path[:place]][token]
        return share

    def valid(self, prefix: Path = ()) -> float:
        """The probability that a valid text follows a prefix."""
        texts = [text for text in self._texts if text[: len(prefix)] == prefix]
        return sum(map(self.free, texts)) / self.free(prefix)

    def masked(self, worth: Callable[[Path], float] = lambda prefix: 1.0) -> Law:
        """The law of masked decoding. worth: of a prefix, by which p of its last token is weighed."""
        law: Law = {}
        for text in self._texts:
            law[text] = 1.0
            for place in range(len(text)):
                path = text[:place]
                follow = {
                    other[place]: self._rows[path][other[place]] * worth(other[: place + 1])
                    for other in self._texts
                    if other[:place] == path
                }
                law[text] *= follow[text[place]] / sum(follow.values())
        return law

    def whole(self) -> Law:
        """The target's own law of texts, given that the text is valid: the global law."""
        return {text: self.free(text) / self.valid() for text in self._texts}


def apart(one: Mapping[Path, float], other: Mapping[Path, float]) -> float:
    """Total variation: the largest difference of the probability of any set of texts."""
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
    """Write one text under a constraint, at temperature 1."""
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
    """The law of a text, by enumerating all that chance can do, and for a rule that weighs its texts the mean of the weight of each text
    times its probability. write: writes a text with a rule and chances."""
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
    """Asks the oracle for final tokens as well, because further steps follow them."""

    def draw(self, p: Tensor, position: int) -> int:
        return self.oracle.choose(p)


class RememberingAll(Remembering):
    """Remembers the judgements of all verdicts so far, besides the last verdict."""

    def __init__(self, rule: Verifier) -> None:
        super().__init__(rule)
        self.judgements: list[Judgement] = []

    def judge(self, case) -> Verdict:
        super().judge(case)
        self.judgements += self.verdict.judgements
        return self.verdict
