"""Steps on static buffers, which CUDA graphs can replay.

A pass of a model is a pure function of one small int32 buffer and the KV buffers (``step``). There
are a few fixed sizes; padded rows are masked out and never committed (``inputs``); no pass waits for
the host (``host_free``). On CUDA each size is captured once and then replayed (``capture``). The
buffers outlive a run and serve the next one (``buffer_sets``). On a CPU the same functions are called, and
tests compare them with the plain passes. Llama-class models need a third of the launches
(``lean_rows``).

In an unrecorded run the target's pass also judges its tree and moves the kept rows (``question``,
``verdict``, ``judge``), and drafted tokens stay on the device (``Drafter.device_twin``, ``device_tree``,
``choice``). A step is then one copy to the device, one replay, and one copy of the
verdict's few numbers to the host.

Of the rest of the engine only ``engine.parts.opening``, the device twins of methods and the bench import it. The
import registers its ways of writing a text and of reading for several texts.
"""

from engine.fast.gpu import device_text as text  # noqa: F401
from engine.fast.gpu import static_joint as joint  # noqa: F401
from engine.fast.gpu.static_model import JoinedModel, StaticModel
from engine.model.language_model import LanguageModel

__all__ = ["language_model"]


def language_model(module, tokenizer, name: str, lean: bool, static: bool) -> LanguageModel:
    """A model on static buffers, or one that uses them only to read for several texts at once."""
    return (StaticModel if static else JoinedModel)(module, tokenizer, name, lean)
