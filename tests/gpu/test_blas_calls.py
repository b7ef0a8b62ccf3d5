"""The functions of `pyblasgpu.blas` on a device beside the reference BLAS, extents of 0 among them."""

from __future__ import annotations

import numpy as np
import pytest
from blas_calls import ON_DEVICE, calls_of, check

from .running import cupy


def on_device(array: np.ndarray):
    """A copy of `array` by columns."""
    return cupy.array(array, order="F")


def reversed_on_device(array: np.ndarray):
    """A copy of `array` whose elements lie backwards."""
    backwards = tuple(slice(None, None, -1) for _ in array.shape)
    return cupy.asarray(np.ascontiguousarray(array[backwards]))[backwards]


@pytest.mark.parametrize("put", [on_device, reversed_on_device])
@pytest.mark.parametrize("name", ON_DEVICE)
def test_device_arrays(name, put):
    largest = (4, 6, 5) if name.endswith(("trsm", "trsv")) else (37, 70, 41)  # beyond, solutions are rounded
    for given in calls_of(name, (1, 2, 3), largest):
        check(name, given, put, cupy.asnumpy)
