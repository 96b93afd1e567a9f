"""The kinds of part that a target can have. A new kind takes its own file and one line of ``MODULES``."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import UserError

if TYPE_CHECKING:
    from engine.target.language_model import LanguageModel

MODULES = {
    "draft": "engine.parts.draft",
    "foreign_draft": "engine.parts.foreign_draft",
    "nested_draft": "engine.parts.nested_draft",
    "denoiser": "engine.parts.denoiser",
    "medusa_heads": "engine.parts.medusa_heads",
    "hydra_heads": "engine.parts.hydra_heads",
    "clover_heads": "engine.parts.clover_heads",
    "chimera_heads": "engine.parts.chimera_heads",
    "eagle": "engine.parts.eagle",
    "falcon": "engine.parts.falcon",
    "adapter": "engine.parts.kangaroo",
    "prompt_tokens": "engine.parts.prompt_tokens",
    "transfer_maps": "engine.parts.transfer_maps",
    "vocabulary": "engine.parts.vocabulary",
    "acceptance_head": "engine.parts.acceptance_head",
    "datastore": "engine.parts.datastore",
    "unmasking_filter": "engine.parts.unmasking_filter",
    "diffusion_lm": "engine.parts.diffusion_lm",
}
"""Kind -> the module that opens parts of this kind; its ``KIND`` says how."""


@dataclass(frozen=True)
class PartKind:
    """noun: for sentences. load(path, target, dtype, device): opens a part and checks that it belongs
    to the target; raises UserError, one sentence. dtype: a torch dtype, or None for the checkpoint's."""

    noun: str
    load: Callable[[str, LanguageModel, object, str], object]

    @property
    def named(self) -> str:
        """The noun with its article."""
        return f"{'an' if self.noun[0] in 'aeiou' else 'a'} {self.noun}"


def kind_of(key: str) -> PartKind:
    """Raises UserError for an unknown kind."""
    if key not in MODULES:
        raise UserError(f"There is no kind of part {key!r}; known are: {', '.join(MODULES)}.")
    return importlib.import_module(MODULES[key]).KIND
