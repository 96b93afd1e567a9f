"""Parts that learn from a target, by key; each key is a recipe. A new part is one file and one line of ``MODULES``."""

from __future__ import annotations

import importlib

from ..student import Student

MODULES: dict[str, str] = {
    "medusa": "medusa",
    "hydra": "hydra",
    "clover": "clover",
    "chimera": "chimera",
    "eagle": "eagle",
    "gto": "gto",
    "fspad": "fspad",
    "falcon": "falcon",
    "kangaroo": "kangaroo",
    "ppd": "ppd",
    "hidden_transfer": "hidden_transfer",
    "specdec_pp": "specdec_pp",
    "distillspec": "distillspec",
    "fastdraft": "fastdraft",
    "direct_align": "direct_align",
    "learn2pd": "learn2pd",
    "omnidraft": "omnidraft",
    "s2d": "s2d",
    "deer": "deer",
}
"""Key -> the module of this package whose ``STUDENT`` it is."""


def student_class(key: str) -> type[Student]:
    """Raises KeyError for an unknown part."""
    return importlib.import_module(f"{__name__}.{MODULES[key]}").STUDENT
