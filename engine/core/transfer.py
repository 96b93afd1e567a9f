"""Copies between the host and a GPU for which the host does not wait."""

import torch
from torch import Tensor


def to_device(host: Tensor, device: torch.device | str | None) -> Tensor:
    """Return a copy of ``host`` on ``device``, or ``host`` itself if ``device`` is None or is where ``host`` lies. On
    CUDA the copy goes through pinned memory, so that the host does not wait; torch reserves the pinned block until the
    copy is done."""
    if host.is_cuda or device is None or torch.device(device).type != "cuda" or not host.numel():
        return host.to(device)
    return host.pin_memory().to(device, non_blocking=True)


def into(target: Tensor, host: Tensor) -> None:
    """Fill ``target``, a tensor on any device, from ``host``; on CUDA through pinned memory, without waiting."""
    target.copy_(host.pin_memory() if target.is_cuda else host, non_blocking=True)


def to_host_meanwhile(tensor: Tensor) -> Tensor:
    """Return a copy of a GPU's tensor in the host's pinned memory, made while the GPU goes on with other work. The copy
    is complete once the host has waited for the device (``torch.cuda.synchronize``). A tensor on the host is returned
    unchanged."""
    if not tensor.is_cuda:
        return tensor
    side = torch.cuda.Stream(tensor.device)
    side.wait_stream(torch.cuda.current_stream(tensor.device))
    with torch.cuda.stream(side):
        copy = tensor.to("cpu", non_blocking=True)
    tensor.record_stream(side)
    return copy
