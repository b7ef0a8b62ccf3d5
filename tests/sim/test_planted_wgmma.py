"""Defects planted in SGEMM on tensor cores, one at a time: the checks of the kernels must catch every one."""

from __future__ import annotations

import pytest

from pyblasgpu.types import Triangle

from . import test_gemm_triples, test_gemm_wgmma, test_trmm_tensor
from .kernel_checks import Check, one_each
from .planting import assert_caught, parameters


@one_each
def multiplied(m=20, n=9, k=134, blocks=1, **options) -> Check:
    """A product by `gemm_wgmma`, with two stages and three blocks along k."""

    def run(module):
        test_gemm_wgmma.check(m, n, k, blocks=blocks, kernels=module, **options)

    return Check("gemm_wgmma", run)


def flagged(module) -> None:
    test_gemm_wgmma.check_flagged(kernels=module)


def flagged_of_cluster(module) -> None:
    test_gemm_wgmma.check_flagged(2, module)


@one_each
def packed(**options) -> Check:
    """An operand by `pack_halves`."""

    def run(module):
        test_gemm_wgmma.check_pack(kernels=module, **options)

    return Check("pack_halves", run)


@one_each
def not_held(what: str) -> Check:
    """An operand that pairs cannot hold."""

    def run(module):
        test_gemm_wgmma.check_not_held(what, kernels=module)

    return Check("pack_halves", run)


def guarded(module) -> None:
    test_gemm_wgmma.check_guarded(kernels=module)


@one_each
def complex_packed(*conjs: bool, by_rows=False) -> Check:
    """Complex operands by `pack_halves`."""

    def run(module):
        test_gemm_wgmma.check_complex_pack(conjs, by_rows, kernels=module)

    return Check("pack_halves", run)


CLUSTER, LOWER = multiplied(m=70, n=20, k=70, cluster=2), multiplied(m=20, n=20, k=70, cluster=2, gap=120)
TRIANGLE = Check("gemm_wgmma", lambda module: test_gemm_wgmma.check_triangle(kernels=module))
FLAGGED_OF_CLUSTER = Check("gemm_wgmma", flagged_of_cluster)
FLAGGED, GUARDED = Check("gemm_wgmma", flagged), Check("gemm_guarded", guarded)
PRODUCT, EPILOGUE = "gemm.wgmma.product", "gemm.wgmma.epilogue"
RING = "gemm.stage_ring"
PACK, GUARD = "gemm.wgmma.pack_halves", "gemm.wgmma.guarded"
FACTOR = "gemm.wgmma.triangular_factor"
THREE, PACK_THREE = "gemm.wgmma.triples", "gemm.wgmma.pack_triples"
POWERS, TILES = "gemm.wgmma.equilibrate", "gemm.wgmma.tiles"
SAMPLED = Check("equilibrate", lambda module: test_gemm_wgmma.check_equilibrated(kernels=module))
EQUILIBRATED = Check("pack_halves", lambda module: test_gemm_wgmma.check_equilibrated(packs=module))
COMPLEX_SCALARS = Check("gemm_wgmma", lambda module: test_gemm_wgmma.check_complex_scalars(module))
HELD = Check("pack_halves", lambda module: test_gemm_wgmma.check_held(65535 / 2**15, module))
READER, COMPLEX = "gemm.wgmma.operand_reader", complex_packed(False, True)
BY_ROWS, GAP, UNITS = packed(by_rows=True, gap=3), packed(gap=2), packed(k=260, blk_k=256)
ORDERED = multiplied(m=130, n=16, k=70, blk_k=32, ordered=True)

BY_LOWER = Check("gemm_wgmma", lambda module: test_trmm_tensor.check_by_triangle(kernels=module))
BY_UPPER = Check("gemm_wgmma", lambda module: test_trmm_tensor.check_by_triangle(Triangle.UPPER_LEFT, module))
PACKED_LOWER = Check("pack_halves", lambda module: test_trmm_tensor.check_by_triangle(packs=module))
GUARDED_LOWER = Check("gemm_guarded", lambda module: test_trmm_tensor.check_guarded_by_triangle(module))

TRIPLES = Check("gemm_triples", lambda module: test_gemm_triples.check(kernels=module, n=9))
TRIPLES_LEFT = Check("gemm_triples", lambda module: test_gemm_triples.check(kernels=module, pairs=0, n=9))
TRIPLES_OF_CLUSTER = Check("gemm_triples", lambda module: test_gemm_triples.check(2, module))
PACKED_TRIPLES = Check("pack_triples", lambda module: test_gemm_triples.check(packs=module, blk_k=256, n=9))
SPOILT_TRIPLES = Check("pack_triples", lambda module: test_gemm_triples.check_infinite(packs=module, n=9))
NOT_FURTHER = Check("gemm_guarded", lambda module: test_gemm_triples.check_further(module))

#: module, text, what is planted in its place, the check that sees it
DEFECTS = [
    # who waits for whom
    (RING, "wait(int32(full + 8), int32(turn % 2 ^ 1))", "pass", multiplied()),
    (RING, "wait(int32(full + 8), int32(turn % 2 ^ 1))", "wait(int32(full + 8), int32(turn % 2))", multiplied()),
    (RING, "wait(int32(shared + BARRIERS + stage * 16), int32(turn % 2))", "pass", multiplied()),
    (PRODUCT, "fence()\n                start", "start", multiplied()),
    (PRODUCT, "sync_warp()", "pass", multiplied()),
    (PRODUCT, "wait_for_last()\n", "pass\n", multiplied()),
    (PRODUCT, "int32(stage - 1 if stage > 0 else STAGES - 1)", "stage", multiplied()),
    (RING, "int32(ARRIVALS))", "int32(1))", multiplied()),
    (RING, "            init_fence()\n", "            pass\n", multiplied()),
    (PRODUCT, "BOTH + 4 * (BLK_M + BLK_N) if LAST else BOTH\n", "BOTH\n", multiplied()),
    # what is brought and multiplied
    (PRODUCT, "LAST = j == PER_BLOCK - 1", "LAST = j == 0", multiplied()),
    (PRODUCT, "= j * config.PANEL", "= 0 * config.PANEL", multiplied()),
    (PRODUCT, "first_b * words + col * 32", "first_b * words", CLUSTER),
    (PRODUCT, "first_b * PANEL + col", "first_b * PANEL", CLUSTER),
    (PRODUCT, "(1 - quotient(rows, ROWS)) * 8", "quotient(rows, ROWS) * 8", ORDERED),
    (PRODUCT, "int32(b + (HALF_ROW + STEP))", "int32(b + HALF_ROW)", multiplied()),
    (PRODUCT, "go_on(high, int32(a + STEP), int32(b + STEP))", "go_on(high, a, b)", multiplied()),
    (PRODUCT, "real(LO)", "real(0)", multiplied()),
    (PRODUCT, "scale if v < 2 else scale_8", "scale", multiplied()),
    (PRODUCT, "columns[v % 2]", "columns[0]", multiplied()),
    (PRODUCT, "zero(total, real(0))", "pass", multiplied()),
    (TILES, "matrix * step_b", "matrix * step_a", multiplied(batch=2, shared_b=True, k=64)),
    # tiles, edges, scalars
    (EPILOGUE, "(row < rows) & (col < cols)", "row < rows", multiplied()),
    (EPILOGUE, "(row < rows) & (col < cols)", "col < cols", multiplied(gap=50, k=64)),
    (EPILOGUE, "elif beta != real(0):", "elif True:", multiplied(m=80, n=24, k=64)),
    (EPILOGUE, "value += beta * old[e]", "pass", multiplied(m=80, n=24, k=64, beta=2.0)),
    (TILES, "flagged |= of_a[i] | of_b[i]", "flagged |= of_a[i]", FLAGGED),
    (TILES, "flagged |= of_a[i] | of_b[i]", "flagged |= of_b[i]", FLAGGED),
    (EPILOGUE, "if (beta != real(0)) | (beta_i != real(0)):", "if True:", multiplied(k=64)),
    (EPILOGUE, "sign * alpha_i *", "alpha_i *", COMPLEX_SCALARS),
    (EPILOGUE, "sign * beta_i *", "beta_i *", COMPLEX_SCALARS),
    (EPILOGUE, "lane ^ ROW_LANES", "lane", COMPLEX_SCALARS),
    (EPILOGUE, " | is_complex:", ":", COMPLEX_SCALARS),
    (EPILOGUE, "+ beta * old[e]", "+ old[e]", multiplied(beta=2.0, k=64)),
    (EPILOGUE, "(rows <= 8) |", "(rows <= 0) |", multiplied(m=69, n=16, k=64)),
    (EPILOGUE, "(cols <= LAST_COL) |", "(cols <= 0) |", multiplied(m=64, n=23, k=64)),
    # triangles of C
    (EPILOGUE, " & in_region(row >> pairs(options), col, shift, options)", "", TRIANGLE),
    (EPILOGUE, " | crosses", "", TRIANGLE),
    (EPILOGUE, "contains_tile(9, config.BLK_N - 6, True)", "contains_tile(1, 1, True)", TRIANGLE),
    (TILES, "if options & TRIANGLE:", "if False:", TRIANGLE),
    (TILES, "is_met((row >> pairs(options)) - col0", "is_met(col0 - (row >> pairs(options))", TRIANGLE),
    (PRODUCT, "shift = (row >> pairs(options)) - col", "shift = col - (row >> pairs(options))", TRIANGLE),
    # blocks of a cluster
    (RING, "2**config.cluster - 1", "1", CLUSTER),
    (PRODUCT, "part = int32(rank_of() * PART)", "part = int32(0)", CLUSTER),
    (RING, "if lane < CLUSTER:", "if lane == 0:", CLUSTER),
    (RING, "4 * config.warpgroups * config.cluster", "4 * config.warpgroups", CLUSTER),
    (PRODUCT, "            cluster_sync()  #", "            pass  #", CLUSTER),
    (RING, "            cluster_sync()\n        else", "            cuda.syncthreads()\n        else", CLUSTER),
    (TILES, "quotient(int32(min(row, m - 1)), PANEL)", "quotient(int32(row), PANEL)", LOWER),
    (PRODUCT, "int32(m - row if own else 0)", "int32(m - row)", FLAGGED_OF_CLUSTER),
    (TILES, "return own | servable(flags_a, other_a", "return own & servable(flags_a, other_a", FLAGGED_OF_CLUSTER),
    # three numbers an element
    (THREE, "(0, 2), (2, 0)", "(0, 2), (0, 2)", TRIPLES),
    (THREE, "(PARTS * j + p) * PLANE", "p * PLANE", TRIPLES),
    (THREE, "high[e] + cross[e]", "high[e]", TRIPLES),
    (THREE, "int32(b + AT_B + step)", "int32(b + AT_B)", TRIPLES),
    (THREE, "(not by_pairs) & ", "", TRIPLES_LEFT),
    (THREE, "int32(rank_of() * PART)", "int32(0)", TRIPLES_OF_CLUSTER),
    (PACK_THREE, "y - upper(first)", "y - lower(first)", PACKED_TRIPLES),
    (PACK_THREE, "(unit - block * (BLK // ROWS)) * (ROWS * 32)", "0", PACKED_TRIPLES),
    (PACK_THREE, "            cuda.syncthreads()\n            unit", "            unit", PACKED_TRIPLES),
    (PACK_THREE, "size <= real(LARGEST)", "size == size", SPOILT_TRIPLES),
    (GUARD, "if flagged and further > 0:", "if False:", NOT_FURTHER),
    # products by a triangle
    (TILES, "min((grain + 1) * PER_GRAIN, blocks)", "min(grain * PER_GRAIN + 1, blocks)", BY_LOWER),
    (TILES, "grain * PER_GRAIN if options & FROM_DIAGONAL else 0", "0", BY_UPPER),
    (TILES, "min(blocks, tiles - begin)", "blocks", BY_LOWER),
    (READER, "diagonal + 1 - strict", "diagonal - strict", PACKED_LOWER),
    (READER, "shift - strict < BLK_K - 1", "shift < 0", PACKED_LOWER),
    (FACTOR, "diagonal + 1 - strict", "diagonal - strict", GUARDED_LOWER),
    (FACTOR, "int32(0), diagonal, diagonal, last", "int32(0), last, diagonal, last", GUARDED_LOWER),
    (GUARD, "                cuda.syncthreads()", "                pass", GUARDED_LOWER),
    # splitting and packing
    (PACK, "cuda.syncthreads()\n        settle", "settle", BY_ROWS),
    (PACK, "cuda.syncthreads()\n\n        # (3)", "# (3)", BY_ROWS),
    (READER, "chunk * CHUNK if row < rows else 0", "chunk * CHUNK", BY_ROWS),
    (READER, "e < left", "left > 0", GAP),
    (READER, "(depth >= BLK_K) & ", "", GAP),
    (PACK, "store(line, (within ^ turn) * 4", "store(line, within * 4", packed()),
    (PACK, "largest_exponent - LARGEST_SHIFTED", "LARGEST_SHIFTED - largest_exponent", packed()),
    (PACK, "> real(LARGEST_HALF)", "< real(0)", HELD),
    (READER, "at + quotient(at, PART) * BETWEEN", "at", UNITS),
    (PACK, "* (BLK * BLK_K) + part * 32", "* (BLK * BLK_K)", UNITS),
    (READER, "* BLK + (unit - block * (BLK // ROWS)) * ROWS)", "* BLK)", UNITS),
    (PACK, "unit if is_a else unit - units_a", "unit", packed()),
    (PACK, "(b, extent_b, options_b)", "(b, extent_a, options_b)", packed()),
    (READER, "int64(matrix) * batch_step", "int64(0) * batch_step", packed(batch=2)),
    (PACK, "in range(ACROSS)", "in range(1)", packed()),
    (PACK, "(x - lower_half(hi)) * real(LO)", "x - lower_half(hi)", packed()),
    (PACK, "y - upper_half(hi)", "y - lower_half(hi)", packed()),
    (PACK, "cuda.syncthreads_or(bad[0])", "cuda.syncthreads_or(0)", not_held("nan")),
    (PACK, "(abs(shifted) >= least) |", "True |", not_held("tiny")),
    (PACK, "| (x == real(0))", "| (shifted == real(0))", not_held("vanishing")),
    (PACK, "in_range | (largest == real(0))", "True", not_held("too_large")),
    (READER, "options & CONJUGATE", "0", COMPLEX),
    (READER, "(expanded - odd) ^", "expanded ^", COMPLEX),
    (READER, "row & expanded", "0", COMPLEX),
    (READER, "second if is_odd else first", "first", COMPLEX),
    (READER, "kk // REALS * step + kk % REALS", "kk * step", complex_packed(False, False, by_rows=True)),
    (READER, "(row >> expanded) * row_step + quotient", "row * row_step + quotient", COMPLEX),
    (READER, "quotient(first, REALS) * k_step", "first * k_step", COMPLEX),
    # powers of two for each k
    (POWERS, "cuda.syncthreads()", "pass", SAMPLED),
    (POWERS, ", first + j < extent)", ", True)", SAMPLED),
    (POWERS, "power_of_two(int32(-shift))", "power_of_two(shift)", SAMPLED),
    (POWERS, "(e_b - e_a) >> 1", "e_b - e_a", SAMPLED),
    (POWERS, "(abs(e_a) <= KNOWN) & ", "", SAMPLED),
    (PACK, "* powers[e]", "", EQUILIBRATED),
    (PACK, "x * power * scale", "x * scale", EQUILIBRATED),
    (PACK, "(0 if is_a else count)", "0", EQUILIBRATED),
    (PACK, "cuda.syncthreads()\n        note", "note", EQUILIBRATED),
    # what is left to FMAs
    (GUARD, "flagged | of_a[i] | of_b[i]", "flagged | of_a[i]", GUARDED),
    (GUARD, "flagged | of_a[i] | of_b[i]", "flagged | of_b[i]", GUARDED),
    (GUARD, "        if flagged:", "        if not flagged:", GUARDED),
]  # fmt: skip


@pytest.mark.parametrize(("module", "before", "after", "check"), parameters(DEFECTS))
def test_a_planted_defect_is_caught(module, before, after, check, monkeypatch):
    assert_caught(module, before, after, check, monkeypatch)
