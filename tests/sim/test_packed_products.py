"""Products of packed operands, by ordinary and by persistent blocks, exactly; and how a call packs them."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from covering import of_precision, pairs

from pyblasgpu.errors import ConfigError
from pyblasgpu.kernels.copy.packing import CBL, LAYOUTS, RBL, ROW, Packing
from pyblasgpu.kernels.gemm import mma as gemm_mma
from pyblasgpu.kernels.gemm import simt as gemm_simt
from pyblasgpu.testing.reference import fenced, integers, packed
from pyblasgpu.types import DTYPES

from . import test_gemm_mma, test_gemm_simt
from .launching import run, strides
from .test_persistent import SCHEDULES

PIPELINES = [{"stages": 2}, {"stages": 3}, {"stages": 2, "prefetch": True}, {"stages": 4, "prefetch": True}]
FAMILIES = [*(("gemm_simt", letter) for letter in DTYPES), ("gemm_mma", "d"), ("gemm_mma", "z")]


def config(letter: str = "s", stem: str = "gemm_simt", **changes):
    family = test_gemm_simt if stem == "gemm_simt" else test_gemm_mma
    return family.config(letter, **{"stages": 2, **changes}).for_packed()


def laid(packing: Packing, values: np.ndarray) -> np.ndarray:
    """The matrices of `values` packed, at a multiple of 16 bytes, amid memory that is none of them."""
    elements = np.array([packed(packing, matrix) for matrix in values])
    return fenced(elements.reshape(1, -1), margin=16)[0].reshape(elements.shape)


def product(
    tile, m=37, n=19, k=27, schedule=None, blocks=4, batch=1, shared="", alpha=2.0, beta=-1.0, kernels=None
) -> None:
    """Integers, ``==``; C stands between fences. `shared`: of one matrix a batch."""
    kernels = kernels or (gemm_mma if tile.STEM == "gemm_mma" else gemm_simt)
    rng, dtype = np.random.default_rng(m + 10 * n + 100 * k), DTYPES[tile.dtype]
    counts = (1 if "a" in shared else batch), (1 if "b" in shared else batch), batch
    shapes = (m, k), (k, n), (m, n)
    a, b, c = (integers(rng, (count, *shape), dtype) for count, shape in zip(counts, shapes, strict=True))
    expected = alpha * (a @ b) + (beta * c if beta else 0)
    if not beta:
        c[...] = np.nan
    c, unharmed = fenced(c, "F")
    of_a, of_b = tile.packings
    left, right = laid(of_a, a), laid(of_b, b.swapaxes(1, 2))
    leads = of_a.stride(m, k), of_b.stride(n, k), strides(c)[2]
    batches = (of_a.size(m, k) * (len(a) == batch), of_b.size(n, k) * (len(b) == batch), strides(c)[0])
    source, scalars = kernels.source(tile), (alpha, beta)
    if not schedule:
        run(
            source,
            tile.grid(m, n),
            (left, right, c),
            (m, n, k, 0, k * batch, *leads, *batches),
            scalars,
            batch,
        )
    else:
        k_tiles = -(-k // tile.BLK_K)
        scheduled = SCHEDULES[schedule](blocks, batch * tile.grid(m, n), k_tiles)
        pieces = np.full(scheduled.blocks * tile.BLK_M * tile.BLK_N, np.nan, c.dtype)
        flags = np.zeros(scheduled.blocks, c.real.dtype)
        operands = left, right, c, pieces, flags
        run(
            source,
            scheduled.blocks,
            operands,
            (m, n, k, 0, *scheduled[1:], *leads, *batches),
            scalars,
        )
    assert np.array_equal(c, expected)
    assert unharmed()


@pytest.mark.parametrize(("stem", "letter"), FAMILIES)
@pytest.mark.parametrize("pipeline", PIPELINES, ids=str)
def test_every_family_and_pipeline(stem, letter, pipeline):
    product(config(letter, stem, **pipeline))
    product(config(letter, stem, **pipeline), 32, 16, 16, beta=0.0)


@pytest.mark.parametrize("family, schedule, pipeline", pairs(FAMILIES, SCHEDULES, PIPELINES[1:3]))
def test_persistent_blocks(family, schedule, pipeline):
    stem, letter = family
    product(config(letter, stem, persistent=True, **pipeline), 70, 35, 43, schedule)


@pytest.mark.parametrize("schedule", [None, *SCHEDULES])
@pytest.mark.parametrize("m, n, k", [(1, 1, 1), (16, 8, 4), (15, 7, 3), (17, 9, 5), (33, 1, 8), (1, 25, 12)])
def test_edges(m, n, k, schedule):
    product(config("d", persistent=bool(schedule)), m, n, k, schedule, blocks=3)


@pytest.mark.parametrize("schedule", [None, *SCHEDULES])
@pytest.mark.parametrize("shared", ["", "a", "b", "ab"])
def test_batches(shared, schedule):
    product(config("s", persistent=bool(schedule)), 17, 9, 13, schedule, batch=3, shared=shared)


@pytest.mark.parametrize(
    ("letter", "changes"),
    [
        ("s", {"BLK_K": 6}),
        ("c", {"BLK_M": 8}),
        ("z", {"BLK_K": 10}),
        ("d", {"BLK_K": 10, "PAD_A": 2}),
    ],
)
def test_runs_that_the_threads_do_not_divide(letter, changes):
    """Fewer runs of 16 bytes than the 32 threads of a block, and numbers that leave some over."""
    product(replace(config(letter), **changes), 21, 11, 17, batch=2)


def test_the_sum_of_products_is_scaled():
    product(config("z", "gemm_mma"), alpha=1 - 2j, beta=0.5j)
    product(config("c", persistent=True), schedule="streamed", alpha=1 - 2j, beta=2j)


def test_however_operands_lie_it_is_the_same_kernel():
    """In shared memory, too: one kernel for all layouts, and no more memory than these take."""
    for family in (test_gemm_simt, test_gemm_mma):
        tiles = [family.config("d", *layout, stages=2) for layout in test_gemm_simt.LAYOUTS]
        assert len({tile.for_packed() for tile in tiles}) == 1
        assert tiles[0].for_packed().for_packed() == tiles[0].for_packed()
        assert (tiles[0].for_packed().layout, tiles[0].for_packed().threads) == ("nt", tiles[0].threads)


@pytest.mark.parametrize(("letter", "pad"), [("d", 4), ("z", 2)])
def test_rows_for_tensor_cores_are_lengthened(letter, pad):
    """So that the 16 (8) lanes that are served at once, four k apart by a row, meet no bank twice."""
    a, b = config(letter, "gemm_mma").packings
    assert a == Packing("cbl", 32, 8, pad) and b == Packing("cbl", 16, 8, pad)
    for packing in (a, b):
        lanes = 128 // DTYPES[letter].itemsize
        places = {(g + quarter * packing.ld) % lanes for g in range(lanes // 4) for quarter in range(4)}
        assert len(places) == lanes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"stages": 1}, "load_grid_tiles_smem_tile: major"),
        ({"packing_b": 3}, r"packing: packing of B in \(0, 1, 2\)"),
        ({"trans_a": True}, "packed: packed only with .* trans_a=True"),
        ({"BLK_M": 8, "VEC_M": 1, "PAD_A": 1}, r"packed_runs: PAD_A \* itemsize % 16 == 0"),
        ({"DIM_XB": 7}, "load_grid: DIM_XB"),
    ],
)
def test_rules(change, message):
    with pytest.raises(ConfigError, match=message):
        replace(config("s"), **change)


PACKINGS = list(itertools.product((ROW, CBL, RBL), repeat=2))


@pytest.mark.parametrize(
    ("stem", "letter", "of_both"),
    [
        *(("gemm_simt", letter, of_both) for letter in DTYPES for of_both in of_precision(letter, PACKINGS)),
        *(("gemm_mma", letter, of_both) for letter in "dz" for of_both in PACKINGS),
    ],
    ids=str,
)
def test_every_packing_of_each_operand(stem, letter, of_both):
    """Through shared memory by asynchronous copies and through registers, and past it."""
    tile = config(letter, stem).packed_as(*of_both)
    assert [packing.layout for packing in tile.packings] == [LAYOUTS[each] for each in of_both]
    product(tile)


@pytest.mark.parametrize(
    "letter, of_both, share_a, share_b", pairs(DTYPES, PACKINGS, [False, True], [False, True]), ids=str
)
def test_every_packing_past_shared_memory(letter, of_both, share_a, share_b):
    a, b = of_both
    plain = test_gemm_simt.config(letter, False, True, share_a=share_a, share_b=share_b)
    product(plain.packed_as(a, b), 21, 11, 17)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("a", "b"), [(RBL, ROW), (ROW, RBL), (RBL, RBL)])
def test_persistent_blocks_of_every_packing(schedule, a, b):
    tile = config("d", persistent=True, stages=3).packed_as(a, b)
    product(tile, 70, 35, 43, schedule)
    product(tile, 17, 9, 13, schedule, batch=2, shared="a")


@pytest.mark.parametrize(("a", "b"), PACKINGS)
def test_runs_of_rows_that_the_threads_do_not_divide(a, b):
    product(replace(config("d"), BLK_K=10, PAD_A=2).packed_as(a, b), 21, 11, 17, batch=2)


def test_only_configs_of_packed_operands_lie_packed():
    plain = test_gemm_simt.config("d", False, True, stages=1)
    with pytest.raises(ConfigError, match="packed: stages > 1"):
        plain.for_packed()
    tile = plain.packed_as(RBL, CBL)
    assert tile.for_packed() is tile and (tile.stages, tile.packed) == (1, True)
    with pytest.raises(ConfigError, match="packed: packed only with not trans_a"):
        test_gemm_simt.config("d", True, True, stages=1).packed_as(RBL, CBL)


def test_infinities_meet_no_zeros_of_the_padding():
    """The last k-tile is zeros beyond k on both sides; rows beyond m are only of what is not written."""
    tile = config("d", stages=3)
    a, b = np.ones((17, 5)), np.ones((5, 9))
    a[3, 4], b[4, 7] = np.inf, np.nan
    c, unharmed = fenced(np.zeros((1, 17, 9)), "F")
    of_a, of_b = tile.packings
    leads = of_a.steps(17, 5).tile, of_b.steps(9, 5).tile, strides(c)[2]
    left, right = laid(of_a, a[None]), laid(of_b, b.T[None])
    run(
        gemm_simt.source(tile),
        tile.grid(17, 9),
        (left, right, c),
        (17, 9, 5, 0, 5, *leads, 0, 0, 0),
        (1.0, 0.0),
    )
    assert np.isnan(c[0, :, 7]).all()
    clean = np.delete(c[0], 7, axis=1)
    assert np.isinf(clean[3]).all() and (np.delete(clean, 3, axis=0) == 5).all()
    assert unharmed()
