"""A*-Decoding: search among partial solutions, the most promising first.

Chatziveroglou, A*-Decoding: Token-Efficient Inference Scaling (2025). A state is the prompt followed by some whole
steps of a solution; here a step is one line. To expand a state, several next steps are drawn from the target. r(s) in
[0, 1] is the score of a state, h(s) = 1 - r(s), f = g + h. The state with the least f is expanded next; if this state
is a whole solution, it is the answer.

The paper's cost g could not be established, because only a review of the paper was at hand. According to that review, g
adds up the increases of h on the way to the state, max(0, h(s') - h(s)). The paper's r is a large process reward model.
Here r is a small scorer that was trained on worked sums (``engine.methods.a_star.part``); its scores mean little for
other texts.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.core.chance import JudgeChance
from engine.core.finite import refuse_nan_among
from engine.core.options import whole
from engine.core.sampling import display_distribution
from engine.methods.a_star.part import StepScorer
from engine.methods.shared.reasoning import Steps
from engine.methods.shared.text_search import Candidate, Path, SeveralTexts

APART = 1_000_003  # difference between the seeds of two drawn steps


@dataclass(frozen=True)
class State:
    """A partial solution. path: its tokens. logs: log p of each of these tokens, at temperature 1. h: 1 minus the
    chance that all steps of the solution are right. g: the sum of the increases of h on the way to this state."""

    path: Path = ()
    logs: tuple[float, ...] = ()
    g: float = 0.0
    h: float = 0.0

    @property
    def f(self) -> float:
        return self.g + self.h


@dataclass
class Branch:
    """A step that is being drawn after the state ``above``. path, logs: the tokens of the state and of the step so far,
    and their log p. chance: the random numbers of this step."""

    above: State
    path: Path
    logs: tuple[float, ...]
    chance: JudgeChance


class AStarDrafter(SeveralTexts):
    key = "a_star"
    title = "A*-Decoding"
    summary = "Draws several next steps of a worked sum, scores them, and goes on from the best: another law."
    text_law = "A*-decoding"
    needs = {"a_star": "step_scorer"}
    options = (
        whole("branches", 3, 1, 8, "Steps drawn").meaning("Next steps that are drawn from a state, at temperature 1 where it is 0."),
        whole("expansions", 16, 1, 64, advanced=True).meaning("States that are expanded so; later ones get a single next step."),
    )  # fmt: skip
    trial = {"branches": 2, "expansions": 2}
    texts = 1
    score_name = "minus f"

    def __init__(self, settings, target, scorer: StepScorer) -> None:
        super().__init__(settings, target)
        self._scorer = scorer

    @classmethod
    def build(cls, settings, models):
        return cls(settings, models.target, models.part("a_star"))

    def begin(self, start):
        super().begin(start)
        self._steps = Steps(self.target.tokenizer, "line", self.ends)
        self._states = [State()]
        self._branches: list[Branch] = []
        self._expanded = self._drawn = 0

    def advance(self):
        if not self._branches:
            self._expand(self._states.pop(0))
        paths = list(dict.fromkeys(branch.path for branch in self._branches))
        logits, going = dict(zip(paths, self.read(paths), strict=True)), []
        for branch in self._branches:
            row = logits[branch.path]
            law = display_distribution(row, self.sampling)
            token = branch.chance.draw(law, len(self.start.prompt) + len(branch.path))
            branch.path += (token,)
            branch.logs += (float(row.log_softmax(-1)[token]),)
            self.chances[branch.path] = float(law[token])
            if self.over(branch.path) or self._steps.ended(branch.path[len(branch.above.path) :]):
                self._reach(branch)
            else:
                going.append(branch)
        self._branches = going
        self._states.sort(key=lambda state: (state.f, -len(state.path)))
        self.candidates = [
            *(Candidate(state.path, -state.f, self.over(state.path)) for state in self._states),
            *(Candidate(branch.path, -branch.above.f) for branch in going),
        ]
        if not going and self.over(self._states[0].path):
            self.winner = self._states[0].path

    def _expand(self, state: State) -> None:
        count = self.settings["branches"] if self._expanded < self.settings["expansions"] else 1
        self._expanded += 1
        for _ in range(count):
            seed = (self.sampling.seed + APART * self._drawn) % 2**63
            self._branches.append(Branch(state, state.path, state.logs, JudgeChance(seed)))
            self._drawn += 1

    def _reach(self, branch: Branch) -> None:
        """Add the state that this finished step leads to, unless a state with the same tokens exists."""
        if all(state.path != branch.path for state in self._states):
            right = self._scorer.right(branch.logs, len(branch.above.logs))
            refuse_nan_among([right], "The step scorer")
            h = 1 - right
            g = branch.above.g + max(0.0, h - branch.above.h)
            self._states.append(State(branch.path, branch.logs, g, h))
