"""Further training of an EAGLE cell, rewarded by the accepted length of its draft trees: group tree optimization.

Hu et al., "Bridging Draft Policy Misalignment: Group Tree Optimization for Speculative Decoding" (2025). A *group* is a
run of consecutive places in a text. After each place two cells draft a tree: the cell in training, and a fixed copy of
it from before the training. The difference of the two trees' expected accepted lengths, standardized within the group,
is the *advantage*. For the tokens that the target accepts from the tree of the cell in training, the ratio of the two
cells' likelihoods is computed and clipped. The product of advantage and ratio is maximised, as in PPO, in addition to
the ordinary loss of an EAGLE cell.

The paper's smooth maximum (eta = 1), groups of 4 to 8 and two phases are kept; the first phase is the recipe ``eagle``.
The paper's weight of the two losses and its clip were not known when this was written; the options' values are ours.

Letters in shapes: S windows, G places of a group.
"""

import torch
from torch import Tensor

from engine.core.options import number, whole
from engine.methods.gto.tree_reward_training import (
    GrownTree,
    Lender,
    Policy,
    advantages,
    grown,
    laws_of,
    longest_accepted,
    reward,
)
from engine.methods.shared.eagle_cell import EagleCell
from engine.training.cell_training import unrolled
from engine.training.student import Lesson
from engine.training.students.cell_student import STEPS, CellStudent, begun_by

ETA = 1.0


class GTOStudent(CellStudent):
    key = "gto"
    summary = "a trained `eagle` cell (--start), rewarded by the accepted length of its trees"
    after = "eagle"
    options = (
        whole("group", 4, 2, 8).meaning("Places of a group, at which trees are drafted."),
        whole("nodes", 11, 1, 64).meaning("Nodes of a tree."),
        whole("depth", 5, 1, 16).meaning("Longest branch of a tree."),
        whole("top_k", 4, 1, 32).meaning("Width of a tree."),
        number("weight", 0.01, 0.0, 100.0).meaning("Of the tree's loss beside the usual one."),
        number("clip", 0.2, 0.01, 1.0).meaning("How far the likelihood ratio may lie from 1."),
        STEPS,
    )

    def __init__(self, target, settings, begun: EagleCell) -> None:
        super().__init__(target, settings, begun)
        self._lender = Lender.of(target)
        self._policy = Policy(*(settings[name] for name in ("nodes", "depth", "top_k")))

    @classmethod
    def of(cls, teacher, settings):
        return begun_by(cls, teacher, settings, teacher.start or teacher.parts / cls.after)

    @property
    def logit_sets(self) -> int:
        return super().logit_sets + 1

    def loss(self, part: EagleCell, lesson: Lesson) -> Tensor:
        return super().loss(part, lesson) + self.settings["weight"] * self.tree_loss(part, lesson)

    def tree_loss(self, part: EagleCell, lesson: Lesson) -> Tensor:
        """Return the clipped surrogate loss, the mean over all places of the groups. A group has the weight 0 if one of
        its tokens is excluded from the loss."""
        roots = self._roots(lesson)
        rewards, paths = self._judged(part, lesson, roots)
        weight = advantages(*rewards)
        counts = torch.stack(
            [row[places + 1] for row, places in zip(lesson.counted, roots, strict=True)]
        )
        weight = (weight * counts.all(-1, keepdim=True).cpu()).flatten().to(lesson.features.device)
        steps = max(map(len, paths))
        if not steps:
            return lesson.features.new_zeros(())
        own = self._likelihood(part, lesson, roots, paths, steps)
        with torch.no_grad():
            before = self._likelihood(self.rival, lesson, roots, paths, steps)
        ratio = (own - before).exp()
        clip = self.settings["clip"]
        near = ratio.clamp(1 - clip, 1 + clip)
        return -torch.minimum(ratio * weight, near * weight).mean()

    def _roots(self, lesson: Lesson) -> Tensor:
        """Return the places of the roots, int64 [S, G]: one group per window, at a random position for which the index
        of the batch is the seed. Every root has a feature before it and a token after it."""
        windows, length = lesson.tokens.shape
        size = min(self.settings["group"], length - 2)
        generator = torch.Generator().manual_seed(lesson.index)
        first = torch.randint(1, length - size, (windows, 1), generator=generator)
        return first + torch.arange(size)

    def _judged(
        self, part: EagleCell, lesson: Lesson, roots: Tensor
    ) -> tuple[tuple[Tensor, Tensor], list[list[int]]]:
        """Return three things. First and second: the rewards, [S, G] each, of the trees of this cell and of the fixed
        copy of the starting cell. Third: for each tree of this cell, group by group, the tokens that greedy
        verification would keep."""
        trees: list[list[GrownTree]] = []
        for features, tokens, some in zip(lesson.features, lesson.tokens, roots, strict=True):
            inputs = (self._lender, features, tokens.tolist(), some.tolist(), self._policy)
            trees.append([*grown(part, *inputs), *grown(self.rival, *inputs)])
        laws = laws_of(self.target, lesson.tokens, trees)
        size = roots.shape[1]
        rewards = torch.zeros(2, *roots.shape)
        paths: list[list[int]] = []
        for window, (some, window_laws) in enumerate(zip(trees, laws, strict=True)):
            for at, (tree, law) in enumerate(zip(some, window_laws, strict=True)):
                behind = lesson.logits[window, tree.root].float().softmax(-1)
                whose, place = divmod(at, size)
                rewards[whose, window, place] = reward(tree, behind, law, ETA)
                if not whose:
                    paths.append(longest_accepted(tree, behind, law))
        return (rewards[0], rewards[1]), paths

    def _likelihood(
        self, cell: EagleCell, lesson: Lesson, roots: Tensor, paths: list[list[int]], steps: int
    ) -> Tensor:
        """Return, for each path, the mean log-likelihood of its tokens under a cell whose own states are fed back, [S *
        G]; 0 for an empty path."""
        device = lesson.tokens.device
        rows = torch.arange(len(roots)).repeat_interleave(roots.shape[1]), roots.flatten() - 1
        drafted = lesson.tokens.new_zeros(len(roots), lesson.tokens.shape[1] - 1, steps)
        path_tokens = torch.zeros(len(paths), steps, dtype=torch.long)
        counts = torch.zeros(len(paths), steps)
        for at, path in enumerate(paths):
            path_tokens[at, : len(path)] = torch.tensor(path, dtype=torch.long)
            counts[at, : len(path)] = 1 / max(1, len(path))
        drafted[rows] = path_tokens = path_tokens.to(device)
        total = torch.zeros(len(paths), device=device)
        inputs = (lesson.features, lesson.tokens, self._embedding, steps, drafted)
        for step, states in enumerate(unrolled(cell, *inputs)):
            logits = cell.spread(
                cell.logits(states[rows], self._head).float(), self._lender.vocab_size
            )
            said = logits.log_softmax(-1).gather(-1, path_tokens[:, step, None])[:, 0]
            on = counts[:, step].to(device)
            total = total + torch.where(on > 0, said, 0.0) * on
        return total


STUDENT = GTOStudent
