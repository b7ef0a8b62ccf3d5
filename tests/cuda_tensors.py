"""PyTorch's tensors in host memory as tensors of a device, whose kernels are stand-ins."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import fake_device
import fake_kernels
import torch

from pyblasgpu.frontend.arrays import pytorch
from pyblasgpu.frontend.calls import call_cache
from pyblasgpu.torch import launched
from pyblasgpu.torch.early_info import early

__all__ = ["install"]


def install(monkeypatch: Any) -> Any:
    """Have all tensors be on a device; return the stand-ins of its kernels."""
    fake_device.install(monkeypatch)
    kernels = fake_kernels.install_below(monkeypatch)
    monkeypatch.setattr(torch.Tensor, "is_cuda", True, raising=False)
    monkeypatch.setattr(torch.Tensor, "get_device", lambda _: 0, raising=False)
    call_cache.clear()
    monkeypatch.setattr(pytorch, "torch_stream", lambda: lambda device: 0)
    monkeypatch.setattr(type(pytorch.TORCH), "empty", _empty)
    monkeypatch.setattr(early, "begin", _begin)
    for module in (pytorch, launched):
        monkeypatch.setattr(module, "tensor_maker", lambda: _new)
    return kernels


def _new(shape: Any, strides: Any, dtype: Any, device: int) -> torch.Tensor:
    return torch.empty_strided(shape, strides, dtype=dtype)


def _begin(info: torch.Tensor) -> None:
    early.found = info.clone(), SimpleNamespace(synchronize=lambda: None)


def _empty(self: Any, shape: Any, dtype: Any, device: int, stream: int) -> torch.Tensor:
    return torch.empty(shape, dtype=getattr(torch, dtype.name))
