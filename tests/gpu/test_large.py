"""More than 2^31 elements, leading strides and batches beyond what 32 and 16 bits count."""

from __future__ import annotations

import numpy as np
import pytest

import pyblasgpu
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.frontend.calls.lazy_routines import keeps_residues
from pyblasgpu.testing.cases import TriangularCase
from pyblasgpu.testing.error_bounds import gemm_error, trmm_error, trsm_error
from pyblasgpu.testing.reference import exact_triangular, integers, triangle
from pyblasgpu.types import DTYPES, Diag, Side, Trans, Uplo

from .running import NAN, cupy, flags, reals, same
from .tensor_products import skip_without_hopper

pytestmark = pytest.mark.slow

S, D = DTYPES["s"], DTYPES["d"]
N = 46500  # N * N > 2^31
GIB = 1 << 30


@pytest.fixture(autouse=True)
def memory():
    """A device's worth of it, given back after each test."""
    free, _ = cupy.cuda.runtime.memGetInfo()
    if free < 50 * GIB:
        pytest.skip(f"needs 50 GiB of device memory, {free / GIB:.0f} are free")
    yield
    cupy.get_default_memory_pool().free_all_blocks()


def pattern(cols: int) -> np.ndarray:
    """Integers of magnitude at most 3, in a prime number of rows, to be repeated."""
    return integers(np.random.default_rng(1), (997, cols), S)


def repeated(block: np.ndarray, rows: int):
    """The rows of `block` on the device, over and over."""
    room = cupy.empty((-(-rows // len(block)), *block.shape), block.dtype)
    room[...] = cupy.asarray(block)
    return room.reshape(-1, block.shape[1])[:rows]


def differences(actual, expected, step: int = 4096) -> int:
    """How many elements differ, counted a few rows at a time."""
    return sum(
        int((actual[row : row + step] != expected(row, min(row + step, len(actual)))).sum())
        for row in range(0, len(actual), step)
    )


@pytest.mark.parametrize("trans", ["N", "T"])
def test_a_large_matrix_times_a_slim_one(trans):
    block = pattern(N)
    a = repeated(block, N)
    b = cupy.asarray(integers(np.random.default_rng(2), (N, 16), S), order="F")
    actual = pyblasgpu.gemm(a, b, trans_a=trans).get()
    x = b.get().astype(np.float64)
    if trans == "N":
        whole = block.astype(np.float64) @ x
        expected = np.resize(whole, (N, 16))
    else:
        folded = np.zeros((997, 16))
        np.add.at(folded, np.arange(N) % 997, x)
        expected = block.astype(np.float64).T @ folded
    assert abs(expected).max() < 2**24
    same(actual, expected.astype(np.float32), "gemm")


@pytest.mark.parametrize("order", "CF")
def test_a_large_result(order):
    rng = np.random.default_rng(3)
    a, b = (cupy.asarray(integers(rng, shape, S)) for shape in ((N, 2), (2, N)))
    out = cupy.full((N, N), NAN, np.float32, order=order)
    pyblasgpu.gemm(a, b, out=out)
    if order == "F":
        out, a, b = out.T, b.T, a.T
    assert differences(out, lambda first, last: a[first:last] @ b) == 0


@pytest.mark.parametrize("stop", [256, 32])
@pytest.mark.parametrize("routine", ["trmm", "trsm"])
def test_many_right_hand_sides(routine, stop):
    """64 rows and more than 2^31 / 64 columns."""
    case = TriangularCase(S, 64, 2**25 + 4099)
    a, block = triangle(np.random.default_rng(4), case), pattern(64)
    product = exact_triangular(case, a, block.T).T
    initial, expected = (block, product) if routine == "trmm" else (product, block)
    columns = repeated(initial, case.n)
    with override(routine, stop):
        getattr(pyblasgpu, routine)(cupy.asarray(a), columns.T, out=columns.T, **flags(case))
    assert differences(columns, lambda first, last: repeated(expected, last - first), 997 * 4096) == 0


def far_apart(values: np.ndarray, lead: int):
    """`values` on the device with `lead` elements between columns."""
    rows, cols = values.shape
    room = cupy.empty(lead * cols, values.dtype)
    view = room.reshape(cols, lead)[:, :rows].T
    view[...] = cupy.asarray(values)
    return view


def test_columns_far_apart():
    """lda * n > 2^32 elements."""
    a, b = reals(S, 65, 4100, seed=5), reals(S, 4100, 33, seed=6)
    left = far_apart(a, 1 << 20)
    assert gemm_error(1, a, b, 0, None, pyblasgpu.gemm(left, cupy.asarray(b)).get()) < 1
    assert gemm_error(1, a.T, a, 0, None, pyblasgpu.gemm(left, left, trans_a="T").get()) < 1


@pytest.mark.parametrize("routine", ["trmm", "trsm"])
def test_a_triangle_with_columns_far_apart(routine):
    n, lead = 2200, 1 << 20
    case = TriangularCase(S, n, 33, Side.LEFT, Uplo.UPPER, Trans.TRANS)
    a = triangle(np.random.default_rng(7), case, lambda rng, shape, dtype: reals(dtype, *shape))
    b = reals(S, n, 33)
    actual = getattr(pyblasgpu, routine)(far_apart(a, lead), cupy.asarray(b), **flags(case)).get()
    error = trmm_error if routine == "trmm" else trsm_error
    assert error(1, a, b, actual, case.side, case.uplo, case.trans, Diag.NON_UNIT) < 1


@pytest.mark.parametrize("count", [65535, 65536, 200_003])
def test_batches_beyond_a_grid(count):
    rng = np.random.default_rng(8)
    a, b = integers(rng, (count, 3, 5), D), integers(rng, (count, 5, 2), D)
    same(pyblasgpu.gemm(cupy.asarray(a), cupy.asarray(b)).get(), a @ b, "gemm")
    case = TriangularCase(D, 3, 2)
    t, x = triangle(rng, case, batch_shape=(count,)), integers(rng, (count, 3, 2), D)
    product = pyblasgpu.trmm(cupy.asarray(t), cupy.asarray(x), lower=True)
    same(product.get(), exact_triangular(case, t, x), "trmm")
    same(pyblasgpu.trsm(cupy.asarray(t), product, lower=True).get(), x, "trsm")


def test_residues_that_are_kept_beyond_two_gigawords():
    """A Cholesky factor whose images have more than 2^31 words, within the bound in a sample of columns."""
    skip_without_hopper()
    n = 24576
    a = cupy.random.RandomState(3).standard_normal((n, n)).T  # of which the lower triangle is meant
    a *= n**-0.5
    a[np.arange(n), np.arange(n)] = 5
    with pyblasgpu.set_math_mode("tensor"):
        assert keeps_residues("d", n, 0)
        factor, info = pyblasgpu.lapack.dpotrf(a, lower=1, clean=0)
    assert int(info) == 0
    for j in range(17, n, n // 12):
        rest = abs(factor[j:, : j + 1] @ factor[j, : j + 1] - a[j:, j])
        assert float(rest.max()) <= (n + 4) * 2.0**-53 * 5
