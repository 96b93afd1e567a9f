"""Language models whose passes run on static buffers."""

from collections.abc import Sequence

from engine.fast.gpu import static_attention as attention
from engine.fast.gpu.buffer_sets import BufferSets
from engine.fast.gpu.lean_rows import LeanRows, fits
from engine.fast.gpu.static_cache import StaticCache
from engine.fast.gpu.static_session import BufferedSession, StaticSession
from engine.fast.gpu.text_buffers import TextBuffers
from engine.model.language_model import LanguageModel
from engine.model.session import Session


class JoinedModel(LanguageModel):
    """A language model that reads a single sequence through its module, and several sequences in one pass over buffers
    that lie side by side."""

    attention = attention.NAME
    pads_texts = True

    def __init__(self, model, tokenizer, name: str, lean: bool = True) -> None:
        super().__init__(model, tokenizer, name)
        self._lean = lean
        self.rows = LeanRows(model) if lean and fits(model) else model

    def _again(self, module) -> LanguageModel:
        return type(self)(module, self.tokenizer, self.name, self._lean)

    def session(self, capacity: int, features: Sequence[int] = ()) -> Session:
        return BufferedSession(self, StaticCache.empty(self.layers, capacity), tuple(features))

    def new_buffer_sets(self, captures: bool = True) -> BufferSets:
        """New buffer sets for passes of the module. captures: whether the passes become CUDA graphs on CUDA."""
        return BufferSets(TextBuffers, self.rows, self.layers, self.name, self.device, captures)

    def joint_buffer_sets(self) -> BufferSets:
        return self.new_buffer_sets(captures=False)


class StaticModel(JoinedModel):
    """A language model that runs all its passes on static buffers, on CUDA as CUDA graphs."""

    def __init__(self, model, tokenizer, name: str, lean: bool = True) -> None:
        super().__init__(model, tokenizer, name, lean)
        self.asynchronous = True
        self.buffer_sets = self.new_buffer_sets()

    def session(self, capacity: int, features: Sequence[int] = ()) -> Session:
        return StaticSession(self, capacity, tuple(features))

    def joint_buffer_sets(self) -> BufferSets:
        return self.buffer_sets
