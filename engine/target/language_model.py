"""Any Hugging Face causal language model.

Target and draft are the same thing here: a model, and sessions that feed it rows, look at the
logits, and keep some of the rows for good.
"""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedModel
from transformers.utils import logging as transformers_logging

from engine.cpu.lean import LeanLlama, fits
from engine.errors import UserError
from engine.gpu.lean_rows import LeanRows
from engine.gpu.slots import BufferSets
from engine.gpu.text_slot import TextSlot
from engine.target import attention
from engine.target.session import Session

DEFAULT_CONTEXT = 2048  # where a configuration names none


class LanguageModel:
    """Weights and tokenizer. Sessions share it; it holds nothing of any of them.

    lean: run Llama-class models through ``engine.cpu.lean``, and passes on static buffers through
    ``engine.gpu.lean_rows`` (the same weights, the same logits); False keeps the module's own
    forward, which every other model takes.
    static: make the passes of a step on static buffers (``engine.gpu``); None is on CUDA, where
    they become CUDA graphs.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer,
        name: str,
        lean: bool = True,
        static: bool | None = None,
    ) -> None:
        self.model = model.eval().requires_grad_(False)
        self.tokenizer = tokenizer
        self.name = name
        config = model.config.get_text_config()
        _refuse_recurrent(config, name)
        model.set_attn_implementation(attention.NAME)
        self.device, self.dtype = model.device, model.dtype  # transformers looks for them each time
        self.parameters = sum(p.numel() for p in model.parameters())
        if static is None:
            static = model.device.type == "cuda"
        lean = lean and fits(model)
        self.lean = LeanLlama(model) if lean and not static and model.device.type == "cpu" else None
        self.layers = config.num_hidden_layers
        self._rows = LeanRows(model) if lean and static else model
        self.slots = self.new_slots() if static else None
        self.hidden_size = config.hidden_size
        self.vocab_size = model.get_output_embeddings().weight.shape[0]
        self.max_context = getattr(config, "max_position_embeddings", None) or DEFAULT_CONTEXT
        self.end_tokens = _end_tokens(model, tokenizer)

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

    def new_slots(self, captures: bool = True) -> BufferSets:
        """Buffers for passes of the module; captures: as CUDA graphs, on CUDA."""
        return BufferSets(TextSlot, self._rows, self.layers, self.name, self.device, captures)

    def session(self, capacity: int, features: Sequence[int] = ()) -> Session:
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
