"""``gemm(..., method="tensor")`` end to end on the simulator, with toy tiles."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from itertools import product

import numpy as np
import pytest

import pyblasgpu
from pyblasgpu.dispatch import overrides
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.kernels.gemm.wgmma.config import GemmWgmma
from pyblasgpu.kernels.gemm.wgmma.guarded import GemmGuarded
from pyblasgpu.routines import launch_list
from pyblasgpu.testing.error_bounds import gemm_error

M, N, K = 67, 18, 130


@pytest.fixture(autouse=True)
def backend(monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "sim")


@contextmanager
def small_kernels():
    """Tiles of 64 x 16, and of 32 x 16 for what is left of them."""
    sizes = {"BLK_M": 32, "BLK_N": 16, "BLK_K": 8, "DIM_X": 8, "DIM_Y": 4, "UNROLL": 8}
    with ExitStack() as stack:
        stack.enter_context(override("gemm_wgmma", GemmWgmma(BLK_M=64, BLK_N=16, PANEL=64, stages=2)))
        for dtype, trans_a, trans_b in product("sc", (False, True), (False, True)):
            tile = GemmGuarded(
                dtype=dtype,
                VEC_M=2,
                VEC_N=2,
                DIM_XA=8,
                DIM_YA=4,
                DIM_XB=8,
                DIM_YB=4,
                VEC_A=1,
                PAD_B=0,
                PANEL=64,
                **sizes,
            )
            stack.enter_context(override("gemm_guarded", tile.specialize(trans_a, trans_b, 64)))
        yield


def families() -> set[str]:
    """Families that the last call has launched."""
    (launches,) = launch_list.cache.values()
    return {entry.source.name for entry in launches.entries}


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(launch_list, "cache", {})


def normal(*shape: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("trans_a", "trans_b", "order", "beta"),
    [("N", "N", "C", 0), ("N", "T", "F", -0.5), ("T", "N", "F", 0), ("C", "T", "C", 2)],
)
def test_every_layout(trans_a, trans_b, order, beta):
    a, b = normal(M, K), normal(K, N, seed=2)
    left, right = a if trans_a == "N" else a.T.copy(), b if trans_b == "N" else b.T.copy()
    out = np.asarray(normal(M, N, seed=3), order=order)
    before = out.copy()
    with small_kernels():
        result = pyblasgpu.gemm(
            left, right, trans_a=trans_a, trans_b=trans_b, alpha=1.5, beta=beta, out=out, method="tensor"
        )
    assert result is out and families() == {"pack_halves", "gemm_wgmma", "gemm_guarded"}
    assert gemm_error(1.5, a, b, beta, before, out) <= 1


def complexes(*shape: int, seed: int = 1) -> np.ndarray:
    return normal(*shape, seed=seed) + np.complex64(1j) * normal(*shape, seed=seed + 10)


@pytest.mark.parametrize(
    ("trans_a", "trans_b", "order", "alpha", "beta"),
    [
        ("C", "N", "C", 1 - 2j, 0.5),
        ("N", "C", "F", -1, 1 + 1j),
        ("T", "T", "C", 2, 0),
    ],
)
def test_complex_products(trans_a, trans_b, order, alpha, beta):
    """They are one real product; a tile with Inf, or with what pairs cannot hold, goes by complex FMAs."""
    m, n, k = 35, 18, 70
    a, b, before = complexes(m, k), complexes(k, n, seed=2), complexes(m, n, seed=3)
    a[34, 3] *= np.float32(2.0**-40)
    of = {"N": lambda x: x, "T": lambda x: x.T.copy(), "C": lambda x: x.conj().T.copy()}
    out = np.asarray(before, order=order).copy(order)
    with small_kernels():
        options = {"trans_a": trans_a, "trans_b": trans_b, "alpha": alpha, "beta": beta, "method": "tensor"}
        pyblasgpu.gemm(of[trans_a](a), of[trans_b](b), out=out, **options)
    assert families() == {"pack_halves", "gemm_wgmma", "gemm_guarded"}
    assert gemm_error(alpha, a, b, beta, before, out) <= 1


@pytest.mark.parametrize("make", [normal, complexes])
def test_an_operand_that_is_both_factors(make):
    a = make(9, K)
    with small_kernels():
        result = pyblasgpu.gemm(a, a, trans_b="T", method="tensor")
    assert families() == {"pack_halves", "gemm_wgmma", "gemm_guarded"}
    assert gemm_error(1, a, a.T, 0, result, result) <= 1


def test_a_batch_of_complex_products_that_share_a_factor():
    a, b = complexes(2, 5, 66), complexes(66, 9, seed=2)
    with small_kernels():
        result = pyblasgpu.gemm(a, b, method="tensor")
    assert all(gemm_error(1, x, b, 0, c, c) <= 1 for x, c in zip(a, result, strict=True))


def test_a_batch_that_shares_a_factor():
    a, b = normal(2, 30, K), normal(K, 20, seed=2)
    with small_kernels():
        result = pyblasgpu.gemm(a, b, method="tensor")
    assert all(gemm_error(1, x, b, 0, c, c) <= 1 for x, c in zip(a, result, strict=True))


def barely(a, b, _):
    """What is summed up is as small as pairs may hold it, beside large elements that meet zeros."""
    a, b = ((np.sign(x) * 0.86 + x / 16) * np.float32(2.0**-28) for x in (a, b))
    a[:, :2], b[:2] = (1, 0), [[0], [1]]
    return a, b


HARD = {
    "barely": barely,
    "graded_k": lambda a, b, d: (a * d, b / d[:, None]),
    "graded_rows": lambda a, b, d: (a * d[: len(a), None], b),
    "one_large": lambda a, b, d: (np.where(np.eye(20, K, dtype=bool), np.float32(1e20), a), b),
    "zeros": lambda a, b, d: (np.where(np.arange(K) < 64, 0, a), b),
    "subnormal": lambda a, b, d: (a * np.float32(1e-39), b),
    "huge": lambda a, b, d: (a * np.float32(1e20), b * np.float32(1e-20)),
}


@pytest.mark.parametrize("kind", HARD)
def test_hard_data_are_multiplied_as_by_fmas(kind):
    """The componentwise bound of FP32 holds, whichever kernel serves a tile."""
    scales = np.float32(2) ** np.random.default_rng(7).integers(-20, 21, K).astype(np.float32)
    a, b = (
        np.ascontiguousarray(x, np.float32) for x in HARD[kind](normal(20, K), normal(K, 9, seed=2), scales)
    )
    with small_kernels():
        result = pyblasgpu.gemm(a, b, method="tensor")
    assert gemm_error(1, a, b, 0, result, result) <= 1


@pytest.mark.parametrize(("make", "trans_b"), [(normal, "N"), (complexes, "C")])
def test_graded_data_are_equilibrated(make, trans_b, decide_by):
    """A D and D^-1 B are served by pairs; the power of a k that no sampled row tells is 1."""
    decide_by(fp16_min_equilibrated_work=0)
    k = K if make is normal else K // 2
    scales = np.float32(2) ** np.random.default_rng(7).integers(-30, 31, k).astype(np.float32)
    a, b = make(20, k) * scales, make(k, 9, seed=2) / scales[:, None]
    with small_kernels():
        right = b if trans_b == "N" else b.conj().T.copy()
        result = pyblasgpu.gemm(a, right, trans_b=trans_b, method="tensor")
    assert families() == {"equilibrate", "pack_halves", "gemm_wgmma", "gemm_guarded"}
    assert gemm_error(1, a, b, 0, result, result) <= 1


def test_what_is_not_finite_reaches_what_depends_on_it():
    a, b = normal(M, K), normal(K, N, seed=2)
    a[66, 3], b[129, 16] = np.nan, np.inf
    with small_kernels():
        result = pyblasgpu.gemm(a, b, method="tensor")
    assert np.isnan(result[66]).all() and np.isnan(result).sum() == N
    assert np.isinf(np.delete(result[:, 16], 66)).all() and np.isinf(result).sum() == M - 1


def test_without_an_override_small_products_are_made_by_fmas():
    a, b = normal(M, K), normal(K, N, seed=2)
    assert not overrides.active()
    result = pyblasgpu.gemm(a, b, method="tensor")
    np.testing.assert_array_equal(result, pyblasgpu.gemm(a, b))


def test_a_mode_for_all_products_of_a_block():
    a, b = normal(20, K), normal(K, 9, seed=2)
    with small_kernels(), pyblasgpu.set_math_mode("tensor"):
        result = pyblasgpu.linalg.matmul(a, b)
        assert "gemm_wgmma" in families()
        with pyblasgpu.set_math_mode(None):
            launch_list.cache.clear()
            by_fma = pyblasgpu.blas.sgemm(1, a, b)
            assert families() == {"gemm_simt"}
    assert gemm_error(1, a, b, 0, result, result) <= 1 and gemm_error(1, a, b, 0, by_fma, by_fma) <= 1
    with pytest.raises(ValueError, match="set_math_mode: mode='fast' is neither 'tensor' nor None"):
        pyblasgpu.set_math_mode("fast").__enter__()


@pytest.mark.slow
@pytest.mark.parametrize(("lower", "n"), [(False, 70), (True, 130)])
def test_a_triangle_of_c(lower, n):
    a, out = normal(n, K), normal(n, n, seed=3)
    a[n - 1, 7] = np.inf  # some tiles for FMAs
    before = out.copy()
    with small_kernels(), pyblasgpu.set_math_mode("tensor"):
        pyblasgpu.syrk(a, alpha=0.5, beta=2, lower=lower, out=out)
    assert families() == {"pack_halves", "gemm_wgmma", "gemm_guarded"}
    mine = np.tril(np.ones((n, n), bool)) if lower else np.triu(np.ones((n, n), bool))
    np.testing.assert_array_equal(out[~mine], before[~mine])
    rest = np.arange(n - 1)
    filled = np.where(mine, out, (before * 2 + 0.5 * (a.astype(float) @ a.T.astype(float))))
    inner = np.ix_(rest, rest)
    assert gemm_error(0.5, a[rest], a[rest].T, 2, before[inner], filled[inner].astype(np.float32)) <= 1
    last = np.arange(n) == n - 1
    assert not np.isfinite(out[mine & (last | last[:, None])]).any()


@pytest.mark.parametrize(("routine", "lower", "n"), [("syrk", True, 41), ("her2k", False, 34)])
def test_a_complex_triangle_of_c(routine, lower, n):
    """Exact on integers; beyond it nothing is written, of a Hermitian diagonal no imaginary part read."""
    rng = np.random.default_rng(n)
    a, b, c = (
        (rng.integers(-5, 6, shape) + 1j * rng.integers(-5, 6, shape)).astype(np.complex64)
        for shape in ((n, 80), (n, 80), (n, n))
    )
    hermitian, is_two = routine != "syrk", routine == "her2k"
    alpha = 1 - 2j if is_two else 2
    expected = alpha * (a @ (b if is_two else a).conj().T if hermitian else a @ a.T)
    if is_two:
        expected = expected + expected.conj().T
        a[-1, 0] = b[-1, 0] = np.nan  # a tile for FMAs
        expected[-1], expected[:, -1] = np.nan, np.nan
    on_diagonal, inside = np.eye(n, dtype=bool), np.tri(n, dtype=bool)
    inside = inside if lower else inside.T
    expected += 2 * np.where(on_diagonal & hermitian, c.real, c)
    start = np.where(on_diagonal & hermitian, c.real + complex(0, np.nan), c)
    out = np.asfortranarray(start.astype(np.complex64))
    before = out.copy()
    with small_kernels(), pyblasgpu.set_math_mode("tensor"), override("syr2k_algorithm", "two_products"):
        factors = (a, b) if is_two else (a,)
        getattr(pyblasgpu, routine)(*factors, alpha=alpha, beta=2, lower=lower, out=out)
    assert families() == {"pack_halves", "gemm_wgmma", "gemm_guarded"}
    rows = slice(0, n - 1 if is_two else n)
    np.testing.assert_array_equal(
        out[rows, rows][inside[rows, rows]], expected[rows, rows][inside[rows, rows]]
    )
    assert np.isnan(out[inside & np.isnan(expected)]).all()
    np.testing.assert_array_equal(out[~inside], before[~inside])


def test_other_methods_are_refused():
    with pytest.raises(ValueError, match="gemm: method='fast' is none of '3m', 'tensor' and None"):
        pyblasgpu.gemm(normal(3, 3), normal(3, 3), method="fast")
