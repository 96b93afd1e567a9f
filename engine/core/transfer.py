"""Copies between the host and a GPU that the host does not wait for."""

import torch
from torch import Tensor


def to_device(host: Tensor, device: torch.device | str | None) -> Tensor:
    """A copy on ``device`` (None: where it is); on CUDA through pinned memory, so that the host
    goes on at once. The pinned block is kept until the copy is done. A tensor that is
    there already is returned as it is."""
    if host.is_cuda or device is None or torch.device(device).type != "cuda" or not host.numel():
        return host.to(device)
    return host.pin_memory().to(device, non_blocking=True)


def into(target: Tensor, host: Tensor) -> None:
    """Fill a tensor of any device from the host, waiting no more than ``to_device`` does."""
    target.copy_(host.pin_memory() if target.is_cuda else host, non_blocking=True)


def to_host_meanwhile(tensor: Tensor) -> Tensor:
    """A copy in pinned memory, made while the GPU goes on; complete once the host has waited for the
    device (``torch.cuda.synchronize``). A tensor on the host is returned as it is."""
    if not tensor.is_cuda:
        return tensor
    side = torch.cuda.Stream(tensor.device)
    side.wait_stream(torch.cuda.current_stream(tensor.device))
    with torch.cuda.stream(side):
        copy = tensor.to("cpu", non_blocking=True)
    tensor.record_stream(side)
    return copy
