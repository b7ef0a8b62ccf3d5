"""`symv_small` with small blocks: every triangle, flag and edge, exactly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyblasgpu.kernels.level2 import symv, symv_small
from pyblasgpu.testing.reference import integers
from pyblasgpu.types import DTYPES

from .launching import run, strides
from .test_gemv import laid, stepped
from .test_symv import symmetric

NAN = float("nan")


def check(
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
    bits |= symv_small.VECTORS * vectors
    steps = *strides(a)[1:], strides(x)[1], strides(y)[1], *(strides(v)[0] for v in (a, x, y))
    run(kernels.source(small), small.grid(n), (a, x, y), (n, bits, *steps), (alpha, beta), batch)
    assert np.array_equal(y, expected.astype(dtype.name))


@pytest.mark.parametrize("upper", [0, symv.UPPER])
@pytest.mark.parametrize("letter", DTYPES)
def test_every_triangle_and_flag(letter, upper):
    check(letter, 36, upper, inc=(2, -1))
    if letter in "cz":
        check(letter, 36, upper | symv.HERMITIAN | (symv.CONJ_A if letter == "c" else 0), beta=0)


@pytest.mark.parametrize("n", [4, 68])
def test_edges(n):
    for upper in (0, symv.UPPER):
        check("s", n, upper)
        check("s", n + 1, upper, vectors=False)
        check("z", n // 2 + 1, upper | symv.HERMITIAN, vectors=False, spread=2)


def test_a_batch():
    check("s", 40, batch=2)


@pytest.mark.parametrize("changes", [{"WARPS": 1, "LOADS": 1}, {"WARPS": 4, "LOADS": 5}, {"SECTORS": 2}])
def test_other_shapes(changes):
    check("d", 120, **changes)


@given(st.sampled_from("sdcz"), st.booleans(), st.data())
@settings(max_examples=10, deadline=None)
def test_any_call(letter, vectors, data):
    """Orders, triangles, options and increments, in any combination."""
    draw = data.draw
    n = draw(st.integers(1, 12)) * 4 - (0 if vectors else draw(st.integers(0, 3)))
    options = (symv.CONJ_A, symv.HERMITIAN) if letter in "cz" else ()
    bits = sum(draw(st.sets(st.sampled_from((*options, symv.UPPER)))))
    inc = draw(st.sampled_from((1, 2, -1))), draw(st.sampled_from((1, -3)))
    check(
        letter,
        n,
        bits,
        inc,
        draw(st.integers(1, 2)),
        draw(st.sampled_from((-1, 0))),
        vectors,
        LOADS=draw(st.integers(1, 5)),
    )
