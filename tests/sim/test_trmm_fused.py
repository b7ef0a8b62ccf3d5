"""TRMM in one launch: every triangle, layout, pipeline and dtype, exactly; what is not finite stays apart."""

from __future__ import annotations

import numpy as np
import pytest
from covering import pairs
from region_mask import mask

import pyblasgpu
from pyblasgpu.database import FIXED
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.errors import ConfigError
from pyblasgpu.kernels.common.options import OVERWRITE, options_of
from pyblasgpu.kernels.gemm import mma as gemm_mma
from pyblasgpu.kernels.gemm import simt as gemm_simt
from pyblasgpu.kernels.gemm import trmm_fused as trmm_fused
from pyblasgpu.kernels.gemm.fused import check as check_config
from pyblasgpu.kernels.gemm.fused import tile_orders
from pyblasgpu.kernels.trmm import diagonal_blocks
from pyblasgpu.testing.reference import fenced, integers
from pyblasgpu.types import DTYPES, Region, Side, Triangle, Uplo

from . import test_gemm_mma, test_gemm_simt
from .launching import run, strides

PIPELINES = [{"stages": 2}, {"stages": 3}, {"stages": 2, "prefetch": True}, {"stages": 4, "prefetch": True}]
#: Copies of a T on the left by vectors.
VECTORS_OF_T = {"VEC_A": 2, "DIM_XA": 8, "DIM_YA": 4}


def config(letter="s", triangle=Triangle.LOWER_LEFT, by_rows=False, mma=False, **changes):
    """A small tile for a T that lies by columns, or by rows."""
    of_a = triangle.on_left
    layout = (by_rows, False) if of_a else (False, by_rows)
    make = test_gemm_mma.config if mma else test_gemm_simt.config
    return make(letter, *layout, **{"stages": 2, **changes})


@pytest.fixture(autouse=True)
def flags_are_set_often(monkeypatch):
    monkeypatch.setattr(trmm_fused, "SPAN", 16)


def multiply(
    tile,
    triangle,
    t,
    c,
    unit=False,
    conj=False,
    alpha=1.0,
    by_rows=False,
    kernels=None,
    copier=diagonal_blocks,
    b=None,
):
    """C := alpha T B, or alpha B T, by default in place."""
    b, apart = (c, 0) if b is None else (b, OVERWRITE)
    kernels = kernels or (gemm_mma if tile.STEM == "gemm_mma" else gemm_simt)
    (m, n), dtype = c.shape, DTYPES[tile.dtype]
    (block, free), of_a = tile_orders(tile, triangle), triangle.on_left
    order, others = (m, n) if of_a else (n, m)
    levels, strips = -(-order // block), -(-others // free)
    copy = np.full(levels * block**2, np.nan, c.dtype)
    words = dtype.real_size // 4  # a flag is an int32, the first word of a real
    flags = np.full(levels * strips * words, -1, np.int32).view(dtype.real)
    lead = strides(t)[0 if by_rows else 1]
    prepare = FIXED[diagonal_blocks.STEM].config(tile.dtype, "", {})
    source = copier.source(prepare)
    options = options_of(Region.of(triangle.uplo), unit=unit, by_rows=not by_rows)
    integers_ = order, block, levels * strips, options, lead, 0, 0
    run(source, prepare.grid(order, block), (t, copy, flags), integers_, ())
    assert not flags.view(np.int32)[::words].any()
    source = kernels.source(tile, conj=conj, triangle=triangle)
    integers_ = m, n, options | apart, lead, strides(b)[1], strides(c)[1]
    run(source, tile.grid(m, n), (t, copy, flags, b, c), integers_, (alpha,))


def operands(rng, dtype, order, others, triangle, unit, by_rows, beyond=np.nan):
    """T with NaN wherever it must not be read, or what is given, what it means, and C."""
    t = integers(rng, (order, order), dtype)
    c = integers(rng, (order, others) if triangle.on_left else (others, order), dtype)
    below = mask(Region.STRICT_LOWER, order, order)
    kept = below if triangle.uplo is Uplo.LOWER else below.T
    seen = np.where(kept, t, 0)
    np.fill_diagonal(seen, 1 if unit else t.diagonal())
    t = np.where(kept | (np.eye(order) > unit), t, beyond).astype(t.dtype)
    return fenced(t, "C" if by_rows else "F", gap=4)[0], seen, c


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
    copier=diagonal_blocks,
    beyond=np.nan,
    apart=False,
    **changes,
):
    """Integers between fences, ``==``; `apart`: into NaN, in another leading dimension."""
    rng, dtype = np.random.default_rng(order + others), DTYPES[letter]
    tile = config(letter, triangle, by_rows, mma, **changes)
    t, seen, initial = operands(rng, dtype, order, others, triangle, unit, by_rows, beyond)
    seen = seen.conj() if conj else seen
    expected = 2 * (seen @ initial if triangle.on_left else initial @ seen)
    c, unharmed = fenced(np.full_like(initial, np.nan) if apart else initial, "F")
    b = fenced(initial, "F", gap=8)[0] if apart else None
    multiply(tile, triangle, t, c, unit, conj, 2.0, by_rows, kernels, copier, b)
    np.testing.assert_array_equal(c, expected)
    assert unharmed()


def check_not_finite(letter, triangle, what=np.nan, kernels=None, apart=False):
    """One number spoils what depends on it, and no more."""
    rng, dtype, (order, others), of_a = (
        np.random.default_rng(5),
        DTYPES[letter],
        (45, 19),
        triangle.on_left,
    )
    t, seen, c = operands(rng, dtype, order, others, triangle, False, False)
    at = (21, 7) if of_a else (7, 21)
    clean = seen @ c if of_a else c @ seen
    c = np.asfortranarray(c)
    c[at] = what
    b = c.copy("F") if apart else None
    multiply(config(letter, triangle), triangle, t, c, kernels=kernels, b=b)
    spoilt = np.arange(order) >= 21 if triangle.is_forward else np.arange(order) <= 21
    place = (spoilt, 7) if of_a else (7, spoilt)
    depends = (seen[:, 21] if of_a else seen[21]) != 0
    assert not np.isfinite(c[place][depends[spoilt]]).any()
    c[place] = clean[place]
    np.testing.assert_array_equal(c, clean)


@pytest.mark.parametrize(
    "triangle, ways, letter", pairs(Triangle, [(np.nan, False), (np.inf, False), (np.nan, True)], "sz")
)
def test_what_is_not_finite_spoils_only_what_depends_on_it(letter, triangle, ways):
    what, apart = ways
    check_not_finite(letter, triangle, what, apart=apart)


@pytest.mark.parametrize("triangle", Triangle)
@pytest.mark.parametrize("letter, mma", [("c", False), ("d", False), ("d", True)])
def test_into_another_matrix(letter, mma, triangle):
    check(letter, triangle, 71, 37, mma=mma, apart=True)


def check_stack(on_device, letter, side="L", lower=True, unit=False, apart=True, order=70):
    """TRMM of a stack of integers, ``==``; what must not be read of T is NaN."""
    rng, dtype = np.random.default_rng(2), DTYPES[letter]
    triangle = Triangle.of(Uplo.LOWER if lower else Uplo.UPPER, Side.LEFT if side == "L" else Side.RIGHT)
    made = [operands(rng, dtype, order, 5, triangle, unit, False) for _ in range(2)]
    t, seen, b = (np.stack(each).swapaxes(1, 2).copy().swapaxes(1, 2) for each in zip(*made, strict=True))
    expected, source = 2 * (seen @ b if side == "L" else b @ seen), on_device(b)
    out = on_device(np.full_like(b, np.nan)) if apart else source
    with override("trmm_algorithm", "trmm_fused"):
        pyblasgpu.trmm(on_device(t), source, alpha=2, side=side, lower=lower, unit_diag=unit, out=out)
    np.testing.assert_array_equal(out.host, expected)


@pytest.mark.parametrize(
    "letter, side, lower, unit, apart",
    [
        ("s", "L", True, False, True),
        ("z", "R", False, True, False),
    ],
)
def test_stacks(on_device, letter, side, lower, unit, apart):
    check_stack(on_device, letter, side, lower, unit, apart)


@pytest.mark.parametrize(
    "rule, changes",
    [
        ("k_tiles_tile_diagonal", {"BLK_M": 16, "BLK_K": 32, "DIM_XB": 32, "DIM_YB": 1}),
        ("in_place", {"stages": 1}),
        ("in_place", {"persistent": True}),
    ],
)
def test_rules(rule, changes):
    with pytest.raises(ConfigError) as error:
        check_config(config(**changes), Triangle.LOWER_LEFT)
    assert error.value.rule == rule
