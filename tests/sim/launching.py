"""Run one kernel on NumPy arrays that serve as simulated device memory."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import wraps
from typing import NamedTuple

import numpy as np
from region_mask import mask

from pyblasgpu.gpu import launch
from pyblasgpu.gpu.simulator import intrinsics as simulator
from pyblasgpu.kernels.common.options import options_of
from pyblasgpu.types import Region


class Variant(NamedTuple):
    """How a triangle is meant, and how T and B lie."""

    unit: bool
    conj: bool
    t_by_rows: bool
    b_by_rows: bool

    @property
    def options(self) -> int:
        """What the launch tells the kernel."""
        return options_of(conj=self.conj, unit=self.unit)

    def source(self, kernels, config):
        """The kernel of a leaf's module for it."""
        return kernels.source(config, conj=self.conj, t_by_rows=self.t_by_rows)


def run(source, blocks: int, arrays: tuple, integers: tuple, scalars: tuple, batch: int = 1) -> None:
    """Launch `source` on `arrays` themselves; `integers` and `scalars` follow the pointers."""
    addresses = [simulator.adopt(array) for array in arrays]
    reals = tuple(part for scalar in scalars for part in (complex(scalar).real, complex(scalar).imag))
    launch.kernel(source, 0).launch((blocks, 1, batch), 0, addresses, integers, reals)


def once_for_equal_arguments(launcher: Callable) -> Callable:
    """`launcher`, whose results by the package's kernel serve later calls with equal arguments, as copies.

    Tests of other kernels prepare the same operands for each defect; a kernel that is passed is launched.
    """
    results: dict[tuple, object] = {}

    @wraps(launcher)
    def launched(*arguments, kernels=None, **options):
        if kernels is not None:
            return launcher(*arguments, kernels=kernels, **options)
        key = _key(arguments), _key(sorted(options.items()))
        if key not in results:
            results[key] = launcher(*arguments, **options)
        return deepcopy(results[key])

    return launched


def _key(value):
    """What a value is, hashable; an array with its layout."""
    if isinstance(value, np.ndarray):
        return value.shape, value.strides, value.dtype.str, value.tobytes()
    return tuple(map(_key, value)) if isinstance(value, (tuple, list)) else value


def strides(array: np.ndarray) -> tuple[int, ...]:
    """Strides in elements."""
    return tuple(stride // array.itemsize for stride in array.strides)


def in_region(region: Region, expected: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What a kernel for a `region` of C is expected to leave, and C before it, both of shape (..., m, n).

    What is beyond the region is 77, and stays it; the imaginary parts of a Hermitian diagonal are NaN before.
    """
    if region is Region.ALL:
        return expected, c
    m, n = c.shape[-2:]
    kept = mask(region, m, n)
    expected, c = np.where(kept, expected, 77), np.where(kept, c, 77).astype(c.dtype)
    if region.hermitian:
        diagonal = ..., *np.diag_indices(min(m, n))
        expected[diagonal] = expected[diagonal].real
        c.imag[diagonal] = np.nan
    return expected, c
