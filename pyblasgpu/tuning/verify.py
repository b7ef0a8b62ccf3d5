"""No candidate is timed before its results are right: exact integers, compared bit for bit.

The extents are multiples of no tile, outputs are amid memory that must not change, what may not be read is
NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import numpy as np

from ..errors import PyblasgpuError
from ..gpu import memory
from ..operands import Operand
from ..testing.cases import GemmCase, TriangularCase
from ..testing.reference import exact_gemm, exact_triangular, fenced, integers, triangle
from ..types import Dtype
from .verify_factors import FACTOR_CHECKS, FACTOR_EXTENTS

__all__ = ["WrongResult", "verify"]

#: Multiples of 4, so that the widest loads run; and odd, so that the kernels for unaligned operands do.
GEMM_EXTENTS = {"aligned": (268, 140, 44), "odd": (131, 67, 29)}
LEAF_EXTENTS = {"aligned": (100, 76), "odd": (77, 41)}
#: Rows and columns of a matrix: such that sums have many steps, and slices where they are sliced.
MATRIX_EXTENTS = {"aligned": ((268, 3080), (3080, 44)), "odd": ((131, 1067), (1067, 29))}


class WrongResult(PyblasgpuError):
    """A kernel computed something else, or wrote where it must not."""


def verify(
    routine: Callable,
    name: str,
    dtype: Dtype,
    layout: str,
    device: int,
    stream: int,
    extents: str | tuple[int, int] = "aligned",
) -> None:
    """Run `routine` on the data of `extents` and compare.

    Parameters
    ----------
    routine : callable
        Routine of `pyblasgpu.routines`.
    name : {'gemm', 'trmm', 'trsm', 'gemv', 'ger', 'getrf', 'potrf', 'getrs'}
    dtype : Dtype
    layout : str
        Layout of A and B in a GEMM: 'n' column-major, 't' row-major.
    device, stream : int
    extents : {'aligned', 'odd'} or (int, int)
        Extents of the data; of a triangle its order and the columns of the other matrix, too.

    Raises
    ------
    WrongResult
        Where a bit differs; of factors, and of solutions by them, more than rounding explains.
    """
    with ExitStack() as held:
        held.enter_context(memory.current_context(device))

        def fence(values: np.ndarray, order: str) -> _Fenced:
            gap = 4 - values.shape["FC".index(order)] % 4 if extents == "aligned" else 3
            matrix = _Fenced(values, order, gap, dtype, device, stream)
            held.callback(matrix.release)
            return matrix

        if not isinstance(extents, str):
            _verify_leaf(routine, name, dtype, extents, stream, fence)
        elif name == "gemm":
            _verify_gemm(routine, dtype, layout, GEMM_EXTENTS[extents], stream, fence)
        elif name == "gemv":
            for shape in MATRIX_EXTENTS[extents]:
                _verify_gemv(routine, dtype, layout, shape, stream, fence)
        elif name == "ger":
            for shape in MATRIX_EXTENTS[extents]:
                _verify_ger(routine, dtype, shape, stream, fence)
        elif name in FACTOR_CHECKS:
            problem = FACTOR_CHECKS[name](routine, dtype, FACTOR_EXTENTS[name][extents], stream, fence)
            if problem:
                raise WrongResult(f"{name}: {problem}")
        else:
            _verify_leaf(routine, name, dtype, LEAF_EXTENTS[extents], stream, fence)


def _verify_gemm(routine, dtype: Dtype, layout: str, extents, stream: int, fence) -> None:
    m, n, k = extents
    rng = np.random.default_rng(2011)
    orders = ["F" if letter == "n" else "C" for letter in layout]
    a, b = integers(rng, (m, k), dtype), integers(rng, (k, n), dtype)
    for alpha, beta in ((2, -1), (1, 0)):
        case = GemmCase(dtype, m, n, k, alpha=alpha, beta=beta)
        c = integers(rng, (m, n), dtype) if beta else np.full((m, n), np.nan, dtype.name)
        left, right, out = fence(a, orders[0]), fence(b, orders[1]), fence(c, "F")
        routine(alpha, left.operand, right.operand, beta, out.operand, stream)
        out.compare(exact_gemm(case, a, b, c), f"{case}")


def _verify_gemv(routine, dtype: Dtype, layout: str, extents, stream: int, fence) -> None:
    m, n = extents
    rng = np.random.default_rng(2011)
    a, x = integers(rng, (m, n), dtype), integers(rng, (n, 1), dtype)
    matrix, vector = fence(a, "F" if layout == "n" else "C"), fence(x, "F")
    for alpha, beta in ((2, -1), (1, 0)):
        y = integers(rng, (m, 1), dtype) if beta else np.full((m, 1), np.nan, dtype.name)
        out = fence(y, "F")
        routine(alpha, matrix.operand, vector.operand, beta, out.operand, stream)
        out.compare(alpha * (a @ x) + (beta * y if beta else 0), f"gemv {layout} {m} {n}")


def _verify_ger(routine, dtype: Dtype, extents, stream: int, fence) -> None:
    m, n = extents
    rng = np.random.default_rng(2011)
    x, y, a = (integers(rng, shape, dtype) for shape in ((m, 1), (n, 1), (m, n)))
    left, right, out = (fence(values, "F") for values in (x, y, a))
    routine(2, left.operand, right.operand, out.operand, stream)
    out.compare(a + 2 * x * y.T, f"ger {m} {n}")


def _verify_leaf(routine, name: str, dtype: Dtype, extents, stream: int, fence) -> None:
    n, rhs = extents
    rng = np.random.default_rng(2011)
    case = TriangularCase(dtype, n, rhs, alpha=2)
    a, x = triangle(rng, case), integers(rng, (n, rhs), dtype)
    if name == "trmm":
        initial, expected = x, exact_triangular(case, a, x)
    else:
        initial, expected = exact_triangular(case, a, x, alpha=1), 2 * x
    left, out = fence(a, "F"), fence(initial, "F")
    routine(case.alpha, left.operand, out.operand, stream, side=case.side, uplo=case.uplo, diag=case.diag)
    out.compare(expected, f"{name} {case}")


class _Fenced:
    """A matrix in device memory, amid memory that must not change."""

    def __init__(self, values: np.ndarray, order: str, gap: int, dtype: Dtype, device: int, stream: int):
        self.view, self._unharmed = fenced(values, order, gap)
        self._memory, self._stream = self.view.base, stream
        self._address = memory.allocate(self._memory.nbytes, device, stream)
        memory.to_device(self._address, self._memory, stream)
        pointer = self._address + self.view.ctypes.data - self._memory.ctypes.data
        row_stride, col_stride = (step // dtype.itemsize for step in self.view.strides)
        rows, cols = values.shape
        self.operand = Operand(pointer, rows, cols, row_stride, col_stride, dtype, device=device)

    def compare(self, expected: np.ndarray, what: str) -> None:
        """Fetch the matrix; raise `WrongResult` unless it is `expected` and its fences are intact."""
        view = self.fetched(what)
        wrong = np.argwhere(view != expected)
        if len(wrong):
            at = tuple(map(int, wrong[0]))
            raise WrongResult(
                f"{what}: {len(wrong)} elements are wrong, first {at}: {view[at]}, not {expected[at]}"
            )

    def fetched(self, what: str) -> np.ndarray:
        """Return the matrix as it is now; raise `WrongResult` where its fences are not intact."""
        memory.to_host(self._memory, self._address, self._stream)
        if not self._unharmed():
            raise WrongResult(f"{what}: memory outside the result was written")
        return self.view

    def release(self) -> None:
        memory.release(self._address, self._stream)
