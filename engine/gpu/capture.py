"""A function of static buffers as a CUDA graph."""

from collections.abc import Callable

import torch

from engine.gpu.host_free import HostFree

WARM_UP = 2  # runs before the capture: kernels are compiled and workspaces allocated


def captured(function: Callable[[], object], pool) -> Callable[[], object]:
    """Run the function, capture it, and return what replays it and gives its (static) result.

    pool: graph memory that the graphs of one slot share; their results hold until the next of
    them is replayed. Raises where the function cannot be captured: WaitsForHost if it waits for
    the host, which is found before the capture, or what CUDA or a compiler says. The current stream
    is the caller's again also then, which torch sees to only if a capture succeeds.
    """
    with HostFree():
        function()
    here, side = torch.cuda.current_stream(), torch.cuda.Stream()
    side.wait_stream(here)
    with torch.cuda.stream(side):
        for _ in range(WARM_UP):
            function()
    here.wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    # only this thread is held to the rules of a capture: others may draw, load or measure
    with (
        torch.cuda.stream(here),
        torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"),
    ):
        result = function()

    def replay() -> object:
        graph.replay()
        return result

    return replay
