"""Checks that the engine computes the same logits for a text as the model's own module does when it generates.

Both are run over a few tokens, the engine over a chain and over a tree: after a short prefix, and on both sides of each
length beyond which the model computes differently. The logits must be equal up to rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import GenerationConfig, LogitsProcessor, PreTrainedModel

from engine.model.edges import edges_of
from engine.model.language_model import LanguageModel

PREFIX = 9
LONGEST = 640
"""The longest text, in tokens, for which logits are compared. A model that computes differently beyond some longer
length may only be given texts up to that length."""

_PARENTS = (-1, 0, 0, 1, 1, 3, 2, 5, 6)
"""The parents of the root and of the eight nodes of the tree that is compared; -1 for the root."""
_PATHS = ((0, 1, 3, 5, 7), (0, 1, 4), (0, 2, 6, 8))  # to the leaves; the first is committed
_AFTER = 3  # tokens read after a committed path

_CLOSE = {torch.float32: 5e-4, torch.float64: 5e-4}
_CLOSE_IN_HALF = 0.1
"""The largest difference that counts as rounding in dtypes that ``_CLOSE`` does not name: the root mean square over a
row, as a share of the standard deviation of the row's logits."""


@dataclass(frozen=True)
class Reading:
    """The module's own logits for one prefix and the paths of one tree that follows it.

    prefix: tokens before the tree. tokens: the tokens of the root and of the nodes. after: tokens that follow the first
    path. paths: for each path, the logits [len(path), V] after each of its tokens; for the first path also the logits
    after each token of ``after``."""

    prefix: list[int]
    tokens: list[int]
    after: list[int]
    paths: list[Tensor]


class _Forced(LogitsProcessor):
    """A logits processor that makes ``generate`` write ``tokens``. read: the number of tokens in the prompt."""

    def __init__(self, read: int, tokens: Sequence[int]) -> None:
        self._read, self._tokens = read, tokens

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        place = input_ids.shape[1] - self._read
        forced = torch.full_like(scores, float("-inf"))
        forced[:, self._tokens[min(place, len(self._tokens) - 1)]] = 0
        return forced


def readings(module: PreTrainedModel) -> list[Reading]:
    """The module's own logits at all text lengths that are tried, one ``Reading`` per length. Raises whatever the
    module raises."""
    vocabulary = _ordinary_tokens(module)
    return [_read(module, prefix, vocabulary) for prefix in _prefixes(module)]


def longest_tried(module: PreTrainedModel) -> int | None:
    """The shortest length beyond which the model computes differently and that is too long to be tried; None if there
    is no such length."""
    return next((edge for edge in edges_of(module.config) if edge > LONGEST), None)


def _prefixes(module: PreTrainedModel) -> Iterator[int]:
    yield PREFIX
    room = getattr(module.config.get_text_config(decoder=True), "max_position_embeddings", None)
    for edge in edges_of(module.config):
        for prefix in (edge - 3, edge + 4):
            fits = room is None or prefix + len(_PARENTS) + _AFTER < room
            if PREFIX < prefix <= LONGEST + 4 and fits:
                yield prefix


def _ordinary_tokens(module: PreTrainedModel) -> Tensor:
    """The module's token ids in a random order, without the special tokens that the configuration names."""
    config = module.config.get_text_config(decoder=True)
    named = {
        value
        for name, value in module.config.to_dict().items()
        if "token" in name and isinstance(value, int)
    }
    named |= {
        value
        for name, value in config.to_dict().items()
        if "token" in name and isinstance(value, int)
    }
    count = min(config.vocab_size, module.get_input_embeddings().weight.shape[0])
    order = torch.randperm(count, generator=torch.Generator().manual_seed(0))
    tokens = [token for token in order.tolist() if token not in named]
    return torch.tensor(tokens)


def _read(module: PreTrainedModel, prefix: int, vocabulary: Tensor) -> Reading:
    length = prefix + len(_PARENTS) + _AFTER
    text = vocabulary.repeat(length // len(vocabulary) + 1)[:length].tolist()
    start, tokens, after = text[:prefix], text[prefix : prefix + len(_PARENTS)], text[-_AFTER:]
    paths = []
    for path in _PATHS:
        forced = [tokens[node] for node in path] + (after if path is _PATHS[0] else [])
        paths.append(_generated(module, start, forced))
    return Reading(start, tokens, after, paths)


def _generated(module: PreTrainedModel, start: list[int], forced: list[int]) -> Tensor:
    """The logits [len(forced), V] after each forced token, as ``generate`` computes them. start: the tokens before the
    forced ones."""
    prompt = torch.tensor([start + forced[:1]], device=module.device)
    with _plain(module), torch.no_grad():
        output = module.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=len(forced),
            logits_processor=[_Forced(prompt.shape[1], [*forced[1:], forced[0]])],
            return_dict_in_generate=True,
            output_logits=True,
        )
    return torch.cat(output.logits)


@contextmanager
def _plain(module: PreTrainedModel):
    """Within this context, the module decodes greedily and ignores all other settings of its generation config."""
    own = module.generation_config
    module.generation_config = GenerationConfig(do_sample=False, use_cache=True)
    try:
        yield
    finally:
        module.generation_config = own


def reads_from_left_to_right(module: PreTrainedModel) -> bool:
    """Whether a token's logits do not depend on later tokens. Raises whatever the module raises."""
    text = _ordinary_tokens(module)[None, :PREFIX].to(module.device)
    with torch.no_grad():
        whole = module(input_ids=text, use_cache=False).logits[0, : PREFIX // 2]
        part = module(input_ids=text[:, : PREFIX // 2], use_cache=False).logits[0]
    return _close(part, whole)


def same_chains(model: LanguageModel, expected: Sequence[Reading]) -> bool:
    """Whether the engine gets the module's logits when it runs over chains. expected: the module's own logits."""
    return all(_chain(model, reading) for reading in expected)


def same_trees(model: LanguageModel, expected: Sequence[Reading]) -> bool:
    """Whether the engine gets the module's logits when it runs over a whole tree in one pass. For the nodes of each
    path, the logits must be those that the module gives for the path alone. expected: the module's own logits."""
    return all(_tree(model, reading) for reading in expected)


def _chain(model: LanguageModel, reading: Reading) -> bool:
    path = _PATHS[0]
    session = model.session(16)
    session.prefill(reading.prefix)
    drafted, _ = session.feed([reading.tokens[node] for node in path], range(-1, len(path) - 1))
    # the last token is not committed, so that the text continues from a shortened cache
    session.commit(range(len(path) - 1))
    rest = [reading.tokens[path[-1]], *reading.after]
    following, _ = session.feed(rest, range(-1, len(rest) - 1))
    logits = torch.cat([drafted[:-1], following])
    return _close(logits, reading.paths[0]) and _close(drafted, reading.paths[0][: len(path)])


def _tree(model: LanguageModel, reading: Reading) -> bool:
    session = model.session(16)
    session.prefill(reading.prefix)
    logits, _ = session.feed(reading.tokens, _PARENTS)
    session.commit(_PATHS[0])
    following, _ = session.feed(reading.after, range(-1, len(reading.after) - 1))
    alike = [
        _close(logits[list(path)], expected[: len(path)])
        for path, expected in zip(_PATHS, reading.paths, strict=True)
    ]
    return all(alike) and _close(following, reading.paths[0][len(_PATHS[0]) :])


def _close(found: Tensor, expected: Tensor) -> bool:
    """Whether each row of logits is equal to the expected row up to rounding. found, expected: [R, V]."""
    if found.shape != expected.shape:
        return False
    close = _CLOSE.get(found.dtype, _CLOSE_IN_HALF)
    found, expected = found.float(), expected.float()
    spread = expected.std(-1).clamp(min=1e-6)
    away = (found - expected).square().mean(-1).sqrt()
    return bool((away <= close * spread).all())  # NaN is not close
