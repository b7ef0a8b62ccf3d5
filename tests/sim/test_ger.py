"""`ger` with small blocks: every flag and layout, exactly."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from pyblasgpu.kernels.common import options
from pyblasgpu.kernels.level2 import ger
from pyblasgpu.testing.reference import integers
from pyblasgpu.types import DTYPES

from .launching import run, strides
from .test_gemv import laid, stepped

NAN = float("nan")


def check(
    letter="d", m=36, n=17, bits=0, inc=(1, 1), batch=1, vectors=True, spread=1, kernels=ger, **changes
):
    """Integers, 77 in the other triangle, which stays; compare with ``==``."""
    dtype, rng = DTYPES[letter], np.random.default_rng(m + bits)
    small = kernels.Ger(letter, **{"DIM_M": 8, "DIM_N": 4, "THR_N": 2, **changes})
    small = small if vectors else small.with_alignment(1)
    second, reads = bool(bits & options.RANK_2), not bits & options.OVERWRITE
    x, y = integers(rng, (batch, max(m, n)), dtype), integers(rng, (batch, max(m, n)), dtype)
    a = integers(rng, (batch, m, n), dtype)
    kept = {options.TRIANGLE: np.tri(m, n), options.TRIANGLE | options.UPPER: np.tri(n, m).T}.get(
        bits & (options.TRIANGLE | options.UPPER), np.ones((m, n))
    )
    factors = (2 - 1j, 3 + 1j) if dtype.is_complex else (2, 3)
    row, col = (
        lambda v, bit=bit: v.conj() if bits & bit else v
        for bit in (options.CONJUGATE, options.CONJUGATE_SECOND)
    )
    expected = (a if reads else 0) + factors[0] * row(x)[:, :m, None] * col(y)[:, None, :n]
    if second:
        expected = expected + factors[1] * row(y)[:, :m, None] * col(x)[:, None, :n]
    if bits & options.HERMITIAN:
        expected[:, *np.diag_indices(m)] = expected[:, *np.diag_indices(m)].real
    start = np.where(np.broadcast_to(kept > 0, a.shape), a if reads else NAN, 77).astype(dtype.name)
    if bits & options.HERMITIAN:
        start.imag[:, *np.diag_indices(m)] = NAN
    held = laid(start, "n", spread, small)
    room = held if held.base is None else held.base
    before = np.isnan(room).sum()
    first, other = stepped(x, inc[0]), stepped(y, inc[1])
    if not second:
        first, other = first[:, :m], other[:, :n]
    steps = (
        strides(first)[1],
        strides(other)[1],
        *strides(held)[1:],
        *(strides(v)[0] for v in (first, other, held)),
    )
    run(kernels.source(small), small.grid(m, n), (first, other, held), (m, n, bits, *steps), factors, batch)
    assert np.array_equal(held, np.where(kept > 0, expected, 77).astype(dtype.name))
    assert not reads or np.isnan(room).sum() == before - (m * batch if bits & options.HERMITIAN else 0)


@pytest.mark.parametrize("letter", DTYPES)
def test_all_of_a_matrix(letter):
    check(letter, inc=(2, -1), bits=options.CONJUGATE_SECOND)
    check(letter, 33, 9, vectors=False, spread=2, bits=options.CONJUGATE)
    check(letter, bits=options.OVERWRITE)


@pytest.mark.parametrize("uplo", [options.TRIANGLE, options.TRIANGLE | options.UPPER])
@pytest.mark.parametrize("letter", DTYPES)
def test_triangles(letter, uplo):
    check(letter, 36, 36, uplo)
    check(letter, 35, 35, uplo | options.RANK_2, vectors=False)
    if letter in "cz":
        check(letter, 36, 36, uplo | options.HERMITIAN | options.CONJUGATE_SECOND | options.RANK_2)
        check(letter, 36, 36, uplo | options.HERMITIAN | options.CONJUGATE | options.OVERWRITE)


def test_edges_and_a_batch():
    for m, n in product((1, 4, 33), (1, 5)):
        check("s", m, n, vectors=False)
    check("z", batch=3)
