"""The drafters that leave the output unchanged with the rules that they use by default."""

from functools import cache

from engine.catalogue import catalogue


@cache
def lossless() -> set[str]:
    return {one["key"] for one in catalogue()["drafters"] if one["lossless"]}
