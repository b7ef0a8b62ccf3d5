"""QR factors as launch lists, by kernels computed with NumPy: any size, batches, layouts."""

from __future__ import annotations

import numpy as np
import pytest
from covering import pairs
from fake_kernels import install, operand, run
from qr_cases import SETS, check_factors, matrix_of, nearly_equal_columns, relative_residual
from scipy.linalg.lapack import get_lapack_funcs

from pyblasgpu.dispatch.overrides import override
from pyblasgpu.gpu.device import known
from pyblasgpu.kernels.factor.qr.geqp3_panel import Geqp3Panel
from pyblasgpu.kernels.factor.qr.geqrf_small import GeqrfSmall
from pyblasgpu.kernels.registry import FIXED
from pyblasgpu.operands import Operand
from pyblasgpu.routines.lapack import cholesky_panel, gels, geqp3, geqrf, lq, orgqr, ormqr, reflectors_in_turn
from pyblasgpu.routines.launch_list import LaunchList
from pyblasgpu.testing.policies import deciding_by
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


@pytest.mark.parametrize("letter, shape, order", pairs(DTYPES, SHAPES, "CF"), ids=str)
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


@pytest.mark.parametrize("letter, shape, extra", [("d", (900, 700), 9), ("z", (420, 420), 420)])
def test_wide_blocks_of_one_matrix(kernels, monkeypatch, letter, shape, extra):
    """T of four triangles, and of what is left; of C with as many columns as rows V T is made too."""
    monkeypatch.setattr(reflectors_in_turn, "BLOCKS", 1)
    monkeypatch.setattr(reflectors_in_turn, "SMALL", 0)
    qr, tau = factored(matrix_of("random", letter, *shape), "F")
    m, k = shape
    whole, c = np.eye(m, dtype=qr.dtype, order="F"), matrix_of("random", letter, m, extra, seed=4)
    whole[:, :k] = qr
    run(orgqr, tau, whole)
    np.testing.assert_allclose(whole.conj().T @ whole, np.eye(m), atol=10 * m * np.finfo(qr.dtype).eps)
    for trans, op in ((Trans.NO, whole), (Trans.CONJ, whole.conj().T)):
        kernels.launches.clear()
        product = laid(c, "F")
        run(ormqr, tau, qr, product, side=Side.LEFT, trans=trans)
        np.testing.assert_allclose(product, op @ c, atol=10 * m * np.finfo(qr.dtype).eps)
        leaves = [grid[2] for name, grid, *_ in kernels.launches if name.startswith("larft_leaf")]
        assert leaves and max(leaves) == (4 if min(m, k, extra) > 64 else 1)


@pytest.mark.parametrize(
    "letter, shape, order", [("d", (40, 30), "F"), ("z", (2, 20, 33), "C"), ("s", (150, 9, 8), "F")]
)
def test_pivots_by_panels(kernels, letter, shape, order):
    """LAPACK's factors and pivots: columns of large matrices are read once in each step."""
    a, config = matrix_of("random", letter, *shape), Geqp3Panel(letter, 64, 8)
    qr, k = laid(a, order), min(shape[-2:])
    tau, jpvt = np.zeros((*shape[:-2], k, 1), a.dtype), np.zeros((*shape[:-2], shape[-1], 1), a.dtype)
    with override("geqp3_panel", config):
        run(geqp3, jpvt, tau, qr)
    numbers = jpvt[..., 0].view(np.int32)[..., :: a.itemsize // 4].reshape(-1, shape[-1])
    for z, before in enumerate(a.reshape(-1, *shape[-2:])):
        expected, pivots, factors, _, _ = get_lapack_funcs("geqp3", (a,))(before)
        np.testing.assert_array_equal(numbers[z], pivots)
        np.testing.assert_allclose(qr.reshape(-1, *shape[-2:])[z], expected, atol=100 * np.finfo(a.dtype).eps)
        np.testing.assert_allclose(tau.reshape(-1, k)[z], factors, atol=100 * np.finfo(a.dtype).eps)


def test_large_matrices_with_pivots_go_by_panels(kernels):
    """Those of many columns, fewer in stacks, unless all their steps are those of a panel."""
    for shape, batch, by_panels in (
        ((512, 512), 1, False),
        ((1024, 1024), 1, True),
        ((1 << 22, 9), 1, False),
        ((1 << 15, 256), 1, True),
        ((1 << 15, 96), 1, False),
        ((256, 300), 2, True),
        ((128, 128), 1000, False),
        ((1 << 15, 96), 100, True),
    ):
        a = Operand(1 << 30, *shape, 1, shape[0], DTYPES["d"], False, batch, shape[0] * shape[1], 0)
        launches = launches_with_pivots(a)
        assert any(entry.source.name.startswith("geqp3_panel") for entry in launches.entries) == by_panels


def launches_with_pivots(a: Operand) -> LaunchList:
    """The launch list of a matrix that is nowhere."""
    tau, jpvt = (
        Operand(1 << 20, rows, 1, 1, rows, a.dtype, False, 1, 0, 0) for rows in (min(a.rows, a.cols), a.cols)
    )
    return geqp3.launch_list(jpvt, tau, a)


@pytest.mark.parametrize("shape", [(3, 3), (2, 5, 3)])
def test_q_of_no_reflectors(kernels, shape):
    """The first columns of the identity."""
    *counts, m, n = shape
    q = np.full(shape, np.nan)
    run(orgqr, np.zeros((*counts, 0, 1)), q)
    np.testing.assert_array_equal(q, np.broadcast_to(np.eye(m, n), shape))


@pytest.mark.parametrize("by_rows", [False, True])
def test_products_of_lazily_conjugated_reflectors(kernels, by_rows):
    qr, tau = factored(matrix_of("random", "z", 140, 9), "F")
    operands = [
        operand(each, DTYPES["z"], conj=True) for each in (tau, adjoint(qr).conj() if by_rows else qr)
    ]
    expected, c = (matrix_of("random", "z", 140, 5, seed=4) for _ in range(2))
    flags = {"side": Side.LEFT, "trans": Trans.NO}
    multiply = lq.product_launch_list if by_rows else ormqr.launch_list
    plain = (tau.conj(), adjoint(qr) if by_rows else qr.conj(), expected)
    run(multiply, *plain, **flags)
    operands.append(operand(c, DTYPES["z"]))
    multiply(*operands, **flags).run([each.pointer for each in operands], 1.0, stream=0)
    np.testing.assert_allclose(c, expected, atol=1e-13)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("shape", [(7, 5), (2, 70, 90)])
@pytest.mark.parametrize("order", "CF")
def test_rows_of_lq(kernels, letter, shape, order):
    """L Q is the matrix, Q has orthonormal rows, and products with it are those of the matrix Q."""
    a, n, k = matrix_of("random", letter, *shape), shape[-1], min(shape[-2:])
    lq_, tau = laid(a, order), np.full((*shape[:-2], k, 1), np.nan, a.dtype)
    run(lq.factors_launch_list, tau, lq_)
    whole = np.zeros((*shape[:-2], n, n), a.dtype)
    whole[..., :k, :] = lq_[..., :k, :]
    rows, whole = laid(lq_[..., :k, :], order), laid(whole, order)
    run(lq.rows_launch_list, tau, rows)
    run(lq.rows_launch_list, tau, whole)
    check_factors(adjoint(a), adjoint(rows), adjoint(np.tril(lq_[..., :k])))
    atol = 30 * n * np.finfo(a.dtype).eps
    np.testing.assert_allclose(whole[..., :k, :], rows, atol=atol)
    for trans in (Trans.NO, Trans.CONJ):
        op = whole if trans is Trans.NO else adjoint(whole)
        for side, extents in ((Side.LEFT, (n, 5)), (Side.RIGHT, (5, n))):
            c = laid(matrix_of("random", letter, *shape[:-2], *extents, seed=4), order)
            expected = op @ c if side is Side.LEFT else c @ op
            run(lq.product_launch_list, tau, laid(lq_[..., :k, :], order), c, side=side, trans=trans)
            np.testing.assert_allclose(c, expected, atol=atol)


def adjoint(a: np.ndarray) -> np.ndarray:
    return a.swapaxes(-1, -2).conj()


@pytest.mark.parametrize("letter", "dz")
@pytest.mark.parametrize("shape", [(100, 70), (70, 100), (9, 9)])
@pytest.mark.parametrize("trans", [Trans.NO, Trans.CONJ])
def test_least_squares(kernels, letter, shape, trans):
    """LAPACK's solution and what is below it; a matrix of a batch without full rank has its info."""
    (m, n), k, name = shape, min(shape), DTYPES[letter].name
    a = matrix_of("random", letter, 2, m, n) + 3 * np.eye(m, n, dtype=name)
    b = matrix_of("random", letter, 2, max(m, n), 3, seed=6)
    (a[1].T if m >= n else a[1])[k - 1] = 0
    factors, tau = laid(a, "C"), np.full((2, k, 1), np.nan, name)
    run(geqrf if m >= n else lq.factors_launch_list, tau, factors)
    info, x = np.full((2, 1, 1), -1, name), laid(b, "F")
    run(gels.solution_launch_list, info, tau, factors, x, trans=trans)
    letter_of_op = {Trans.NO: "N", Trans.CONJ: "C" if letter in "cz" else "T"}[trans]
    _, expected, _ = get_lapack_funcs("gels", (a,))(a[0], b[0], letter_of_op)
    atol = 200 * max(m, n) * np.finfo(name).eps
    np.testing.assert_allclose(x[0], expected, rtol=0, atol=atol * np.abs(expected).max())
    assert info.view(np.int32).reshape(2, -1)[:, 0].tolist() == [0, k]
    assert np.isfinite(x[1]).all()


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_least_squares_without_equations_or_unknowns(kernels, shape):
    info, tau, x = np.full((2, 1, 1), -1.0), np.zeros((2, 0, 1)), np.ones((2, 3, 2))
    run(gels.solution_launch_list, info, tau, np.zeros((2, *shape)), x, trans=Trans.NO)
    assert not x.any() and not info.view(np.int32).reshape(2, -1)[:, 0].any()


@pytest.mark.parametrize("kind, letter, shape", pairs(SETS, DTYPES, [(150, 140), (140, 150)]), ids=str)
def test_bounds(kernels, kind, letter, shape):
    a = matrix_of(kind, letter, *shape)
    qr, tau = factored(a, "F")
    k = min(shape)
    q = qr[:, :k].copy(order="F")
    run(orgqr, tau, q)
    check_factors(a, q, np.triu(qr[:k]))


@pytest.mark.parametrize(
    "kind, letter, shape, tall",
    pairs(SETS, "sz", [(200, 60), (2, 150, 20), (2, 150, 70)], [cholesky_panel.TALL, 149]),
    ids=str,
)
def test_blocks_by_cholesky_factors(kernels, decide_by, monkeypatch, kind, letter, shape, tall):
    """LAPACK's bounds, whatever the condition; one matrix of a batch that fails leaves others as they are."""
    decide_by(cholesky_panel_min_rows=40)
    monkeypatch.setattr(cholesky_panel, "TALL", tall)
    a = matrix_of(kind, letter, *shape)
    if len(shape) == 3:
        a[1] = matrix_of("random", letter, *shape[1:])
    qr, tau = factored(a, "F")
    assert "orhr_leaf" in {name for name, *_ in kernels.launches}
    q = laid(qr, "F")
    run(orgqr, tau, q)
    check_factors(a, q, np.triu(qr[..., : shape[-1], :]))
    one, beside = get_lapack_funcs("geqrf", (a,))(a[(1,) * (len(shape) - 2)])[:2]
    if kind == "random" or len(shape) == 3:
        atol = 10 * shape[-2] * np.finfo(a.dtype).eps
        np.testing.assert_allclose(qr[(1,) * (len(shape) - 2)], one, rtol=0, atol=atol * np.abs(one).max())
        np.testing.assert_allclose(tau[..., 0][(1,) * (len(shape) - 2)], beside, rtol=0, atol=atol)


def test_panels_fit_into_the_shared_memory_of_a_block():
    whole, small = GeqrfSmall("d").fitting(227 << 10), GeqrfSmall("d").fitting(99 << 10)
    assert [each.COLS for each in map(whole.panel, (256, 257, 896))] == [64, 32, 16]
    assert whole.panel(897) is None and small.panel(100) is None
    assert small.whole(64) == whole.whole(64) and whole.whole(128).ROWS == 128
    assert small.whole(65) is None and whole.whole(129) is None


@pytest.mark.parametrize("columns", [40, 70])
def test_tall_blocks_keep_what_substitution_keeps(kernels, decide_by, monkeypatch, columns):
    """Columns that differ by little: residuals are roundoffs, which a product with R^-1 does not leave."""
    decide_by(cholesky_panel_min_rows=40)
    monkeypatch.setattr(cholesky_panel, "TALL", 100)
    a = nearly_equal_columns("d", 400, columns)
    qr, tau = factored(a, "F")
    assert {"orhr_leaf", "trtri_leaf"} <= {name for name, *_ in kernels.launches}
    q = qr.copy(order="F")
    run(orgqr, tau, q)
    assert relative_residual(a, q, np.triu(qr[:columns])) < 50 * np.finfo(a.dtype).eps


def test_panels_of_many_rows(kernels):
    """By Cholesky factors, or where there are few columns or the policy says so by `geqrf_tall`."""
    for columns, least, kernel in (
        (40, 512, "orhr_leaf"),
        (9, 512, "geqrf_tall"),
        (40, 1 << 60, "geqrf_tall"),
    ):
        kernels.launches.clear()
        with deciding_by(cholesky_panel_min_rows=least):
            a = matrix_of("zero columns" if kernel == "orhr_leaf" else "random", "d", 60_000, columns)
            qr, tau = factored(a, "F")
        q = qr.copy(order="F")
        run(orgqr, tau, q)
        assert {kernel, "geqrf_tall"} <= {name for name, *_ in kernels.launches}
        check_factors(a, q, np.triu(qr[:columns]))


@pytest.mark.parametrize(
    "name, rows, is_cluster", [("h200", 5120, True), ("h200", 5121, False), ("a100", 700, False)]
)
def test_blocks_of_a_panel_are_a_cluster_where_there_are_such_large_ones(name, rows, is_cluster):
    device = known(name)
    config = FIXED["geqrf_panel"].fixed_config("d").panel(rows, device)
    source = FIXED["geqrf_panel"].source(config)
    assert (config.HAS_CLUSTERS, source.cooperative) == (is_cluster, not is_cluster)
    assert not is_cluster or config.grid(rows) <= 16
