"""`symv` with small tiles and `symv_sum`, and `symv_small`: every triangle, flag and edge, exactly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyblasgpu.kernels.common import options
from pyblasgpu.kernels.level2 import symv, symv_small, symv_sum
from pyblasgpu.testing.reference import integers
from pyblasgpu.types import DTYPES

from .launching import run, strides
from .test_gemv import laid, stepped

NAN = float("nan")


def symmetric(a: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """The matrices that the triangles of `a` stand for, by the flags; `a` with NaN in what is not read."""
    n, hermitian = a.shape[-1], bool(bits & options.HERMITIAN)
    kept = np.tri(n, dtype=bool)
    kept = kept.T if bits & options.UPPER else kept
    half, diagonal = np.where(kept & ~np.eye(n, dtype=bool), a, 0), a * np.eye(n)
    full = (
        half
        + (half.conj() if hermitian else half).swapaxes(1, 2)
        + (diagonal.real if hermitian else diagonal)
    )
    if hermitian:
        a.imag[:, *np.diag_indices(n)] = NAN
    return full.conj() if bits & options.CONJUGATE else full, np.where(kept, a, NAN).astype(a.dtype)


def check(
    letter="d",
    n=140,
    bits=0,
    tiles=1,
    incx=1,
    incy=1,
    batch=1,
    beta=-1,
    vectors=True,
    kernels=symv,
    sums=symv_sum,
    **changes,
):
    """Integers, NaN in the other triangle and beside vectors; compare with ``==``."""
    dtype, rng = DTYPES[letter], np.random.default_rng(n + bits)
    small = kernels.Symv(letter, **{"WARPS": 2, "THR_M": 4 if letter == "s" else 2, "THR_N": 4, **changes})
    small = small if vectors else small.with_alignment(1)
    a, x, y = (integers(rng, (batch, *shape), dtype) for shape in ((n, n), (n,), (n,)))
    full, a = symmetric(a, bits)
    a = laid(a, "n", 1, small)
    alpha = 2 - 1j if dtype.is_complex else 2
    expected = alpha * np.einsum("zij,zj->zi", full, x) + beta * y
    if beta == 0:
        y = np.full_like(y, NAN)
    x, y = stepped(x, incx), stepped(y, incy)
    slots = np.full((batch, small.strips(n) + 1, n + 1), NAN, dtype.name)
    steps = (*strides(a)[1:], strides(x)[1], n + 1, strides(a)[0], strides(x)[0], strides(slots)[0])
    run(kernels.source(small), small.grid(n, tiles), (a, x, slots), (n, tiles, bits, *steps), (), batch)
    add = sums.SymvSum(letter, DIM_O=16, DIM_R=4)
    facts = n, small.BLK, tiles, slots.shape[1], int(bool(bits & options.UPPER))
    steps = n + 1, strides(y)[1], strides(slots)[0], strides(y)[0]
    run(sums.source(add), add.grid(n), (slots, y), (*facts, *steps), (alpha, beta), batch)
    assert np.array_equal(y, expected.astype(dtype.name))


@pytest.mark.parametrize("upper", [0, options.UPPER])
@pytest.mark.parametrize("letter", DTYPES)
def test_every_triangle_and_flag(letter, upper):
    check(letter, 132 if letter in "sd" else 68, upper, 2, incx=2, incy=-1)
    if letter in "cz":
        check(letter, 68, upper | options.HERMITIAN | (options.CONJUGATE if letter == "c" else 0), beta=0)


@pytest.mark.parametrize("n", [1, 64, 65])
def test_edges(n):
    for upper in (0, options.UPPER):
        check("d", n, upper, 3, vectors=False)


def test_a_batch():
    check("s", 40, batch=2)
    check_small("s", 40, batch=2)


@pytest.mark.parametrize(
    "changes", [{"WARPS": 1, "THR_N": 16}, {"WARPS": 4, "THR_N": 2}, {"THR_M": 4, "THR_N": 1}]
)
def test_other_shapes(changes):
    check("d", 130, vectors=False, **changes)


# ---------------------------------------------------------------------------------------------- symv_small


def check_small(
    letter="d",
    n=36,
    bits=0,
    inc=(1, 1),
    batch=1,
    beta=-1,
    vectors=True,
    spread=1,
    kernels=symv_small,
    **changes,
):
    """Integers, NaN in the other triangle and beside vectors; compare with ``==``."""
    dtype, rng = DTYPES[letter], np.random.default_rng(n + bits)
    small = kernels.SymvSmall(letter, **{"WARPS": 2, "LOADS": 2, **changes})
    a, x, y = (integers(rng, (batch, *shape), dtype) for shape in ((n, n), (n,), (n,)))
    full, a = symmetric(a, bits)
    alpha = 2 - 1j if dtype.is_complex else 2
    expected = alpha * np.einsum("zij,zj->zi", full, x) + beta * y
    if beta == 0:
        y = np.full_like(y, NAN)
    a, x, y = laid(a, "n", spread, small), stepped(x, inc[0]), stepped(y, inc[1])
    bits |= options.VECTORS * vectors
    steps = *strides(a)[1:], strides(x)[1], strides(y)[1], *(strides(v)[0] for v in (a, x, y))
    run(kernels.source(small), small.grid(n), (a, x, y), (n, bits, *steps), (alpha, beta), batch)
    assert np.array_equal(y, expected.astype(dtype.name))


@pytest.mark.parametrize("upper", [0, options.UPPER])
@pytest.mark.parametrize("letter", DTYPES)
def test_every_triangle_and_flag_of_small_ones(letter, upper):
    check_small(letter, 36, upper, inc=(2, -1))
    if letter in "cz":
        check_small(
            letter, 36, upper | options.HERMITIAN | (options.CONJUGATE if letter == "c" else 0), beta=0
        )


@pytest.mark.parametrize("n", [4, 68])
def test_edges_of_small_ones(n):
    for upper in (0, options.UPPER):
        check_small("s", n, upper)
        check_small("s", n + 1, upper, vectors=False)
        check_small("z", n // 2 + 1, upper | options.HERMITIAN, vectors=False, spread=2)


@pytest.mark.parametrize("changes", [{"WARPS": 1, "LOADS": 1}, {"WARPS": 4, "LOADS": 5}, {"SECTORS": 2}])
def test_other_shapes_of_small_ones(changes):
    check_small("d", 120, **changes)


@given(st.sampled_from("sdcz"), st.booleans(), st.data())
@settings(max_examples=10, deadline=None)
def test_any_call(letter, vectors, data):
    """Orders, triangles, options and increments, in any combination."""
    draw = data.draw
    n = draw(st.integers(1, 12)) * 4 - (0 if vectors else draw(st.integers(0, 3)))
    offered = (options.CONJUGATE, options.HERMITIAN) if letter in "cz" else ()
    bits = sum(draw(st.sets(st.sampled_from((*offered, options.UPPER)))))
    inc = draw(st.sampled_from((1, 2, -1))), draw(st.sampled_from((1, -3)))
    check_small(
        letter,
        n,
        bits,
        inc,
        draw(st.integers(1, 2)),
        draw(st.sampled_from((-1, 0))),
        vectors,
        LOADS=draw(st.integers(1, 5)),
    )
