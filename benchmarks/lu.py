"""LU factors against cuSOLVER, called directly: squares, panels, solutions, batches, other Configs.

    python -m benchmarks.lu --out DIR [--seconds 120] [--letters sd] [--kinds squares,solves,batches,configs]

Medians by CUDA events. A is copied anew before each run and the L2 cache is emptied; neither is timed.
The device is kept busy meanwhile, so that the host's time does not count; batches show it, too.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import cupy
from cupy.cuda import device as cupy_device
from cupy_backends.cuda.libs import cublas, cusolver

from benchmarks.arrays import cold_seconds, repeats_at, uniform
from benchmarks.study import Namespace, Row, Rows, Study, main
from pyblasgpu import lapack
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.kernels.factor.lu.getrf_panel import GetrfPanel
from pyblasgpu.testing.clocks import median_seconds
from pyblasgpu.types import dtype_of

SIZES = (512, 1024, 2048, 4096, 8192, 16384)
PANEL_ROWS, PANEL_COLS = (64, 256, 512, 1024, 2048, 4096, 8192, 16384), 64
BATCH_ORDERS, MOST_BATCH = (4, 8, 16, 32, 64, 128, 256), 20000
CONFIG_ORDERS = (512, 1024, 2048, 4096, 8192)
#: ROWS, COLS, DIRECT and CLUSTER of panels
CONFIGS = {
    "d": ((256, 32, 16, 0), (256, 32, 16, 16), (128, 32, 16, 16)),
    "s": ((256, 32, 16, 0), (256, 32, 16, 16), (128, 32, 16, 16)),
    "c": ((256, 32, 0, 0), (128, 32, 16, 16)),
    "z": ((256, 16, 0, 0), (128, 16, 16, 16)),
}


class Getrf:
    """cuSOLVER's factors of a matrix in place, with workspace of its own, and solutions from them."""

    def __init__(self, a: cupy.ndarray):
        self.handle, self.a, letter = cupy_device.get_cusolver_handle(), a, dtype_of(a.dtype).letter
        m, n = a.shape
        self.factor, self.substitute = (getattr(cusolver, letter + name) for name in ("getrf", "getrs"))
        size = getattr(cusolver, f"{letter}getrf_bufferSize")(self.handle, m, n, a.data.ptr, m)
        self.work, self.piv = cupy.empty(size, a.dtype), cupy.empty(min(m, n), cupy.int32)
        self.info = cupy.empty(1, cupy.int32)

    def __call__(self) -> None:
        m, n = self.a.shape
        pointers = self.work.data.ptr, self.piv.data.ptr, self.info.data.ptr
        self.factor(self.handle, m, n, self.a.data.ptr, m, *pointers)

    def solve(self, b: cupy.ndarray) -> None:
        """Overwrite `b` with the solutions."""
        n, columns = b.shape
        pointers = self.a.data.ptr, n, self.piv.data.ptr, b.data.ptr, n, self.info.data.ptr
        self.substitute(self.handle, 0, n, columns, *pointers)


def compared(letter: str, m: int, n: int, with_vendor: bool = True) -> Row:
    """Seconds of both for one matrix, and the ratio."""
    start = uniform(letter, m, n)
    a, ours, k = cupy.empty_like(start), getattr(lapack, f"{letter}getrf"), min(m, n)

    def restore() -> None:
        a[...] = start

    repeats = 3 if m * n > 5000**2 else 9
    mine = cold_seconds(lambda: ours(a, overwrite_a=1), restore, repeats)
    theirs = cold_seconds(Getrf(a), restore, repeats) if with_vendor else float("nan")
    work = (m * n * k - (m + n) * k * k / 2 + k**3 / 3) * (8 if letter in "cz" else 2) / 1e12
    rates = {"tflops": work / mine, "cusolver_tflops": work / theirs, "us_per_column": mine / k * 1e6}
    return {"dtype": letter, "m": m, "n": n, **_ratio(mine, theirs), **rates}


def _ratio(mine: float, theirs: float, vendor: str = "cusolver") -> Row:
    return {"seconds": mine, vendor: theirs, "ratio": theirs / mine}


def squares(options: Namespace) -> Rows:
    """Squares and panels against cuSOLVER."""
    for letter in options.letters:
        for n in SIZES:
            if letter in "sd" or 1024 <= n <= 8192:
                yield compared(letter, n, n)
        for m in PANEL_ROWS if letter in "sd" else ():
            yield compared(letter, m, PANEL_COLS)


def solves(options: Namespace) -> Rows:
    """getrs against cuSOLVER's, and getri next to its getrs of the identity."""
    for letter in options.letters:
        for n in SIZES:
            lu, piv, _ = getattr(lapack, f"{letter}getrf")(uniform(letter, n, n))
            vendor = Getrf(lu)
            vendor.piv[...] = cupy.asarray(piv).astype(cupy.int32) + 1
            for columns in (1, 32, 512, n):
                row = {"routine": "getrs", "dtype": letter, "n": n, "columns": columns}
                yield {**row, **solution(vendor, piv, columns)}
            yield {"routine": "getri", "dtype": letter, "n": n, "columns": n, **inverse(vendor, piv)}


def solution(vendor: Getrf, piv: Any, columns: int) -> Row:
    letter, n = dtype_of(vendor.a.dtype).letter, len(vendor.a)
    start, b = uniform(letter, n, columns), uniform(letter, n, columns)
    ours = getattr(lapack, f"{letter}getrs")

    def restore() -> None:
        b[...] = start

    mine = cold_seconds(lambda: ours(vendor.a, piv, b, overwrite_b=1), restore, repeats_at(n))
    return _ratio(mine, cold_seconds(lambda: vendor.solve(b), restore, repeats_at(n)))


def inverse(vendor: Getrf, piv: Any) -> Row:
    a, b, n = vendor.a.copy(order="F"), cupy.empty_like(vendor.a), len(vendor.a)
    ours = getattr(lapack, f"{dtype_of(a.dtype).letter}getri")

    def restore() -> None:
        a[...] = vendor.a

    def theirs() -> None:
        b.fill(0)
        cupy.fill_diagonal(b, 1)
        vendor.solve(b)

    mine = cold_seconds(lambda: ours(a, piv, overwrite_lu=1), restore, repeats_at(n))
    return _ratio(mine, cold_seconds(theirs, restore, repeats_at(n)))


def batches(options: Namespace) -> Rows:
    """Factors and solutions of batches against cuBLAS's getrfBatched and getrsBatched."""
    for letter in options.letters:
        for n in BATCH_ORDERS:
            case = Batch(letter, n, min(max((1 << 22) // n**2, 64), MOST_BATCH))
            yield case.factors()
            for columns in (1, 4):
                yield case.solutions(columns)


class Batch:
    """A batch of matrices of one order, ours and cuBLAS's."""

    def __init__(self, letter: str, n: int, count: int):
        self.letter, self.n, self.count = letter, n, count
        self.start = uniform(letter, n, n * count).T.reshape(count, n, n)
        self.a = self.start.copy()
        self.view = self.a.swapaxes(1, 2)
        self.piv, self.info = cupy.empty((count, n), cupy.int32), cupy.empty(count, cupy.int32)
        self.handle = cupy_device.get_cublas_handle()

    def addresses(self, stack: cupy.ndarray) -> cupy.ndarray:
        """Pointers to its matrices."""
        return stack.data.ptr + cupy.arange(self.count, dtype=cupy.uint64) * stack[0].nbytes

    def restore(self) -> None:
        self.a[...] = self.start

    def row(self, routine: str, columns: int, ours: Callable[[], Any], theirs: Callable[[], Any]) -> Row:
        """Seconds of both, and of our host."""
        restore = self.restore if routine == "getrf" else lambda: None
        mine = cold_seconds(ours, restore, 5)
        host = median_seconds(ours, prepare=cupy.cuda.Device().synchronize, repeats=9, untimed=0)
        try:
            vendor = cold_seconds(theirs, restore, 5)
        except Exception:  # CuPy binds it for some types alone
            vendor = float("nan")
        case = {"dtype": self.letter, "n": self.n, "count": self.count, "columns": columns}
        return {"routine": routine, **case, "host": host, **_ratio(mine, vendor, "cublas")}

    def factors(self) -> Row:
        run, pointers = getattr(cublas, f"{self.letter}getrfBatched"), self.addresses(self.a)
        numbers = pointers.data.ptr, self.n, self.piv.data.ptr, self.info.data.ptr, self.count
        ours, theirs = getattr(lapack, f"{self.letter}getrf"), (self.handle, self.n, *numbers)
        return self.row("getrf", 0, lambda: ours(self.view, overwrite_a=1), lambda: run(*theirs))

    def solutions(self, columns: int) -> Row:
        """With the factors that are there."""
        self.restore()
        pivots = getattr(lapack, f"{self.letter}getrf")(self.view, overwrite_a=1)[1]
        b = cupy.ones((self.count, columns, self.n), self.a.dtype)
        ours = getattr(lapack, f"{self.letter}getrs")
        answer, matrices, rights = ctypes.c_int(), self.addresses(self.a), self.addresses(b)
        theirs = cupy.asarray(pivots) + 1
        numbers = matrices.data.ptr, self.n, theirs.data.ptr, rights.data.ptr, self.n
        right = b.swapaxes(1, 2)

        def vendor() -> None:
            run = getattr(cublas, f"{self.letter}getrsBatched")
            run(self.handle, 0, self.n, columns, *numbers, ctypes.addressof(answer), self.count)

        return self.row("getrs", columns, lambda: ours(self.view, pivots, right, overwrite_b=1), vendor)


def configs(options: Namespace) -> Rows:
    """Squares by other Configs of the panel."""
    for letter in options.letters:
        for values in CONFIGS[letter]:
            config = dict(zip(("rows", "cols", "direct", "cluster"), values, strict=True))
            with override("getrf_panel", GetrfPanel(letter, *values)):
                for n in CONFIG_ORDERS:
                    yield {**config, **compared(letter, n, n, with_vendor=False)}


STUDY = Study(
    "lu",
    __doc__,
    {"squares": squares, "solves": solves, "batches": batches, "configs": configs},
    {"letters": "dscz"},
    seconds=120,
)

if __name__ == "__main__":
    main(STUDY)
