"""The price of a lossy method: how far its texts differ from plain decoding's, and how much less likely they are under
the target.

The target computes its logits for the finished texts once more. So the numbers of a ``Price`` mean the same for every
method, even if the target never judged some tokens while the text was written. All probabilities are those of the plain
softmax, at temperature 1 and without truncation.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.model.language_model import LanguageModel


@dataclass(frozen=True)
class Price:
    """The price of one method on some prompts, compared with plain decoding.

    exact: the share of texts that equal plain decoding's text token for token. alike: the share of all tokens that come
    before the first difference from plain decoding's text. bits_per_byte: the information of the method's texts under
    the target, in bits per byte. plain_bits_per_byte: that of plain decoding's texts. divergence: by how many bits per
    step the method's tokens are less likely under the target than the target's likeliest tokens at their positions.
    plain_divergence: the divergence of plain decoding's tokens; 0 at temperature 0. tokens_per_step: what the method
    gains for its price.
    """

    texts: int
    exact: float
    alike: float
    bits_per_byte: float
    plain_bits_per_byte: float
    divergence: float
    plain_divergence: float
    tokens_per_step: float


@dataclass(frozen=True)
class Judged:
    """How likely one text is under the target. bits: the information of all its tokens under the target. below: the sum
    of the tokens' ``shortfalls``. size: the text's bytes."""

    bits: float
    below: float
    size: int  # bytes


def shortfalls(logits: Tensor, tokens: Sequence[int]) -> Tensor:
    """For each of R tokens, by how many bits it is less likely than the likeliest token of its row of logits [R, V];
    infinite for a token that the target cannot write."""
    chosen = logits.gather(-1, torch.tensor(tokens, device=logits.device)[:, None])[:, 0]
    return (logits.max(-1).values - chosen).double() / math.log(2)


def judged(target: LanguageModel, prompt: Sequence[int], written: Sequence[int]) -> Judged:
    """How likely the text ``written`` is under the target as a continuation of ``prompt``."""
    session = target.session(len(prompt) + len(written))
    session.prefill(prompt[:-1])
    read = [prompt[-1], *written[:-1]]
    logits, _ = session.feed(read, range(-1, len(read) - 1))
    rows = torch.arange(len(written), device=logits.device)
    logs = logits.double().log_softmax(-1)[rows, torch.tensor(written, device=logits.device)]
    size = len(target.tokenizer.decode(written, skip_special_tokens=True).encode())
    return Judged(-float(logs.sum()) / math.log(2), float(shortfalls(logits, written).sum()), size)


def price(
    target: LanguageModel,
    prompts: Sequence[Sequence[int]],
    plain: Sequence[Sequence[int]],
    written: Sequence[Sequence[Sequence[int]]],
) -> Price:
    """The price of a method. plain: for each prompt, plain decoding's text. written: for each prompt, the method's
    text as a list of steps, each a list of tokens. No text may be empty."""
    texts = [[token for step in steps for token in step] for steps in written]
    pairs = list(zip(texts, plain, strict=True))
    own = [judged(target, *text) for text in zip(prompts, texts, strict=True)]
    plain_texts = [judged(target, *text) for text in zip(prompts, plain, strict=True)]
    steps = sum(map(len, written))
    tokens = sum(map(len, texts))
    return Price(
        texts=len(texts),
        exact=sum(own_text == plain_text for own_text, plain_text in pairs) / len(pairs),
        alike=sum(_common(own_text, plain_text) for own_text, plain_text in pairs) / tokens,
        bits_per_byte=_bits_per_byte(own),
        plain_bits_per_byte=_bits_per_byte(plain_texts),
        divergence=sum(text.below for text in own) / steps,
        plain_divergence=sum(text.below for text in plain_texts) / sum(map(len, plain)),
        tokens_per_step=tokens / steps,
    )


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """The number of equal tokens at the beginning of two texts."""
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        count += 1
    return count


def _bits_per_byte(texts: Sequence[Judged]) -> float:
    return sum(text.bits for text in texts) / max(1, sum(text.size for text in texts))
