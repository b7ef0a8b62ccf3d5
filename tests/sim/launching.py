"""Run one kernel on NumPy arrays that serve as simulated device memory."""

from __future__ import annotations

import numpy as np

from pyblasgpu.gpu import launch, simulator


def run(source, blocks: int, arrays: tuple, integers: tuple, scalars: tuple, batch: int = 1) -> None:
    """Launch `source` on `arrays` themselves; `integers` and `scalars` follow the pointers."""
    addresses = [simulator.adopt(array) for array in arrays]
    reals = tuple(part for scalar in scalars for part in (complex(scalar).real, complex(scalar).imag))
    launch.kernel(source, 0).launch((blocks, 1, batch), 0, addresses, integers, reals)


def strides(array: np.ndarray) -> tuple[int, ...]:
    """Strides in elements."""
    return tuple(stride // array.itemsize for stride in array.strides)
