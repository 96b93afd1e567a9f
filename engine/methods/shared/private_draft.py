"""A visitor's own copy of a draft model, which learns from the tokens that the target rejected.

Liu et al., Online Speculative Decoding (2024): for each rejected token, its context and the target's p at its position
are stored, and from time to time the draft model is distilled on them. The copy starts as the draft model that all
visitors share, and stores only the weights that learn. The copy is made at the first update. It is kept in the
visitor's memory in this app, and is deleted when this memory is emptied.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from engine.core.memory import Store
from engine.errors import UserError
from engine.model.language_model import LanguageModel
from engine.model.structure import structure_of

MOST_WEIGHTS = 4 << 20  # the most bytes of a copy; in a larger one only the upper layers learn
MOST_TOKENS = 8192  # the most tokens of all stored texts; the oldest text is dropped first
LIKELIEST = 16  # how many of the likeliest tokens of each of the target's laws are stored
WINDOW = 128  # the most tokens that an update reads before a failure
WINDOWS = 2  # windows per update: one from the newest text, the others from any text
MOST_POINTS = 64  # the most points of the history
POINT = 16  # judged tokens per point of the history; doubled each time the history is full


@dataclass
class Passage:
    """A text with its failures: the positions at which a drafted token was rejected. places: for each failure, the
    number of tokens before the rejected one. ids: for each failure, the target's likeliest tokens at this position,
    [LIKELIEST]. p: the target's probabilities of these tokens, [LIKELIEST]."""

    tokens: list[int]
    places: list[int] = field(default_factory=list)
    ids: list[Tensor] = field(default_factory=list)
    p: list[Tensor] = field(default_factory=list)

    def add(self, place: int, law: Tensor) -> None:
        """Add a failure. place: the number of tokens before the rejected one. law: the target's p [V] at the position
        of the rejected token."""
        best = law.topk(min(LIKELIEST, len(law)))
        self.places.append(place)
        self.ids.append(best.indices.to("cpu", torch.int32))
        self.p.append(best.values.float().cpu())

    @property
    def nbytes(self) -> int:
        law = self.ids[0].nbytes + self.p[0].nbytes if self.places else 0
        return 8 * len(self.tokens) + (8 + law) * len(self.places)

    def window(self, last: int) -> tuple[list[int], list[int], Tensor, Tensor]:
        """Return a window of the text that ends before failure number ``last``, as four values: up to WINDOW tokens;
        the indices of those n tokens in the window after which a token was rejected; the target's k likeliest tokens
        after each of these, [n, k]; and the target's probabilities of them, [n, k]."""
        end = self.places[last]
        start = max(0, end - WINDOW)
        first = next(n for n, place in enumerate(self.places) if place > start)
        chosen = slice(first, last + 1)
        inside = [place - 1 - start for place in self.places[chosen]]
        return (
            self.tokens[start:end],
            inside,
            torch.stack(self.ids[chosen]).long(),
            torch.stack(self.p[chosen]),
        )


@dataclass
class History:
    """The share of accepted tokens over time. points: this share for each group of ``width`` judged tokens, the oldest
    group first."""

    width: int = POINT
    points: list[float] = field(default_factory=list)
    _kept: int = 0
    _judged: int = 0

    def see(self, kept: int, judged: int) -> None:
        self._kept += kept
        self._judged += judged
        if self._judged >= self.width:
            self.points.append(self._kept / self._judged)
            self._kept = self._judged = 0
        if len(self.points) > MOST_POINTS:
            pairs = zip(self.points[::2], self.points[1::2], strict=False)
            self.points = [(first + second) / 2 for first, second in pairs]
            self.width *= 2


class PrivateDraft(Store):
    """The private draft model of one visitor. model: the copy that learns, or before the first update the shared draft
    model. version: the number of updates so far. failures: the number of rejected tokens so far. waiting: the number of
    rejected tokens since the last update."""

    def __init__(self, shared: LanguageModel, rate: float) -> None:
        """shared: the draft model that all visitors share. rate: how far an update may change a weight, as a share of
        the weight's size."""
        self.model, self._shared, self._rate = shared, shared, rate
        self.version = self.failures = self.waiting = 0
        self.history = History()
        self._passages: deque[Passage] = deque()
        self._learner: Learner | None = None
        self._random = torch.Generator().manual_seed(0)

    @property
    def nbytes(self) -> int:
        learned = 0 if self._learner is None else self._learner.nbytes
        return learned + sum(passage.nbytes for passage in tuple(self._passages))

    def begin(self, tokens: Sequence[int]) -> Passage:
        """Start a new text; returns the ``Passage`` of this text, to which failures are added."""
        passage = Passage(list(tokens))
        self._passages.append(passage)
        self._forget()
        return passage

    def _forget(self) -> None:
        passages = self._passages
        while len(passages) > 1 and sum(len(passage.tokens) for passage in passages) > MOST_TOKENS:
            passages.popleft()

    def failed(self, passage: Passage, place: int, law: Tensor) -> None:
        passage.add(place, law)
        self.failures += 1
        self.waiting += 1

    def update(self) -> None:
        """Make one step of gradient descent on the failures in ``WINDOWS`` windows. Nothing changes if there are no
        failures, or if the gradient is not finite."""
        self.waiting = 0
        chosen = list(self._chosen())
        if not chosen:
            return
        if self._learner is None:
            self._learner = Learner(self._shared, self._rate)
            self.model = self._learner.model
        self.version += self._learner.learn(chosen)
        self._forget()

    def _chosen(self) -> Iterator[tuple]:
        passages = [passage for passage in self._passages if passage.places]
        for place in range(WINDOWS if passages else 0):
            passage = passages[-1] if not place else passages[self._any(len(passages))]
            newest = len(passage.places) - 1
            yield passage.window(newest if not place else self._any(newest + 1))

    def _any(self, count: int) -> int:
        return int(torch.randint(count, (1,), generator=self._random))


class Learner:
    """A copy of a draft model. Its last weights, up to ``MOST_WEIGHTS`` bytes, are its own and learn; all other weights
    are shared with the original. model: the copy as a language model."""

    def __init__(self, shared: LanguageModel, rate: float) -> None:
        try:
            self._module = structure_of(shared.model)
            self._own = own_weights(self._module)
            self.model = shared.uncompiled(structure_of(self._module))
        except TypeError as error:
            raise UserError(f"{shared.name} cannot be copied, so it cannot learn.") from error
        use_plain_attention(self._module)
        self._optimizer = torch.optim.Adafactor(self._own, lr=rate, weight_decay=0.0)

    @property
    def nbytes(self) -> int:
        states = list(self._optimizer.state.values())
        kept = [
            value for state in states for value in list(state.values()) if isinstance(value, Tensor)
        ]
        return sum(tensor.nbytes for tensor in (*self._own, *kept))

    @torch.enable_grad()
    def learn(self, windows: Sequence[tuple]) -> bool:
        """Make one optimiser step on the cross-entropy with the target's p at all failures in these windows (see
        ``Passage.window``). Tokens that the draft model's head lacks are ignored. If the gradient is not finite, change
        nothing and return False; otherwise return True."""
        for weight in self._own:
            weight.requires_grad_(True)
        places = sum(len(window[1]) for window in windows)
        for tokens, inside, ids, p in windows:
            device = self._own[0].device
            inputs = torch.tensor([self.model.readable(tokens)], device=device)
            logits = self._module(input_ids=inputs, use_cache=False).logits[0, inside]
            in_head = ids < logits.shape[-1]
            ids, p = (ids * in_head).to(device), (p * in_head).to(device)
            log_q = logits.float().log_softmax(-1).gather(-1, ids)
            (-(p * log_q).sum() / places).backward()
        finite = bool(nn.utils.clip_grad_norm_(self._own, 1.0).isfinite())
        if finite:
            self._optimizer.step()
        for weight in self._own:
            weight.grad = None
            weight.requires_grad_(False)
        return finite


def own_weights(module: nn.Module, most: int = MOST_WEIGHTS) -> list[nn.Parameter]:
    """Replace weights of the module by copies, and return the copies. The weights are visited from the last to the
    first; a weight that would take the copies above ``most`` bytes in total is skipped. A weight that the module uses
    several times is replaced by one copy."""
    own: dict[int, nn.Parameter] = {}
    for weight in reversed(list(module.parameters())):
        if weight.nbytes <= most:
            most -= weight.nbytes
            own[id(weight)] = nn.Parameter(weight.detach().clone(), requires_grad=False)
    for part in module.modules():
        for name, weight in part._parameters.items():
            if weight is not None and id(weight) in own:
                part._parameters[name] = own[id(weight)]
    return list(own.values())


def use_plain_attention(module: nn.Module) -> None:
    """Switch the module to an attention of transformers, which has gradients and needs none of the engine's masks."""
    for name in ("sdpa", "eager"):
        try:
            return module.set_attn_implementation(name)
        except (ValueError, ImportError):
            continue
