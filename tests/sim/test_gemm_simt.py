"""`gemm_simt` on small tiles: every staging, sharing, layout and dtype, exactly."""

from __future__ import annotations

from dataclasses import asdict, replace
from itertools import product

import numpy as np
import pytest
from covering import by_precision, by_turns, of_precision

from pyblasgpu.gpu.device import known
from pyblasgpu.kernels.common import tile_scheduler
from pyblasgpu.kernels.common.options import options_of
from pyblasgpu.kernels.gemm import simt as gemm_simt
from pyblasgpu.kernels.gemm import simt_three_m as gemm_simt_3m
from pyblasgpu.kernels.gemm.epilogue import reals_read
from pyblasgpu.kernels.gemm.form import Form, relative_conjugation
from pyblasgpu.kernels.gemm.simt import GemmSimt
from pyblasgpu.kernels.gemm.simt_three_m import GemmSimtThreeM
from pyblasgpu.testing.reference import fenced, integers
from pyblasgpu.tuning.prune import candidates
from pyblasgpu.types import DTYPES, Region

from .launching import in_region, run, strides

STAGINGS = {
    "registers": {"stages": 1},
    "read-only": {"stages": 1, "read_only": True},
    "stages-2": {"stages": 2},
    "stages-3": {"stages": 3},
    "prefetch-2": {"stages": 2, "prefetch": True},
    "prefetch-3": {"stages": 3, "prefetch": True},
    "a-direct": {"share_a": False},
    "b-direct": {"share_b": False, "read_only": True},
    "direct": {"share_a": False, "share_b": False},
}
LAYOUTS = list(product((False, True), repeat=2))


def config(letter: str = "s", trans_a: bool = False, trans_b: bool = False, **changes) -> GemmSimt:
    """16 x 8 x 4 tiles by 32 threads."""
    x_a, x_b = (4 if trans_a else 16), (8 if trans_b else 4)
    small = GemmSimt(
        dtype=letter,
        trans_a=trans_a,
        trans_b=trans_b,
        BLK_M=16,
        BLK_N=8,
        BLK_K=4,
        DIM_X=8,
        DIM_Y=4,
        DIM_XA=x_a,
        DIM_YA=32 // x_a,
        DIM_XB=x_b,
        DIM_YB=32 // x_b,
        UNROLL=2,
    )
    return replace(small, **changes)


def check(
    tile: GemmSimt,
    m=17,
    n=9,
    k=11,
    conj_a=False,
    conj_b=False,
    alpha=2.0,
    beta=-1.0,
    batch=1,
    kernels=gemm_simt,
    shared="",
    region=Region.ALL,
    raster=0,
    gap=4,
    margin=16,
    short=0,
):
    """Run the kernel on integers between fences and compare with ``==``; `shared`: of one matrix a batch;
    `short`: the last matrix has so much less k.
    """
    rng, dtype = np.random.default_rng(m + 10 * n + 100 * k), DTYPES[tile.dtype]
    counts = (1 if "a" in shared else batch), (1 if "b" in shared else batch), batch
    shapes = (m, k), (k, n), (m, n)
    a, b, c = (integers(rng, (count, *shape), dtype) for count, shape in zip(counts, shapes, strict=True))
    a[-1, :, k - short :] = 0
    a_seen, b_seen = (a.conj() if conj_a else a), (b.conj() if conj_b else b)
    expected = alpha * (a_seen @ b_seen) + (beta * c if beta else 0)
    a[-1, :, k - short :], b[-1, k - short :] = np.nan, np.nan
    if not beta:
        c[...] = np.nan
    expected, c = in_region(region, expected, c)
    a, _ = fenced(a, "C" if tile.trans_a else "F", gap, margin)
    b, _ = fenced(b, "C" if tile.trans_b else "F", gap, margin)
    c, unharmed = fenced(c, "F")
    lead_a, lead_b = strides(a)[1 if tile.trans_a else 2], strides(b)[1 if tile.trans_b else 2]
    steps = (lead_a, lead_b, strides(c)[2], *(strides(x)[0] * (len(x) == batch) for x in (a, b, c)))
    conj, conj_sums = relative_conjugation(conj_a, conj_b)
    run(
        kernels.source(tile, Form.of(region), conj),
        tile.grid(m, n, region),
        (a, b, c),
        (m, n, k, options_of(region, conj_sums, raster=raster), batch * k - short, *steps),
        (alpha, beta),
        batch,
    )
    np.testing.assert_array_equal(c, expected)
    assert unharmed()


KEPT = [which for which in LAYOUTS if which != (False, True)]


def kept(letter: str = "s", trans_a: bool = False, trans_b: bool = False, **changes) -> GemmSimt:
    """16 x 16 x 8 tiles by 32 threads, k-tiles along k as they lie."""
    vec = 16 // DTYPES[letter].itemsize
    chosen = {"BLK_N": 16, "BLK_K": 8, "UNROLL": 8, "VEC_K": vec, "stages": 2}
    for name, is_kept in (("A", trans_a), ("B", not trans_b)):
        x = 8 // vec if is_kept else 16
        chosen |= {f"DIM_X{name}": x, f"DIM_Y{name}": 32 // x}
        chosen |= {f"VEC_{name}": vec, f"PAD_{name}": vec} if is_kept else {}
    return config(letter, trans_a, trans_b, **{**chosen, **changes})


def sliced(letter: str = "s", trans_a: bool = False, trans_b: bool = False, **changes) -> GemmSimt:
    """16 x 8 x 8 tiles by two slices of k, of 32 threads each."""
    x_a, x_b = (8 if trans_a else 16), (8 if trans_b else 4)
    loads = {"DIM_XA": x_a, "DIM_YA": 64 // x_a, "DIM_XB": x_b, "DIM_YB": 64 // x_b}
    chosen = {"BLK_N": 16, "BLK_K": 8, "UNROLL": 4, "SLICES_K": 2, "stages": 2, **loads}
    return config(letter, trans_a, trans_b, **{**chosen, **changes})


@pytest.mark.parametrize("letter, layout, staging", by_precision(LAYOUTS, ["stages-2", "prefetch-3"]))
def test_slices_of_k(letter, layout, staging):
    check(sliced(letter, *layout, **STAGINGS[staging]), m=33, n=17, k=29)


@pytest.mark.parametrize("trans_a, trans_b", KEPT)
@pytest.mark.parametrize("letter", "sc")
def test_slices_of_smem_tiles_as_they_lie(letter, trans_a, trans_b):
    changes = {"SLICES_K": 2, "UNROLL": 4}
    tile = kept(letter, trans_a, trans_b)
    changes |= {f"DIM_Y{name}": 2 * getattr(tile, f"DIM_Y{name}") for name in "AB"}
    check(replace(tile, BLK_M=32, BLK_N=32, **changes), m=33, n=37, k=29)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("region", [Region.ALL, Region.LOWER])
def test_c_is_read_group_by_group(letter, region):
    """In tiles that are whole and at edges, each group before any of it is written."""
    large = config(letter, BLK_M=32, BLK_N=32)
    assert 0 < reals_read(large, 1, region) < large.THR_M * large.THR_N * large.dtype_facts.reals_per_element
    check(large, 70, 70 if region is Region.LOWER else 41, region=region)


@pytest.mark.parametrize("letter", "sdc")
@pytest.mark.parametrize("trans_a, trans_b", KEPT)
@pytest.mark.parametrize("staging", ["registers", "stages-3", "prefetch-2", "prefetch-3"])
def test_smem_tiles_as_they_lie(letter, trans_a, trans_b, staging):
    tile = kept(letter, trans_a, trans_b, **STAGINGS[staging])
    assert tile.smem_tile_a.is_kept == trans_a and tile.smem_tile_b.is_kept != trans_b
    check(tile, 19, 21, 20)  # two k-tiles and a half
    check(tile, 19, 21, 23)  # operands that are not aligned for its vectors


@pytest.mark.parametrize("trans_a, trans_b", KEPT)
def test_smem_tiles_as_they_lie_otherwise(trans_a, trans_b):
    check(kept("c", trans_a, trans_b), 19, 21, 20, True, True, alpha=1 - 2j, beta=2j)
    check(kept("s", trans_a, trans_b, VEC_K=2, UNROLL=4), 19, 21, 20, batch=2)
    adjacent = {"VEC_M": 1 if trans_a else 2, "VEC_N": 2 if trans_b else 1}
    check(kept("s", trans_a, trans_b, by_rows=True, **adjacent), 32, 32, 16)


@pytest.mark.parametrize("letter, layout, staging", by_precision(LAYOUTS, STAGINGS))
def test_every_staging_and_layout(letter, layout, staging):
    check(config(letter, *layout, **STAGINGS[staging]))


@pytest.mark.parametrize("letter", "cz")
@pytest.mark.parametrize("conj_a, conj_b", LAYOUTS)
def test_conjugation(letter, conj_a, conj_b):
    check(config(letter, stages=2), conj_a=conj_a, conj_b=conj_b, alpha=1 - 2j, beta=2j)


@pytest.mark.parametrize("staging, letter, layout", by_turns(STAGINGS, "cz", LAYOUTS))
def test_three_products(staging, letter, layout):
    tile = GemmSimtThreeM(**asdict(config(letter, *layout, **STAGINGS[staging])))
    check(tile, conj_a=layout[0], conj_b=layout[1], alpha=1 - 2j, beta=0.5j, kernels=gemm_simt_3m)


def test_three_products_of_smem_tiles_as_they_lie():
    tile = GemmSimtThreeM(**asdict(kept("c", True, False)))
    check(tile, 19, 21, 20, False, True, alpha=1 - 2j, kernels=gemm_simt_3m)


@pytest.mark.parametrize("letter, trans_b, changes", [
    ("s", False, {"VEC_M": 2, "VEC_N": 2, "PAD_A": 2, "stages": 2}),
    ("s", True, {"VEC_A": 2, "DIM_XA": 8, "DIM_YA": 4, "VEC_B": 2, "DIM_XB": 4, "DIM_YB": 8, "BLK_K": 8,
                 "PAD_A": 2, "stages": 3}),
    ("s", False, {"VEC_A": 4, "DIM_XA": 4, "DIM_YA": 8, "BLK_K": 8, "UNROLL": 4, "PAD_B": 3}),
    ("d", True, {"VEC_A": 2, "DIM_XA": 8, "DIM_YA": 4, "VEC_M": 2, "PAD_A": 2, "stages": 2}),
    ("c", True, {"VEC_A": 2, "DIM_XA": 8, "DIM_YA": 4, "VEC_N": 2, "stages": 3}),
    ("s", False, {"WARP_X": 4, "DIM_X": 4, "DIM_Y": 8, "VEC_M": 4}),
])  # fmt: skip
@pytest.mark.parametrize("m", [16, 18, 20])
def test_vectors_and_warp_shapes(letter, trans_b, changes, m):
    if changes.get("stages", 1) == 1:
        m = m // changes.get("VEC_A", 1) * changes.get("VEC_A", 1)
    check(config(letter, False, trans_b, **changes), m=m, n=12, k=16)


@pytest.mark.parametrize("stages", [1, 2, 3])
@pytest.mark.parametrize("m, n, k", [(1, 1, 1), (16, 8, 4), (15, 7, 3), (17, 9, 5), (33, 1, 8), (1, 25, 12)])
def test_edges(stages, m, n, k):
    check(config("d", stages=stages), m, n, k)


def test_beta_zero_does_not_read_c():
    check(config("z", stages=2), alpha=1j, beta=0.0)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("letter, short", [("s", 1), ("d", 7), ("c", 8), ("z", 11)])
def test_slices_of_k_of_which_the_last_is_short(letter, layout, short):
    check(config(letter, *layout, stages=3), k=12, batch=3, short=short)


@pytest.mark.parametrize("shared", ["", "a", "b", "ab"])
def test_batch(shared):
    check(config("s", True, True, stages=2), batch=3, shared=shared)


def smallest(stem: str, letter: str, layout: str) -> list:
    """Tiles of the quick space that are for batches of small products, and for few rows or columns."""
    left = [tile for tile in candidates(stem, letter, layout, known("h200")).left if not tile.persistent]
    return [tile for tile in left if min(tile.BLK_M, tile.BLK_N) <= 16 or tile.threads == 32]


@pytest.mark.parametrize(
    "letter, staging, memory",
    by_precision(["registers", "stages-2", "prefetch-3"], [(4, 16), (5, 16), (4, 17)]),
)
def test_vectors_serve_operands_of_any_alignment(letter, staging, memory):
    """Columns that begin with vectors, and such that do not; tiles that are whole, and such that are not."""
    gap, margin = memory
    wide = 1 if letter == "z" else 2
    shape = {"DIM_XA": 8, "DIM_YA": 4, "DIM_XB": 4, "DIM_YB": 8, "BLK_K": 8}
    tile = config(letter, trans_b=True, VEC_A=wide, VEC_B=wide, **shape, **STAGINGS[staging])
    check(tile, 32, 16, 16, gap=gap, margin=margin)
    check(tile, 19, 11, 21, gap=gap, margin=margin, beta=0.0)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
def test_small_tiles_of_the_quick_space(letter, layout):
    """By turns on matrices that fill them, and on such that do not, whose operands are less aligned."""
    tiles = smallest("gemm_simt", letter, layout)
    assert {(16, 16), (32, 16), (16, 32)} <= {(tile.BLK_M, tile.BLK_N) for tile in tiles}
    first = DTYPES[letter].is_complex ^ (layout in ("nt", "tn"))  # every other tile, others for other dtypes
    for number, tile in of_precision(letter, list(enumerate(tiles))):
        if number % 2 == first:
            check(tile, 16, 16, 16, batch=2, shared=("", "a", "b")[number % 3])
        else:
            check(tile, 15, 17, 19, beta=0.0)


@pytest.mark.parametrize("raster", [1, 2, 3, 7, 100])
def test_any_raster(raster):
    check(config("s", stages=2), m=16 * 4 + 1, n=8 * 3 - 1, k=2, raster=raster)


def test_more_rows_of_tiles_than_a_raster_column():
    check(config("s", stages=2), m=16 * (tile_scheduler.RASTER + 1) + 1, n=17, k=2)


def test_infinities_and_nans_reach_what_depends_on_them():
    tile = config("d", stages=2)
    a, b = np.ones((17, 5), order="F"), np.ones((5, 9), order="F")
    a[3, 2], b[4, 7] = np.inf, np.nan
    c = np.zeros((17, 9), order="F")
    run(gemm_simt.source(tile), tile.grid(17, 9), (a, b, c), (17, 9, 5, 0, 5, 17, 5, 17, 0, 0, 0), (1.0, 0.0))
    assert np.isnan(c[:, 7]).all()
    clean = np.delete(c, 7, axis=1)
    assert np.isinf(clean[3]).all()
    assert (np.delete(clean, 3, axis=0) == 5).all()
