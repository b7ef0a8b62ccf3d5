"""`gemm_mma` on small tiles: every instruction, layout and pipeline, real and complex, exactly."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from pyblasgpu.gpu.intrinsics.mma import SHAPES
from pyblasgpu.gpu.simulator import intrinsics as simulator
from pyblasgpu.kernels.gemm import mma as gemm_mma
from pyblasgpu.kernels.gemm.mma import GemmMma
from pyblasgpu.testing.reference import fenced

from .launching import run, strides
from .test_gemm_simt import LAYOUTS, check, smallest

PIPELINES = {
    "registers": {"stages": 1},
    "stages-2": {"stages": 2},
    "stages-3": {"stages": 3},
    "prefetch-2": {"stages": 2, "prefetch": True},
    "prefetch-3": {"stages": 3, "prefetch": True},
}


def config(letter: str = "d", trans_a: bool = False, trans_b: bool = False, **changes) -> GemmMma:
    """32 x 16 x 8 tiles by two warps of 16 x 16."""
    x_a, x_b = (8 if trans_a else 32), (16 if trans_b else 8)
    small = GemmMma(
        dtype=letter, trans_a=trans_a, trans_b=trans_b, BLK_M=32, BLK_N=16, BLK_K=8,
        DIM_XA=x_a, DIM_YA=64 // x_a, DIM_XB=x_b, DIM_YB=64 // x_b, PAD_A=4, PAD_B=4,
        WARP_M=16, WARP_N=16, MMA_K=4, stages=2,
    )  # fmt: skip
    return replace(small, **changes)


@pytest.mark.parametrize("letter", "dz")
@pytest.mark.parametrize("trans_a, trans_b", LAYOUTS)
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_every_pipeline_and_layout(letter, trans_a, trans_b, pipeline):
    check(config(letter, trans_a, trans_b, **PIPELINES[pipeline]), 37, 19, 27, kernels=gemm_mma)


def sliced(letter: str = "d", trans_a: bool = False, trans_b: bool = False, **changes) -> GemmMma:
    """32 x 16 x 16 tiles by two slices of k, of two warps each."""
    loads = {"DIM_XA": 16, "DIM_YA": 8, "DIM_XB": 16, "DIM_YB": 8}
    return config(letter, trans_a, trans_b, BLK_K=16, SLICES_K=2, **{**loads, **changes})


@pytest.mark.parametrize("letter", "dz")
@pytest.mark.parametrize("trans_a, trans_b", LAYOUTS)
@pytest.mark.parametrize("pipeline", ["stages-3", "prefetch-3"])
def test_slices_of_k(letter, trans_a, trans_b, pipeline):
    check(sliced(letter, trans_a, trans_b, **PIPELINES[pipeline]), 37, 19, 45, kernels=gemm_mma)


@pytest.mark.parametrize("letter", "dz")
def test_c_is_read_group_by_group(letter):
    large = config(letter, BLK_N=32, WARP_M=32, DIM_XB=8, DIM_YB=8)
    check(large, 70, 37, 11, kernels=gemm_mma)


@pytest.mark.parametrize("letter", "dz")
@pytest.mark.parametrize("shape", SHAPES)
def test_every_instruction(letter, shape):
    m, k = shape
    check(config(letter, MMA_M=m, MMA_K=k, BLK_K=16, DIM_XB=16, DIM_YB=4), 33, 17, 35, kernels=gemm_mma)


@pytest.mark.parametrize("pipeline", ["stages-3", "prefetch-3"])
@pytest.mark.parametrize("depth", [8, 16])
def test_both_parts_at_once_by_warps_of_eight_rows(depth, pipeline):
    tile = config("z", BLK_K=16, WARP_M=8, MMA_K=depth, DIM_XA=16, DIM_YA=8, DIM_XB=16, DIM_YB=8)
    check(replace(tile, **PIPELINES[pipeline]), 33, 17, 35, True, False, kernels=gemm_mma)


@pytest.mark.parametrize("conj_a, conj_b", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES)
def test_three_products(shape, conj_a, conj_b):
    m, k = shape
    tile = config("z", MMA_M=m, MMA_K=k, BLK_K=16, DIM_XB=16, DIM_YB=4, three_m=True)
    check(tile, 33, 17, 35, conj_a, conj_b, alpha=1 - 2j, beta=0.5j, kernels=gemm_mma)


@pytest.mark.parametrize("conj_a, conj_b", LAYOUTS)
def test_conjugation(conj_a, conj_b):
    check(config("z"), 20, 12, 9, conj_a, conj_b, alpha=1 - 2j, beta=0.5j, kernels=gemm_mma)


@pytest.mark.parametrize("m, n, k", list(product((1, 31, 32, 33), (1, 15, 16, 17), (1, 8, 9, 24))))
def test_edges(m, n, k):
    check(config(), m, n, k, beta=0.0, kernels=gemm_mma)


def test_wide_loads_and_batches():
    wide = config(VEC_A=2, VEC_B=2, DIM_XA=16, DIM_YA=4, DIM_XB=4, DIM_YB=16, prefetch=True)
    for shared in ("", "a", "b"):
        check(wide, 34, 18, 10, batch=3, shared=shared, kernels=gemm_mma)


@pytest.mark.parametrize("letter", "dz")
@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
def test_small_tiles_of_the_quick_space(letter, layout):
    tiles = smallest("gemm_mma", letter, layout)
    expected = {(16, 16), (16, 32), (32, 16), (16, 64), (64, 16)}
    assert expected <= {(tile.BLK_M, tile.BLK_N) for tile in tiles}
    first = (letter == "z") ^ (layout in ("nt", "tn"))  # every other tile, others for another dtype
    for number, tile in enumerate(tiles):
        if number % 2 == first:
            check(tile, 16, 16, 16, batch=2, kernels=gemm_mma)
        else:
            check(tile, 15, 17, 19, beta=0.0, kernels=gemm_mma)


@pytest.mark.parametrize("warp", [(16, 8), (32, 16), (8, 16)])
def test_warps_of_other_shapes(warp):
    m, n = warp
    threads = 32 * (32 // m) * (16 // n)
    tile = config(
        WARP_M=m,
        WARP_N=n,
        MMA_M=min(m, 16),
        DIM_XA=32,
        DIM_YA=threads // 32,
        DIM_XB=8,
        DIM_YB=threads // 8,
    )
    check(tile, 40, 20, 12, kernels=gemm_mma)


def test_nan_reaches_what_depends_on_it_and_nothing_else():
    """A NaN in row 3 of A: in the tile's padding and beyond the edges nothing may pick it up."""
    tile, (m, n, k) = config(), (19, 11, 13)
    a, b = np.ones((1, m, k)), np.ones((1, k, n))
    a[0, 3, 5] = np.nan
    c, unharmed = fenced(np.zeros((1, m, n)), "F")
    a, b = (fenced(x, "F")[0] for x in (a, b))
    steps = (strides(a)[2], strides(b)[2], strides(c)[2], 0, 0, 0)
    run(gemm_mma.source(tile), tile.grid(m, n), (a, b, c), (m, n, k, 0, k, *steps), (1.0, 0.0))
    assert np.isnan(c[0, 3]).all() and np.array_equal(np.delete(c[0], 3, axis=0), np.full((m - 1, n), k))
    assert unharmed()


def test_a_warp_whose_lanes_part_is_an_error():
    """What a GPU leaves undefined, lanes of a warp at different products, is no result here."""
    multiply = simulator.warp_mma(1, 1, (8, 4), 1)

    def kernel():
        acc = simulator.cuda.local.array(2, simulator.types.float64)
        if simulator.cuda.threadIdx.x < 16:
            multiply(acc, acc, acc)

    with pytest.raises(simulator.SimulatorError, match=r"warp divergence .* 16 of 32 lanes"):
        simulator.launch(kernel, (1, 1, 1), (32, 1, 1), 0, ())
