"""TRSM in one launch: every triangle, layout, pipeline and dtype; what is not finite stays apart."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from covering import by_precision, pairs

from pyblasgpu.kernels.common.options import OVERWRITE, READS_Y, options_of
from pyblasgpu.kernels.gemm import mma as gemm_mma
from pyblasgpu.kernels.gemm import simt as gemm_simt
from pyblasgpu.kernels.gemm.fused import FLAG_STRIDE, sharing, tile_orders
from pyblasgpu.testing.reference import fenced
from pyblasgpu.types import DTYPES, Region, Triangle

from .launching import run, strides
from .test_trmm_fused import config, operands


def shared(triangle):
    """A tile of which threads share a right-hand side: four groups of unknowns, eight in z."""
    return {"BLK_K": 32, **({"BLK_M": 32} if triangle.on_left else {"BLK_N": 32})}


def solve(
    tile, triangle, t, c, unit=False, conj=False, alpha=1.0, by_rows=False, kernels=None, b=None, adds=False
):
    """T X = alpha C, or X T = alpha C, in place; of a `b` T X = alpha B, or, where it `adds`, alpha B + C."""
    kernels = kernels or (gemm_mma if tile.STEM == "gemm_mma" else gemm_simt)
    (m, n), dtype, of_a = c.shape, DTYPES[tile.dtype], triangle.on_left
    _, free = tile_orders(tile, triangle)
    flags = np.zeros(-(-(n if of_a else m) // free) * FLAG_STRIDE // dtype.real_size, dtype.real)
    lead = strides(t)[0 if by_rows else 1]
    source = kernels.source(tile, conj=conj, triangle=triangle, solved=True)
    options = options_of(Region.of(triangle.uplo), unit=unit) | OVERWRITE * (b is not None) | READS_Y * adds
    b, scalars = c if b is None else b, (1.0, alpha) if adds else (alpha, 1.0)
    integers = m, n, options, lead, strides(b)[1], strides(c)[1]
    run(source, tile.grid(m, n), (t, b, c, flags), integers, scalars)
    assert not flags.any()


def solvable(rng, dtype, order, others, triangle, unit, by_rows, conj=False):
    """T with a diagonal of powers of two and NaN where it must not be read, X of integers, and T X."""
    t, seen, x = operands(rng, dtype, order, others, triangle, unit, by_rows)
    if not unit:
        diagonal = 2.0 ** rng.integers(-1, 3, order)
        np.fill_diagonal(t, diagonal)
        np.fill_diagonal(seen, diagonal)
    meant = seen.conj() if conj else seen
    return t, meant, x, meant @ x if triangle.on_left else x @ meant


def check(
    letter,
    triangle,
    order=45,
    others=19,
    by_rows=False,
    unit=False,
    conj=False,
    mma=False,
    kernels=None,
    apart=False,
    adds=False,
    **changes,
):
    """Integers between fences, ``==``; `apart`, the right-hand sides are in another matrix."""
    rng, dtype = np.random.default_rng(order + others), DTYPES[letter]
    tile = config(letter, triangle, by_rows, mma, **changes)
    t, _, x, b = solvable(rng, dtype, order, others, triangle, unit, by_rows, conj)
    alpha = 2 if dtype.reals_per_element == 1 else 2j
    source, unread = fenced((b - adds * x) / alpha, "F", gap=5)
    c, unharmed = fenced(source if not apart else x if adds else np.full_like(x, np.nan), "F")
    kept = source.copy("A")
    solve(tile, triangle, t, c, unit, conj, alpha, by_rows, kernels, source if apart else None, adds)
    np.testing.assert_array_equal(c, x)
    np.testing.assert_array_equal(source, kept)
    assert unharmed() and unread()


@pytest.mark.parametrize("letter, triangle, adds", pairs("dc", Triangle, [False, True]))
def test_into_another_matrix(letter, triangle, adds):
    check(letter, triangle, apart=True, adds=adds)
    check(letter, triangle, 17, 40, apart=True, adds=adds)


@pytest.mark.parametrize(
    "letter, triangle, mma",
    [
        *by_precision(Triangle, [False]),
        *((letter, triangle, True) for letter in "dz" for triangle in Triangle),
    ],
)
def test_threads_that_share_a_right_hand_side(letter, mma, triangle):
    changes = {"BLK_N": 32, "WARP_N": 32, "BLK_K": 32} if mma else shared(triangle)
    tile = config(letter, triangle, False, mma, **changes)
    _, sides = tile_orders(tile, triangle)
    assert sharing(tile.dtype_facts, tile.threads, sides, tile.BLK_K) > 1
    check(letter, triangle, 93, 37 if mma else 19, mma=mma, **changes)


@pytest.mark.parametrize("triangle", Triangle)
def test_k_tiles_as_deep_as_a_tile(triangle):
    edge = "BLK_M" if triangle.on_left else "BLK_N"
    check("s", triangle, 150, 9, BLK_K=64, **{edge: 64})


@pytest.mark.parametrize("triangle", [Triangle.LOWER_LEFT, Triangle.UPPER_LEFT])
def test_threads_that_are_left_over(triangle):
    tile = {"BLK_N": 24, "WARP_N": 24, "BLK_K": 32}  # 64 threads, 24 right-hand sides
    check("d", triangle, 125, 37, mma=True, **tile)


@pytest.mark.parametrize("triangle, unit, conj", pairs(Triangle, [False, True], [False, True]))
def test_unit_and_conjugated_where_threads_share(triangle, unit, conj):
    check("z", triangle, unit=unit, conj=conj, **shared(triangle))


@pytest.mark.parametrize(
    "letter, threads, sides, count, shares",
    [
        ("s", 128, 16, 32, 8),
        ("d", 256, 48, 32, 2),
        ("c", 64, 64, 32, 1),
        ("s", 128, 96, 32, 1),
        ("s", 128, 16, 16, 1),
        ("c", 128, 16, 16, 8),
        ("z", 128, 16, 16, 4),
        ("z", 128, 64, 16, 1),
        ("c", 128, 16, 20, 1),
    ],
)
def test_how_many_share(letter, threads, sides, count, shares):
    assert sharing(DTYPES[letter], threads, sides, count) == shares


def hard(letter="s", triangle=Triangle.LOWER_LEFT, diagonal=0.0, kernels=None, **changes):
    """A diagonal element without a safe reciprocal: what depends on it is as by true divisions."""
    rng, dtype, (order, others) = np.random.default_rng(7), DTYPES[letter], (45, 19)
    t, seen, x, _ = solvable(rng, dtype, order, others, triangle, False, False)
    at, down = 21, triangle.is_forward
    depends = np.arange(order) >= at if down else np.arange(order) <= at
    np.fill_diagonal(seen, np.where(np.arange(order) == at, diagonal, seen.diagonal()))
    t[at, at] = diagonal
    x[depends if triangle.on_left else (slice(None), depends)] = 0
    spoilt = (at, slice(None)) if triangle.on_left else (slice(None), at)
    c = np.asfortranarray(seen @ x if triangle.on_left else x @ seen)
    c[spoilt] += 1
    solve(config(letter, triangle, **changes), triangle, t, c, kernels=kernels)
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(c[spoilt], np.divide(dtype_of(c)(1), dtype_of(c)(diagonal)))
    before = ~depends
    place = before if triangle.on_left else (slice(None), before)
    np.testing.assert_array_equal(c[place], x[place])


def dtype_of(array):
    return array.dtype.type


@pytest.mark.parametrize(
    "triangle, diagonal, shares", pairs(Triangle, [0.0, 2.0**-70, 2.0**100], [False, True])
)
def test_a_diagonal_that_has_no_safe_reciprocal(triangle, diagonal, shares):
    hard("s", triangle, diagonal, **(shared(triangle) if shares else {}))


def check_not_finite(letter="s", triangle=Triangle.LOWER_LEFT, what=np.nan, kernels=None, **changes):
    """One number spoils what depends on it, and no more."""
    rng, dtype, (order, others), of_a = (
        np.random.default_rng(5),
        DTYPES[letter],
        (45, 19),
        triangle.on_left,
    )
    t, seen, x, b = solvable(rng, dtype, order, others, triangle, False, False)
    at = (21, 7) if of_a else (7, 21)
    c = np.asfortranarray(b)
    c[at] = what
    solve(config(letter, triangle, **changes), triangle, t, c, kernels=kernels)
    spoilt = np.arange(order) >= 21 if triangle.is_forward else np.arange(order) <= 21
    place = (spoilt, 7) if of_a else (7, spoilt)
    assert not np.isfinite(c[at])
    assert not np.isfinite(c[place][(seen[:, 21] if of_a else seen[21])[spoilt] != 0]).any()
    c[place] = x[place]
    np.testing.assert_array_equal(c, x)


@pytest.mark.parametrize(
    "case, what, letter", pairs(product(Triangle, [False, True]), [np.nan, np.inf], "sz")
)
def test_what_is_not_finite_spoils_only_what_depends_on_it(case, what, letter):
    triangle, shares = case
    check_not_finite(letter, triangle, what, **(shared(triangle) if shares else {}))


def overflowing(triangle=Triangle.LOWER_LEFT, kernels=None, **changes):
    """A quotient beyond what there are numbers for is infinite, though it is made of a reciprocal."""
    order, others = 45, 19
    t = np.asfortranarray(np.diag(np.full(order, 0.25, np.float32)))
    c = np.ones((order, others) if triangle.on_left else (others, order), np.float32, order="F")
    last = order - 1 if triangle.is_forward else 0
    place = (last, 17) if triangle.on_left else (17, last)
    c[place] = 3e38
    solve(config("s", triangle, **changes), triangle, t, c, kernels=kernels)
    assert np.isposinf(c[place])
    c[place] = 4
    np.testing.assert_array_equal(c, 4)


@pytest.mark.parametrize("triangle", Triangle)
@pytest.mark.parametrize("shares", [False, True], ids=["alone", "shared"])
def test_overflow_is_infinite(triangle, shares):
    overflowing(triangle, **(shared(triangle) if shares else {}))
