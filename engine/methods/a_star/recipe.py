"""The recipe `a_star` trains a step scorer for worked sums (``engine.methods.a_star.part``).

It uses two kinds of worked sums: those that the target itself writes, and right ones of the generator in which one
digit was replaced by a wrong one. The end of every reasoning step has a label: whether the generator's answer begins
with the answer up to there. The scorer learns the label by binary cross-entropy. Held-out sums of both kinds measure
its accuracy. A run takes a few minutes of one core.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import AutoTokenizer, PreTrainedModel

from engine.methods.a_star.part import StepScorer, told
from engine.methods.shared.reasoning import Steps
from engine.model.generation import ends_of
from engine.parts.digest import FIELD, digest_of
from engine.parts.opening import causal_model
from engine.training.checkpoint import write_whole
from engine.training.common import place, say, usual_device
from engine.training.generators.arithmetic import large_sum, stepwise
from engine.training.generators.words import is_held_out
from engine.training.selftext import continue_batch

INNER = 8
DRAWN, PLANTED, HELD_OUT = 96, 192, 96  # sums of each kind; HELD_OUT of either kind are held out
ROWS = 96  # sums that the target works at once
TEMPERATURE = 1.5
LONGEST = 140  # tokens of a worked sum
LOOKS, RATE, DECAY = 600, 1e-2, 0.05  # training steps on the full batch, step size, weight decay


@dataclass(frozen=True)
class Worked:
    """A worked sum. prompt, answer: tokens. truth: the text of the right answer, as the generator writes it."""

    prompt: list[int]
    answer: list[int]
    truth: str


@dataclass(frozen=True)
class Labelled:
    """The scorer's inputs and labels for the ends of N reasoning steps. signals: float32 [N, TOLD], for each step the
    scorer's input at its end. right: bool [N], for each step whether the answer up to its end is right."""

    signals: Tensor
    right: Tensor

    @property
    def share(self) -> float:
        return float(self.right.float().mean())

    def accuracy(self, odds: Tensor) -> float:
        return float(((odds > 0) == self.right).float().mean())

    def auc(self, odds: Tensor) -> float:
        """Return the chance that a right text has higher odds than a wrong one; equal odds count half. odds: [N]."""
        right, wrong = odds[self.right][:, None], odds[~self.right][None]
        return float(((right > wrong).float() + 0.5 * (right == wrong).float()).mean())


class Sums:
    """Makes worked sums with a target, and labels them at the ends of their reasoning steps."""

    def __init__(self, module: PreTrainedModel, tokenizer) -> None:
        self._module, self._tokenizer = module, tokenizer
        self._ends = ends_of(module, tokenizer).tokens
        self._steps = Steps(tokenizer, "line", self._ends)

    def drawn(self, seed: int, count: int, held_out: bool) -> list[Worked]:
        """Return ``count`` sums with answers of the target, drawn at a temperature at which it sometimes goes wrong."""
        sums = [(self._tokens(prompt), truth) for prompt, truth in texts(seed, count, held_out)]
        torch.manual_seed(seed)
        worked_sums = []
        for start in range(0, count, ROWS):
            batch = sums[start : start + ROWS]
            prompts = [prompt for prompt, _ in batch]
            answers = continue_batch(self._module, prompts, LONGEST, TEMPERATURE, min(self._ends))
            worked_sums += [
                Worked(prompt, answer, truth)
                for (prompt, truth), answer in zip(batch, answers, strict=True)
            ]
        return worked_sums

    def planted(self, seed: int, count: int, held_out: bool) -> list[Worked]:
        """Return ``count`` sums with answers of the generator, in each of which one digit was replaced by a wrong
        one."""
        rng, worked_sums = random.Random(seed), []
        for prompt, truth in texts(seed, count, held_out):
            place = rng.choice([at for at, letter in enumerate(truth) if letter.isdigit()])
            digit = rng.choice([wrong for wrong in "0123456789" if wrong != truth[place]])
            said = truth[:place] + digit + truth[place + 1 :]
            answer = [*self._tokens(said), min(self._ends)]
            worked_sums.append(Worked(self._tokens(prompt), answer, truth))
        return worked_sums

    def labelled(self, worked: Sequence[Worked]) -> Labelled:
        """Return, for each reasoning step of these answers, the scorer's input at the step's end, and whether the
        answer up to there is right: whether the generator's answer begins with it."""
        rows, rights = [], []
        for worked_sum in worked:
            logs, begun = self._logs(worked_sum), 0
            for at, right in self.labels(worked_sum):
                rows.append(told(logs[: at + 1], begun))
                rights.append(right)
                begun = at + 1
        return Labelled(torch.stack(rows), torch.tensor(rights))

    def labels(self, worked_sum: Worked) -> Iterator[tuple[int, bool]]:
        """Yield, for each token that ends a reasoning step, the token's index in the answer, and whether the answer up
        to this token is right."""
        begun = 0
        for at, token in enumerate(worked_sum.answer):
            if self._steps.ended(worked_sum.answer[begun : at + 1]):
                begun = at + 1
                said = self._tokenizer.decode(
                    [t for t in worked_sum.answer[:begun] if t not in self._ends]
                )
                yield (
                    at,
                    said == worked_sum.truth
                    if token in self._ends
                    else worked_sum.truth.startswith(said),
                )

    @torch.inference_mode()
    def _logs(self, worked_sum: Worked) -> list[float]:
        """Return log p of each token of the answer, where p is the target's distribution at temperature 1."""
        ids = torch.tensor([[*worked_sum.prompt, *worked_sum.answer]], device=self._module.device)
        logits = (
            self._module(ids, use_cache=False).logits[0, len(worked_sum.prompt) - 1 : -1].float()
        )
        answer = ids[0, len(worked_sum.prompt) :, None]
        return logits.log_softmax(-1).gather(-1, answer)[:, 0].tolist()

    def _tokens(self, text: str) -> list[int]:
        return self._tokenizer(text).input_ids


def texts(seed: int, count: int, held_out: bool) -> Iterator[tuple[str, str]]:
    """Yield ``count`` pairs of a prompt and a worked answer, both by the generator. Either all of the prompts are held
    out from training or none is."""
    rng = random.Random(f"step scorer/{seed}/{held_out}")
    while count:
        prompt, truth = stepwise(*large_sum(rng))
        if is_held_out(prompt) == held_out:
            count -= 1
            yield prompt, truth


def fitted(labelled: Labelled, seed: int) -> StepScorer:
    """Return a scorer that has learned these labels. It learns from signals scaled to mean 0 and deviation 1; the
    scaling then goes into its weights."""
    torch.manual_seed(seed)
    scorer = StepScorer(INNER)
    mean, spread = labelled.signals.mean(0), labelled.signals.std(0).clamp(min=1e-6)
    inputs, labels = (labelled.signals - mean) / spread, labelled.right.float()
    optimizer = torch.optim.AdamW(scorer.parameters(), RATE, weight_decay=DECAY)
    for _ in range(LOOKS):
        optimizer.zero_grad()
        F.binary_cross_entropy_with_logits(scorer(inputs), labels).backward()
        optimizer.step()
    with torch.no_grad():
        scorer.inner.weight /= spread
        scorer.inner.bias -= scorer.inner.weight @ mean
    return scorer.eval().requires_grad_(False)


def recipe(args) -> None:
    """sums of the generators, and the target's own -> <models>/parts/a_star: a scorer of their steps (also of --target DIR)"""
    folder = args.target or place(args, "target")
    module = causal_model(str(folder), torch.float32).to(usual_device()).eval()
    sums = Sums(module.requires_grad_(False), AutoTokenizer.from_pretrained(folder))
    learned = _of(sums, args.seed, DRAWN, PLANTED, held_out=False)
    scorer = fitted(_joined(learned.values()), args.seed)
    figures = {}
    for name, labelled in _of(sums, args.seed, HELD_OUT, HELD_OUT, held_out=True).items():
        odds = scorer(labelled.signals)
        figures[name] = {
            "steps": len(odds),
            "right": round(labelled.share, 4),
            "accuracy": round(labelled.accuracy(odds), 4),
            "auc": round(labelled.auc(odds), 4),
        }
        say(f"held out, {name}: {json.dumps(figures[name])}")
    output = args.output or args.models / "parts" / (args.name or "a_star")
    about = {FIELD: digest_of(folder), "held_out": figures}
    write_whole(output, lambda beside: scorer.save(beside, about))
    say(f"written to {output}")


def _of(sums: Sums, seed: int, drawn: int, planted: int, held_out: bool) -> dict[str, Labelled]:
    sets = {
        "drawn": sums.labelled(sums.drawn(seed, drawn, held_out)),
        "planted": sums.labelled(sums.planted(seed, planted, held_out)),
    }
    for name, labelled in sets.items():
        say(f"{name}: {len(labelled.right):,} steps, {labelled.share:.0%} right")
    return sets


def _joined(every: Iterable[Labelled]) -> Labelled:
    every = list(every)
    return Labelled(
        torch.cat([labelled.signals for labelled in every]),
        torch.cat([labelled.right for labelled in every]),
    )
