"""`trmm_leaf` on small blocks, `trmm_small` and `trsm_small`: every variant and dtype."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from covering import by_precision

from pyblasgpu.errors import ConfigError
from pyblasgpu.kernels.common.options import READS_Y
from pyblasgpu.kernels.trmm import leaf as trmm_leaf
from pyblasgpu.kernels.trmm import small as trmm_small
from pyblasgpu.kernels.trmm.leaf import TrmmLeaf
from pyblasgpu.kernels.trmm.small import TrmmSmall
from pyblasgpu.kernels.trsm import small as trsm_small
from pyblasgpu.kernels.trsm.small import TrsmSmall
from pyblasgpu.testing.cases import TriangularCase
from pyblasgpu.testing.reference import exact_triangular, fenced, integers, triangle
from pyblasgpu.types import DTYPES, Diag, Trans

from .launching import Variant, run, strides

VARIANT = Variant(unit=False, conj=False, t_by_rows=True, b_by_rows=True)

FAMILIES = {
    "trmm": (trmm_leaf, TrmmLeaf),
    "trmm_small": (trmm_small, TrmmSmall),
    "small": (trsm_small, TrsmSmall),
}


def small(family, letter: str, stages: int = 2, slices: int = 1, depth: int = 4):
    """8 x 8 blocks by 32 threads a slice, k-tiles `depth` deep; or any triangle up to 32."""
    if family == "small":
        return TrsmSmall(letter)
    if family == "trmm_small":
        return TrmmSmall(letter, DIM=32, ORDER=32)
    return TrmmLeaf(letter, 8, 8, depth, 8, 4, slices, 1, 2 if letter != "z" else 1, 2, stages)


def launch(kernels, config, t, b, variant, alpha, batch=1, out=None, options=0):
    """In place, or into `out`; `options` are further ones."""
    n, r = b.shape[-2:]
    arrays = t, b, b if out is None else out
    steps = [strides(each) for each in arrays]
    matrix_steps = [step for each in steps for step in each[-2:]]
    lead = [each[0] if each[2:] else 0 for each in steps]
    if isinstance(config, TrmmSmall):
        arrangement = config.arrangement(n, r)
        blocks, arranged, batch = arrangement.grid(r, batch), (*arrangement, batch), 1
    else:
        blocks, arranged = config.grid(r), ()
    integers_ = n, r, variant.options | options, *arranged, *matrix_steps, *lead
    run(variant.source(kernels, config), blocks, arrays, integers_, (alpha,), batch)


def check(
    family,
    letter,
    n,
    r,
    unit=False,
    conj=False,
    t_by_rows=True,
    b_by_rows=True,
    stages=2,
    batch=1,
    kernels=None,
    slices=1,
    depth=4,
    config=None,
    apart=False,
    adds=False,
):
    """Run the leaf on integers, NaN where it must not read, between fences; compare with ``==``.

    `apart`: into NaN in the other order. `adds`: part of the right-hand sides is there.
    """
    dtype, rng = DTYPES[letter], np.random.default_rng(n + 100 * r)
    case = TriangularCase(dtype, n, r, trans=Trans.NO, diag=Diag.UNIT if unit else Diag.NON_UNIT, alpha=2)
    t = triangle(rng, case, batch_shape=(batch,))
    x = integers(rng, (batch, n, r), dtype)
    seen = t.conj() if conj else t
    if family in ("small", "trsm"):
        alpha, start, expected = 0.5, 2 * exact_triangular(case, seen, x, alpha=1), x
    else:
        alpha, start, expected = 2.0, x, exact_triangular(case, seen, x)
    t, _ = fenced(t, "F" if t_by_rows else "C")
    b, unharmed = fenced(start, "F" if b_by_rows else "C")
    variant = Variant(unit, conj, t_by_rows, b_by_rows)
    config = config or small(family, letter, stages, slices, depth)
    out = b
    if apart:
        there = integers(rng, start.shape, dtype) if adds else np.full_like(start, np.nan)
        out, unharmed = fenced(there, "C" if b_by_rows else "F")
        b[...] = start = start - there / alpha if adds else start
    options = READS_Y * adds
    launch(kernels or FAMILIES[family][0], config, t, b, variant, alpha, batch, out, options)
    assert np.array_equal(out, expected)
    assert unharmed()
    assert not apart or np.array_equal(b, start)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("unit, t_by_rows, b_by_rows", list(product((False, True), repeat=3)))
def test_every_variant(family, letter, unit, t_by_rows, b_by_rows):
    check(family, letter, 21, 11, unit, DTYPES[letter].is_complex and unit != b_by_rows, t_by_rows, b_by_rows)


@pytest.mark.parametrize("n, r", [(1, 1), (7, 8), (8, 7), (9, 1), (16, 16), (33, 9)])
@pytest.mark.parametrize("stages", [2, 3])
def test_edges(n, r, stages):
    check("trmm", "d", n, r, stages=stages)


SMALL = [(1, 1), (7, 33), (8, 7), (9, 1), (16, 64), (17, 65), (32, 40), (33, 9), (64, 70)]


@pytest.mark.parametrize("letter, extents", by_precision(SMALL), ids=str)
def test_small_triangles_of_every_order(letter, extents):
    config, (n, r) = TrsmSmall(letter), extents
    if n > config.max_rows:
        with pytest.raises(ConfigError, match="ORDER"):
            config.specialize(n, r)
    else:
        fitting = config.specialize(n, r)
        assert n <= fitting.ORDER < max(2 * n, 9)
        check("small", letter, n, r, conj=letter in "cz", t_by_rows=n % 2 == 0, batch=2, config=fitting)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("n, r, batch", [(1, 1, 40), (3, 9, 17), (16, 5, 3), (33, 40, 2), (64, 70, 1)])
def test_stacks_of_small_triangles(letter, n, r, batch):
    """Several matrices a block and a last block with fewer, or several blocks for the columns of one."""
    config = TrmmSmall(letter)
    arrangement = config.arrangement(n, r)
    elements = config.matrix_elements(n, 1 << arrangement.log_width)
    assert arrangement.matrices * elements <= config.shared_elements
    check("trmm_small", letter, n, r, n % 2 == 0, letter in "cz", n < 5, r > 9, batch=batch, config=config)


@pytest.mark.parametrize("letter", DTYPES)
def test_the_diagonal_blocks_of_a_stack(letter, kernels=trmm_small):
    """Each is multiplied by its rows of B, by vectors, and nothing else is read."""
    dtype, rng, n, order = DTYPES[letter], np.random.default_rng(4), 21, 8
    t, b = integers(rng, (2, n, n), dtype), integers(rng, (2, n, 8), dtype)
    blocks = np.arange(n) // order
    inside = np.tri(n, dtype=bool) & (blocks[:, None] == blocks)
    expected = np.where(inside, t, 0) @ b
    c = np.full_like(b, np.nan)
    config = TrmmSmall(letter, DIM=32, ORDER=order)
    launch(kernels, config, np.where(inside, t, np.nan), b, VARIANT, 1.0, batch=2, out=c)
    assert np.array_equal(c, expected)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("letter", DTYPES)
def test_into_another_matrix(family, letter):
    columns, adds = (40, letter in "sz") if family == "small" else (9, False)
    check(family, letter, 21, columns, conj=letter in "cz", batch=2, apart=True, adds=adds)


@pytest.mark.parametrize("letter", DTYPES)
def test_slices(letter):
    check("trmm", letter, 27, 9, slices=2)


def test_k_tiles_deeper_than_a_block():
    check("trmm", "d", 27, 9, slices=2, depth=12)


@pytest.mark.parametrize("family", FAMILIES)
def test_batch(family):
    check(family, "s", 11, 5, batch=3)


@pytest.mark.parametrize("family", FAMILIES)
def test_views_read_backwards(family):
    """Negative strides: how an upper triangle becomes a lower one."""
    rng, n, r = np.random.default_rng(5), 13, 6
    upper = np.triu(integers(rng, (n, n), DTYPES["d"]))
    np.fill_diagonal(upper, 1)
    x = integers(rng, (n, r), DTYPES["d"])
    b = np.asfortranarray(upper @ x if family == "small" else x)
    t = np.asfortranarray(upper)
    launch(FAMILIES[family][0], small(family, "d"), t[::-1, ::-1], b[::-1], VARIANT, 1.0)
    assert np.array_equal(b, x if family == "small" else upper @ x)


@pytest.mark.parametrize("family", FAMILIES)
def test_one_nan_spoils_only_what_depends_on_it(family):
    t, b = np.asfortranarray(np.tril(np.ones((13, 13)))), np.asfortranarray(np.ones((13, 6)))
    b[5, 2] = np.nan
    launch(FAMILIES[family][0], small(family, "d"), t, b, VARIANT, 1.0)
    spoilt = np.isnan(b)
    assert spoilt[5:, 2].all()
    spoilt[5:, 2] = False
    assert not spoilt.any()


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("scale", [1e-310, 1e-38, 3e300, np.inf])
def test_trsm_divides_where_a_reciprocal_would_fail(letter, scale):
    """Denormal, huge and infinite diagonals."""
    dtype = DTYPES[letter]
    tiny = np.finfo(dtype.real).smallest_subnormal
    scale = np.maximum(np.array(scale, dtype.real), tiny)
    right = np.arange(1, 6).astype(dtype.real) * (scale if np.isfinite(scale) else 1)
    b = np.asfortranarray(right.reshape(1, 5).astype(dtype.name))
    launch(trsm_small, TrsmSmall(letter), np.full((1, 1), scale, dtype.name), b, VARIANT, 1.0)
    np.testing.assert_array_max_ulp(b.real[0], right / scale, 1)


@pytest.mark.parametrize("letter", DTYPES)
def test_trsm_with_a_zero_on_the_diagonal_is_not_finite(letter):
    b = np.ones((1, 3), DTYPES[letter].name, order="F")
    launch(trsm_small, TrsmSmall(letter), np.zeros((1, 1), b.dtype), b, VARIANT, 1.0)
    assert not np.isfinite(b).any()


@pytest.mark.parametrize("letter", DTYPES)
def test_trsm_backward_error_on_hard_triangles(letter):
    """Unit lower with entries U(-4, 4): substitution stays within n u |T| |X|."""
    dtype, rng, n = DTYPES[letter], np.random.default_rng(3), 32
    wide = np.clongdouble if dtype.is_complex else np.longdouble
    t = np.tril(rng.uniform(-4, 4, (n, n)), -1).astype(dtype.name)
    if dtype.is_complex:
        t += 1j * np.tril(rng.uniform(-4, 4, (n, n)), -1).astype(dtype.real)
    np.fill_diagonal(t, rng.uniform(1, 2, n))
    t, b = np.asfortranarray(t), np.asfortranarray(rng.uniform(-1, 1, (n, 3)).astype(dtype.name))
    x = b.copy(order="F")
    launch(trsm_small, TrsmSmall(letter), t, x, VARIANT, 1.0)
    residual = abs(t.astype(wide) @ x.astype(wide) - b)
    bound = (
        n
        * dtype.unit_roundoff
        * (abs(t).astype(np.longdouble) @ abs(x))
        * (np.sqrt(8) if dtype.is_complex else 1)
    )
    assert (residual <= bound).all()


@pytest.mark.parametrize(
    "changes, rule",
    [
        ({"ORDER": 24}, "order"),
        ({"dtype": "z", "ORDER": 64, "BLK_N": 64}, "column"),
        ({"dtype": "c", "ORDER": 64, "BLK_N": 64}, "column"),
        ({"BLK_N": 48}, "threads"),
        ({"ORDER": 64}, "threads"),
        ({"BLK_N": 2048}, "threads"),
    ],
)
def test_rules_of_small_triangles(changes, rule):
    with pytest.raises(ConfigError) as broken:
        TrsmSmall(**{"dtype": "d", **changes})
    assert broken.value.rule == rule


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("order", [8, 16, 32])
def test_a_triangle_by_rows_meets_few_conflicts(letter, order):
    """At most four elements of a row that is read at once meet in a bank."""
    config = TrsmSmall(letter, ORDER=order)
    words = config.dtype_facts.itemsize // 4
    banks = [(j * config.ld * words + word) % 32 for j in range(order) for word in range(words)]
    assert max(banks.count(bank) for bank in banks) <= 4
