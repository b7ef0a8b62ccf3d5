"""QR factors as launch lists, by kernels computed with NumPy: any size, batches, layouts."""

from __future__ import annotations

import numpy as np
import pytest
from fake_kernels import install, operand
from qr_cases import SETS, check_factors, matrix_of

from pyblasgpu.routines.lapack import geqrf, orgqr, ormqr
from pyblasgpu.types import DTYPES, Side, Trans

SHAPES = [
    (1, 1),
    (7, 7),
    (129, 128),
    (130, 131),
    (300, 200),
    (200, 300),
    (1000, 20),
    (3, 140, 129),
    (2, 40, 90),
]


@pytest.fixture
def kernels(monkeypatch):
    return install(monkeypatch)


def run(routine, *arrays, **flags) -> None:
    dtype = next(x for x in DTYPES.values() if x.name == arrays[-1].dtype.name)
    operands = [operand(array, dtype) for array in arrays]
    launches = routine.launch_list(*operands, **flags)
    launches.run([each.pointer for each in operands], 1.0, stream=0)


def laid(array: np.ndarray, order: str) -> np.ndarray:
    """A copy whose matrices are by rows or by columns."""
    if order == "C":
        return array.copy(order="C")
    return array.swapaxes(-1, -2).copy(order="C").swapaxes(-1, -2)


def factored(a: np.ndarray, order: str) -> tuple[np.ndarray, np.ndarray]:
    """What geqrf leaves of `a`, and tau as matrices of one column."""
    qr, k = laid(a, order), min(a.shape[-2:])
    tau = np.full((*a.shape[:-2], k, 1), np.nan, a.dtype)
    run(geqrf, tau, qr)
    return qr, tau


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("order", "CF")
def test_factors_and_products(kernels, letter, shape, order):
    a = matrix_of("random", letter, *shape)
    qr, tau = factored(a, order)
    m, k = shape[-2], tau.shape[-2]
    q = laid(qr[..., :k], order)
    run(orgqr, tau, q)
    check_factors(a, q, np.triu(qr[..., :k, :]))
    whole = np.zeros((*shape[:-2], m, m), a.dtype)
    whole[..., :k] = qr[..., :k]
    run(orgqr, tau, whole)
    np.testing.assert_allclose(whole[..., :k], q, atol=20 * m * np.finfo(a.dtype).eps)
    for trans in (Trans.NO, Trans.CONJ):
        op = whole if trans is Trans.NO else whole.swapaxes(-1, -2).conj()
        for side, extents in ((Side.LEFT, (m, 5)), (Side.RIGHT, (5, m))):
            c = laid(matrix_of("random", letter, *shape[:-2], *extents, seed=4), order)
            expected = op @ c if side is Side.LEFT else c @ op
            run(ormqr, tau, laid(qr[..., :k], order), c, side=side, trans=trans)
            np.testing.assert_allclose(c, expected, atol=30 * m * np.finfo(a.dtype).eps)


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("letter", DTYPES)
def test_bounds(kernels, kind, letter):
    for shape in ((150, 140), (140, 150)):
        a = matrix_of(kind, letter, *shape)
        qr, tau = factored(a, "F")
        k = min(shape)
        q = qr[:, :k].copy(order="F")
        run(orgqr, tau, q)
        check_factors(a, q, np.triu(qr[:k]))


def test_panels_of_many_rows(kernels):
    a = matrix_of("random", "d", 60_000, 40)
    qr, tau = factored(a, "F")
    q = qr.copy(order="F")
    run(orgqr, tau, q)
    assert "geqrf_tall" in {name for name, *_ in kernels.launches}
    check_factors(a, q, np.triu(qr[:40]))
