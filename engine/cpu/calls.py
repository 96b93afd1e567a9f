"""Calling a compiled graph with torch's tensors."""

from collections.abc import Sequence
from threading import Lock

import torch
from torch import Tensor


def shared(tensor: Tensor):
    """The same memory as OpenVINO's tensor; it must be contiguous."""
    import openvino

    return openvino.Tensor(tensor.numpy(), shared_memory=True)


class Calls:
    """A compiled graph, called by one thread at a time."""

    def __init__(self, model) -> None:
        self._request = model.create_infer_request()
        self._lock = Lock()
        self._columns: list = []

    def __call__(
        self, given: Sequence[Tensor], wanted: Sequence[int], columns: list | None = None
    ) -> list[Tensor]:
        """The outputs of these numbers. given: the first arguments. columns: the others, shared
        already and the same objects from call to call, so that they are handed over but once."""
        with self._lock:
            for index, tensor in enumerate(given):
                self._request.set_input_tensor(index, shared(tensor))
            if columns is not None and columns is not self._columns:
                for index, tensor in enumerate(columns, start=len(given)):
                    self._request.set_input_tensor(index, tensor)
                self._columns = columns
            self._request.infer()
            # the next call overwrites what this one hands out
            return [self._taken(index) for index in wanted]

    def _taken(self, index: int) -> Tensor:
        return torch.from_numpy(self._request.get_output_tensor(index).data).clone()
