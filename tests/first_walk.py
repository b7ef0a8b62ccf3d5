"""The first call of a process on stand-ins of a device and of kernels, and what it enters."""

from __future__ import annotations

import fake_device
import fake_kernels
import numpy as np
import pytest
from walk import walk

import pyblasgpu
from pyblasgpu import blas

__all__ = ["counts"]

N = 512


def counts(case: str) -> tuple[int, int, int]:
    """The modules that a call enters, those of `dispatch` among them, and the changes of package."""
    rng = np.random.default_rng(0)
    arrays = {name: np.asfortranarray(rng.random((N, N))) for name in "abc"}
    arrays["t"] = np.asfortranarray(np.tril(arrays["a"]) + N * np.eye(N))
    names = {name: fake_device.Array(array) for name, array in arrays.items()}
    with pytest.MonkeyPatch.context() as monkeypatch:
        fake_device.install(monkeypatch)
        fake_kernels.install_below(monkeypatch)
        found = walk(lambda: eval(case, {"pyblasgpu": pyblasgpu, "blas": blas}, names))  # noqa: S307  # of a table
    dispatch = [module for module in found.modules if module.startswith("dispatch/")]
    return len(found.modules), len(dispatch), found.changes
