"""Opens the adapter of Kangaroo (``engine.methods.kangaroo.adapter``) and picks how it reads."""

from engine.fast.cpu.compiled_model import CompiledModel
from engine.methods.kangaroo.adapter import Adapter
from engine.methods.kangaroo.fast import compiled_readers
from engine.model.language_model import LanguageModel
from engine.parts.kinds import PartKind


def pick_adapter_readers(adapter: Adapter, target: LanguageModel) -> None:
    """Decide how a Kangaroo adapter reads: compiled together with the head of a compiled target, through the module
    beside other targets."""
    if isinstance(target, CompiledModel):
        adapter.make_reader = compiled_readers(adapter, target)


def _load(path: str, target: LanguageModel, dtype, device: str) -> Adapter:
    adapter = Adapter.open(path, target, dtype, device)
    pick_adapter_readers(adapter, target)
    return adapter


KIND = PartKind(Adapter.key, Adapter.noun, _load, Adapter.tiny)
