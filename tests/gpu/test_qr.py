"""QR factors and least squares on a device: bounds, layouts, batches, repeated calls, special values."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from lapack_testers import PATHS, THRESHOLD, worst
from lapack_testers import SHAPES as SHAPES_OF_TESTERS
from qr_cases import SETS, check_factors, matrix_of, nearly_equal_columns, relative_residual
from scipy.linalg import get_lapack_funcs

from pyblasgpu import lapack, linalg, set_math_mode
from pyblasgpu.api.linalg import normal_equations
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.kernels.registry import FIXED
from pyblasgpu.types import DTYPES

from .running import Placed

cupy = pytest.importorskip("cupy")

SHAPES = [(1, 1), (5, 5), (32, 32), (33, 32), (64, 64), (100, 37), (37, 100), (257, 257), (1000, 1000),
          (2049, 300), (300, 2049), (50_000, 9), (150_000, 40)]  # fmt: skip


def factors(a, **options):
    """Q and R of a CuPy array, on the host, by routines of LAPACK; Q has as many columns as R has rows."""
    qr, tau, _, info = lapack.geqrf(a, **options)
    k = min(qr.shape[-2:])
    assert info == 0 and tau.shape == (*qr.shape[:-2], k)
    q, _, _ = lapack.orgqr(qr[..., :k], tau)
    return q.get(), np.triu(qr[..., :k, :].get())


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize(("m", "n"), SHAPES)
@pytest.mark.parametrize("order", "CF")
def test_factors(letter, m, n, order):
    a = matrix_of("random", letter, m, n)
    on_device = cupy.array(a, order=order)
    first = factors(on_device)
    check_factors(a, *first)
    for _ in range(2):  # kept calls
        for one, other in zip(factors(on_device), first, strict=True):
            np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(on_device.get(), a)


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("shape", [(7, 7), (70, 33), (33, 70), (300, 200), (5, 40, 30)])
def test_bounds(kind, letter, shape):
    a = matrix_of(kind, letter, *shape)
    check_factors(a, *factors(cupy.asarray(a)))


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize(
    "shape", [(9, 700, 70), (40, 1500, 33), (150, 1100, 40), (2, 5100, 40), (2, 5200, 33)]
)
@pytest.mark.parametrize("rows", [0, 1 << 60])
def test_batches_of_panels(decide_by, letter, shape, rows):
    """By Cholesky factors; by clusters, the largest too, and by resident blocks, of more matrices than the
    device can have at a time.
    """
    decide_by(cholesky_panel_min_rows=rows)
    a = matrix_of("random", letter, *shape)
    check_factors(a, *factors(cupy.asarray(a)))


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("shape", [(300, 130), (2, 1100, 90), (30, 300, 70), (70_000, 128)])
def test_blocks_by_cholesky_factors(decide_by, kind, letter, shape):
    """Bounds whatever the condition; where one matrix of a batch fails others have LAPACK's factors."""
    decide_by(cholesky_panel_min_rows=0)
    a = matrix_of(kind, letter, *shape)
    if len(shape) == 3:
        a[1] = matrix_of("random", letter, *shape[1:])
    check_factors(a, *factors(cupy.asarray(a)))
    if len(shape) == 3:
        ours, expected = (lapack.geqrf(each)[0] for each in (cupy.asarray(a), a[1]))
        atol = 100 * shape[1] * np.finfo(a.dtype).eps
        np.testing.assert_allclose(ours[1].get(), expected, rtol=0, atol=atol)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("value", [np.nan, np.inf, 0])
@pytest.mark.parametrize("row", [0, 600])
def test_one_block_of_a_batch_that_fails(decide_by, letter, value, row):
    decide_by(cholesky_panel_min_rows=0)
    a = matrix_of("random", letter, 3, 700, 300)
    a[1, row:, 200] = value
    _, r = factors(cupy.asarray(a))
    assert np.isfinite(r[1]).all() == (value == 0)
    q, r = factors(cupy.asarray(a[[0, 2]]))
    check_factors(a[[0, 2]], q, r)
    check_factors(a[[0, 2]], *(each[[0, 2]] for each in factors(cupy.asarray(a))))


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("shape", [(70_000, 33), (2, 66_000, 5)])
@pytest.mark.parametrize("library", ["cupy", "torch", "operator"])
def test_tall_matrices(monkeypatch, kind, letter, shape, library):
    """By Cholesky factors, or where the condition is too large by reflectors."""
    a = matrix_of(kind, letter, *shape)
    if library != "cupy":
        tensor = pytest.importorskip("torch").asarray(a, device="cuda")
        of_torch = import_module("pyblasgpu.torch")
        monkeypatch.setattr("pyblasgpu.torch.qr_rows.LEAST_ELEMENTS", 0)
        found = linalg.qr(tensor, mode="economic") if library == "torch" else of_torch.qr(tensor)
        q, r = (each.cpu().numpy() for each in found)
    else:
        q, r = (each.get() for each in linalg.qr(cupy.asarray(a), mode="economic"))
    check_factors(a, q, r)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("columns", [30, 128, 200])
@pytest.mark.parametrize("order", "CF")
def test_residuals_of_tall_matrices(letter, columns, order):
    """Roundoffs where columns differ by little: of Cholesky factors, and of Householder's reflectors."""
    a = nearly_equal_columns(letter, 70_000, columns)
    on_device, bound = cupy.array(a, order=order), 100 * np.finfo(a.dtype).eps
    assert relative_residual(a, *factors(on_device)) < bound
    q, r = (each.get() for each in linalg.qr(on_device, mode="economic"))
    assert relative_residual(a, q, r) < bound
    check_factors(a, q, r)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("shape", [(2000, 1100), (1100, 2000), (2, 1500, 1500)])
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("mode", [None, "tensor"])
def test_lookahead(letter, shape, order, mode):
    """Factors within the bounds, the same ones in each call."""
    a = matrix_of("random", letter, *shape)
    on_device = cupy.array(a, order=order)
    with set_math_mode(mode):
        first = factors(on_device)
        check_factors(a, *first)
        for _ in range(5):
            for one, other in zip(factors(on_device), first, strict=True):
                np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("shape", [(40, 200, 70), (40, 500, 130), (40, 1000, 100), (40, 1500, 50)])
@pytest.mark.parametrize("order", "CF")
def test_stacks_by_panels(letter, shape, order):
    """Panels of one block, of all widths, and of several; one of the matrices is singular."""
    a = matrix_of("random", letter, *shape)
    a[3, :, shape[-1] // 2] = 0
    check_factors(a, *factors(cupy.array(a, order=order)))


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("n", [1, 4, 8, 13, 32, 64, 100, 256])
@pytest.mark.parametrize("order", "CF")
def test_batches(letter, n, order):
    """One of them singular; the factors of each are those that it has alone."""
    a = matrix_of("random", letter, 9, n, n)
    a[3, :, n // 2] = 0
    on_device = cupy.asarray(a if order == "C" else np.ascontiguousarray(a.swapaxes(-1, -2)))
    q, r = factors(on_device if order == "C" else on_device.swapaxes(-1, -2))
    check_factors(a, q, r)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("order", "CF")
def test_in_place_between_fences(letter, order):
    a = matrix_of("random", letter, 700, 90)
    placed = Placed(a.copy(), order, aligned=False)
    _, tau, _, _ = lapack.geqrf(placed.array, overwrite_a=1)
    assert placed.unharmed()
    r = np.triu(placed.fetch()[:90])
    lapack.orgqr(placed.array, tau, overwrite_a=1)
    assert placed.unharmed()
    check_factors(a, placed.fetch().copy(), r)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize(("m", "n"), [(9, 4), (300, 130), (1000, 257), (1000, 600)])
@pytest.mark.parametrize("trans", "NC")
def test_products(letter, m, n, trans):
    a = matrix_of("random", letter, m, n)
    qr, tau, _, _ = lapack.geqrf(cupy.asarray(a))
    q = linalg.qr(cupy.asarray(a))[0].get()
    op = q if trans == "N" else q.conj().T
    eps = np.finfo(a.dtype).eps
    sides: list[Any] = [("L", (m, 7)), ("R", (7, m))]
    for side, shape in sides:
        c = matrix_of("random", letter, *shape, seed=3)
        product = lapack.ormqr(side, trans, qr, tau, cupy.asarray(c))[0].get()
        expected = op @ c if side == "L" else c @ op
        np.testing.assert_allclose(product, expected, atol=30 * m * eps)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("m, n, nb", [(300, 200, 32), (90, 130, 40), (2000, 70, 70)])
@pytest.mark.parametrize("trans", "NC")
def test_blocks_of_reflectors(letter, m, n, nb, trans):
    """Products with blocks are those with single reflectors, and take a matrix to R."""
    a, c = (cupy.asarray(matrix_of("random", letter, m, k, seed=k)) for k in (n, 7))
    factors, t, _ = lapack.geqrt(nb, a)
    (qr, tau, _, _), k = lapack.geqrf(a), min(m, n)
    atol = 5 * max(m, n) * np.finfo(a.dtype).eps
    expected = lapack.ormqr("L", trans, qr[:, :k], tau, c)[0].get()
    found, _ = lapack.gemqrt(factors[:, :k], t, c, "L", trans)
    np.testing.assert_allclose(found.get(), expected, rtol=0, atol=atol)
    triangle = cupy.triu(cupy.asarray(matrix_of("random", letter, n, n, seed=1)))
    r, v, t, _ = lapack.tpqrt(0, nb, triangle, a)
    upper, lower, _ = lapack.tpmqrt(0, v, t, triangle, a, trans="C")
    np.testing.assert_allclose(cupy.triu(upper).get(), cupy.triu(r).get(), rtol=0, atol=atol)
    assert max(float(abs(each).max()) for each in (cupy.tril(upper, -1), lower)) < atol


@pytest.mark.parametrize("mode", ["full", "economic", "r", "raw"])
@pytest.mark.parametrize("shape", [(40, 30), (30, 40), (40, 40), (3, 20, 10), (0, 3), (3, 0)])
def test_linalg(mode, shape):
    """New calls and repeated ones."""
    for seed in range(3):
        a = matrix_of("random", "d", *shape) * (1 + seed)
        ours: Any = linalg.qr(cupy.asarray(a), mode=mode)
        if mode in ("full", "economic"):
            q, r = ours
            if a.size:
                check_factors(a, q.get(), r.get())
            assert q.shape[-1] == r.shape[-2] and not np.tril(r.get(), -1).any()
            continue
        host: Any = linalg.qr(a, mode=mode)
        one, other = (each if len(shape) > 2 and mode == "r" else each[-1] for each in (ours, host))
        np.testing.assert_allclose(one.get(), other, atol=1e-13)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("shape", [(300, 40), (40, 300), (64, 64), (5, 60, 20), (5, 20, 60)])
@pytest.mark.parametrize("columns", [0, 3])
def test_least_squares(letter, shape, columns):
    m, n = shape[-2:]
    a = matrix_of("random", letter, *shape) + 3 * np.eye(m, n, dtype=DTYPES[letter].name)
    b = matrix_of("random", letter, m, max(columns, 1), seed=6)
    b = b if columns else b[:, 0]
    tolerance = 1e4 * np.finfo(a.dtype).eps
    for factor in (1, 2, -1):  # new, and repeated
        x, residues, _, _ = linalg.lstsq(cupy.asarray(factor * a), cupy.asarray(b))
        theirs = linalg.lstsq(factor * a, b, lapack_driver="gels")
        np.testing.assert_allclose(x.get(), theirs[0], atol=tolerance * np.abs(theirs[0]).max())
        np.testing.assert_allclose(residues.get(), theirs[1], rtol=tolerance * 10)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("shift", [0, 3, 100, 3000])
@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_least_squares_of_tall_matrices(monkeypatch, letter, shift, library):
    """By normal equations and corrections, or where A is too sensitive by reflectors."""
    monkeypatch.setattr(normal_equations, "LEAST_ELEMENTS", 0)
    put = cupy.asarray if library == "cupy" else partial(pytest.importorskip("torch").asarray, device="cuda")
    a, b = matrix_of("random", letter, 70_000, 30) + np.float32(shift), matrix_of("random", letter, 70_000, 2)
    theirs = linalg.lstsq(a.astype("D"), b.astype("D"), lapack_driver="gels")
    for _ in range(2):
        x, residues, _, _ = linalg.lstsq(put(a), put(b))
        tolerance = max(100, shift**2) * np.finfo(a.dtype).eps  # the condition, squared
        for ours, exact in zip((x, residues), theirs[:2], strict=True):
            host = ours.get() if library == "cupy" else ours.cpu().numpy()
            np.testing.assert_allclose(host, exact, rtol=0, atol=tolerance * np.abs(exact).max())


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("shape", [(37, 100), (300, 40), (257, 257), (100, 2049), (5, 30, 20)])
@pytest.mark.parametrize("order", "CF")
def test_rows(letter, shape, order):
    """LQ factors, Q, and products with it that take it off and put it on again."""
    a, k = matrix_of("random", letter, *shape), min(shape[-2:])
    for _ in range(2):  # new, and kept
        lq, tau, _, _ = lapack.gelqf(cupy.array(a, order=order))
        q, _, _ = lapack.orglq(lq[..., :k, :], tau)
        lower = np.tril(lq[..., :k].get())
        adjoints = (np.conj(each.swapaxes(-1, -2)) for each in (a, q.get(), lower))
        check_factors(*adjoints)
        there = lapack.ormlq("R", "C", lq[..., :k, :], tau, cupy.asarray(a))[0]
        atol = 30 * max(shape) * np.finfo(a.dtype).eps
        np.testing.assert_allclose(there[..., :k].get(), lower, atol=atol)
        back = lapack.ormlq("L", "N", lq[..., :k, :], tau, there.swapaxes(-1, -2).conj().copy())[0]
        back = lapack.ormlq("L", "C", lq[..., :k, :], tau, back)[0]
        np.testing.assert_allclose(back.get(), there.swapaxes(-1, -2).conj().get(), atol=atol)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("shape", [(300, 40), (40, 300), (64, 64), (2000, 130), (5, 60, 20), (5, 20, 60)])
@pytest.mark.parametrize("trans", "NC")
def test_lapacks_least_squares(letter, shape, trans):
    m, n = shape[-2:]
    a = matrix_of("random", letter, *shape) + 3 * np.eye(m, n, dtype=DTYPES[letter].name)
    b = matrix_of("random", letter, max(m, n), 3, seed=6)
    if len(shape) > 2:
        a[1] = 0
    _, expected, _ = lapack.gels(a, b, trans)
    others = [0, *range(2, 5)] if len(shape) > 2 else ...
    for _ in range(3):
        _, x, info = lapack.gels(cupy.asarray(a), cupy.asarray(b), trans)
        assert np.ravel(info.get()).tolist() == ([0, 1, 0, 0, 0] if len(shape) > 2 else [0])
        atol = 1e4 * np.finfo(a.dtype).eps * np.abs(expected).max()
        np.testing.assert_allclose(x.get()[others], expected[others], rtol=0, atol=atol)
        assert np.isfinite(x.get()).all()


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize(
    "shape",
    [(1, 1), (7, 7), (33, 70), (128, 128), (300, 200), (200, 300), (3000, 40), (5, 40, 30), (3, 300, 90)],
)
def test_pivots(kind, letter, shape):
    """Factors of the columns in their order, whose sizes do not increase; by one block and by several."""
    check_pivots(kind, letter, shape, 100 * np.finfo(DTYPES[letter].name).eps)


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("shape", [(300, 200), (3, 90, 300)])
def test_pivots_by_panels(kind, letter, shape):
    """As of large matrices: norms that are updated may be wrong by a root of a roundoff."""
    with override("geqp3_panel", FIXED["geqp3_panel"].fixed_config(letter)):
        check_pivots(kind, letter, shape, 10 * np.finfo(DTYPES[letter].name).eps ** 0.5)


def check_pivots(kind, letter, shape, room):
    """The factors of a matrix of a set, and sizes on the diagonal that increase by no more than `room`. Q is
    LAPACK's, so it is the vectors and tau that are tested.
    """
    a = matrix_of(kind, letter, *shape)
    k = min(shape[-2:])
    (orgqr,) = get_lapack_funcs(("orgqr" if letter in "sd" else "ungqr",), (a,))
    for order in "CF":
        for _ in range(2):  # new, and kept
            qr, jpvt, tau, _, info = lapack.geqp3(cupy.array(a, order=order))
            columns, r = jpvt.get(), np.triu(qr[..., :k, :].get())
            assert info == 0 and (np.sort(columns) == np.arange(1, shape[-1] + 1)).all()
            vectors = qr[..., :k].get().reshape(-1, shape[-2], k)
            made = [orgqr(*each)[0] for each in zip(vectors, tau.get().reshape(-1, k), strict=True)]
            q = np.reshape(made, (*shape[:-1], k))
            check_factors(np.take_along_axis(a, columns[..., None, :] - 1, -1), q, r)
            sizes = np.abs(np.diagonal(r, axis1=-2, axis2=-1)).astype("d")
            eps = np.finfo(a.dtype).eps
            least = sizes[..., :1] * max(shape) * eps  # rounding errors have no order
            assert (sizes[..., 1:] <= sizes[..., :-1] * (1 + room) + least).all()


@pytest.mark.parametrize("letter", "dz")
@pytest.mark.parametrize("shape", [(90, 60), (60, 90), (400, 300), (4, 30, 20), (5000, 30)])
def test_pivots_are_lapacks(letter, shape):
    """R of tall matrices may have other signs. In single precision roundings decide between columns."""
    a = matrix_of("random", letter, *shape)
    for mode in ("economic", "raw", "r"):
        ours: Any = linalg.qr(cupy.asarray(a), mode=mode, pivoting=True)
        theirs: Any = linalg.qr(a, mode=mode, pivoting=True)
        np.testing.assert_array_equal(ours[-1].get(), theirs[-1])
        sizes = np.abs(ours[-2].get()), np.abs(theirs[-2])
        np.testing.assert_allclose(*sizes, atol=1000 * max(shape) * np.finfo(a.dtype).eps)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("shape", [(300, 40), (40, 300), (400, 400), (3, 60, 20), (3, 20, 60)])
@pytest.mark.parametrize("rank", [5, 999])
def test_least_squares_of_any_rank(letter, shape, rank):
    a, b = matrix_of("random", letter, *shape), matrix_of("random", letter, shape[-2], 3, seed=6)
    if rank < min(shape[-2:]):
        a = np.ascontiguousarray(a[..., :rank] @ a[..., :rank, :])
    else:
        a = a + 3 * np.eye(*shape[-2:], dtype=a.dtype)
    x, _, ranks, _ = linalg.lstsq(cupy.asarray(a), cupy.asarray(b), 1e-4, lapack_driver="gelsy")
    theirs = linalg.lstsq(a, b, 1e-4, lapack_driver="gelsy")
    assert np.array_equal(ranks, theirs[2])
    atol = 1e5 * np.finfo(a.dtype).eps * np.abs(theirs[0]).max()
    np.testing.assert_allclose(x.get(), theirs[0], rtol=0, atol=atol)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("rows", [0, 1 << 60])
def test_ratios_of_lapacks_testers(decide_by, path, letter, rows):
    decide_by(cholesky_panel_min_rows=rows)
    for m, n in [*SHAPES_OF_TESTERS, (300, 130)]:
        ratios = worst(path, letter, m, n, (cupy.asarray, cupy.asnumpy))
        assert max(ratios.values()) < THRESHOLD, (m, n, ratios)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("n", [8, 100])
def test_special_values_stay_in_their_matrix(value, n):
    a = matrix_of("random", "d", 4, n, n)
    a[1, 2, 3] = value
    q, r = factors(cupy.asarray(a))
    assert not np.isfinite(r[1]).all()
    others = [0, 2, 3]
    check_factors(a[others], q[others], r[others])


def test_host_arrays(monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cuda")
    a = matrix_of("random", "d", 700, 300)
    check_factors(a, *linalg.qr(a, mode="reduced"))
    stack = matrix_of("random", "z", 5, 30, 20)
    check_factors(stack, *linalg.qr(stack, mode="reduced"))
