"""TRMM, TRSM, factors and solutions whose products are made on tensor cores, within the bounds of FMAs."""

from __future__ import annotations

import logging
from itertools import product
from typing import Any

import numpy as np
import pytest

import pyblasgpu
from pyblasgpu import explain, lapack, linalg
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.gpu.device import current
from pyblasgpu.kernels.gemm.int8.config import GemmInt8
from pyblasgpu.kernels.gemm.wgmma.config import GemmWgmma
from pyblasgpu.testing.error_bounds import trmm_error, trsm_error
from pyblasgpu.testing.policies import deciding_by
from pyblasgpu.types import Diag, Side, Trans, Uplo

from .lu_checks import check_factors
from .precompile import sources_of
from .running import NAN, Placed, cupy

N, RHS = 1500, 1030
U = 2.0**-24
#: Multiples of the rows, or of their neighbours, of T: of any size, in any part.
DATA = {
    "normal": lambda t: t,
    "rows_of_any_size": lambda t: t * graded(len(t), 30)[:, None],
    "graded": lambda t: t * graded(len(t), 12)[:, None] / graded(len(t), 12),
    "few_tiny": lambda t: np.where(abs(t) < 1e-4, t * np.float32(1e-12), t),
}


#: Recursions for orders from N on, which end at 256 rows.
SMALL_TRIANGLES: dict[str, Any] = {"tensor_stop": 256} | {
    f"tensor_{routine}_min_{size}": {"s": least}
    for routine in ("trmm", "trsm")
    for size, least in {"order": N, "rhs": RHS, "elements": 0}.items()
}


@pytest.fixture(autouse=True)
def on_hopper(decide_by):
    if current().cc != (9, 0):
        pytest.skip("wgmma needs compute capability 9.0")
    decide_by(**SMALL_TRIANGLES)
    with override("gemm_wgmma", GemmWgmma()):  # small products too
        yield


@pytest.fixture(scope="module", autouse=True)
def compiled(compile_once) -> None:
    def warm() -> None:
        t = cupy.ones((N, N), np.float32, order="F")
        for routine, side, order in product(("trmm", "trsm"), "LR", "CF"):
            b = cupy.ones((N, RHS) if side == "L" else (RHS, N), np.float32, order=order)
            for lower in (False, True):
                getattr(pyblasgpu, routine)(t, b, side=side, lower=lower, out=b, method="tensor")

    if current().cc == (9, 0):
        with deciding_by(**SMALL_TRIANGLES), override("gemm_wgmma", GemmWgmma()):
            compile_once("tensor_routines", lambda: sources_of([warm]))


def graded(n: int, power: int) -> np.ndarray:
    return np.float32(2) ** np.random.default_rng(7).integers(-power, power + 1, n).astype(np.float32)


def triangle(kind: str, uplo: Uplo, diag: Diag) -> tuple[np.ndarray, np.ndarray]:
    """T with NaN where it is not read, and what it means."""
    t = np.random.default_rng(1).standard_normal((N, N)).astype(np.float32) / np.float32(N**0.5)
    t[np.diag_indices(N)] = 1
    t = DATA[kind](t).astype(np.float32)
    meant = np.tril(t, -1) if uplo is Uplo.LOWER else np.triu(t, 1)
    stored = np.where(meant != 0, t, np.float32(NAN))
    if diag is Diag.NON_UNIT:
        stored[np.diag_indices(N)] = t.diagonal()
    meant[np.diag_indices(N)] = 1 if diag is Diag.UNIT else t.diagonal()
    return stored, meant.astype(float)


@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize(("side", "uplo"), list(product(Side, Uplo)))
@pytest.mark.parametrize("routine", ["trmm", "trsm"])
def test_triangles_within_the_bound(routine, side, uplo, kind):
    """Componentwise: the error of TRMM, the residual of TRSM; nothing else is read or written."""
    order = "F" if uplo is Uplo.LOWER else "C"
    diag = Diag.UNIT if kind == "normal" else Diag.NON_UNIT
    stored, t = triangle(kind, uplo, diag)
    b = np.random.default_rng(2).standard_normal((N, RHS)).astype(np.float32)
    b = b if side is Side.LEFT else b.T
    out = Placed(b, order)
    flags = {"side": side.value, "lower": uplo is Uplo.LOWER, "unit_diag": diag is Diag.UNIT}
    call = getattr(pyblasgpu, routine)
    call(cupy.asarray(stored), out.array, **flags, out=out.array, method="tensor")
    actual = out.fetch().astype(float)
    assert out.unharmed()
    made, wide = (actual, b.astype(float)) if routine == "trsm" else (b.astype(float), actual)
    pair = (t, made) if side is Side.LEFT else (made, t)
    sizes = abs(pair[0]) @ abs(pair[1])
    assert (abs(pair[0] @ pair[1] - wide) <= (N + 2) * U * sizes).all()


@pytest.mark.parametrize("dtype", ["f8", "c16"])
@pytest.mark.parametrize(("side", "uplo"), [(Side.LEFT, Uplo.LOWER), (Side.RIGHT, Uplo.LOWER)])
@pytest.mark.parametrize("routine", ["trmm", "trsm"])
def test_triangles_in_double_precision(routine, side, uplo, dtype, decide_by):
    """Products of residues between triangles by FMAs keep the bound, the routine's by random elements."""
    letter, rng = {"f8": "d", "c16": "z"}[dtype], np.random.default_rng(9)
    ranges = {f"tensor_{routine}_min_{size}": {letter: 2} for size in ("order", "rhs", "elements")}
    decide_by(**ranges, tensor_stop_of_double=256)
    n, columns = 1300, 300
    shapes = (n, n), (n, columns) if side is Side.LEFT else (columns, n)
    t, b = (rng.standard_normal(shape).astype(dtype) for shape in shapes)
    if dtype == "c16":
        t, b = (x + 1j * rng.standard_normal(x.shape) for x in (t, b))
    t[np.diag_indices(n)] += 40
    flags = {"side": side.value, "lower": uplo is Uplo.LOWER}
    with override("gemm_int8", GemmInt8(dtype=letter)):
        call = getattr(pyblasgpu, routine)
        x = call(cupy.asarray(t, order="F"), cupy.asarray(b, order="F"), **flags, method="tensor").get()
        rows = explain(routine, letter, n, columns, method="tensor")
    assert rows[0][:2] == ("algorithm", {"trsm": "trsm_fused_256", "trmm": "trmm_tensor"}[routine])
    error = {"trmm": trmm_error, "trsm": trsm_error}[routine]
    assert error(1, t, b, x, side, uplo, Trans.NO, Diag.NON_UNIT) <= 1


def test_what_is_not_finite_reaches_what_depends_on_it():
    """TRMM's rows below are such, in one column of B."""
    stored, _ = triangle("normal", Uplo.LOWER, Diag.NON_UNIT)
    b = np.ones((N, RHS), np.float32)
    b[700, 5] = np.inf
    actual = pyblasgpu.trmm(cupy.asarray(stored), cupy.asarray(b), lower=True, method="tensor").get()
    spoilt = ~np.isfinite(actual)
    assert spoilt[700:, 5].all() and spoilt.sum() == N - 700


@pytest.mark.parametrize("routine", ["trmm", "trsm"])
def test_plans_and_the_same_bits(routine):
    stored, _ = triangle("normal", Uplo.LOWER, Diag.NON_UNIT)
    t = cupy.asarray(stored, order="F")
    b = cupy.asarray(np.random.default_rng(2).standard_normal((N, RHS)).astype(np.float32), order="F")
    expected = getattr(pyblasgpu, routine)(t, b, lower=True, method="tensor")
    out = cupy.empty_like(b)
    plan = getattr(pyblasgpu, f"plan_{routine}")(t, b, out, lower=True, method="tensor")
    for _ in range(3):
        out[...] = NAN
        plan(t, b, out)
        assert cupy.array_equal(out, expected)
    with pyblasgpu.set_math_mode("tensor"):
        assert cupy.array_equal(getattr(pyblasgpu, routine)(t, b, lower=True), expected)
        name = getattr(pyblasgpu.blas, f"s{routine}")
    assert cupy.array_equal(name(1, t, b, lower=1, method="tensor"), expected)


def test_factors_in_the_mode(decide_by):
    """LU within n u |L||U| row by row, Cholesky within (n + 4) u |L||L|^T."""
    decide_by(tensor_getrf_min_order={"s": 0})
    a = np.random.default_rng(3).standard_normal((N, N)).astype(np.float32)
    s = (a @ a.T / N + np.eye(N)).astype(np.float32)
    with pyblasgpu.set_math_mode("tensor"):
        lu, pivots, info = lapack.sgetrf(cupy.asarray(a))
        factor, definite = lapack.spotrf(cupy.asarray(s), lower=1)
    assert not cupy.asnumpy(info).any() and not cupy.asnumpy(definite).any()
    check_factors(a, lu.get(), cupy.asnumpy(pivots))
    factor = factor.get().astype(float)
    assert (abs(np.tril(factor @ factor.T - s)) <= (N + 4) * U * (abs(factor) @ abs(factor.T))).all()


@pytest.mark.parametrize(("first", "least"), [(256, 0), (512, 10**5)])
@pytest.mark.parametrize(
    ("dtype", "config"), [("f4", GemmWgmma()), ("f8", GemmInt8()), ("c16", GemmInt8("z"))]
)
def test_lu_looks_ahead_in_the_mode(dtype, config, first, least, decide_by):
    """By blocks of two parts or one, whose recursion ends in inner blocks; the bits are the same again."""
    decide_by(tensor_getrf_min_order={"s": 0, "d": 0, "z": 0}, getrf_permuted_min_order=least)
    decide_by(getrf_inner_columns=128, getrf_first_columns=first)
    parts = np.random.default_rng(7).standard_normal((2, 2300, 2300))
    a = cupy.asarray((parts[0] + 1j * parts[1] if dtype == "c16" else parts[0]).astype(dtype))
    with override("lookahead", 512), override(config.STEM, config), pyblasgpu.set_math_mode("tensor"):
        made = [lapack.getrf(a)[:2] for _ in range(3)]
    for lu, pivots in made:
        assert cupy.array_equal(lu, made[0][0])
        np.testing.assert_array_equal(cupy.asnumpy(pivots), cupy.asnumpy(made[0][1]))
    check_factors(a.get(), made[0][0].get(), cupy.asnumpy(made[0][1]))


@pytest.mark.parametrize("shape", [(2500,), (2500, 3), (2, 700, 40)], ids=str)
@pytest.mark.parametrize("structure", ["gen", "pos"])
def test_solutions_are_refined(structure, shape, decide_by, caplog):
    """To the residual that dsgesv allows, without factors in float64; A and b stay as they are."""
    caplog.set_level(logging.DEBUG, "pyblasgpu")
    decide_by(getrf_refined_min_order=2, potrf_refined_min_order=2, refined_max_rhs_share=4)
    n, batch = shape[0 if len(shape) < 3 else 1], shape[:-2]
    rng = np.random.default_rng(4)
    a, b = rng.standard_normal((*batch, n, n)), rng.standard_normal(shape)
    stored = a
    if structure == "pos":
        a = a @ a.swapaxes(-1, -2) / n + np.eye(n)
        stored = np.where(np.tri(n, dtype=bool), a, NAN)
    left, right = cupy.asarray(stored), cupy.asarray(b)
    x = linalg.solve(left, right, assume_a=structure, lower=True, method="tensor").get()
    assert "solve: refined by" in caplog.text
    wide = (a, x[..., None], b[..., None]) if b.ndim == 1 else (a, x, b)
    residual = abs(wide[2] - wide[0] @ wide[1]).max(axis=-2)
    allowed = n**0.5 * 2.0**-53 * abs(a).sum(axis=-1).max(axis=-1)[..., None] * abs(wide[1]).max(axis=-2)
    assert (residual <= 2 * allowed).all()
    assert cupy.array_equal(left, cupy.asarray(stored), equal_nan=True)
    assert cupy.array_equal(right, cupy.asarray(b))
    if structure == "gen" and not batch:
        y = linalg.solve(left, right, assume_a="gen", transposed=True, method="tensor").get()
        np.testing.assert_allclose(a.T @ y, b, 0, 1e-9)


@pytest.mark.parametrize("structure", ["gen", "pos"])
def test_what_cannot_be_refined_is_solved_in_float64(structure, decide_by):
    decide_by(getrf_refined_min_order=2, potrf_refined_min_order=2, refined_max_rhs_share=4)
    q = np.linalg.qr(np.random.default_rng(5).standard_normal((600, 600)))[0]
    a = cupy.asarray(q * np.geomspace(1, 1e-11, 600) @ q.T)
    a, b = (a + a.T) / 2, cupy.ones(600)
    expected = linalg.solve(a, b, assume_a=structure)
    assert cupy.array_equal(linalg.solve(a, b, assume_a=structure, method="tensor"), expected)
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        linalg.solve(cupy.ones((600, 600)), b, assume_a=structure, method="tensor")


def test_few_directions_beyond_float32_are_left_to_gmres(decide_by, caplog):
    caplog.set_level(logging.DEBUG, "pyblasgpu")
    decide_by(getrf_refined_min_order=2, refined_max_rhs_share=4)
    n, rng = 700, np.random.default_rng(6)
    left, right = (np.linalg.qr(rng.standard_normal((n, n)))[0] for _ in range(2))
    a = left * np.where(np.arange(n) < n - 3, 1, 1e-10) @ right
    b = rng.standard_normal((n, 2))
    x = linalg.solve(cupy.asarray(a), cupy.asarray(b), assume_a="gen", method="tensor").get()
    assert "of GMRES" in caplog.text
    allowed = n**0.5 * 2.0**-53 * abs(a).sum(axis=1).max() * abs(x).max(axis=0)
    assert (abs(b - a @ x).max(axis=0) <= 2 * allowed).all()


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8"])
def test_functions_of_linalg_take_the_method(dtype):
    """They solve as without it, to the precision that a matrix of this condition leaves."""
    rng, n, columns = np.random.default_rng(8), 1500, 200
    a = rng.standard_normal((n, n)) + (1j * rng.standard_normal((n, n)) if dtype == "c8" else 0)
    a = (a @ a.conj().T / n + np.eye(n)).astype(dtype)
    b = (a @ np.ones((n, columns))).astype(dtype)
    left, right = cupy.asarray(a), cupy.asarray(b)
    x = linalg.cho_solve(linalg.cho_factor(left, lower=True), right, method="tensor")
    y = linalg.lstsq(left, right, method="tensor")[0]
    z = linalg.solve(left, right, assume_a="gen", method="tensor")
    inverse = linalg.inv(left, method="tensor") @ right
    small = 1e-9 if dtype == "f8" else 2e-2
    for each in (x, y, z, inverse):
        assert float(abs(each - 1).max()) < small
