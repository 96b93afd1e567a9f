"""Speculative steps on static buffers, which CUDA graphs can replay.

A pass of a model is a pure function of one small int32 buffer and the KV buffers (``static_step``). Passes have a few
fixed sizes; padded rows are masked out and never committed (``inputs``); no pass waits for the host (``host_free``). On
CUDA the pass of each size is captured once and then replayed (``capture``). The buffers outlive a run and serve the
next run (``buffer_sets``). On a CPU the same functions are called, and tests compare them with the plain passes.
Llama-class models need a third of the kernel launches (``lean_rows``).

In an unrecorded run the target's pass also judges its tree and moves the accepted rows (``question``, ``verdict``,
``judge``), and drafted tokens stay on the device (``Drafter.device_twin``, ``device_tree``, ``choice``). A step is then
one copy to the device, one replay, and one copy of the verdict's few numbers to the host.

In the rest of the engine, only ``engine.parts.opening``, the device twins of drafters and the benchmarks import this
package. Importing it registers two classes for models on static buffers: ``DeviceText``, which writes a text, and
``JointSessions``, which reads rows of several texts in one pass.
"""

from engine.fast.gpu import device_text as text  # noqa: F401
from engine.fast.gpu import static_joint as joint  # noqa: F401
from engine.fast.gpu.static_model import JoinedModel, StaticModel
from engine.model.language_model import LanguageModel

__all__ = ["language_model"]


def language_model(module, tokenizer, name: str, lean: bool, static: bool) -> LanguageModel:
    """A language model on static buffers. static: use the buffers for all passes, not only for passes over several
    texts. lean: use ``LeanRows`` if the module allows it."""
    return (StaticModel if static else JoinedModel)(module, tokenizer, name, lean)
