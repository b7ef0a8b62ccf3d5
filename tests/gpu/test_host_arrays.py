"""NumPy arrays through blas, linalg and the keyword functions, computed on the device."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.linalg
import scipy.linalg.blas

import pyblasgpu
from pyblasgpu import blas, linalg
from pyblasgpu.database import families_of
from pyblasgpu.errors import OverlapError
from pyblasgpu.testing.cases import TriangularCase
from pyblasgpu.testing.reference import fenced, integers, triangle
from pyblasgpu.types import DTYPES

from .running import cupy, reals, same


@pytest.fixture(autouse=True)
def backend(monkeypatch):
    """The device computes; if it could not, that would be an error and no fallback."""
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cuda")


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("trans_a, trans_b", list(product(range(3), repeat=2)))
def test_blas_gemm_is_scipys(letter, trans_a, trans_b):
    dtype, rng = DTYPES[letter], np.random.default_rng(1)
    a = integers(rng, (31, 65) if trans_a else (65, 31), dtype)
    b = integers(rng, (33, 31) if trans_b else (31, 33), dtype)
    c = np.asfortranarray(integers(rng, (65, 33), dtype))
    arguments = (2, a, b), {"beta": -1, "c": c, "trans_a": trans_a, "trans_b": trans_b}
    expected = getattr(scipy.linalg.blas, f"{letter}gemm")(*arguments[0], **arguments[1])
    result = getattr(blas, f"{letter}gemm")(*arguments[0], **arguments[1])
    same(result, expected, f"{letter}gemm")
    assert result.flags.f_contiguous and result is not c
    assert getattr(blas, f"{letter}gemm")(*arguments[0], **arguments[1], overwrite_c=1) is c
    same(c, expected, "overwritten")


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("name", ["trmm", "trsm"])
@pytest.mark.parametrize("side, lower", list(product(range(2), repeat=2)))
def test_blas_triangular_is_scipys(name, letter, side, lower):
    dtype, rng = DTYPES[letter], np.random.default_rng(2)
    ours, theirs = getattr(blas, letter + name), getattr(scipy.linalg.blas, letter + name)
    for trans, unit in product(range(3), range(2)):
        order = 33 if side else 65
        a = np.eye(order) + np.tri(order, k=-1) * integers(rng, (order, order), dtype, 1) / 64
        a = np.asfortranarray((a if lower else a.T).astype(dtype.name))
        b = np.asfortranarray(integers(rng, (65, 33), dtype))
        flags = {"side": side, "lower": lower, "trans_a": trans, "diag": unit}
        expected = theirs(0.5, a, b, **flags)
        result = ours(0.5, a, b, **flags)
        scale = abs(expected).max()
        assert abs(result - expected).max() <= 1e3 * dtype.unit_roundoff * scale, f"{name} {flags}"
        assert ours(0.5, a, b, **flags, overwrite_b=1) is b
        same(b, result, f"{name} overwritten")


@pytest.mark.parametrize("letter", DTYPES)
def test_padded_and_strided_host_arrays(letter):
    """What a single copy cannot move: padded rows, steps, reversals; and the padding stays."""
    dtype, rng = DTYPES[letter], np.random.default_rng(3)
    a, b, c = (integers(rng, shape, dtype) for shape in ((65, 31), (31, 33), (65, 33)))
    left, right = fenced(a)[0], fenced(b, "F")[0]
    spread = np.full((130, 99), np.nan, dtype.name)
    for out, unharmed in (
        fenced(c),
        fenced(c, "F"),
        (spread[::-2, ::3], lambda: np.isnan(spread[::2]).all()),
    ):
        out[...] = c
        assert pyblasgpu.gemm(left, right, beta=2, out=out) is out
        same(out, a @ b + 2 * c, "out")
        assert unharmed()
    unaligned = np.empty(c.nbytes + 1, np.uint8)[1:].view(dtype.name).reshape(c.shape)
    same(pyblasgpu.gemm(left, right, out=unaligned), a @ b, "unaligned")
    same(left, a, "a")


def test_read_only_and_repeated_inputs():
    a = np.broadcast_to(np.arange(31.0), (65, 31))
    same(pyblasgpu.gemm(a, np.eye(31)), a, "repeated")
    with pytest.raises(ValueError, match="read-only"):
        pyblasgpu.gemm(np.eye(31), np.eye(31), out=np.broadcast_to(1.0, (31, 31)))


def test_overlap_is_refused_and_nothing_written():
    memory = np.arange(4000.0)
    a, b = memory[:1024].reshape(32, 32), np.eye(32)
    with pytest.raises(OverlapError):
        pyblasgpu.gemm(a, b, out=memory[1000:2024].reshape(32, 32))
    same(memory, np.arange(4000.0), "memory")


def test_matmul_is_numpys():
    rng = np.random.default_rng(4)
    for shapes in (
        ((65, 31), (31, 33)),
        ((31,), (31, 33)),
        ((65, 31), (31,)),
        ((31,), (31,)),
        ((3, 1, 9, 31), (2, 31, 7)),
        ((0, 9, 4), (4, 5)),
        ((9, 0), (0, 5)),
    ):
        a, b = (integers(rng, shape, DTYPES["d"]) for shape in shapes)
        result = linalg.matmul(a, b)
        same(np.asarray(result), np.asarray(a @ b), shapes)
        if min(len(shape) for shape in shapes) > 1:
            same(linalg.matmul(cupy.asarray(a), cupy.asarray(b)).get(), a @ b, shapes)
    square = integers(rng, (33, 33), DTYPES["d"])
    expected = square @ square
    assert linalg.matmul(square, square, out=square) is square
    same(square, expected, "out is an input")


@pytest.mark.parametrize("letter", DTYPES)
def test_solve_triangular_is_scipys(letter):
    dtype, rng = DTYPES[letter], np.random.default_rng(5)
    a = triangle(rng, TriangularCase(dtype, 65, 33), lambda rng, shape, dtype: reals(dtype, *shape))
    a = np.where(np.tri(65, dtype=bool), a, 0)
    for b, trans in product((reals(dtype, 65, 33), reals(dtype, 65, 1)[:, 0]), ("N", "T", "C")):
        expected = scipy.linalg.solve_triangular(a, b, trans=trans, lower=True)
        actual = linalg.solve_triangular(a, b, trans=trans, lower=True)
        assert actual.shape == expected.shape and actual.dtype == expected.dtype
        np.testing.assert_allclose(
            actual, expected, rtol=1e4 * dtype.unit_roundoff, atol=1e2 * dtype.unit_roundoff
        )
    with pytest.raises(np.linalg.LinAlgError):
        linalg.solve_triangular(np.zeros((3, 3)), np.ones(3))


def test_the_device_is_what_computed():
    assert pyblasgpu.backend_status().backend == "cuda"
    assert pyblasgpu.explain("gemm", "d", 65, 33, 31)[0][0] in families_of("gemm", "d")
