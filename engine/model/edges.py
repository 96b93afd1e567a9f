"""Finds the text lengths beyond which a model computes differently: windows, chunks, and the length of its original
training."""

from collections.abc import Iterator

from transformers import PreTrainedConfig

_NAMES = (
    "sliding_window",
    "sliding_window_size",
    "window_size",
    "attention_window_size",
    "attention_chunk_size",
    "local_attention",
    "local_attention_window_len",
    "keep_window_size",
    "block_size",
    "index_topk",
    "floor_scale",
    "original_max_position_embeddings",
)


def edges_of(config: PreTrainedConfig) -> list[int]:
    """The lengths, in tokens, beyond which the decoder computes differently according to its configuration,
    ascending."""
    return sorted(set(_found(config.get_text_config(decoder=True).to_dict())))


def window_of(config: PreTrainedConfig) -> int | None:
    """The sliding window, in tokens, that the decoder's configuration names for all layers, or None."""
    return getattr(config.get_text_config(decoder=True), "sliding_window", None)


def _found(values: dict) -> Iterator[int]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _found(value)
            if value.get("rope_type") == "dynamic":
                yield from _length_of(values)
        elif name in _NAMES and isinstance(value, int) and value > 1:
            yield value


def _length_of(values: dict) -> Iterator[int]:
    length = values.get("max_position_embeddings")
    if isinstance(length, int):
        yield length
