"""Language models whose passes run on buffers that keep their place."""

from collections.abc import Sequence

from engine.gpu import attention
from engine.gpu.cache import StaticCache
from engine.gpu.lean_rows import LeanRows, fits
from engine.gpu.session import BufferedSession, StaticSession
from engine.gpu.slots import BufferSets
from engine.gpu.text_slot import TextSlot
from engine.target.language_model import LanguageModel
from engine.target.session import Session


class JoinedModel(LanguageModel):
    """A language model that reads for one sequence through its module, and for several through one
    pass over buffers that lie side by side."""

    attention = attention.NAME

    def __init__(self, model, tokenizer, name: str, lean: bool = True) -> None:
        super().__init__(model, tokenizer, name)
        self.rows = LeanRows(model) if lean and fits(model) else model

    def session(self, capacity: int, features: Sequence[int] = ()) -> Session:
        return BufferedSession(self, StaticCache.empty(self.layers, capacity), tuple(features))

    def new_slots(self, captures: bool = True) -> BufferSets:
        """Buffers for passes of the module; captures: as CUDA graphs, on CUDA."""
        return BufferSets(TextSlot, self.rows, self.layers, self.name, self.device, captures)

    def joint_slots(self) -> BufferSets:
        return self.new_slots(captures=False)


class StaticModel(JoinedModel):
    """A language model all of whose passes are made on such buffers, on CUDA as CUDA graphs."""

    def __init__(self, model, tokenizer, name: str, lean: bool = True) -> None:
        super().__init__(model, tokenizer, name, lean)
        self.asynchronous = True
        self.slots = self.new_slots()

    def session(self, capacity: int, features: Sequence[int] = ()) -> Session:
        return StaticSession(self, capacity, tuple(features))

    def joint_slots(self) -> BufferSets:
        return self.slots
