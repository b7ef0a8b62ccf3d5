"""Defects planted in persistent blocks and the tile scheduler, one at a time: the checks of the kernels must catch every one."""

from __future__ import annotations

import pytest

from pyblasgpu.types import Region

from .kernel_checks import FILL_PIPELINE, SLICED, persistent, simt
from .planting import assert_caught, parameters

#: module, text, what is planted in its place, the check that sees it
DEFECTS = [
    # barriers and waits
    ("gemm.persistent", FILL_PIPELINE, "wait()\n            load(0, ra", persistent("d", prefetch=True)),
    ("gemm.persistent", FILL_PIPELINE, "cuda.syncthreads()\n            load(0, ra", persistent("d", prefetch=True)),
    # edges
    ("gemm.epilogue", "(int32(row) < rows)", "(int32(row) < rows - 1)", persistent()),
    ("gemm.epilogue", "(int32(col) < cols)", "(int32(col) < cols - 1)", persistent()),
    ("gemm.epilogue", "(int32(row) < end)", "(int32(row) <= end)", persistent(min_blocks=2)),
    # what must not be read
    ("common.tile_scheduler", "quotient(order + 1, 2)", "quotient(order, 2)", simt(m=48, n=48, region=Region.LOWER)),
    ("common.tile_scheduler", "width = order | 1", "width = order", simt(m=32, n=32, region=Region.LOWER)),
    ("common.tile_scheduler", "width - row_length - 1, j - row_length", "width - row_length, j - row_length", simt(m=48, n=48, region=Region.LOWER)),
    ("common.tile_scheduler", "(col, row) if options & UPPER", "(row, col) if options & UPPER", simt(m=48, n=48, region=Region.UPPER)),
    ("common.tile_scheduler", "(row * DOWN + down)", "row", simt(m=48, n=48, region=Region.LOWER, BLK_N=32)),
    ("common.tile_scheduler", "* (DOWN * ACROSS)", "", persistent(m=48, n=48, batch=2, region=Region.LOWER)),
    ("common.tile_scheduler", "order + quotient(beyond, order)", "order", simt(m=96, n=32, region=Region.LOWER)),
    ("common.tile_scheduler", "beyond - (row - order) * order", "beyond", simt(m=96, n=32, region=Region.LOWER)),
    ("common.tile_scheduler", "(both - 2 * order) * order", "0", persistent(m=96, n=32, batch=2, region=Region.LOWER)),
    ("gemm.persistent", "row0 - col0", "0", persistent(m=48, n=48, region=Region.LOWER)),
    ("gemm.persistent", "int32(m - row0), int32(n - col0), options", "int32(m), int32(n), options", persistent(prefetch_c=True)),
    # places and strides
    ("common.tile_scheduler", "rows - column * most, most)", "rows, most)", simt(m=16 * 9 + 1, n=17, k=2)),
    # slices of k
    ("gemm.persistent", "offset(shared, STAGES * STAGE), t)", "shared, t)", persistent(**SLICED, k=40)),
    ("gemm.persistent", "has_sums = SLICES == 1 or t < GROUP", "has_sums = True", persistent(**SLICED, k=40)),
    ("gemm.persistent", "config.dtype_facts, config.slice_threads", "config.dtype_facts, config.threads", persistent(**SLICED, k=40)),
    # products in place
    ("gemm.persistent", "matrix * stride_a + begin", "matrix * stride_b + begin", persistent("d", batch=2)),
    ("gemm.persistent", "begin_a(row0, k0, lda)", "begin_a(row0, int64(0), lda)", persistent()),
    ("gemm.persistent", "matrix * stride_c + col0", "col0", persistent("d", batch=2)),
    ("gemm.persistent", "if left == 1:", "if left == 0:", persistent(k=7, stages=4)),
    ("gemm.persistent", "min(left, more) if", "left if", persistent()),
    ("gemm.persistent", "if more == together:", "if more == together + 1:", persistent()),
    ("gemm.persistent", "int32(more - together)", "int32(more)", persistent()),
    ("gemm.persistent", "k - first * BLK_K if", "k if", persistent(k=10)),
    ("gemm.persistent", "if count > 0 else 0", "", persistent(schedule="whole", k=40)),
    ("gemm.persistent", "if first > 0:", "if first > 1:", persistent(blocks=20)),
    ("gemm.persistent", "while count < k_tiles:", "while count < k_tiles - 1:", persistent(k=40, blocks=13)),
    ("gemm.persistent", "1 if last < remainder", "1 if last <= remainder", persistent(k=40, blocks=86)),
    ("gemm.persistent", "int32(last + 1)", "int32(last + 2)", persistent()),
    ("gemm.persistent", "int64(other) * PARTIAL + t", "int64(first) * PARTIAL + t",
     persistent(m=10, n=7, k=80, blocks=9)),
    ("gemm.persistent", "offset(partial, t)", "offset(partial, t // 2)", persistent()),
    ("gemm.persistent", "g * (GROUP * THREADS)", "0", persistent("d", BLK_M=64, BLK_N=32)),
    ("gemm.persistent", "offset(mine, x * PARTIAL)", "mine", persistent(m=10, n=7, k=80, blocks=9)),
    ("gemm.persistent", "other + TOGETHER <= last + 1", "other <= last", persistent(m=10, n=7, k=80, blocks=8)),
    ("gemm.persistent", "int32(other + TOGETHER)", "int32(other + 1)", persistent(m=10, n=7, k=80, blocks=9)),
    ("gemm.persistent", "got, first, x * GROUP", "got, first, 0", persistent(m=10, n=7, k=80, blocks=9)),
    ("gemm.persistent", "            cuda.syncthreads()\n            if t == 0:\n                set_flag_release",
     "            if t == 0:\n                set_flag_release", persistent()),
    ("gemm.persistent", "cuda.syncthreads()\n                if has_sums", "if has_sums", persistent()),
    ("gemm.persistent", "if try_take_flag(flags, other):", "if try_take_flag(flags, other) or True:", persistent(seeds=8)),
    ("gemm.persistent", "number + 1, tile", "number, tile", persistent()),
    ("gemm.mainloop", "reading - 1 if reading > 0 else STAGES - 1", "reading", persistent()),
    ("common.tile_scheduler", "k_tiles if tile < tiles else 0", "k_tiles", persistent(schedule="whole")),
    ("common.tile_scheduler", "int32(block * k_iters_per_block + min(block, remainder))", "int32(block * k_iters_per_block)", persistent()),
    ("common.tile_scheduler", "+ (1 if block < remainder else 0)", "", persistent()),
    ("common.tile_scheduler", "full_waves * blocks + which)", "which)", persistent()),
    ("common.tile_scheduler", "begin - which * k_tiles, 0)", "begin - which * k_tiles, -1)", persistent(blocks=7)),
]  # fmt: skip


@pytest.mark.parametrize(("module", "before", "after", "check"), parameters(DEFECTS))
def test_a_planted_defect_is_caught(module, before, after, check, monkeypatch):
    assert_caught(module, before, after, check, monkeypatch)
