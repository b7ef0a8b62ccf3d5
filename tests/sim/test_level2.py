"""Level 2 through its functions, with small blocks: every flag and layout, exactly, on the simulator."""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from itertools import product

import empty_sums
import numpy as np
import pytest

import pyblasgpu
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.kernels.level2.gemv import Gemv
from pyblasgpu.kernels.level2.ger import Ger
from pyblasgpu.kernels.level2.symv import Symv
from pyblasgpu.kernels.level2.symv_small import SymvSmall
from pyblasgpu.kernels.level2.symv_sum import SymvSum
from pyblasgpu.testing.reference import fenced, integers
from pyblasgpu.types import DTYPES

NAN = float("nan")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks of one or two warps, for all dtypes."""
    monkeypatch.setenv("PYBLASGPU_BACKEND", "sim")
    with ExitStack() as stack:
        for letter in DTYPES:
            vectors = 4 if letter == "s" else 2
            for config in (
                Gemv(letter, WARPS=1, DIM_R=4, THR_R=2),
                Gemv(letter, transposed=True, WARPS=1, DIM_R=16, THR_R=1, THR_O=2),
                Symv(letter, WARPS=2, THR_M=vectors, THR_N=4),
                SymvSum(letter, DIM_O=16, DIM_R=2),
                Ger(letter, DIM_M=8, DIM_N=4, THR_N=2),
            ):
                stack.enter_context(override(config.STEM, config))
        yield


def triangle_of(a: np.ndarray, lower: bool) -> np.ndarray:
    """`a` with NaN in the triangle that is not meant."""
    kept = np.tri(len(a), dtype=bool)
    return np.where(kept if lower else kept.T, a, NAN).astype(a.dtype)


def symmetric_of(a: np.ndarray, lower: bool, hermitian: bool) -> np.ndarray:
    half = np.tril(a, -1) if lower else np.triu(a, 1)
    diagonal = np.diag(np.diagonal(a).real if hermitian else np.diagonal(a))
    return half + (half.conj() if hermitian else half).T + diagonal


def vector(x: np.ndarray, step: int) -> np.ndarray:
    """`x` in memory, every element `step` from the last."""
    room = np.full(x.size * abs(step), NAN, x.dtype)
    view = room[:: abs(step)][:: -1 if step < 0 else 1]
    view[...] = x
    return view


@pytest.mark.parametrize("trans", "NTC")
@pytest.mark.parametrize("letter", "dc")
def test_gemv(letter, trans):
    rng, dtype = np.random.default_rng(1), DTYPES[letter]
    for order, (rows, cols) in product("FC", ((36, 20), (1, 9), (9, 1))):
        a = integers(rng, (rows, cols), dtype)
        op = {"N": a, "T": a.T, "C": a.conj().T}[trans]
        x, y = integers(rng, op.shape[1], dtype), integers(rng, op.shape[0], dtype)
        expected = 2 * op @ x - 3 * y
        held, unharmed = fenced(y[:, None], "F")
        out = held[:, 0]
        result = pyblasgpu.gemv(
            np.asarray(a, order=order), vector(x, -2), alpha=2, beta=-3, trans=trans, out=out
        )
        assert result is out and np.array_equal(out, expected) and unharmed()


@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("letter", "sz")
def test_symv_and_hemv(letter, lower, small):
    rng, dtype = np.random.default_rng(2), DTYPES[letter]
    for order, n, name in product("FC", (40,), ("symv", "hemv")):
        a, x, y = (integers(rng, shape, dtype) for shape in ((n, n), n, n))
        hermitian = name == "hemv" and dtype.is_complex
        expected = symmetric_of(a, lower, hermitian) @ x + 2 * y
        a = triangle_of(a, lower)
        if hermitian:
            a.imag[np.diag_indices(n)] = NAN
        kernel = override("symv_small", SymvSmall(letter, WARPS=2, LOADS=2)) if small else nullcontext()
        with kernel:
            result = getattr(pyblasgpu, name)(
                np.asarray(a, order=order), vector(x, 2), beta=2, lower=lower, out=vector(y, -1)
            )
        assert np.array_equal(result, expected)


@pytest.mark.parametrize("lower, unit, trans", list(product((False, True), (False, True), "NC")))
def test_trmv(lower, unit, trans):
    rng, dtype, n = np.random.default_rng(3), DTYPES["z"], 41
    a, x = integers(rng, (n, n), dtype, 1), integers(rng, n, dtype)
    np.fill_diagonal(a, -1)
    meant = np.tril(a) if lower else np.triu(a)
    if unit:
        np.fill_diagonal(meant, 1)
    meant = {"N": meant, "T": meant.T, "C": meant.conj().T}[trans]
    a = triangle_of(a, lower)
    if unit:
        np.fill_diagonal(a, NAN)
    flags = {"lower": lower, "trans": trans, "unit_diag": unit}
    for order in "FC":
        held = np.asarray(a, order=order)
        result = pyblasgpu.trmv(held, x, **flags)
        assert np.array_equal(result, meant @ x)
        inside = vector(x, -2)
        assert pyblasgpu.trmv(held, inside, out=inside, **flags) is inside
        assert np.array_equal(inside, result)


@pytest.mark.parametrize("letter", "sz")
def test_ger(letter):
    rng, dtype = np.random.default_rng(4), DTYPES[letter]
    for order, conj, (m, n) in product("FC", (False, True), ((36, 12), (1, 1))):
        x, y, a = integers(rng, m, dtype), integers(rng, n, dtype), integers(rng, (m, n), dtype)
        alpha = 2 - 1j if dtype.is_complex else 2
        product_ = alpha * np.outer(x, y.conj() if conj else y)
        out, unharmed = fenced(a, order)
        assert pyblasgpu.ger(vector(x, 2), vector(y, -1), alpha=alpha, conj=conj, out=out) is out
        assert np.array_equal(out, a + product_) and unharmed()
        assert np.array_equal(pyblasgpu.ger(x, y, alpha=alpha, conj=conj), product_)


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("which", ["syr", "her", "syr2", "her2"])
@pytest.mark.parametrize("letter", "dc")
def test_rank_1_and_2(letter, which, lower):
    rng, dtype = np.random.default_rng(5), DTYPES[letter]
    hermitian = which.startswith("her") and dtype.is_complex
    for order, n in (("F", 35), ("C", 36)):
        x, y, a = (integers(rng, shape, dtype) for shape in (n, n, (n, n)))
        vectors = (x, y) if which.endswith("2") else (x,)
        alpha = 3 if which == "her" or not dtype.is_complex else 3 - 1j
        full = alpha * np.outer(x, vectors[-1].conj() if hermitian else vectors[-1])
        if len(vectors) == 2:
            full = full + (full.conj() if hermitian else full).T
        kept = np.tri(n, dtype=bool) if lower else np.tri(n, dtype=bool).T
        start = triangle_of(a, lower)
        expected = np.where(kept, a + full, NAN)
        if hermitian:
            start.imag[np.diag_indices(n)] = NAN
            expected[np.diag_indices(n)] = expected[np.diag_indices(n)].real
        out, unharmed = fenced(start, order)
        getattr(pyblasgpu, which)(*vectors, alpha=alpha, lower=lower, out=out)
        assert np.array_equal(out, expected, equal_nan=True) and unharmed()
        new = getattr(pyblasgpu, which)(*vectors, alpha=alpha, lower=lower)
        assert np.array_equal(new, np.where(kept, full, 0))
        assert not getattr(pyblasgpu, which)(*vectors, alpha=0, lower=lower).any()
        same, unharmed = fenced(start, order)
        getattr(pyblasgpu, which)(*vectors, alpha=0, lower=lower, out=same)
        assert np.array_equal(same, start, equal_nan=True) and unharmed()


def test_batches():
    rng, dtype = np.random.default_rng(6), DTYPES["d"]
    a, x = integers(rng, (3, 20, 20), dtype), integers(rng, (3, 20), dtype)
    assert np.array_equal(pyblasgpu.gemv(a, x), np.einsum("zij,zj->zi", a, x))
    assert np.array_equal(pyblasgpu.gemv(a, x[0]), np.einsum("zij,j->zi", a, x[0]))
    full = np.stack([symmetric_of(each, True, False) for each in a])
    assert np.array_equal(pyblasgpu.symv(a, x, lower=True), np.einsum("zij,zj->zi", full, x))
    assert np.array_equal(pyblasgpu.trmv(a, x), np.einsum("zij,zj->zi", np.triu(a), x))
    assert np.array_equal(pyblasgpu.ger(x, x, out=a.copy()), a + x[:, :, None] * x[:, None, :])


@pytest.mark.parametrize(("alpha", "beta"), empty_sums.FACTORS)
def test_sums_without_terms_scale_what_is_there(alpha, beta, on_device):
    if (alpha + beta) % 2:  # by turns: kernels get the same launches
        empty_sums.check(alpha, beta, np.asarray, np.asarray)
    else:
        empty_sums.check(alpha, beta, on_device, lambda array: array.host)
