"""Lets one model write hundreds of texts at once, as training data for draft models. Each text has a slot of its own.

A slot is one sequence of the static buffers. All slots write a token in the same pass, at whatever positions their
texts are, and on CUDA the pass is one graph. When a text has ended, the next text takes its slot while the other slots
go on. Tokens stay on the device for a whole round of passes, so the host waits once per round.

The model writes in the precision in which it is loaded. Unlike the decoding loops, this module promises no text that is
equal bit for bit to plain decoding.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from engine.fast.gpu.capture import Recorder
from engine.fast.gpu.inputs import Size, StepInputs
from engine.fast.gpu.lean_rows import LeanRows
from engine.fast.gpu.static_cache import StaticCache
from engine.fast.gpu.static_step import StaticMask
from engine.fast.kernels.bits import WORD
from engine.model.forward import forward

LIKELIEST = 256  # a draw chooses among so many of the likeliest tokens
ROUND = 32  # passes between two reads of the tokens by the host

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Drawing:
    """How tokens are chosen: the first ``slots`` slots sample them, and the other slots write the likeliest token."""

    slots: int = 0
    temperature: float = 0.8
    top_p: float = 0.95

    def __call__(self, logits: Tensor) -> Tensor:
        """The next token of each slot, [B]. logits: [B, V]."""
        best = logits[self.slots :].argmax(-1)
        if not self.slots:
            return best
        return torch.cat([self._drawn(logits[: self.slots]), best])

    def _drawn(self, logits: Tensor) -> Tensor:
        values, tokens = logits.topk(min(LIKELIEST, logits.shape[-1]), dim=-1)
        law = (values.float() / self.temperature).softmax(-1)
        nucleus = law.cumsum(-1) - law < self.top_p
        noise = torch.empty_like(law).exponential_()
        chosen = torch.where(nucleus, law / noise, 0.0).argmax(-1, keepdim=True)
        return tokens.gather(-1, chosen)[:, 0]


class Slots:
    """The slots of one model. places: the number of slots. columns: the most tokens that a text may have, prompt
    included."""

    def __init__(
        self, module: PreTrainedModel, places: int, columns: int, drawing: Drawing = Drawing()
    ) -> None:
        self._module, self._drawing, self.columns = module, drawing, columns
        self.device = module.device
        self._rows = LeanRows(module)
        module.set_attn_implementation("sdpa")  # for the passes over prompts
        layers = module.config.num_hidden_layers
        self._cache = StaticCache.empty(layers, columns + ROUND + WORD, places)
        self._inputs = StepInputs(Size(1, 1), self.device, places)
        self._inputs.bits.fill_(1)  # a row sees the committed columns and itself
        self._written = torch.zeros(ROUND, places, dtype=torch.int64, device=self.device)
        self._place = torch.zeros(1, dtype=torch.int64, device=self.device)
        self._seen = self._cache.capacity  # columns that a pass reads
        with torch.inference_mode():
            self._pass = self._captured()

    def _captured(self) -> Callable[[], object]:
        """Return the function that runs the pass of one token per slot, on CUDA as a graph. The pass is first run for
        trial; all state is reset afterwards, except that the buffers are allocated."""
        step = self._step
        self._step()  # makes the buffers
        if self.device.type == "cuda":
            try:
                step = Recorder(self.device).record(self._step, self)
            except Exception as error:  # noqa: BLE001 - passes without a graph are slower and as good
                _log.warning("Texts are written without a CUDA graph: %s", str(error)[:200])
                torch.cuda.synchronize()
        self._inputs.prefix.zero_()
        self._place.zero_()
        return step

    def _step(self) -> None:
        inputs = self._inputs
        mask = StaticMask(inputs, self._seen)
        with self._cache.written_at(mask.columns), self._looking():
            logits, _ = forward(
                self._rows, inputs.tokens, mask.row_positions, mask, self._cache, ()
            )
        tokens = self._drawing(logits[:, 0])
        self._written.index_copy_(0, self._place, tokens[None])
        self._place.add_(1).remainder_(ROUND)
        inputs.tokens.copy_(tokens[:, None])
        inputs.prefix.add_(1).clamp_(max=self.columns + ROUND - 1)

    @contextlib.contextmanager
    def _looking(self) -> Iterator[None]:
        """Within this context, each layer's buffers are cut to the columns in use, so that a pass on a CPU reads no
        others. (Kernels never read the other columns.)"""
        if self._seen == self._cache.capacity:
            yield
            return
        whole = [(layer, layer.keys, layer.values) for layer in self._cache.layers]
        for layer, keys, values in whole:
            layer.keys, layer.values = keys[:, :, : self._seen], values[:, :, : self._seen]
        try:
            yield
        finally:
            for layer, keys, values in whole:
                layer.keys, layer.values = keys, values

    @torch.inference_mode()
    def begin(self, slots: Sequence[int], prompts: Sequence[Sequence[int]]) -> None:
        """Read these prompts into these slots, except for the last token of each prompt, which the next pass reads."""
        longest = max(map(len, prompts)) - 1
        ids = torch.tensor(
            [[*prompt[:-1], *[0] * (longest - len(prompt) + 1)] for prompt in prompts]
        ).to(self.device)
        at = torch.tensor(slots, device=self.device)
        if longest:
            read = DynamicCache()
            self._module.model(input_ids=ids, past_key_values=read, use_cache=True)
            for own, layer in zip(self._cache.layers, read.layers, strict=True):
                own.keys[at, :, :longest] = layer.keys
                own.values[at, :, :longest] = layer.values
        last = torch.tensor([prompt[-1] for prompt in prompts], dtype=torch.int32)
        lengths = torch.tensor([len(prompt) - 1 for prompt in prompts], dtype=torch.int32)
        self._inputs.tokens[at, 0] = last.to(self.device)
        self._inputs.prefix[at] = lengths.to(self.device)

    @torch.inference_mode()
    def round(self) -> list[list[int]]:
        """Write ROUND more tokens in every slot; returns a list of them for each slot. Tokens of empty slots, and of
        slots whose text has ended, are meaningless."""
        if self.device.type == "cpu":
            used = int(self._inputs.prefix.max()) + ROUND + WORD
            self._seen = min(self._cache.capacity, used)
        for _ in range(ROUND):
            self._pass()
        return self._written.t().tolist()
