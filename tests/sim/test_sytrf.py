"""L D L^H end to end on the simulator: panels of one block of threads and of several, and what they leave."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import replace

import numpy as np
import pytest
from ldl_cases import KINDS, symmetric
from scipy.linalg import ldl as scipy_ldl

from pyblasgpu.dispatch.overrides import override
from pyblasgpu.gpu.device import current, stand_ins
from pyblasgpu.gpu.simulator import intrinsics as simulator
from pyblasgpu.kernels.factor.ldl import ldl_rows, ldl_triangle
from pyblasgpu.kernels.factor.ldl.sytrf_panel import SytrfPanel
from pyblasgpu.operands import Operand
from pyblasgpu.routines.lapack import ldl, sytrf, sytri, sytrs
from pyblasgpu.testing.reference import fenced
from pyblasgpu.types import DTYPES, INT32, Uplo

from .test_qr import operand, run
from .test_routines import small_kernels
from .test_sytrf_panel import assert_lapacks, by_rook_pivots, lapacks


@contextmanager
def small_panels(letter: str, threads: int):
    """Panels of eight columns, with a row a block for four threads, and products of small tiles."""
    with ExitStack() as stack:
        stack.enter_context(small_kernels(letter))
        stack.enter_context(override("sytrf_panel", SytrfPanel(letter, 8, threads)))
        real = "s" if letter in "sc" else "d"
        stack.enter_context(override("ldl_triangle", ldl_triangle.LdlTriangle(real, 64, 64)))
        stack.enter_context(override("ldl_rows", ldl_rows.LdlRows(letter, 32)))
        yield


@pytest.fixture(autouse=True)
def several_blocks(monkeypatch):
    """A device with room for the blocks of a panel."""
    monkeypatch.setitem(stand_ins, 0, replace(current(0), sm_count=8))


def check(letter="d", n=21, order="F", uplo="L", hermitian=False, batch=1, threads=32, seed=0) -> None:
    start = symmetric(letter, batch, n, hermitian=hermitian, seed=seed)
    a, unharmed = fenced(start, order)
    integers = [np.full((batch, count, 1), np.nan, a.dtype) for count in (n, 1)]
    with small_panels(letter, threads):
        run(sytrf, *integers, a, uplo=Uplo(uplo), hermitian=hermitian)
    piv, info = (np.ascontiguousarray(each).view(np.int32)[:, :, 0] for each in integers)
    assert_lapacks(start, a, piv, info[:, 0], uplo, hermitian)
    assert unharmed()


@pytest.mark.parametrize(
    "letter, hermitian, uplo, batch, threads", [("s", False, "L", 1, 32), ("z", True, "U", 2, 128)]
)
def test_panels(letter, hermitian, uplo, batch, threads):
    check(letter, 27, "C", uplo, hermitian, batch, threads, seed=1)


@pytest.mark.parametrize("letter, hermitian", KINDS)
def test_solutions(letter, hermitian):
    for uplo, order in ("LF", "UC"):
        check_solution(letter, 9, 3, order, uplo, hermitian, 2)
    if hermitian or letter == "d":
        check_solution(letter, 11, 1, uplo="UL"[hermitian], hermitian=hermitian, rook=True)


def lapacks_factors(a, uplo: str, hermitian: bool, reference=lapacks) -> tuple[np.ndarray, np.ndarray]:
    """LAPACK's factors of a batch, and pivots in elements of its dtype."""
    factors, pivots, _ = zip(*(reference(matrix, uplo, hermitian) for matrix in a), strict=True)
    piv = np.zeros((*a.shape[:2], 1), a.dtype)
    piv.view(np.int32)[:, :, 0] = pivots
    return np.stack(factors).astype(a.dtype), piv


def check_inverse(letter="d", n=9, uplo="L", hermitian=False) -> None:
    """A triangle of the inverse; the other one stays, and so does a matrix whose D is singular."""
    a = symmetric(letter, 2, n, hermitian=hermitian)
    for i in (0, n - 2):  # a block of D whose diagonal is zero
        a[0, i, i] = a[0, i + 1, i + 1] = 0
        a[0, i, i + 1] = a[0, i + 1, i] = 50
    a[1], kept = np.diag([1, 0, 3, 0, *range(4, n)]), np.tri(n, dtype=bool)
    kept = kept if uplo == "L" else kept.T
    ldu, piv = lapacks_factors(a, uplo, hermitian)
    info, found = np.full((2, 1, 1), np.nan, a.dtype), ldu.copy(order="C")
    with small_panels(letter, 32):
        run(sytri, info, piv, found, uplo=Uplo(uplo), hermitian=hermitian)
    assert info.view(np.int32)[:, 0, 0].tolist() == [0, 2 if uplo == "L" else 4]
    np.testing.assert_array_equal(found[:, ~kept], ldu[:, ~kept])
    np.testing.assert_array_equal(found[1], ldu[1])
    expected = np.linalg.inv(a[0])
    tolerance = 100 * n * np.finfo(a.dtype).eps * np.abs(expected).max() * np.linalg.cond(a[0])
    np.testing.assert_allclose(found[0][kept], expected[kept], rtol=0, atol=tolerance)


@pytest.mark.parametrize("letter, hermitian, uplo", [("s", False, "L"), ("z", True, "U")])
def test_inverses(letter, hermitian, uplo):
    check_inverse(letter, 9, uplo, hermitian)


def check_matrices(letter="d", n=9, uplo="L", hermitian=False) -> None:
    """L or U with its rows where A has them, D, and the rows."""
    a, is_lower = symmetric(letter, 2, n, hermitian=hermitian), uplo == "L"
    ldu, piv = lapacks_factors(a, uplo, hermitian)
    rows, d = np.zeros((2, 2 * n, 1), np.int32), np.full((2, n * n, 1), np.nan, a.dtype)
    arrays = rows, d, piv, np.asfortranarray(ldu)
    operands = [operand(array) for array in arrays[1:]]
    operands.insert(0, Operand(simulator.adopt(rows), 2 * n, 1, 1, 1, INT32, False, 2, 2 * n))
    ldl.launch_list(*operands, Uplo(uplo), hermitian).run([each.pointer for each in operands], 1.0, stream=0)
    for z in range(2):
        lu, blocks, perm = scipy_ldl(a[z], is_lower, hermitian)
        tolerance = 100 * n * np.finfo(a.dtype).eps
        np.testing.assert_allclose(arrays[3][z], lu, rtol=0, atol=tolerance * np.abs(lu).max())
        np.testing.assert_allclose(d[z].reshape(n, n), blocks, rtol=0, atol=tolerance * np.abs(blocks).max())
        np.testing.assert_array_equal(rows[z, ::2, 0] if is_lower else rows[z, ::2, 0][::-1], perm)


@pytest.mark.parametrize("letter, hermitian, uplo", [("s", False, "U"), ("z", True, "L"), ("z", False, "U")])
def test_matrices(letter, hermitian, uplo):
    check_matrices(letter, 9, uplo, hermitian)


def check_solution(letter="d", n=13, r=2, order="F", uplo="L", hermitian=False, batch=1, rook=False) -> None:
    """X from LAPACK's factors; the residual is a small multiple of what rounding may leave."""
    a = symmetric(letter, batch, n, hermitian=hermitian)
    if rook:
        a[:, range(n), range(n)] *= 0.01
    factors, piv = lapacks_factors(a, uplo, hermitian, by_rook_pivots if rook else lapacks)
    ldu, unharmed_factors = fenced(factors, order)
    b = symmetric(letter, batch, n, seed=5)[..., :r]
    x, unharmed = fenced(b, order)
    with small_panels(letter, 32):
        run(sytrs, piv, ldu, x, uplo=Uplo(uplo), hermitian=hermitian, rook=rook)
    for z in range(batch):
        size = np.abs(a[z]).sum(axis=1).max() * np.abs(x[z]).max()
        assert np.abs(a[z] @ x[z] - b[z]).max() <= 40 * n * size * DTYPES[letter].unit_roundoff
    assert unharmed() and unharmed_factors()
