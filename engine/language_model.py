"""Any Hugging Face causal language model, and a sequence it is reading.

Target and draft are the same thing here: a model, and sessions that feed it rows, look at the
logits, and keep some of the rows for good.
"""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedModel
from transformers.utils import logging as transformers_logging

from engine import attention
from engine.cache import KVCache
from engine.errors import UserError
from engine.lean import LeanLlama, fits
from engine.row_mask import RowMask

PREFILL_ROWS = 512  # rows of one prefill pass; bounds the mask and the activations
DEFAULT_CONTEXT = 2048  # where a configuration names none


class LanguageModel:
    """Weights and tokenizer. Sessions share it; it holds nothing of any of them.

    lean: run Llama-class models on the CPU through ``engine.lean`` (the same weights, the same
    logits); False keeps the module's own forward, which every other model takes.
    """

    def __init__(self, model: PreTrainedModel, tokenizer, name: str, lean: bool = True) -> None:
        self.model = model.eval().requires_grad_(False)
        self.tokenizer = tokenizer
        self.name = name
        config = model.config.get_text_config()
        _refuse_recurrent(config, name)
        model.set_attn_implementation(attention.NAME)
        self.lean = LeanLlama(model) if lean and fits(model) else None
        self.layers = config.num_hidden_layers
        self.hidden_size = config.hidden_size
        self.vocab_size = model.get_output_embeddings().weight.shape[0]
        self.max_context = getattr(config, "max_position_embeddings", None) or DEFAULT_CONTEXT
        self.end_tokens = _end_tokens(model, tokenizer)
        self.parameters = sum(p.numel() for p in model.parameters())

    @classmethod
    def load(cls, path: str, dtype: torch.dtype | None = None, device: str = "cpu"):
        """Open a directory or hub name. Raises UserError where there is no usable model."""
        try:
            AutoConfig.from_pretrained(path)
            progress = transformers_logging.is_progress_bar_enabled()
            transformers_logging.disable_progress_bar()
            try:
                model = AutoModelForCausalLM.from_pretrained(path, dtype=dtype or "auto")
                tokenizer = AutoTokenizer.from_pretrained(path)
            finally:
                if progress:
                    transformers_logging.enable_progress_bar()
        except Exception as error:  # transformers raises many kinds for one cause
            raise UserError(f"There is no causal language model to open at {path}.") from error
        return cls(model.to(device), tokenizer, Path(path).name)

    @property
    def device(self) -> torch.device:
        return self.model.device

    @property
    def dtype(self) -> torch.dtype:
        return self.model.dtype

    def session(self, capacity: int, features: Sequence[int] = ()) -> "Session":
        """A fresh sequence. features: indices into hidden_states to hand back with each feed."""
        return Session(self, capacity, tuple(features))

    def embed(self, tokens: Tensor) -> Tensor:
        """[T] -> [T, H]"""
        return self.model.get_input_embeddings()(tokens)

    def head(self, hidden: Tensor) -> Tensor:
        """[T, H] -> logits [T, V]"""
        if self.lean is not None:
            return self.lean.head(hidden)
        return self.model.get_output_embeddings()(hidden)


class Session:
    """One sequence being read: committed columns, and the scratch rows of the running step.

    Rows are numbered from 0 since the last commit. Each has a parent row, or -1 for the last
    committed token, and sees the committed columns, its ancestors and itself.
    """

    def __init__(self, model: LanguageModel, capacity: int, features: tuple[int, ...]) -> None:
        self.model = model
        self.features = features
        self.length = 0
        lean = model.lean
        self._cache = lean.cache(capacity) if lean else KVCache(model.layers, capacity)
        self._clear_scratch()

    def _clear_scratch(self) -> None:
        self._depths: list[int] = []
        self._ancestors: list[int] = []  # bit s of an entry: the row sees scratch row s

    @property
    def rows(self) -> int:
        """Scratch rows fed since the last commit."""
        return len(self._depths)

    @torch.no_grad()
    def prefill(self, tokens: Sequence[int]) -> Tensor | None:
        """Read and commit tokens without logits; returns their features [T, n*H] or None."""
        parts = []
        for start in range(0, len(tokens), PREFILL_ROWS):
            chunk = tokens[start : start + PREFILL_ROWS]
            _, features = self._feed(chunk, range(-1, len(chunk) - 1), last=0)
            self.commit(range(len(chunk)))
            parts.append(features)
        if not self.features:
            return None
        if not parts:
            width = self.model.hidden_size * len(self.features)
            return torch.empty(0, width, dtype=self.model.dtype, device=self.model.device)
        return torch.cat(parts)

    @torch.no_grad()
    def feed(self, tokens: Sequence[int], parents: Sequence[int]) -> tuple[Tensor, Tensor | None]:
        """Read R rows in one pass. parents: row numbers, or -1; a parent comes before its child.

        Returns logits [R, V] and features [R, n*H] (None if none were asked for).
        """
        return self._feed(tokens, parents)

    @torch.no_grad()
    def extend(self, tokens: Sequence[int]) -> Tensor:
        """Read and commit a run of tokens; returns the logits [V] after the last one."""
        if len(tokens) > PREFILL_ROWS:
            self.prefill(tokens[:-1])
            tokens = tokens[-1:]
        logits, _ = self._feed(tokens, range(-1, len(tokens) - 1), last=1)
        self.commit(range(len(tokens)))
        return logits[-1]

    def commit(self, rows: Sequence[int]) -> None:
        """Keep these scratch rows, a path from the last committed token; drop the others."""
        self._cache.keep(self.length, list(rows))
        self.length += len(rows)
        self._clear_scratch()

    def _feed(
        self, tokens: Sequence[int], parents: Sequence[int], last: int | None = None
    ) -> tuple[Tensor | None, Tensor | None]:
        """last: how many of the last rows need logits; None is all."""
        count = len(tokens)
        self._cache.reserve(self.length + self.rows + count)
        self._grow_scratch(parents)
        device = self.model.device
        mask = RowMask(self.length, self._depths, self._ancestors[-count:], device)
        given = torch.tensor(tokens, device=device)
        if self.model.lean is not None:
            return self.model.lean.forward(given, mask, self._cache, self.features, last)
        return self._through_module(given, mask, last)

    def _through_module(
        self, tokens: Tensor, mask: RowMask, last: int | None
    ) -> tuple[Tensor, Tensor | None]:
        output = self.model.model(
            input_ids=tokens[None],
            position_ids=mask.row_positions[None],
            attention_mask=_AS_IT_IS.to(tokens.device),
            past_key_values=self._cache,
            use_cache=True,
            output_hidden_states=bool(self.features),
            logits_to_keep=0 if last is None else max(last, 1),  # 0 is all to transformers
            row_mask=mask,
        )
        features = None
        if self.features:
            features = torch.cat([output.hidden_states[i][0] for i in self.features], -1)
        return output.logits[0], features

    def _grow_scratch(self, parents: Sequence[int]) -> None:
        for row, parent in enumerate(parents, start=self.rows):
            above = (-1, 0) if parent < 0 else (self._depths[parent], self._ancestors[parent])
            self._depths.append(above[0] + 1)
            self._ancestors.append(above[1] | 1 << row)


# transformers hands a 4-D mask through as it is; the real one travels beside it as row_mask.
_AS_IT_IS = torch.ones(1, 1, 1, 1, dtype=torch.bool)


def _refuse_recurrent(config, name: str) -> None:
    kinds = set(getattr(config, "layer_types", None) or ())
    if any("attention" not in kind or "linear" in kind for kind in kinds):
        raise UserError(
            f"{name} keeps a recurrent state beside its attention; trees on it are not supported."
        )


def _end_tokens(model: PreTrainedModel, tokenizer) -> frozenset[int]:
    """Ids that end a text, as generate() would take them."""
    ends = getattr(model.generation_config, "eos_token_id", None)
    if ends is None:
        ends = model.config.eos_token_id
    if ends is None and tokenizer is not None:
        ends = tokenizer.eos_token_id
    if ends is None:
        return frozenset()
    return frozenset([ends] if isinstance(ends, int) else ends)
