"""Steps on buffers that keep their place, which a CUDA graph can replay.

A pass of a model is a pure function of one small int32 buffer and the KV buffers (``step``). It has
a few fixed sizes, padded rows are masked out and never committed (``inputs``), and it never asks
the host anything (``host_free``). On CUDA it is therefore captured once a size and replayed
(``capture``); the buffers outlive a run and serve the next one (``slots``). On a CPU the same
function is simply called, which is how the tests hold it against the plain way. Models of the Llama
class make a pass in a third of the launches (``lean_rows``).

Where nobody records, the target's pass also judges its tree and moves the kept rows (``question``,
``verdict``, ``judge``), and drafters leave their choices on the device (``twins``, ``device_*``,
``choice``, ``best_first``): a step is a copy in, a replay, and the few numbers of the verdict.

Nothing outside imports this room except ``engine.opening``. Importing it registers its ways of
writing a text, of reading for several texts, and of drafting.
"""

from engine.gpu import device_block, device_chain, device_growth, joint, text  # noqa: F401
from engine.gpu.block_context import static_contexts
from engine.gpu.model import JoinedModel, StaticModel
from engine.target.language_model import LanguageModel

__all__ = ["language_model", "static_contexts"]


def language_model(module, tokenizer, name: str, lean: bool, static: bool) -> LanguageModel:
    """A model on static buffers, or one that uses them only to read for several texts at once."""
    return (StaticModel if static else JoinedModel)(module, tokenizer, name, lean)
