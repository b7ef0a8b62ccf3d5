"""Time a routine on the device: random data, CUDA events, the median of five."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable

import numpy as np

from ..gpu import memory
from ..operands import Operand
from ..types import Diag, Dtype, Side, Uplo
from .cases import TriangularCase
from .oracle import reals, triangle

__all__ = ["Timer", "Workload", "flops"]

REPEATS = 5
LONG_ENOUGH = 1e-3  # seconds between two events
MOST_CALLS = 20  # between two events
HOPELESS = 1.5  # times the best: the first measurement is enough

_CHUNK = 1 << 20  # random elements, repeated to fill a matrix


def flops(name: str, dtype: Dtype, extents: tuple[int, ...]) -> int:
    """Real operations: 2mnk of GEMM, n²r of TRMM and TRSM, times four if complex."""
    if name == "gemm":
        return dtype.flops_per_fma * math.prod(extents)
    n, rhs = extents
    return dtype.flops_per_fma // 2 * n * n * rhs


class Timer:
    """Times what is enqueued on a stream."""

    def __init__(self, stream: int):
        from cuda.bindings import driver

        self._driver, self._stream = driver, stream
        self._start, self._stop = (memory.check(driver.cuEventCreate(0), "cuEventCreate") for _ in range(2))

    def __call__(self, call: Callable[[], None], best: float = math.inf) -> float:
        """Seconds of one `call`; a first, untimed one compiles and warms up.

        `best` is the time to beat: a call far behind it is not repeated.
        """
        call()
        first = self._between(call, 1)
        if first > HOPELESS * best:
            return first
        calls = min(max(math.ceil(LONG_ENOUGH / max(first, 1e-9)), 1), MOST_CALLS)
        return statistics.median(self._between(call, calls) for _ in range(REPEATS))

    def _between(self, call: Callable[[], None], calls: int) -> float:
        driver, stream = self._driver, self._stream
        memory.check(driver.cuEventRecord(self._start, stream), "cuEventRecord")
        for _ in range(calls):
            call()
        memory.check(driver.cuEventRecord(self._stop, stream), "cuEventRecord")
        memory.check(driver.cuEventSynchronize(self._stop), "cuEventSynchronize")
        milliseconds = memory.check(driver.cuEventElapsedTime(self._start, self._stop), "cuEventElapsedTime")
        return milliseconds / 1e3 / calls


class Workload:
    """Random operands in device memory; what was made for one problem serves the next of the dtype."""

    def __init__(self, device: int, stream: int):
        self.device, self.stream = device, stream
        self._held: dict[tuple, int] = {}

    def call(
        self, routine: Callable, name: str, dtype: Dtype, layout: str, extents: tuple[int, ...]
    ) -> Callable[[], None]:
        """A call of `routine` at `extents`; A and B of a GEMM lie as `layout` says."""
        stream = self.stream
        if name == "gemm":
            m, n, k = extents
            a = self._matrix("a", dtype, m, k) if layout[0] == "n" else self._matrix("a", dtype, k, m).T
            b = self._matrix("b", dtype, k, n) if layout[1] == "n" else self._matrix("b", dtype, n, k).T
            c = self._matrix("c", dtype, m, n)
            return lambda: routine(1.0, a, b, 0.0, c, stream)
        n, rhs = extents
        t, b = self._triangle(dtype, n), self._matrix("b", dtype, n, rhs)
        flags = {"side": Side.LEFT, "uplo": Uplo.LOWER, "diag": Diag.NON_UNIT}
        return lambda: routine(1.0, t, b, stream, **flags)

    def _matrix(self, place: str, dtype: Dtype, rows: int, cols: int) -> Operand:
        """A column-major matrix; the memory of `place` is as large as any asked for so far."""
        count = rows * cols
        key = next((key for key in self._held if key[:2] == (place, dtype.letter) and key[2] >= count), None)
        if key is None:
            key = (place, dtype.letter, count)
            self._held[key] = self._random(dtype, count)
        return Operand(self._held[key], rows, cols, 1, rows, dtype, device=self.device)

    def _random(self, dtype: Dtype, count: int) -> int:
        address = memory.allocate(count * dtype.itemsize, self.device, self.stream)
        chunk = reals(np.random.default_rng(count), (min(count, _CHUNK),), dtype)
        for first in range(0, count, len(chunk)):
            memory.to_device(address + first * dtype.itemsize, chunk[: count - first], self.stream)
        memory.synchronize(self.stream)
        return address

    def _triangle(self, dtype: Dtype, n: int) -> Operand:
        key = ("triangle", dtype.letter, n)
        if key not in self._held:
            values = np.asfortranarray(triangle(np.random.default_rng(n), TriangularCase(dtype, n, n), reals))
            self._held[key] = memory.allocate(values.nbytes, self.device, self.stream)
            memory.to_device(self._held[key], values.T, self.stream)
            memory.synchronize(self.stream)
        return Operand(self._held[key], n, n, 1, n, dtype, device=self.device)

    def release(self) -> None:
        """Give all memory back."""
        for address in self._held.values():
            memory.release(address, self.stream)
        self._held.clear()
