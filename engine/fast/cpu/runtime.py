"""Gives access to OpenVINO's runtime, and to the operations that only its CPU plugin has."""

from functools import cache
from pathlib import Path


@cache
def core():
    """OpenVINO's runtime. Raises ImportError if it is not installed."""
    import openvino

    return openvino.Core()


@cache
def own_operations():
    """A factory for the operations that only OpenVINO's CPU plugin has. Its FullyConnected multiplies bf16 numbers and
    gives fp32 results. Raises FileNotFoundError if the plugin's library is missing."""
    from openvino.utils.node_factory import NodeFactory

    factory = NodeFactory()
    factory.add_extension(str(_cpu_plugin()))
    return factory


def _cpu_plugin() -> Path:
    import openvino

    for path in Path(openvino.__file__).parent.glob("libs/*openvino_intel_cpu_plugin*"):
        return path
    raise FileNotFoundError("OpenVINO's library for CPUs was not found.")
