"""Language models on a CPU whose full passes are compiled by OpenVINO."""

import logging
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from engine.cpu.calls import Calls
from engine.cpu.passes import CompiledPasses, NotConvertible
from engine.cpu.store import compiled, in_one_line
from engine.cpu.threads import threads
from engine.errors import UserError
from engine.target.language_model import LanguageModel
from engine.target.row_mask import RowMask
from engine.target.session import Session

log = logging.getLogger(__name__)


class CompiledModel(LanguageModel):
    """A language model whose full passes are those of ``CompiledPasses``: the same weights, the same
    logits to rounding. Passes through some of the layers go through the module, on the same columns."""

    def __init__(self, model, tokenizer, name: str) -> None:
        super().__init__(model, tokenizer, name)
        with torch.no_grad():
            self.passes = CompiledPasses(model)
        self._head: Calls | None = None

    def session(self, capacity: int, features: Sequence[int] = ()) -> Session:
        return CompiledSession(self, self.passes.columns(capacity), tuple(features))

    def head(self, hidden: Tensor) -> Tensor:
        if self._head is None:
            head = nn.Sequential(self.model.get_output_embeddings())
            example = [torch.zeros(2, self.hidden_size)]
            self._head = Calls(compiled(head, example, "head", threads()))
        return self._head([hidden.contiguous()], [0])[0]


class CompiledSession(Session):
    """See ``Session``."""

    def _forward(
        self, given: Tensor, mask: RowMask, features: tuple[int, ...], last: int | None
    ) -> tuple[Tensor | None, Tensor | None]:
        vectors = given if given.is_floating_point() else self.model.embed(given)
        return self.model.passes(vectors, mask, self._cache, features, last)


def compiled_model(module, tokenizer, name: str) -> CompiledModel | None:
    """None, and a line in the log, where the module keeps its own passes."""
    try:
        return CompiledModel(module, tokenizer, name)
    except UserError:
        raise
    except ImportError:
        log.warning("OpenVINO is not installed; %s runs through its own module.", name)
    except NotConvertible as error:
        log.warning("%s runs through its own module: %s.", name, error)
    except Exception as error:  # what OpenVINO and traced modules raise has no common kind
        log.warning("%s runs through its own module: %s", name, in_one_line(error))
    return None
