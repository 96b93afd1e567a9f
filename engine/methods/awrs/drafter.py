"""Several texts under a constraint, weighed and resampled; the draft model draws their tokens.

Lipkin et al., Fast Controlled Generation from Language Models with Adaptive Weighted Rejection Sampling (2025), here
with a proposal distribution. A draft model draws the next tokens of every text from its distribution q, and the
constraint is asked about drawn tokens only (``engine.methods.awrs.allowed_draw``). Then one pass of the target reads
the new tokens of all texts and adds one token drawn from the target to each text. When the effective number of texts
falls below half, texts with little weight are replaced by copies of texts with more weight.

Why the weights are right: let x be the token drawn from q at one position, with the weight w. For each allowed token v,
the probability of x = v, times the mean of w given x = v, is q(v); for every other token it is 0. If w p(x) / q(x)
takes the place of w, the result is p(v) instead of q(v), provided that q is above 0 where p is. By the tower rule, the
probability of a text y, times the mean of the product of its weights, is the target's probability of y if y is valid.
The sum of this over all y is the probability of a valid text. Resampling does not change these means. As the number of
texts grows, one text drawn by its weight approaches the target's own law of valid texts.

Without a draft model, or with top-k, top-p or another cut, every token is drawn from the target's own p, and the ratio
p / q is 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from torch import Tensor

from engine.core.exhibits import Gauge
from engine.core.options import whole
from engine.core.sampling import display_distribution
from engine.core.tree import ROOT
from engine.errors import UserError
from engine.methods.awrs.allowed_draw import Died, Tested, draw_allowed
from engine.methods.awrs.particles import Particle, effective, log_mean, resampled, shares_of
from engine.methods.shared.draft_model import DraftReader
from engine.methods.shared.text_search import Candidate, Path, SeveralTexts

LEAST = 0.5  # the texts are resampled if their effective number is below this share of their number
NARROW = 1e-3
"""The most probability that the target may give, at one position, to all tokens with q = 0 together. Such tokens are
never drafted, so the mean weight of the position is too small by this probability."""


class AwrsDrafter(SeveralTexts):
    key = "awrs"
    title = "Weighed texts (AWRS)"
    summary = "The draft model draws several texts; each is weighed by what the target and the constraint say: another law."
    text_law = "weighed texts"
    options = (
        whole("texts", 8, 1, 32, "Texts").meaning("Texts that are written side by side; one is drawn by its weight in the end."),
        whole("length", 4, 0, 16, "Length").meaning("Tokens that the draft model draws for each text in a pass (0: none, the target draws all)."),
    )  # fmt: skip
    trial = {"texts": 2, "length": 2}
    score_name = "log of the weight"

    def __init__(self, settings, target, draft=None) -> None:
        super().__init__(settings, target)
        self._draft = draft

    @classmethod
    def may_use(cls):
        return {"draft": "draft"}

    @classmethod
    def build(cls, settings, models):
        return cls(settings, models.target, models.parts.get("draft"))

    @property
    def texts(self):
        return self.settings["texts"]

    def begin(self, start):
        super().begin(start)
        self.particles = [Particle() for _ in range(self.texts)]
        self.checks = self.written = self.resampled = 0
        self._p: dict[Path, Tensor] = {}
        self._q: dict[Path, Tensor] = {}
        self._reader: DraftReader | None = None
        cut = self.sampling.top_k or self.sampling.top_p < 1 or self.sampling.cuts
        # a cut may make p 0 where q is above 0: nearly all texts would die, and with q cut as well weights would be wrong
        if self._draft is not None and self.settings["length"] and not cut:
            self._reader = DraftReader(self._draft, self.target.vocab_size, self.sampling)
            self._nodes: dict[Path, int] = {(): ROOT}

    def advance(self):
        going = [
            particle
            for particle in self.particles
            if not (particle.dead or self.over(particle.path))
        ]
        begun = [particle.path for particle in going]
        self._forget_all_but(begun)
        self._draw_by_draft(going)
        self._read_new(going, begun)
        for particle, path in zip(going, begun, strict=True):
            self._weigh(particle, len(path))
        shares = shares_of(self.particles)
        if effective(shares) < LEAST * len(shares):
            self.particles = resampled(self.particles, self.chance.draw)
            self.resampled += 1
        alive = [particle for particle in self.particles if not particle.dead]
        alive.sort(key=lambda particle: -particle.log_weight)
        self.candidates = [
            Candidate(particle.path, particle.log_weight, self.over(particle.path))
            for particle in alive
        ]
        if all(self.over(particle.path) for particle in alive):
            self.winner = self.particles[self.chance.draw(shares_of(self.particles))].path

    def _draw_by_draft(self, going: Sequence[Particle]) -> None:
        """Extend every text by tokens drawn from q, and multiply its weight by the weights of these draws. If no
        allowed next token of a text has q above 0, the text gets no more tokens until the target's pass."""
        for _ in range(self._depth(going)):
            drawing = [particle for particle in going if not self.over(particle.path)]
            self._read_by_draft([particle.path for particle in drawing])
            going = []
            for particle in drawing:
                try:
                    self._go_on(particle, self._q[particle.path])
                except Died:
                    continue
                going.append(particle)

    def _depth(self, going: Sequence[Particle]) -> int:
        """Return how many tokens the draft model draws for each text in this pass. One more position is left for the
        token drawn from the target."""
        if self._reader is None:
            return 0
        longest = max(len(particle.path) for particle in going)
        fits = self._draft.max_context - len(self.start.prompt)
        return max(0, min(self.settings["length"], min(self.room, fits) - longest - 1))

    def _read_by_draft(self, paths: Iterable[Path]) -> None:
        """Let the draft model read all tokens of these texts that it has not read yet, so that q is stored for each of
        these texts."""
        if () not in self._q and () in paths:
            self._q[()] = self._reader.read(self.start.prompt)
        new = {}
        for path in paths:
            for end in range(1, len(path) + 1):
                if path[:end] not in self._nodes:
                    self._nodes[path[:end]] = len(self._nodes)
                    new[path[:end]] = self._nodes[path[:end]]
        if new:
            above = [self._nodes[path[:-1]] for path in new]
            rows = self._reader.expand([*new.values()], [path[-1] for path in new], above)
            self._q |= zip(new, rows, strict=True)

    def _read_new(self, going: Sequence[Particle], begun: Sequence[Path]) -> None:
        """Let the target read the new tokens of all texts in one pass, and store p for every prefix that ends at or
        after the place at which drafting began. begun: each text as it was before drafting."""
        new = {}
        for particle, path in zip(going, begun, strict=True):
            for end in range(len(path), len(particle.path) + 1):
                if particle.path[:end] not in self._p and not self.over(particle.path[:end]):
                    new[particle.path[:end]] = None
        if new:
            rows = display_distribution(self.free([*new]), self.sampling)
            self._p |= zip(new, rows, strict=True)

    def _weigh(self, particle: Particle, begun: int) -> None:
        """Multiply the text's weight by p / q for each token after the first ``begun`` tokens; then add one token drawn
        from the target."""
        for end in range(begun, len(particle.path)):
            p, q = self._p[particle.path[:end]], self._q[particle.path[:end]]
            particle.weigh(ratio(p, q, particle.path[end]))
            self.chances[particle.path[: end + 1]] = float(p[particle.path[end]])
        if particle.dead or self.over(particle.path):
            return
        p = self._p[particle.path]
        try:
            self._go_on(particle, p)
        except Died:
            particle.weigh(0)
            return
        self.chances[particle.path] = float(p[particle.path[-1]])

    def _go_on(self, particle: Particle, law: Tensor) -> None:
        """Draw one more token of the text from a law [V], and multiply the text's weight by the weight of this draw.
        Raises Died if no allowed token has a probability above 0."""
        draw = self._tested(particle.path, law)
        self.checks, self.written = self.checks + draw.checks, self.written + 1
        particle.path += (draw.token,)
        particle.weigh(draw.weight)

    def _tested(self, path: Path, law: Tensor) -> Tested:
        constraint = self.start.constraint
        if constraint is None:
            return Tested(self.chance.draw(law))
        behind = path[constraint.committed :]
        allows, mask = partial(constraint.allows, behind), partial(constraint.allowed, behind)
        return draw_allowed(law, self.chance.draw, allows, mask)

    def _forget_all_but(self, begun: Sequence[Path]) -> None:
        """Drop the stored laws p and q of all prefixes that do not begin with one of these texts."""
        for laws in (self._p, self._q):
            for path in [*laws]:
                if not any(path[: len(start)] == start for start in begun):
                    del laws[path]

    def passes(self):
        drafted = {} if self._reader is None else {"draft": self._reader.passes}
        return super().passes() | drafted

    def propose(self, context, max_depth):
        tree = super().propose(context, max_depth)
        mean, size = self.checks / max(1, self.written), self.target.vocab_size
        note = (
            f"{mean / size:.2%} of the vocabulary. The texts were resampled {self.resampled} times. Log of the mean weight: "
            f"{log_mean(self.particles):.2f}."
        )
        gauge = Gauge(
            "Tokens tested for a token of the texts", mean, maximum=float(size), note=note
        )
        tree.exhibits.append(gauge)
        return tree


def ratio(p: Tensor, q: Tensor, token: int) -> float:
    """Return p / q of a token that was drawn from q [V]. Raises UserError if p [V] gives more than NARROW to all tokens
    with q = 0 together."""
    if float(p[q == 0].sum()) > NARROW:
        raise UserError(
            "The draft model can never draw some tokens that the target would: texts drawn by it cannot be weighed. Set Length to 0, "
            "so that the target draws them."
        )
    return float(p[token]) / float(q[token])
