"""Which drafters leave the output unchanged with the rules that they take by themselves."""

from engine.catalogue import catalogue


def lossless() -> set[str]:
    return {one["key"] for one in catalogue()["drafters"] if one["lossless"]}
