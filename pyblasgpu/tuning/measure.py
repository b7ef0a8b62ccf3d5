"""Time a routine on the device: random data, cold caches, CUDA events, the median of five."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from ..database import T_LAYOUTS
from ..gpu import memory
from ..gpu.device import Device
from ..gpu.events import Stopwatch
from ..operands import Operand
from ..routine import extents as named_extents
from ..routine_table import ROUTINES
from ..types import Diag, Dtype, Side, Uplo
from .arenas import Arenas
from .factor_workload import FACTORS

__all__ = ["Rotation", "Timer", "Workload", "flops"]

REPEATS = 5
LONG_ENOUGH = 1e-3  # seconds between two events
HOPELESS = 1.5  # times the best: two measurements are enough

MOST_FLUSHES = 1000  # before a pass, however long the host took

MIN_L2 = 8 << 20


class Rotation(NamedTuple):
    """One problem on several copies of its arrays.

    Attributes
    ----------
    calls : tuple of callable
        The routine on each of the copies.
    restore : callable
        ``restore(count)`` enqueues what gives the first `count` copies back what calls in place overwrite.
    """

    calls: tuple[Callable[[], None], ...]
    restore: Callable[[int], None]


def flops(name: str, dtype: Dtype, extents: tuple[int, ...]) -> int:
    """Real operations, times four if complex: 2mnk of each GEMM of a batch, 2mn of GEMV and GER, n²r of each
    TRMM and TRSM, 2n²k of SYR2K. LU has 2n³/3, Cholesky n³/3, and solutions by LU 2n²r.
    """
    routine = ROUTINES[name]
    dims = routine.dims
    named: dict[str, Any] = dict(zip(dims, extents, strict=False))
    return routine.flops(dtype, named_extents(**named)) * math.prod(extents[len(dims) :])


class Timer:
    """Times what is enqueued on a stream, its operands not in the cache, the host not in the way.

    Before each pass as much memory as the L2 cache holds is copied, as often as it takes the host to enqueue
    the pass meanwhile. So what is timed is the device's share alone.
    """

    def __init__(self, device: Device, stream: int):
        self._device, self._stream = device.ordinal, stream
        self._bytes = max(device.l2_bytes, MIN_L2)
        self._stopwatch = Stopwatch(self._device)
        with memory.current_context(self._device):
            self._scratch = memory.allocate(2 * self._bytes, self._device, stream)
            self._flush(1)
            self._flush_seconds = self._stopwatch.seconds(lambda: self._flush(10), stream) / 10

    def __call__(self, work: Rotation, best: float = math.inf, repeats: int = REPEATS) -> float:
        """Seconds of one call; two untimed ones compile, warm up, and measure how long the host takes.

        `best` is the time to beat. A call far behind it is timed once more, lest a hiccup end a candidate. So
        might what a pass takes besides its calls, which is as long as a short call. Else the median of
        `repeats` passes.
        """
        with memory.current_context(self._device):
            return self._time(work, best, repeats)

    def _time(self, work: Rotation, best: float, repeats: int) -> float:
        work.restore(1)
        work.calls[0]()
        memory.synchronize(self._stream)
        work.restore(1)
        begin = time.perf_counter()
        work.calls[0]()
        host = time.perf_counter() - begin
        first = self._pass(work, 1, host)
        calls = min(max(math.ceil(LONG_ENOUGH / max(first, 1e-9)), 1), len(work.calls))
        if first > HOPELESS * best:
            first = min(first, self._pass(work, calls, host))
        if first > HOPELESS * best:
            return first
        return statistics.median(self._pass(work, calls, host) for _ in range(repeats))

    def _pass(self, work: Rotation, calls: int, host: float) -> float:
        work.restore(calls)
        wanted = math.ceil(calls * host / (0.7 * self._flush_seconds))
        self._flush(min(1 + wanted, MOST_FLUSHES))

        def run() -> None:
            for call in work.calls[:calls]:
                call()

        return self._stopwatch.seconds(run, self._stream) / calls

    def _flush(self, times: int) -> None:
        for _ in range(times):
            memory.copy(self._scratch, self._scratch + self._bytes, self._bytes, self._stream)


class Workload(Arenas):
    """Problems on random operands in device memory."""

    def rotation(
        self, routine: Callable, name: str, dtype: Dtype, layout: str, extents: tuple[int, ...]
    ) -> Rotation:
        """`routine` at `extents` on copies of its operands: A, B of a GEMM have the `layout`, a triangle as
        that one of `T_LAYOUTS`, by default the first.
        """
        makers: dict[str, Callable[..., Rotation]] = {
            **dict.fromkeys(FACTORS, partial(self._factors, name)),
            "gemm": self.products,
            "gemv": self._matrix_vector,
            "ger": self._rank_1,
            "syr2k": self._rank_2k,
        }
        make = makers.get(name, self._triangular)
        try:
            return make(routine, dtype, layout, extents)
        except MemoryError:
            self.release()  # what other problems have left behind
            return make(routine, dtype, layout, extents)

    def products(
        self,
        routine: Callable,
        dtype: Dtype,
        layout: str,
        extents: tuple[int, ...],
        pad: int = 0,
        shift: int = 0,
    ) -> Rotation:
        """A GEMM at (m, n, k[, batch]); `pad` elements are between columns (rows), and the first `shift`
        elements behind an aligned address.
        """
        m, n, k, *batch = extents
        of_each = math.prod(batch)
        count = self.copies(dtype, *(of_each * elements for elements in (m * k, k * n, m * n)))

        def operands(name: str, rows: int, cols: int, transposed: bool) -> list[Operand]:
            return self.matrices(name, dtype, rows, cols, count, transposed, of_each, pad, shift)

        lefts = operands("A", m, k, layout[0] == "t")
        rights = operands("B", k, n, layout[1] == "t")
        outs = operands("C", m, n, False)

        def call(a: Operand, b: Operand, c: Operand) -> Callable[[], None]:
            return lambda: routine(1.0, a, b, 0.0, c, self.stream)

        return Rotation(tuple(map(call, lefts, rights, outs)), lambda count: None)

    def _triangular(self, routine, dtype: Dtype, layout: str, extents) -> Rotation:
        n, rhs, *batch = extents
        of_each = math.prod(batch)
        count = self.copies(dtype, of_each * n * n, of_each * n * rhs)
        product, triangle = T_LAYOUTS.get(layout) or T_LAYOUTS["left_colmajor"]
        on_left = triangle.on_left
        is_colmajor = product[not on_left] == "n"
        # what is stored is lower on the left by columns, and turned by rows, and once more on the right
        is_lower = on_left == is_colmajor
        triangles = self._triangles(dtype, n, count, is_lower, of_each)
        triangles = triangles if is_colmajor else [t.T for t in triangles]
        rows, cols = (n, rhs) if on_left else (rhs, n)
        outs = self.matrices("B", dtype, rows, cols, count, batch=of_each)
        (right_hand_sides,) = self.matrices("A", dtype, rows, cols, 1, batch=of_each)
        side, uplo = (Side.LEFT, Uplo.LOWER) if on_left else (Side.RIGHT, Uplo.UPPER)
        flags = {"side": side, "uplo": uplo, "diag": Diag.NON_UNIT}

        def call(t: Operand, b: Operand) -> Callable[[], None]:
            return lambda: routine(1.0, t, b, self.stream, **flags)

        def restore(count: int) -> None:
            for b in outs[:count]:
                memory.copy(
                    b.pointer, right_hand_sides.pointer, of_each * n * rhs * dtype.itemsize, self.stream
                )

        return Rotation(tuple(map(call, triangles, outs)), restore)

    def _factors(self, name: str, routine, dtype: Dtype, layout: str, extents) -> Rotation:
        """A factorization or a solution by factors, of `FACTORS`."""
        return Rotation(*FACTORS[name](self, routine, dtype, extents))

    def _rank_2k(self, routine, dtype: Dtype, layout: str, extents) -> Rotation:
        n, k = extents
        count = self.copies(dtype, n * n, n * k)
        lefts, rights = (self.matrices(name, dtype, n, k, count) for name in "AB")
        outs = self.matrices("C", dtype, n, n, count)

        def call(a: Operand, b: Operand, c: Operand) -> Callable[[], None]:
            return lambda: routine(1.0, a, b, 0.0, c, self.stream, uplo=Uplo.LOWER)

        return Rotation(tuple(map(call, lefts, rights, outs)), lambda count: None)

    def _matrix_vector(self, routine, dtype: Dtype, layout: str, extents) -> Rotation:
        m, n = extents
        count = self.copies(dtype, m * n, m, n)
        matrices = self.matrices("A", dtype, m, n, count, layout == "t")
        lefts, outs = self._vectors("x", dtype, n, count), self._vectors("y", dtype, m, count)

        def call(a: Operand, x: Operand, y: Operand) -> Callable[[], None]:
            return lambda: routine(1.0, a, x, 0.0, y, self.stream)

        return Rotation(tuple(map(call, matrices, lefts, outs)), lambda count: None)

    def _rank_1(self, routine, dtype: Dtype, layout: str, extents) -> Rotation:
        m, n = extents
        count = self.copies(dtype, m * n, m, n)
        lefts, rights = self._vectors("x", dtype, m, count), self._vectors("y", dtype, n, count)
        outs = self.matrices("C", dtype, m, n, count)

        def call(x: Operand, y: Operand, a: Operand) -> Callable[[], None]:
            return lambda: routine(1.0, x, y, a, self.stream)

        return Rotation(tuple(map(call, lefts, rights, outs)), lambda count: None)

    def _vectors(self, name: str, dtype: Dtype, length: int, count: int) -> list[Operand]:
        return self.matrices(name, dtype, length, 1, count)
