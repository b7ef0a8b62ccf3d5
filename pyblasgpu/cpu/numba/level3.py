"""Level 3 of NumPy arrays on kernels that Numba compiles for the processor: ``backend="numba"``.

GEMM is `cpu.numba.gemm` on each core's part of C; TRMM and TRSM are recursions over it. The other routines
run on SciPy's BLAS. Arguments are those of `cpu`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import lru_cache, partial
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from ...gpu.driver import after_fork
from ...types import Diag, Side, Trans, Uplo, dtype_of
from ..scipy import level3 as cpu
from ..scipy.level3 import at_elements, gemmtr, symm, syr2k, syrk
from . import gemm as gemm_kernel
from . import triangle, tuned_gemm
from .config import CpuGemm
from .device import current

__all__ = ["Operand", "gemm", "gemmtr", "multiply", "symm", "syr2k", "syrk", "threads", "trmm", "trsm"]

#: FMAs from which on a thread pays off.
_WORTH = 1 << 21


class Operand(NamedTuple):
    """A matrix, and whether it is read conjugated."""

    array: np.ndarray
    conj: bool = False

    def address_and_strides(self) -> tuple[int, int, int]:
        """Address, row and column stride in elements."""
        size = self.array.itemsize
        row, col = self.array.strides
        return self.array.__array_interface__["data"][0], row // size, col // size


def threads() -> int:
    """Cores that a product may use: those of the process, or ``NUMBA_NUM_THREADS``."""
    requested = os.environ.get("NUMBA_NUM_THREADS", "")
    return int(requested) if requested.isdecimal() and int(requested) else current().cores


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads(), thread_name_prefix="pyblasgpu")


after_fork(_pool.cache_clear)  # threads do not survive


def _together(tasks: list[Callable[[], Any]]) -> None:
    """Run the tasks, each on a core; kernels run without the interpreter's lock.

    All are over when it returns or raises, as Ctrl-C has it do.
    """
    if len(tasks) == 1:
        tasks[0]()
        return
    futures: list[Future[Any]] = []
    try:
        for task in tasks:
            futures.append(_begun(task))
        for future in futures:
            future.result()
    finally:
        wait(futures)


def _begun(task: Callable[[], Any]) -> Future[Any]:
    """The task on a thread of the pool; done already, by the thread that calls, where the pool has ended."""
    try:
        return _pool().submit(task)
    except RuntimeError as error:
        if "cannot schedule" not in str(error):
            raise
    ended: Future[Any] = Future()  # the main thread has ended, and others compute on
    ended.set_result(task())
    return ended


def gemm(
    alpha: Any, a: np.ndarray, b: np.ndarray, beta: Any, c: np.ndarray, trans_a: Trans, trans_b: Trans
) -> None:
    """``c := alpha op(a) op(b) + beta c``; all three of one dtype."""
    inner = a.shape[-1 if trans_a is Trans.NO else -2]
    if alpha == 0 or inner == 0:
        cpu.gemm(alpha, a, b, beta, c, trans_a, trans_b)
        return
    (a, conj_a), (b, conj_b) = cpu.operation(a, trans_a), cpu.operation(b, trans_b)
    for left, right, target in cpu.matrices(at_elements(a), at_elements(b), c):
        with _written(target) as result:
            _gemm(alpha, Operand(left, conj_a), Operand(right, conj_b), beta, result)


def _gemm(alpha: Any, a: Operand, b: Operand, beta: Any, c: np.ndarray) -> None:
    """Compute a product of matrices, on as many cores as pay off."""
    if abs(c.strides[0]) > abs(c.strides[1]):  # the kernel writes columns
        a, b, c = b._replace(array=b.array.T), a._replace(array=a.array.T), c.T
    config, _ = tuned_gemm.choose(dtype_of(c.dtype).letter, current())
    m, n, k = *c.shape, a.array.shape[1]
    count = max(min(threads(), m * n * k // _WORTH), 1)

    def task(rows: slice, cols: slice) -> Callable[[], None]:
        left, right = a._replace(array=a.array[rows]), b._replace(array=b.array[:, cols])
        return partial(multiply, config, alpha, left, right, beta, c[rows, cols])

    if count == 1:
        multiply(config, alpha, a, b, beta, c)
    else:
        _together([task(*part) for part in _parts(m, n, count, config)])


def _parts(m: int, n: int, count: int, config: CpuGemm) -> list[tuple[slice, slice]]:
    """C in `count` parts of whole register tiles, such that the least is packed twice."""
    grids = [(x, count // x) for x in range(1, count + 1) if count % x == 0]
    across, down = min(grids, key=lambda grid: grid[0] * m + grid[1] * n)
    rows, cols = _cut(m, down, config.THR_M), _cut(n, across, config.THR_N)
    return [(row, col) for row in rows for col in cols]


def _cut(extent: int, count: int, tile: int) -> list[slice]:
    step = max(-(-extent // (count * tile)), 1) * tile
    return [slice(first, min(first + step, extent)) for first in range(0, extent, step)]


def multiply(config: CpuGemm, alpha: Any, a: Operand, b: Operand, beta: Any, c: np.ndarray) -> None:
    """``c := alpha a b + beta c`` by the kernel of `config`, on the core that calls."""
    m, n, k = *c.shape, a.array.shape[1]
    buffers = _buffers(gemm_kernel.buffer_bytes(config, m, n, k))
    alpha, beta = complex(alpha), complex(beta)
    gemm_kernel.kernel(config)(
        m,
        n,
        k,
        *a.address_and_strides(),
        *b.address_and_strides(),
        *Operand(c).address_and_strides(),
        a.conj,
        b.conj,
        *buffers.addresses,
        alpha.real,
        alpha.imag,
        beta.real,
        beta.imag,
    )


class _Buffers(NamedTuple):
    """Memory of a kernel's buffers, and where each begins."""

    memory: np.ndarray
    addresses: list[int]


def _buffers(sizes: Sequence[int]) -> _Buffers:
    """Memory for buffers that begin with cache lines each."""
    line = gemm_kernel.LINE
    rounded = [-(-nbytes // line) * line for nbytes in sizes]
    memory = np.empty(sum(rounded) + line, np.uint8)
    address = memory.__array_interface__["data"][0]
    first = address + -address % line
    return _Buffers(memory, [first + before for before in accumulate(rounded[:-1], initial=0)])


@contextmanager
def _written(target: np.ndarray) -> Iterator[np.ndarray]:
    """The matrix itself where kernels can write it, else a copy that is written back."""
    usable = at_elements(target)
    yield usable
    if usable is not target:
        target[...] = usable


def trmm(alpha: Any, a: np.ndarray, b: np.ndarray, side: Side, uplo: Uplo, trans: Trans, diag: Diag) -> None:
    """``b := alpha op(a) b``, or ``alpha b op(a)``; `uplo` is the triangle of `a` as it is stored."""
    _triangular(False, alpha, a, b, side, uplo, trans, diag)


def trsm(alpha: Any, a: np.ndarray, b: np.ndarray, side: Side, uplo: Uplo, trans: Trans, diag: Diag) -> None:
    """``b := x`` with ``op(a) x = alpha b``, or ``x op(a) = alpha b``."""
    _triangular(True, alpha, a, b, side, uplo, trans, diag)


def _triangular(
    solves: bool, alpha: Any, a: np.ndarray, b: np.ndarray, side: Side, uplo: Uplo, trans: Trans, diag: Diag
) -> None:
    """Compute with a lower triangle from the left; each core has some of the columns."""
    if alpha == 0:
        b[...] = 0
        return
    lower = (uplo is Uplo.LOWER) != (trans is not Trans.NO)
    a, conj = cpu.operation(a, trans)
    letter = dtype_of(b.dtype).letter
    config = tuned_gemm.choose(letter, current())[0]
    recursion = _Recursion(solves, config, triangle.kernel(config, solves), conj, diag is Diag.UNIT)
    for factor, target in cpu.matrices(at_elements(a), b):
        with _written(target) as result:
            low = lower
            if side is Side.RIGHT:
                factor, result, low = factor.T, result.T, not low
            if not low:
                factor, result = factor[::-1, ::-1], result[::-1]
            cpu.quietly(cpu.scale)(result, alpha)
            rows, cols = result.shape
            count = max(min(threads(), rows * rows * cols // _WORTH), 1)
            _together(
                [partial(recursion.run, factor, result[:, part]) for part in _cut(cols, count, config.THR_M)]
            )


class _Recursion(NamedTuple):
    """TRSM or TRMM of a lower triangle on one core: GEMM, and leaves."""

    solves: bool
    config: CpuGemm
    leaf: Callable[..., None]
    conj: bool
    unit: bool

    def run(self, t: np.ndarray, b: np.ndarray) -> None:
        order, cols = b.shape
        if order <= triangle.ORDER:
            buffers = _buffers(triangle.buffer_bytes(self.config, order))
            self.leaf(
                order,
                cols,
                *Operand(t).address_and_strides(),
                *Operand(b).address_and_strides(),
                self.conj,
                self.unit,
                *buffers.addresses,
            )
            return
        half = max(order // 2 // self.config.THR_M, 1) * self.config.THR_M
        top, bottom = b[:half], b[half:]
        steps = [
            lambda: self.run(t[:half, :half], top),
            lambda: multiply(
                self.config,
                -1 if self.solves else 1,
                Operand(t[half:, :half], self.conj),
                Operand(top),
                1,
                bottom,
            ),
            lambda: self.run(t[half:, half:], bottom),
        ]
        for step in steps if self.solves else reversed(steps):
            step()
