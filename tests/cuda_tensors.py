"""PyTorch's tensors in host memory as tensors of a device, whose kernels are stand-ins."""

from __future__ import annotations

from typing import Any

import fake_device
import fake_kernels
import torch

from pyblasgpu.frontend.arrays import libraries, pytorch
from pyblasgpu.frontend.calls import call_cache

__all__ = ["install"]


def install(monkeypatch: Any) -> Any:
    """Have all tensors be on a device; return the stand-ins of its kernels."""
    fake_device.install(monkeypatch)
    kernels = fake_kernels.install_below(monkeypatch)
    monkeypatch.setattr(torch.Tensor, "is_cuda", True, raising=False)
    monkeypatch.setattr(torch.Tensor, "get_device", lambda _: 0, raising=False)
    call_cache.clear()
    monkeypatch.setattr(pytorch, "torch_stream", lambda: lambda device: 0)
    for name in ("empty", "empty_here"):
        monkeypatch.setattr(type(pytorch.TORCH), name, _empty)
    monkeypatch.setattr(type(pytorch.TORCH), "empties", libraries.Library.empties)
    return kernels


def _empty(self: Any, shape: Any, dtype: Any, device: int, stream: int) -> torch.Tensor:
    return torch.empty(shape, dtype=getattr(torch, dtype.name))
