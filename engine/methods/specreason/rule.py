"""Keep a reasoning step as a whole when its grade is high enough: lossy.

Pan et al., "SpecReason: Fast and Accurate Inference-Time Compute via Speculative Reasoning" (2025).
"""

import math

from torch import Tensor

from engine.core.exhibits import Gauge, Table, Token
from engine.core.options import number
from engine.core.rule import Case, Judgement, Verdict, Verifier
from engine.core.tree import ROOT, DraftTree
from engine.rules.matching import allowed_nodes, law_shown, verdict_of

BEST = 9


class StepGrade(Verifier):
    """The first branch of the tree is one reasoning step, written by the small model. If the step's grade, from 0 to 9,
    reaches the threshold, the whole step is kept and the small model goes on, so the verdict has no final token.
    Otherwise the whole step is dropped and the large model goes on. Forced tokens, for which the constraint on the text
    leaves no choice, come before the step in the branch and are always kept.

    If the pass asked the large model for a digit (``engine.methods.specreason.drafter``), the grade is the mean of the
    digits, weighted by their probabilities, as in the authors' code. Otherwise it is nine times the geometric mean of
    the probabilities that the large model gives the step's tokens. A step with a token that the constraint on the text
    forbids has the grade 0.

    The judgements show p of every token of the step (at temperature 0, the plain softmax instead of the one-hot p).
    ``accept`` is the same in all of them: 1 if the step is kept, otherwise 0. No coin is tossed.
    """

    key = "specreason"
    title = "Graded steps (lossy)"
    summary = "keeps a whole reasoning step if the target grades it high enough; lossy: the target would have written others"
    options = (
        number("threshold", 7.0, 0.0, float(BEST), "least grade").meaning(
            "Least grade, of 9, with which a step is kept (0: every step)."
        ),
    )
    exact_kinds = frozenset()
    sentences = {
        "step.kept": "{token} has p = {p}; its step as a whole was graded high enough and stays. (A lossy rule: the "
        "target might have written another one.)",
        "step.refused": "{token} has p = {p}; its step as a whole was graded too low, and the target writes it again.",
        "recovered": "The step was refused, and the target began it again with {final}.",
        "bonus": "The target wrote its own token here: {final}.",
    }

    def judge(self, case: Case) -> Verdict:
        tree = case.tree
        forced, step = _parted(tree)
        p, best = law_shown(case), self.settings["threshold"]
        chances = [float(p[tree.parents[node] + 1, tree.tokens[node]]) for node in step]
        grade = self._grade(case, step, chances)
        kept = bool(step) and grade >= best
        judgements = [Judgement(node, "step", 1.0, None, 1.0, None) for node in forced] + [
            Judgement(node, "step", p, None, float(kept), None)
            for node, p in zip(step[: None if kept else 1], chances, strict=False)
        ]
        accepted = [*forced, *step] if kept else forced
        place = forced[-1] if forced else ROOT
        token = case.chance.draw(case.p[place + 1], case.position + len(forced))
        final = None if kept else "recovered" if step else "bonus"
        verdict = verdict_of(tree, [ROOT, *accepted], judgements, token, final)
        if step:
            shown = self._shown(grade, _asked(case))
            verdict.exhibits += [shown, _table(tree, step, chances, kept)]
        return verdict

    def _grade(self, case: Case, step: list[int], chances: list[float]) -> float:
        if not step or not all(allowed_nodes(case)[node] for node in step):
            return 0.0
        if _asked(case):
            return mean_digit(case.probes[-1], case.probe_rows.choices)
        logs = [math.log(p) if p > 0 else -math.inf for p in chances]
        return BEST * math.exp(sum(logs) / len(logs))

    def _shown(self, grade: float, by_answer: bool) -> Gauge:
        threshold = self.settings["threshold"]
        how = "By the large model's answer." if by_answer else "By the likelihood of the step."
        stays = grade >= threshold
        note = (
            f"{how} High enough: it stays."
            if stays
            else f"{how} Too low: the large model writes it."
        )
        return Gauge("Grade of the step", grade, maximum=BEST, mark=threshold, note=note)


def _asked(case: Case) -> bool:
    """Whether the pass asked the large model for a digit."""
    probes = case.probe_rows
    return probes is not None and bool(probes.choices) and case.probes is not None


def mean_digit(logits: Tensor, choices) -> float:
    """Return the mean of the digits 0 to 9, weighted by their probabilities. logits: [V], the large model's logits at
    the position where its answer is expected. choices: the tokens of the digits 0, 1 ... 9, in this order."""
    shares = logits[list(choices)].double().softmax(-1).tolist()
    return sum(digit * share for digit, share in enumerate(shares))


def _parted(tree: DraftTree) -> tuple[list[int], list[int]]:
    """Return the first branch as two lists of nodes: its forced tokens, and the step that follows them."""
    branch, place = [], ROOT
    while children := tree.children(place):
        place = children[0]
        branch.append(place)
    return branch[: tree.forced], branch[tree.forced :]


def _table(tree: DraftTree, step: list[int], chances: list[float], kept: bool) -> Table:
    rows = [[Token(tree.tokens[node]), p] for node, p in zip(step, chances, strict=True)]
    title = "The step that the small model wrote"
    note = "Lossy: it stays as a whole." if kept else "It was thrown away as a whole."
    return Table(title, ["token", "large model's p"], rows, note=note)
