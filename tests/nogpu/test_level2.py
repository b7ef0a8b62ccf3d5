"""Level 2 in keyword style on host arrays: shapes, batches, layouts, overlaps and errors beside NumPy."""

from __future__ import annotations

import empty_sums
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pyblasgpu
from pyblasgpu.errors import OverlapError

SEEDS, QUICK = st.integers(0, 999), settings(max_examples=40, deadline=None)
LETTERS = st.sampled_from("fdFD")
NAN = float("nan")


def reals(rng: np.random.Generator, letter: str, *shape: int) -> np.ndarray:
    values = rng.uniform(-1, 1, shape)
    return (values + 1j * rng.uniform(-1, 1, shape) if letter in "FD" else values).astype(letter)


def laid(a: np.ndarray, how: int) -> np.ndarray:
    """`a` row-major, column-major, or with gaps and backwards."""
    if how < 2:
        return np.array(a, order="CF"[how])
    room = np.full((*a.shape[:-2], 2 * a.shape[-2], 3 * a.shape[-1]), NAN, a.dtype)
    view = room[..., ::-2, ::3]
    view[...] = a
    return view


def close(actual: np.ndarray, expected: np.ndarray) -> None:
    assert actual.dtype == expected.dtype and actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, atol=200 * np.finfo(actual.dtype).eps, equal_nan=True)


@given(
    SEEDS,
    LETTERS,
    st.integers(1, 8),
    st.integers(0, 8),
    st.sampled_from("NTC"),
    st.integers(0, 2),
    st.booleans(),
    st.booleans(),
)
@QUICK
def test_gemv(seed, letter, m, n, trans, how, batched, has_out):
    rng = np.random.default_rng(seed)
    batch = (3,) if batched else ()
    op = reals(rng, letter, *batch, m, n)
    stored = {"N": op, "T": op.swapaxes(-1, -2), "C": op.conj().swapaxes(-1, -2)}[trans]
    x, out = reals(rng, letter, *batch, n), reals(rng, letter, *batch, m) if has_out else None
    expected = (1.5 * np.einsum("...ij,...j->...i", op, x)).astype(letter)
    if has_out:
        expected = (expected + 0.5 * out).astype(letter)
    beta = 0.5 if has_out else 0
    result = pyblasgpu.gemv(laid(stored, how), x, alpha=1.5, beta=beta, trans=trans, out=out)
    assert out is None or result is out
    close(result, expected)


@given(SEEDS, LETTERS, st.integers(1, 8), st.booleans(), st.integers(0, 2), st.booleans())
@QUICK
def test_symmetric(seed, letter, n, lower, how, hermitian):
    rng = np.random.default_rng(seed)
    a, x = reals(rng, letter, n, n), reals(rng, letter, n)
    half = np.tril(a, -1) if lower else np.triu(a, 1)
    if hermitian and letter in "FD":
        full = half + half.conj().T + np.diag(np.diagonal(a).real)
    else:
        full = half + half.T + np.diag(np.diagonal(a))
    kept = np.tri(n, dtype=bool) if lower else np.tri(n, dtype=bool).T
    routine = pyblasgpu.hemv if hermitian else pyblasgpu.symv
    held = np.where(kept, a, NAN).astype(letter)
    close(routine(laid(held, how), x, lower=lower), full.astype(letter) @ x)


@given(
    SEEDS, LETTERS, st.integers(1, 8), st.booleans(), st.booleans(), st.sampled_from("NTC"), st.integers(0, 2)
)
@QUICK
def test_triangles(seed, letter, n, lower, unit, trans, how):
    rng = np.random.default_rng(seed)
    a, x = (reals(rng, letter, n, n) / 4 + 2 * np.eye(n)).astype(letter), reals(rng, letter, n)
    meant = np.tril(a) if lower else np.triu(a)
    held = np.where(np.tri(n, dtype=bool) if lower else np.tri(n, dtype=bool).T, a, NAN).astype(letter)
    if unit:
        np.fill_diagonal(meant, 1)
        np.fill_diagonal(held, NAN)
    op = {"N": meant, "T": meant.T, "C": meant.conj().T}[trans]
    flags = {"lower": lower, "trans": trans, "unit_diag": unit}
    close(pyblasgpu.trmv(laid(held, how), x, **flags), op @ x)
    out = x.copy()
    assert pyblasgpu.trmv(laid(held, how), out, out=out, **flags) is out
    close(out, op @ x)
    solved = pyblasgpu.trsv(laid(held, how), x, **flags)
    close(op @ solved, x)


@given(SEEDS, LETTERS, st.integers(1, 8), st.integers(1, 8), st.booleans(), st.integers(0, 2), st.booleans())
@QUICK
def test_ger(seed, letter, m, n, conj, how, batched):
    rng = np.random.default_rng(seed)
    batch = (2,) if batched else ()
    x, y, a = (reals(rng, letter, *batch, *shape) for shape in ((m,), (n,), (m, n)))
    update = x[..., :, None] * (y.conj() if conj else y)[..., None, :]
    close(pyblasgpu.ger(x, y, conj=conj), update)
    out = laid(a, how)
    assert pyblasgpu.ger(x, y, alpha=-2, conj=conj, out=out) is out
    close(out, (a - 2 * update).astype(letter))


@given(
    SEEDS,
    LETTERS,
    st.integers(1, 8),
    st.booleans(),
    st.sampled_from(("syr", "her", "syr2", "her2")),
    st.integers(0, 2),
)
@QUICK
def test_updates(seed, letter, n, lower, which, how):
    rng = np.random.default_rng(seed)
    x, y, a = (reals(rng, letter, *shape) for shape in ((n,), (n,), (n, n)))
    hermitian = which.startswith("her") and letter in "FD"
    alpha = 2 - 1j if letter in "FD" and which != "her" else 2
    vectors = (x, y) if which.endswith("2") else (x,)
    full = alpha * np.outer(x, vectors[-1].conj() if hermitian else vectors[-1])
    if len(vectors) == 2:
        full = full + (full.conj() if hermitian else full).T
    kept = np.tri(n, dtype=bool) if lower else np.tri(n, dtype=bool).T
    expected = np.where(kept, a + full, NAN)
    if hermitian:
        expected[np.diag_indices(n)] = expected[np.diag_indices(n)].real
    out = laid(np.where(kept, a, NAN).astype(letter), how)
    getattr(pyblasgpu, which)(*vectors, alpha=alpha, lower=lower, out=out)
    close(out, expected.astype(letter))
    new = getattr(pyblasgpu, which)(*vectors, alpha=alpha, lower=lower)
    close(new, np.where(kept, full, 0).astype(letter))


def test_nothing_of_what_has_no_effect_is_read():
    a, x, out = np.full((3, 2), NAN), np.full(2, NAN), np.ones(3)
    np.testing.assert_array_equal(pyblasgpu.gemv(a, x, alpha=0, beta=2, out=out), np.full(3, 2.0))
    np.testing.assert_array_equal(
        pyblasgpu.gemv(np.ones((3, 2)), np.ones(2), out=np.full(3, NAN)), np.full(3, 2.0)
    )
    np.testing.assert_array_equal(pyblasgpu.ger(np.full(3, NAN), x, alpha=0), np.zeros((3, 2)))
    a = np.ones((2, 2), complex)
    a.imag[0, 0] = NAN
    assert np.isfinite(pyblasgpu.hemv(a, np.ones(2, complex))).all()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: pyblasgpu.gemv(np.ones((3, 2)), np.ones(3)), ValueError, r"gemv: x has length 3; 2 is"),
        (lambda x: pyblasgpu.gemv(np.ones(3), np.ones(3)), ValueError, r"gemv: a has shape \(3,\)"),
        (lambda x: pyblasgpu.gemv(np.ones((3, 3)), np.float64(1)), ValueError, r"gemv: x has shape \(\)"),
        (lambda x: pyblasgpu.gemv(np.ones((3, 3)), x, beta=1), ValueError, "gemv: beta=1 needs out"),
        (lambda x: pyblasgpu.gemv(np.ones((3, 3)), x, out=x), OverlapError, "gemv: out shares memory with x"),
        (lambda x: pyblasgpu.gemv(np.ones((2, 3)), x, out=x[:1]), ValueError, r"gemv: out has shape \(1,\)"),
        (lambda x: pyblasgpu.gemv(np.ones((3, 3)), x, alpha=1j), TypeError, "gemv: alpha=1j is complex"),
        (lambda x: pyblasgpu.symv(np.ones((3, 2)), x), ValueError, r"symv: a has shape \(3, 2\)"),
        (lambda x: pyblasgpu.trmv(np.ones((3, 3)), x, lower="x"), ValueError, "trmv: lower='x'"),
        (lambda x: pyblasgpu.ger(x, x, out=np.ones((3, 2))), ValueError, r"ger: out has shape \(3, 2\)"),
        (lambda x: pyblasgpu.syr2(x, x[:2]), ValueError, "syr2: x has length 3 and y 2"),
        (lambda x: pyblasgpu.her(x * 1j, alpha=1j), TypeError, "her: alpha=1j is complex"),
        (
            lambda x: pyblasgpu.gemv(np.ones((2, 3, 3)), np.ones((3, 3))),
            ValueError,
            r"gemv: the leading dimensions of a, of shape \(2, 3, 3\), and x, of \(3, 3, 1\)",
        ),
    ],
)
def test_bad_arguments_are_named(call, error, message):
    x = np.ones(3)
    with pytest.raises(error, match=message):
        call(x)
    assert (x == 1).all()


@pytest.mark.parametrize(("alpha", "beta"), empty_sums.FACTORS)
def test_sums_without_terms_scale_what_is_there(alpha, beta):
    empty_sums.check(alpha, beta, np.asarray, np.asarray)
