"""From logits to a distribution, and from a distribution to a token.

One operator serves the target's p and the draft model's q, so that both are truncated in the same way. The target's
noise is keyed by position: with the same seed, a position of the text has the same noise whatever was drafted.
"""

import hashlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engine.errors import UserError

# Top-p almost never needs more than this many of the largest logits; the full sort is the fallback.
_NUCLEUS_GUESS = 256
COLDEST, HOTTEST = 0.001, 100
CUTS: dict[str, tuple[float, ...]] = {
    "top_h": (),
    "min_p": (0,),
    "typical_p": (1,),
    "epsilon_cutoff": (0,),
    "eta_cutoff": (0,),
}
"""Further truncations, which only a model's generation config requests -> the values at which each has no effect. They
are applied in the order of ``generate`` of transformers: top-h before top-k, the others after top-p."""
_WARPERS = {
    "top_h": "TopHLogitsWarper",
    "min_p": "MinPLogitsWarper",
    "typical_p": "TypicalLogitsWarper",
    "epsilon_cutoff": "EpsilonLogitsWarper",
    "eta_cutoff": "EtaLogitsWarper",
}


@dataclass(frozen=True)
class Sampling:
    """How the target is sampled.

    temperature: 0 is greedy decoding. top_k: 0 is off. top_p: 1 is off. cuts: pairs of a name in ``CUTS`` and its
    value.

    Raises UserError for a value outside its range.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0
    cuts: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        if self.temperature != 0 and not COLDEST <= self.temperature <= HOTTEST:
            raise UserError(
                f"temperature must be 0 (greedy) or lie between {COLDEST} and {HOTTEST}, "
                f"not {self.temperature}."
            )
        if self.top_k < 0:
            raise UserError(f"top-k must be 0 (off) or more, not {self.top_k}.")
        if not 0 < self.top_p <= 1:
            raise UserError(f"top-p must lie above 0 and at most at 1, not {self.top_p}.")
        if not 0 <= self.seed < 2**63:
            raise UserError(f"seed must be a whole number from 0 to 2^63 - 1, not {self.seed}.")
        for name, value in self.cuts:
            try:
                _warper(name, value)
            except ValueError:
                raise UserError(f"{name} must be a share, not {value}.") from None

    @property
    def greedy(self) -> bool:
        return self.temperature == 0

    def check_whole(self, rule: str) -> None:
        """Raises UserError unless tokens are drawn from all of p. rule: the key of the rule that needs this, for the
        message."""
        if self.greedy:
            raise UserError(f"Under a constraint the rule {rule} draws: set a temperature above 0.")
        if self.top_k or self.top_p < 1 or self.cuts:
            raise UserError(
                f"Under a constraint the rule {rule} draws from the whole of p: leave out top-k, top-p and other cuts."
            )


def distribution(logits: Tensor, sampling: Sampling) -> Tensor:
    """The probabilities [..., V] from which tokens are drawn: temperature, then top-k, then top-p, and any further
    cuts.

    At temperature 0 all mass lies on the argmax (the first of equals, as in torch.argmax).
    """
    if sampling.greedy:
        return _one_hot(logits)
    return _truncated(logits.float() / sampling.temperature, sampling)


def likeliest(rows: Tensor) -> Any:
    """The index of the largest number in each row of [..., V], the first of equals; as nested lists, or one int for one
    row."""
    numbers = on_the_host(rows)
    return (rows if numbers is None else numbers).argmax(-1).tolist()


def _one_hot(logits: Tensor) -> Tensor:
    numbers = on_the_host(logits)
    if numbers is None:
        best = logits.argmax(-1, keepdim=True)
        return torch.zeros_like(logits, dtype=torch.float32).scatter_(-1, best, 1.0)
    law = np.zeros(numbers.shape, np.float32)
    rows = law.reshape(-1, numbers.shape[-1])
    rows[np.arange(len(rows)), numbers.argmax(-1).reshape(-1)] = 1
    return torch.from_numpy(law)


def on_the_host(numbers: Tensor) -> np.ndarray | None:
    """The numbers as a NumPy array if they are fp32 on the CPU, where NumPy's small operations are faster than torch's;
    None otherwise."""
    if numbers.device.type == "cpu" and numbers.dtype == torch.float32:
        return (numbers.detach() if numbers.requires_grad else numbers).numpy()
    return None


def display_distribution(logits: Tensor, sampling: Sampling) -> Tensor:
    """The probabilities that the trace and the page show. They are those of ``distribution``; at temperature 0, where
    these would be one-hot, they are the plain softmax of the logits instead."""
    if sampling.greedy:
        return logits.float().softmax(-1)
    return distribution(logits, sampling)


def _truncated(scaled: Tensor, sampling: Sampling) -> Tensor:
    cuts = dict(sampling.cuts)
    if "top_h" in cuts:
        scaled = _cut(scaled, "top_h", cuts.pop("top_h"))
    if 0 < sampling.top_k < scaled.shape[-1]:
        kth = scaled.topk(sampling.top_k, dim=-1).values[..., -1:]
        scaled = scaled.masked_fill(scaled < kth, -math.inf)
    probabilities = scaled.softmax(-1)
    if sampling.top_p < 1:
        probabilities = _nucleus(probabilities, sampling.top_p)
    for name, value in cuts.items():
        probabilities = _cut(probabilities.log(), name, value).softmax(-1)
    return probabilities


def _cut(logits: Tensor, name: str, value: float) -> Tensor:
    rows = logits.reshape(-1, logits.shape[-1])
    return _warper(name, value)(None, rows).reshape(logits.shape)


def _warper(name: str, value: float) -> Any:
    import transformers  # the import takes a second, and few runs need a warper

    return getattr(transformers, _WARPERS[name])(value)


def _nucleus(probabilities: Tensor, top_p: float) -> Tensor:
    """Keep the smallest set of largest probabilities whose sum reaches top_p (at least one)."""
    if probabilities.device.type == "cpu":
        values, indices = probabilities.topk(min(_NUCLEUS_GUESS, probabilities.shape[-1]), dim=-1)
        enough = bool((values.sum(-1) >= top_p).all())
    else:  # a test here would make the host wait for the device
        enough = False
    if not enough:
        values, indices = probabilities.sort(dim=-1, descending=True, stable=True)
    before = values.cumsum(-1) - values
    kept = torch.where(before < top_p, values, 0.0)
    kept = torch.zeros_like(probabilities).scatter_(-1, indices, kept)
    return kept / kept.sum(-1, keepdim=True)


def _key(*parts: object) -> int:
    digest = hashlib.blake2b(repr(parts).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def stream(seed: int, name: str) -> torch.Generator:
    """A random generator of its own for each name, so that drafting never changes the draws of verifying."""
    return torch.Generator().manual_seed(_key(seed, name))


def position_noise(seed: int, position: int, vocabulary: int) -> Tensor:
    """Exponential(1) noise [V] that belongs to one position of the text.

    Number i is -log(u), where u is a uniform number between 0 and 1 made of word i of the counter-based generator
    Philox4x64-10 (Salmon et al. 2011). The generator's key comes from the seed, and its counter holds the position.
    Each number can be computed by itself, so a GPU computes this noise without the host
    (``engine.fast.kernels.position_noise``).
    """
    key = np.array(noise_key(seed), dtype=np.uint64)
    words = np.random.Philox(key=key, counter=[0, position, 0, 0]).random_raw(vocabulary)
    uniform = (words >> np.uint64(12)) + 0.5  # 52 bits and a half: neither 0 nor 1 after scaling
    uniform *= 2.0**-52
    noise = np.log(uniform, out=uniform)
    return torch.from_numpy(np.negative(noise, out=noise).astype(np.float32))


def noise_key(seed: int) -> tuple[int, int]:
    """The generator's key for the noise of a seed: two 64-bit words."""
    digest = hashlib.blake2b(repr((seed, "target")).encode(), digest_size=16).digest()
    return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")


def uniforms(generator: torch.Generator, count: int) -> Tensor:
    """[count] float64 on [0, 1), which ``pick`` turns into draws on any device."""
    return torch.rand(count, generator=generator, dtype=torch.float64)


def pick(weights: Tensor, drawn: Tensor) -> Tensor:
    """Draw indices [...] from weights [..., V] with uniforms ``drawn`` [...]. The weights may have any sum above 0.

    Inversion in float64: each index is the place where the running sum first exceeds the uniform times the whole sum.
    One number per draw makes drafts the same on every device; a weight of 0 is never drawn, and the host waits for
    nothing.
    """
    rising = weights.double().cumsum(-1)
    whole = rising[..., -1:]
    share = torch.minimum(drawn[..., None] * whole, whole.nextafter(torch.zeros_like(whole)))
    indices = torch.searchsorted(rising, share, right=True)[..., 0]
    return indices.clamp(max=weights.shape[-1] - 1)  # among NaN no share is found


def draw(probabilities: Tensor, noise: Tensor) -> int:
    """One token drawn from probabilities [V] by racing exponentials: argmax(p / E).

    With E ~ Exp(1) the argmax is distributed as p (the Gumbel-max trick without logarithms).
    A token of probability 0 is never drawn.
    """
    return int((probabilities.cpu() / noise).argmax())
