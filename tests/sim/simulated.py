"""How the tests of the simulator run a kernel and fill its memory."""

from __future__ import annotations

import numpy as np

from pyblasgpu.gpu.simulator import intrinsics as simulator

THREADS = 32


def device(values) -> tuple[int, simulator.Pointer]:
    """`values` as float32 in fresh device memory."""
    values = np.asarray(values, np.float32)
    address = simulator.allocate(values.nbytes)
    simulator.view(address, values.nbytes)[:] = values.view(np.uint8)
    return address, simulator.resolve(address, "float32")


def host(address: int, count: int) -> np.ndarray:
    return simulator.view(address, 4 * count).view(np.float32)


def run(kernel, *arguments, threads=THREADS, grid=(1, 1, 1), shared=0, **limits) -> None:
    simulator.launch(kernel, grid, (threads, 1, 1), shared, arguments, **limits)


def once(statement) -> None:
    """Run `statement` as a kernel of one thread."""
    run(statement, threads=1, shared=1024)
