"""Defects planted in the kernels' text, one at a time: the checks of the kernels must catch every one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import cache, partial, wraps
from pathlib import Path
from types import CodeType, ModuleType
from typing import NamedTuple

import numpy as np
import pytest

from pyblasgpu import kernels
from pyblasgpu.gpu import launch
from pyblasgpu.gpu.simulator import intrinsics as simulator
from pyblasgpu.gpu.simulator.intrinsics import SimulatorError
from pyblasgpu.kernels.registry import family_of
from pyblasgpu.kernels.trsm.small import TrsmSmall
from pyblasgpu.types import Region, Triangle

from . import (
    test_copy_scaled,
    test_gemm_mma,
    test_gemm_simt,
    test_leaves,
    test_pack,
    test_packed_products,
    test_persistent,
    test_split_k_reduce,
    test_symmetrize,
    test_trmm_fused,
    test_trsm_body,
    test_trsm_fused,
    test_trsv,
)
from .test_gemm_simt import config


class Check(NamedTuple):
    """``run(module)`` raises where `module`, in the place of the kernel `stem`, is wrong."""

    stem: str
    run: Callable


def one_each(make: Callable[..., Check]) -> Callable[..., Check]:
    """Equal checks are one, which the sound kernel has to pass once."""
    made: dict[str, Check] = {}

    @wraps(make)
    def found(*arguments, **options) -> Check:
        key = repr((arguments, sorted(options.items())))
        if key not in made:
            made[key] = make(*arguments, **options)
        return made[key]

    return found


@one_each
def tile(letter="s", trans_a=False, trans_b=False, m=17, n=9, k=11, alpha=2, beta=-1, **changes) -> Check:
    """A product by the `gemm_simt` of this Config."""
    flags = {name: changes.pop(name) for name in ("conj_a", "conj_b", "batch", "region") if name in changes}
    small = config(letter, trans_a, trans_b, **changes)

    def run(module):
        chosen = module.GemmSimt(**asdict(small))
        test_gemm_simt.check(chosen, m, n, k, alpha=alpha, beta=beta, kernels=module, **flags)

    return Check("gemm_simt", run)


@one_each
def warps(letter="d", trans_a=False, trans_b=False, m=37, n=19, k=27, **changes) -> Check:
    """A product by the `gemm_mma` of this Config."""
    flags = {name: changes.pop(name) for name in ("conj_a", "conj_b") if name in changes}
    small = test_gemm_mma.config(letter, trans_a, trans_b, prefetch=True, **changes)

    def run(module):
        test_gemm_simt.check(module.GemmMma(**asdict(small)), m, n, k, kernels=module, **flags)

    return Check("gemm_mma", run)


@one_each
def leaf(family, letter="d", n=21, r=11, **options) -> Check:
    """A triangle by a leaf kernel."""

    def run(module):
        test_leaves.check(family, letter, n, r, kernels=module, **options)

    return Check("trsm_small" if family == "small" else f"{family}_leaf", run)


@one_each
def solved(letter="d", n=21, r=11, stem="trsm_mma", **options) -> Check:
    """A triangle by a leaf whose warps own columns of B."""

    def run(module):
        test_trsm_body.check(stem, letter, n, r, kernels=module, **options)

    return Check(stem, run)


@one_each
def by_fma(letter="d", **options) -> Check:
    """The same, by a `trsm_fma`."""
    return solved(letter, stem="trsm_fma", **options)


def _not_finite(module) -> None:
    """What overflows where rows are divided first must be solved again; elsewhere nothing is spoilt."""
    for rows, at in ((9, 4), (29, 12), (29, 26)):
        t, b, x = test_trsm_body.overflowing("float64", rows, at)
        np.testing.assert_allclose(test_trsm_body.solve(module.STEM, t, b, kernels=module), x, rtol=1e-14)


def _huge_diagonal(module) -> None:
    """The square of its size overflows, and its inverse counts as zero."""
    t, x = np.eye(9, dtype=complex), np.ones((9, 2), complex)
    t[4, 4] = 1e200
    np.testing.assert_array_equal(test_trsm_body.solve(module.STEM, t, t @ x, kernels=module), x)


@one_each
def once(letter="d", n=53, **options) -> Check:
    """A triangle with few right-hand sides in one launch, some orders of its blocks."""

    def unneeded(*_):
        raise AssertionError("solved again")

    def run(module):
        module.by_exact_division = lambda *_: unneeded
        for seed in range(4):
            simulator.reseed(seed)
            test_trsv.check(letter, n, kernels=module, **options)

    return Check("trsv", run)


def _careful_in_one(module) -> None:
    """What is not safe to divide by, or overflows where columns are divided first."""
    test_trsv.check_true_divisions("d", 3e300, module)
    test_trsv.check_true_divisions("z", 1e-310, module)
    test_trsv.check_overflow(module)


@one_each
def sums(letter="s", **options) -> Check:
    """Partials added up."""

    def run(module):
        test_split_k_reduce.check(letter, kernels=module, **options)

    return Check("split_k_reduce", run)


@one_each
def mirrored(letter="d", **options) -> Check:
    """A matrix and its mirror image, in one triangle."""

    def run(module):
        test_symmetrize.check(letter, kernels=module, **options)

    return Check("symmetrize", run)


@one_each
def pack(letter="s", deep=False, **options) -> Check:
    """An operand packed by stripes, its rows lengthened; or by `deep` ones, read by 16 bytes."""
    given = {"packing": test_pack.DEEP[-1], "extent": 44, "k": 36} if deep else {}

    def run(module):
        test_pack.check(letter, kernels=module, **{**given, **options})

    return Check("pack", run)


@one_each
def of_packed(letter="s", family="gemm_simt", m=37, n=19, k=27, walk=None, batch=1, **changes) -> Check:
    """A product of packed operands."""
    small = test_packed_products.config(letter, family, persistent=bool(walk), **changes)

    def run(module):
        chosen = getattr(module, type(small).__name__)(**asdict(small))
        test_packed_products.product(chosen, m, n, k, walk, batch=batch, kernels=module)

    return Check(family, run)


@one_each
def walked(
    letter="s", m=35, n=19, k=26, walk="streamed", blocks=4, batch=1, region=Region.ALL, **changes
) -> Check:  # fmt: skip
    """A product by persistent blocks."""

    def run(module):
        small = test_persistent.tile(letter, **changes)
        test_persistent.check(small, m, n, k, walk, blocks, batch, region=region, kernels=module)

    return Check("gemm_simt", run)


@one_each
def in_place(letter="s", triangle=Triangle.LOWER_LEFT, seeds=3, **options) -> Check:
    """A product by a triangle in place, some orders of its blocks, that tell of each level."""

    def run(module):
        sys.modules[f"{kernels.__name__}.gemm.trmm_fused"].SPAN = 1
        for seed in range(seeds):
            simulator.reseed(seed)
            test_trmm_fused.check(letter, triangle, kernels=module, **options)

    return Check("gemm_simt", run)


@one_each
def unspoilt(letter="s", triangle=Triangle.LOWER_LEFT) -> Check:
    """The same with one number that is not finite."""

    def run(module):
        sys.modules[f"{kernels.__name__}.gemm.trmm_fused"].SPAN = 1
        for seed in range(3):
            simulator.reseed(seed)
            test_trmm_fused.check_not_finite(letter, triangle, kernels=module)

    return Check("gemm_simt", run)


@one_each
def at_once(letter="s", triangle=Triangle.LOWER_LEFT, seeds=3, quickly=False, **options) -> Check:
    """A triangle that is solved in one launch, some orders of its blocks, that tell of each stripe.

    `quickly`: without true divisions, which mend what is wrong before them.
    """

    def run(module):
        sys.modules[f"{kernels.__name__}.gemm.trsm_fused"].SPAN = 1
        if quickly:
            sys.modules[f"{kernels.__name__}.gemm.diagonal_solve"].exact_division_solver = lambda *_: _mends
        for seed in range(seeds):
            simulator.reseed(seed)
            test_trsm_fused.check(letter, triangle, kernels=module, **options)

    return Check("gemm_simt", run)


@one_each
def shared_out(letter="s", triangle=Triangle.LOWER_LEFT, **options) -> Check:
    """The same by threads that share a right-hand side."""
    return at_once(letter, triangle, **options, **test_trsm_fused.shared(triangle))


def _mends(*_) -> None:
    raise AssertionError("it is solved again")


@one_each
def solved_by(test: Callable, *arguments) -> Check:
    """A test of what has no safe reciprocal, or no finite quotient."""
    return Check("gemm_simt", lambda module: test(*arguments, kernels=module))


@one_each
def diagonal(letter="d", **options) -> Check:
    """The copy of the diagonal blocks."""

    def run(module):
        test_trmm_fused.check(letter, Triangle.LOWER_LEFT, copier=module, **options)

    return Check("diagonal_blocks", run)


@one_each
def kept(letter="s", m=19, n=21, k=20, **changes) -> Check:
    """A product whose stripe of B stays as it lies, along k."""

    def run(module):
        small = test_gemm_simt.kept(letter, **changes)
        test_gemm_simt.check(module.GemmSimt(**asdict(small)), m, n, k, kernels=module)

    return Check("gemm_simt", run)


@one_each
def copy(test: Callable, *arguments) -> Check:
    """A test of `copy_scaled`, which finds its kernel by the module's name."""

    def run(module):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(test_copy_scaled, "copy_scaled", module)
            test(*arguments)

    return Check("copy_scaled", run)


def _no_safe_reciprocal(module) -> None:
    t, x = np.asfortranarray([[1.0, 0, 0], [2, 1e-310, 0], [3, 4, -1]]), np.ones((3, 1))
    b = np.asfortranarray(t @ x)
    test_leaves.launch(module, test_leaves.small("small", "d"), t, b, test_leaves.VARIANT, 1.0)
    np.testing.assert_array_equal(b[:1], x[:1])
    np.testing.assert_allclose(b, [[1], [(t @ x - 2)[1, 0] / 1e-310], [3 + 4 * b[1, 0] - (t @ x)[2, 0]]])


def _nan_in_b(module) -> None:
    """A NaN in B must not meet the zeros that stand for what lies above the diagonal."""
    t, b = np.asfortranarray(np.tril(np.ones((13, 13)))), np.ones((13, 6), order="F")
    b[5, 2] = np.nan
    test_leaves.launch(module, test_leaves.small("trmm", "d"), t, b, test_leaves.VARIANT, 1.0)
    assert np.isnan(b).sum() == 8


STAIRS = Check("trmm_leaf", _nan_in_b)
CAREFUL = Check("trsm_small", _no_safe_reciprocal)
CAREFUL_ONCE = Check("trsv", _careful_in_one)
OVERFLOW, HUGE = Check("trsm_mma", _not_finite), Check("trsm_mma", _huge_diagonal)
OVERFLOW_APART = Check("trsm_fma", _not_finite)
LARGE = {"ORDER": 64, "BLK": 16}
LOADED = {"PRODUCER_WARPS": 1}
BY_TURNS = {"WARPS_PER_COLUMN_GROUP": 2}
COPIES = copy(test_copy_scaled.test_copies, "z", True, False, True)
ZEROS = copy(test_copy_scaled.test_zeros_without_reading, "z")
TRIANGLE = copy(test_copy_scaled.test_triangles_are_copied_alone, "c", Region.HERMITIAN_LOWER, True, False)
MIRROR = copy(test_copy_scaled.test_a_triangle_is_mirrored, "c", Region.HERMITIAN_LOWER, True, False)
STRICT = copy(test_copy_scaled.test_triangles_are_copied_alone, "d", Region.STRICT_LOWER, True, False)
PAIRS = tile(trans_a=True, k=12, VEC_A=2, DIM_XA=4, DIM_YA=8, BLK_K=8)
ROWS = leaf("trmm", t_by_rows=False)
WIDE = TrsmSmall("d", BLK_N=64)  # threads whose elements of the diagonal others bring
DIRECT = {"share_a": False, "share_b": False}
RING = "wait()\n            cuda.syncthreads()"
NEXT = "load(0, ra, rb, there"
INSIDE = "rows >= BLK_M and cols >= BLK_N and"
FILL = "wait()\n            cuda.syncthreads()\n            load(0, ra"

#: module, text, what is planted in its place, the check that sees it
DEFECTS = [
    # barriers and waits
    ("gemm.mainloop", f"{RING}\n            start", "wait()\n            start", tile(stages=2)),
    ("gemm.mainloop", f"{RING}\n            start", "cuda.syncthreads()\n            start", tile(stages=2)),
    ("gemm.mainloop", f"{RING}\n            {NEXT}", f"wait()\n            {NEXT}", warps()),
    ("gemm.mainloop", f"{RING}\n            {NEXT}", f"cuda.syncthreads()\n            {NEXT}", warps()),
    ("gemm.persistent", FILL, "wait()\n            load(0, ra", walked("d", prefetch=True)),
    ("gemm.persistent", FILL, "cuda.syncthreads()\n            load(0, ra", walked("d", prefetch=True)),
    ("gemm.mainloop", FILL, "wait()\n            load(0, ra", warps()),
    ("gemm.mainloop", FILL, "cuda.syncthreads()\n            load(0, ra", warps()),
    ("gemm.mainloop", "ptx.wait_async(config.stages - 2)", "ptx.wait_async(config.stages - 1)", tile(stages=3)),
    ("gemm.mainloop", "if stripe > 0:\n                    cuda.syncthreads()", "pass", tile()),
    ("gemm.mainloop", "staged_b, t)\n                cuda.syncthreads()", "staged_b, t)", tile()),
    ("common.triangle_panel", "= acc[x]\n            cuda.syncthreads()", "= acc[x]", leaf("trmm", slices=2)),
    ("trmm.leaf", "wait()\n                cuda.syncthreads()", "wait()", leaf("trmm")),
    ("trmm.leaf", "wait()\n                cuda.syncthreads()", "cuda.syncthreads()", leaf("trmm")),
    ("trmm.leaf", "wait_async(STAGES - 2)", "wait_async(STAGES - 1)", leaf("trmm")),
    ("trmm.leaf", "if UNIT:\n            cuda.syncthreads()", "if False: pass", leaf("trmm", unit=True)),
    ("copy.copy_scaled", "alpha_i)\n            cuda.syncthreads()", "alpha_i)", COPIES),
    ("copy.split_k_reduce", "acc, 0)\n        cuda.syncthreads()", "acc, 0)", sums()),
    ("copy.symmetrize", "wait()\n        cuda.syncthreads()", "wait()", mirrored()),
    ("copy.symmetrize", "wait()\n        cuda.syncthreads()", "cuda.syncthreads()", mirrored()),
    # edges
    ("gemm.mainloop", "(row < rows) & (col < cols)", "(row <= rows) & (col < cols)", tile(beta=0)),
    ("gemm.mainloop", "(row < rows) & (col < cols)", "(row < rows) & (col < cols - 1)", tile()),
    ("gemm.mainloop", INSIDE, INSIDE.replace("BLK_M", "0"), tile()),
    ("gemm.mainloop", "and ldc % RUN == 0", "", tile(m=18, VEC_M=2, PAD_A=2)),
    ("gemm.simt", "(at < extent) & (kk < depth)", "(at < extent)", tile(**DIRECT)),
    ("gemm.simt", "(at < extent) & (kk < depth)", "(kk < depth)", tile(trans_a=True, **DIRECT)),
    ("gemm.mainloop", "depth >= BLK_K:", "depth > 0:", tile(m=16, n=8)),
    ("gemm.mainloop", "rows >= BLK_M and", "rows > 0 and", tile(trans_a=True, stages=2)),
    ("gemm.mainloop", "(k + BLK_K - 1) // BLK_K", "k // BLK_K", tile()),
    ("common.smem_tile", "(along < majors) & (across < minors)", "(along < majors)", tile()),
    ("common.smem_tile", "(along < majors) & (across < minors)", "(along <= majors) & (across < minors)", tile()),
    ("common.smem_tile", "if across < minors else 0", "if across <= minors else 0", tile(stages=2)),
    ("common.smem_tile", "max(majors - along, 0)", "max(majors - along + 1, 0)", tile(stages=2)),
    ("common.triangle_panel", "(i < rows_left) & (j < cols_left)", "(i <= rows_left) & (j < cols_left)", ROWS),
    ("common.triangle_panel", "(i < rows_left) & (j < cols_left)", "(i < rows_left)", leaf("trmm")),
    ("common.triangle_panel", "(row < rows) & (col < cols)", "(row <= rows) & (col < cols)", leaf("trmm")),
    ("common.triangle_panel", "(row < rows) & (col < cols)", "(row < rows)", leaf("trmm")),
    ("common.coalesced_index", "True if TOTAL % THREADS == 0 else t + k * THREADS < TOTAL", "True", leaf("trmm", depth=6)),
    ("common.coalesced_index", "+ k * STEP", "+ k", leaf("trmm", depth=6)),
    ("common.coalesced_index", "at + STEP *", "at + (STEP + 1) *", leaf("trmm", depth=6)),
    ("common.coalesced_index", "way(t, k + 1,", "way(t, k,", leaf("trmm", depth=6)),
    ("common.substitution", "(i < rows) & (j < cols)", "(i <= rows) & (j < cols)", leaf("small")),
    ("common.substitution", "(i < rows) & (j < cols)", "(i < rows - 1) & (j < cols)", leaf("small")),
    ("trmm.leaf", "k in range(0, min(row0 + BLK_M, n), BLK_K)", "k in range(0, row0, BLK_K)", leaf("trmm")),
    ("trmm.leaf", "depth = min(row0 + BLK_M, n) - k", "depth = n - k", leaf("trmm", depth=12)),
    ("copy.copy_scaled", "(i < rows) & (j < cols)", "(i < rows) & (j <= cols)", COPIES),
    ("common.region", "shift + BLK_M > FIRST", "shift > FIRST", TRIANGLE),
    ("copy.split_k_reduce", "(row < m) & (col < n)", "(row <= m) & (col < n)", sums(beta=0.0)),
    ("copy.split_k_reduce", "(row < m) & (col < n)", "(row < m)", sums(m=12, beta=0.0)),
    ("copy.split_k_reduce", "inside & (u < count)", "inside", sums()),
    ("copy.split_k_reduce", "inside & (u < count)", "u < count", sums()),
    ("copy.split_k_reduce", "here < ldp * n", "here < ldp * (n - 1)", sums()),
    ("copy.split_k_reduce", "min(partials - begin, per_slice)", "per_slice", sums(partials=10)),
    ("copy.split_k_reduce", "(partials + SLICES - 1) // SLICES", "partials // SLICES", sums()),
    ("copy.symmetrize", "ok = (i < rows) & (j < cols)", "ok = j < cols", mirrored(n=17)),
    ("copy.symmetrize", "ok = (i < rows) & (j < cols)", "ok = i < rows", mirrored(n=17)),
    ("copy.symmetrize", "return (i < rows) & (j < cols)", "return (j < cols)", mirrored()),
    ("copy.symmetrize", "return (i < rows) & (j < cols)", "return (i < rows)", mirrored(region=Region.UPPER)),
    ("copy.symmetrize", "(n + BLK - 1) // BLK", "n // BLK", mirrored()),
    ("copy.pack", "(i < rows) & (kk < depth)", "(kk < depth)", pack(by_rows=False)),
    ("copy.pack", "(i < rows) & (kk < depth)", "(i < rows)", pack()),
    ("copy.pack", "(i < rows) & (kk < depth)", "(i <= rows) & (kk < depth)", pack()),
    ("copy.pack", "(left >= REACH) | (left <= 0)", "True", pack("d", gap=1)),
    ("copy.pack", "(left >= REACH) | (left <= 0)", "True", pack("d", deep=True, k=31, by_rows=False, gap=1)),
    ("copy.pack", "(x < across) & (y < deep)", "x < across", pack()),
    ("copy.pack", "(x < across) & (y < deep)", "y < deep", pack(extent=40)),
    ("copy.pack", "uint32(extent + (BLK - 1))", "uint32(extent)", pack()),
    ("copy.pack", "uint32(k + (BLK_K - 1))", "uint32(k)", pack()),
    # what must not be read
    ("copy.pack", "int32(extent - row) if i < BLK else int32(0)", "int32(extent - row)", pack()),
    ("common.triangle_panel", "i + shift - j >= FIRST", "i + shift - j > FIRST", leaf("trmm")),
    ("common.triangle_panel", "i + shift - j >= FIRST", "j - i - shift >= FIRST", leaf("trmm")),
    ("common.triangle_panel", "i + shift - j >= FIRST", "i - j >= FIRST", leaf("trmm")),
    ("trmm.leaf", "keep = row + below >= kk", "keep = True", STAIRS),
    ("trmm.leaf", "keep = row + below >= kk", "keep = row + below > kk", leaf("trmm")),
    ("gemm.mainloop", "(beta != real(0)) | (beta_i != real(0))", "True", tile(beta=0)),
    ("gemm.mainloop", "read(old, i * WIDTH, c", "read(old, 0, c", tile(BLK_M=32, BLK_N=32)),
    ("gemm.mainloop", "place(first + i, t)\n        read", "place(i, t)\n        read",
     tile(n=30, BLK_M=32, BLK_N=32)),
    ("gemm.mainloop", "scale_run(0, x, i * WIDTH", "scale_run(0, x, 0", tile(BLK_M=32, BLK_N=32)),
    ("gemm.mainloop", "x = (first + i) * WIDTH", "x = i * WIDTH", tile(n=30, BLK_M=32, BLK_N=32)),
    ("gemm.mainloop", "(beta != real(0)) | (beta_i", "(beta != real(0)) & (beta_i", tile()),
    ("copy.copy_scaled", "real(0) if zero else tile", "tile", ZEROS),
    ("common.region", "i + shift - j >= FIRST", "i + shift - j > FIRST", TRIANGLE),
    ("common.region", "i + shift - j >= FIRST", "i - j >= FIRST", TRIANGLE),
    ("common.region", "1 if region.strict else 0", "0", STRICT),
    ("common.region", "i + shift <= j", "i + shift < j", tile(m=20, n=20, region=Region.UPPER)),
    ("common.region", "i + shift <= j", "i <= j", tile(m=20, n=20, region=Region.UPPER)),
    ("common.region", "shift + BLK_M <= 0 if", "shift <= 0 if", tile(m=32, n=32, region=Region.UPPER)),
    ("common.region", "else shift >= BLK_N", "else shift >= 0", tile(m=32, n=32, region=Region.LOWER)),
    ("common.region", "else shift >= BLK_N", "else shift >= 0", tile("c", m=32, n=32, region=Region.HERMITIAN_LOWER)),
    ("common.tile_scheduler", "quotient(order + 1, 2)", "quotient(order, 2)", tile(m=48, n=48, region=Region.LOWER)),
    ("common.tile_scheduler", "width = order | 1", "width = order", tile(m=32, n=32, region=Region.LOWER)),
    ("common.tile_scheduler", "width - longer - 1, j - longer", "width - longer, j - longer", tile(m=48, n=48, region=Region.LOWER)),
    ("common.tile_scheduler", "if upper:", "if False:", tile(m=48, n=48, region=Region.UPPER)),
    ("common.tile_scheduler", "(row * DOWN + down)", "row", tile(m=48, n=48, region=Region.LOWER, BLK_N=32)),
    ("common.tile_scheduler", "* (DOWN * ACROSS)", "", walked(m=48, n=48, batch=2, region=Region.LOWER)),
    ("gemm.persistent", "row0 - col0", "0", walked(m=48, n=48, region=Region.LOWER)),
    ("gemm.mainloop", "old[i * WIDTH + 1] = real(0)", "pass", tile("z", m=20, n=20, region=Region.HERMITIAN_LOWER)),
    ("gemm.mainloop", "acc[x + 1] = real(0)", "pass", tile("c", m=20, n=20, region=Region.HERMITIAN_UPPER)),
    ("gemm.mainloop", "REAL_DIAGONAL and row + shift == col", "REAL_DIAGONAL and row == col",
     tile("z", m=20, n=20, region=Region.HERMITIAN_LOWER)),
    ("copy.split_k_reduce", "& in_region(row, col, 0)", "", sums(m=9, n=9, region=Region.LOWER)),
    ("copy.split_k_reduce", "needed(row - col)", "needed(col - row)", sums(m=9, n=9, region=Region.LOWER)),
    ("copy.split_k_reduce", "ok, row == col, reads_c", "ok, False, reads_c", sums("z", m=9, n=9, region=Region.HERMITIAN_LOWER)),
    ("copy.split_k_reduce", "old[1] = real(0)", "pass", sums("z", m=9, n=9, region=Region.HERMITIAN_LOWER)),
    ("copy.copy_scaled", "real_diagonal and i + x * ROWS + shift == j + x * COLS", "False", TRIANGLE),
    ("copy.copy_scaled", "tile[to], tile[to + 1] = alpha * re, real(0)", "pass", TRIANGLE),
    ("copy.split_k_reduce", "ok & reads_c", "ok", sums(beta=0.0)),
    ("copy.split_k_reduce", "(beta_i != real(0))", "False", sums("z", beta=2j)),
    ("copy.symmetrize", "& in_region(i, j, shift)", "", mirrored()),
    ("copy.symmetrize", "real(0) if i + shift == j else im", "im", mirrored("z", region=Region.HERMITIAN_LOWER)),
    ("copy.symmetrize", "ok & reads_c", "ok", mirrored(beta=0.0)),
    ("copy.symmetrize", "(beta_i != real(0))", "False", mirrored("z", beta=2j)),
    # conjugation and complex arithmetic
    ("gemm.simt", "conj_a,\n            conj_b,", "False,\n            conj_b,", tile("c", conj_a=True)),
    ("gemm.simt", "conj_a,\n            conj_b,", "conj_b,\n            conj_a,", tile("z", conj_b=True)),
    ("gemm.mainloop", "alpha * acc[x] - alpha_i", "alpha * acc[x] + alpha_i", tile("z", alpha=1 - 2j)),
    ("gemm.mainloop", "- beta_i * old[y + 1]", "+ beta_i * old[y + 1]", tile("c", beta=1j)),
    ("gemm.mma", "parts, conj_a, conj_b,", "parts, False, conj_b,", warps("z", conj_a=True)),
    ("gemm.mma", "parts, conj_a, conj_b,", "parts, conj_b, conj_a,", warps("z", conj_b=True)),
    ("gemm.mma", "by_real - by_imaginary\n", "by_real + by_imaginary\n", warps("z", three_m=True)),
    ("gemm.mma", "by_sums - by_real", "by_sums", warps("z", three_m=True)),
    ("common.triangle_panel", "PARTS, conj, False)", "PARTS, False, False)", leaf("trmm", "z", conj=True)),
    ("common.triangle_panel", "PARTS, conj, False)", "PARTS, False, conj)", leaf("trmm", "c", conj=True)),
    ("common.substitution", "j, PARTS, conj, -1", "j, PARTS, False, -1", leaf("small", "c", conj=True)),
    ("common.substitution", "t_im = real(CONJ) * diagonal[t", "t_im = diagonal[t", leaf("small", "z", conj=True)),
    ("trmm.leaf", "stripe_multiplier(config, variant.conj)", "stripe_multiplier(config, False)",
     leaf("trmm", "z", conj=True)),
    ("copy.copy_scaled", "-1 if conj else 1", "1", COPIES),
    ("copy.split_k_reduce", "alpha * re - alpha_i * im", "alpha * re + alpha_i * im", sums("c", alpha=1 - 2j)),
    ("copy.split_k_reduce", "+ beta_i * old[0]", "- beta_i * old[0]", sums("z", beta=1j)),
    ("copy.symmetrize", "- other[1]", "+ other[1]", mirrored("c", region=Region.HERMITIAN_UPPER)),
    ("copy.symmetrize", "- beta_i * old[2 * x + 1]", "+ beta_i * old[2 * x + 1]", mirrored("c", beta=1 - 2j)),
    ("copy.pack", "if CONJ:", "if False:", pack("c", conj=True)),
    ("copy.pack", "-vector[v * PARTS + 1]", "vector[v * PARTS + 1]", pack("z", conj=True)),
    # places and strides
    ("gemm.simt", "step * (VEC_K * LEAD) + place", "step * (VEC_K * LEAD - 1) + place", tile()),
    ("gemm.simt", "pointer, kk * LEAD)", "pointer, 0)", kept()),
    ("gemm.simt", "kk * (count * parts)", "0", kept()),
    ("gemm.simt", "place * LEAD + step * (VEC_K * parts)", "place * LEAD", kept()),
    ("gemm.simt", "count, dim * LEAD", "count, LEAD", kept()),
    ("gemm.simt", "(kk, VEC_K) if", "(0, VEC_K) if", kept()),
    ("gemm.simt", "(kk * count, 1)", "(kk, 1)", kept()),
    ("copy.copy_scaled", "ok & (row + shift > col)", "ok", MIRROR),
    ("copy.copy_scaled", "-1 if REAL_DIAGONAL else 1", "1", MIRROR),
    ("copy.copy_scaled", "(col0 * d_rs + row0 * d_cs)", "(row0 * d_rs + col0 * d_cs)", MIRROR),
    ("copy.copy_scaled", "row_stride, col_stride = col_stride, row_stride", "pass", MIRROR),
    ("gemm.mainloop", "batch * stride_c + col0", "batch * stride_a + col0", tile(m=16, k=4, batch=2)),
    ("gemm.mainloop", "begin_b(col0, int64(0), ldb)", "begin_b(row0, int64(0), ldb)", tile()),
    ("gemm.mainloop", "BLK_M = BLK_N = BLK_K = 1", "BLK_M = BLK_N = BLK_K = 2", of_packed(m=33)),
    ("common.tile_scheduler", "rows - column * most, most)", "rows, most)", tile(m=16 * 9 + 1, n=17, k=2)),
    ("gemm.mainloop", "if reading < STAGES - 1 else 0", "if reading < STAGES else 0", tile(stages=2)),
    ("gemm.config", "return self.stages * self.stage", "return self.stage", tile(stages=3)),
    ("gemm.simt", "LEAD = stripe.lead * parts", "LEAD = stripe.blk * parts", tile(PAD_A=1, stages=2)),
    ("common.smem_tile", "place + piece * LEAD, staged", "place + piece, staged", PAIRS),
    ("common.smem_tile", "along * LEAD + across * PARTS if TRANSPOSES else ", "", tile(trans_a=True, stages=2)),
    ("common.smem_tile", "major * LEAD + minor * PARTS if TRANSPOSES else ", "", tile(trans_a=True, stages=2)),
    ("common.smem_tile", "self.lead if self.is_kept", "1 if self.is_kept", warps()),
    ("common.smem_tile", "return 1 if self.is_kept", "return self.lead if self.is_kept", warps()),
    ("common.smem_tile", "first * lead + along if K_MAJOR else ", "", tile(trans_a=True)),
    ("common.smem_tile", "int64(DEPTH) if K_MAJOR else DEPTH * lead", "int64(DEPTH)", tile(trans_b=True)),
    ("common.smem_tile", "quotient(first, BLK) * lead", "first * lead", of_packed()),
    ("common.smem_tile", "+ along * LEAD", "+ along * BLK", of_packed("d", "gemm_mma", n=40, walk="streamed")),
    ("common.smem_tile", "int64(DEPTH * LEAD)", "int64(DEPTH * BLK)", of_packed("z", "gemm_mma")),
    ("common.smem_tile", "or t + first < RUNS", "or True", of_packed("c", BLK_M=8, DIM_XA=8, DIM_YA=4)),
    ("common.smem_tile", "range(0, RUNS, THREADS)", "range(0, RUNS - THREADS, THREADS)", of_packed("d")),
    ("common.smem_tile", "place + first * REALS", "place", of_packed("z")),
    ("common.smem_tile", "line, first * REALS", "line, 0", of_packed("z")),
    ("common.smem_tile", "line = offset(line, DIM_Y * lead", "line = offset(line, lead", tile()),
    ("gemm.mma", "B_STRIPE + (col", "(col", warps()),
    ("gemm.mma", "step * DEPTH + quarter", "step * DEPTH", warps()),
    ("gemm.mma", "t // 32 % WARPS_M * WARP_M + g", "g", warps()),
    ("gemm.mma", "t % 4 * 2 + j % 2", "t % 4 * 2 + (1 - j % 2)", warps()),
    # products in place
    ("gemm.trmm_fused", "if load_acquire(flags, before * strips + strip) > level:", "if True:", in_place()),
    ("gemm.trmm_fused", "strip) > level:", "strip) >= level:", in_place(order=90)),
    ("gemm.trmm_fused", "while before < level:", "while before < level - 1:", in_place()),
    ("gemm.trmm_fused", "strips + strip, passed)", "strips + strip, passed + 1)", in_place(order=90)),
    ("gemm.trmm_fused", "THREADS)\n        cuda.syncthreads()", "THREADS)", in_place()),
    ("gemm.trmm_fused", "strips + strip, levels)", "strips + strip, 0)", in_place()),
    ("gemm.trmm_fused", "depth if passed < count else 0", "depth", in_place()),
    ("gemm.trmm_fused", "if passed == own:", "if passed == own + 1:", in_place()),
    ("gemm.trmm_fused", "int64(first) + BEYOND", "int64(first)", in_place()),
    ("gemm.trmm_fused", "(-1, -BLK_K) if", "(-1, BLK) if", in_place()),
    ("gemm.trmm_fused", "SIGN * next_c", "next_c", in_place()),
    ("gemm.trmm_fused", "own - 1 if DOWN else 0", "0", in_place()),
    ("gemm.trmm_fused", "levels - 1 - level if DOWN else level", "level", in_place()),
    ("gemm.trmm_fused", "levels - 1 - level if DOWN else level", "level", in_place(triangle=Triangle.UPPER_RIGHT)),
    ("gemm.trmm_fused", "own + index * PER if DOWN", "index * PER if DOWN", in_place()),
    ("gemm.trmm_fused", "int64(first) * BLK + begin_t", "begin_t", in_place(triangle=Triangle.UPPER_LEFT)),
    ("gemm.trmm_fused", "found[0] != found[0]", "False", unspoilt()),
    ("gemm.trmm_fused", "(int32(0), here) if DOWN", "(int32(0), int32(depth - 1)) if DOWN", unspoilt()),
    ("gemm.trmm_fused", "(here, int32(depth - 1))", "(int32(0), int32(depth - 1))", unspoilt("z", Triangle.LOWER_RIGHT)),
    ("gemm.trmm_fused", "x[0] * y[0] - imaginary", "x[0] * y[0] + imaginary", unspoilt("z")),
    ("gemm.trsm_fused", "ready = load_acquire(flags, flag)", "ready = int32(passed + 1)", at_once(order=90)),
    ("gemm.trsm_fused", "int32(empty + 1)", "int32(empty)", at_once(order=90)),
    ("gemm.trsm_fused", "            if is_dry:", "            if False:",
     at_once(order=90, stages=3, prefetch=True)),
    ("gemm.trsm_fused", "is_dry or empty == STAGES - 1", "is_dry", at_once(order=90, stages=3, prefetch=True)),
    ("gemm.trsm_fused", "(STAGES - 1) - empty", "(STAGES - 1)", at_once(order=90)),
    ("gemm.trsm_fused", "into if into < STAGES else into - STAGES", "into",
     at_once(order=90, stages=3)),
    ("gemm.trsm_fused", "int32(count + done))", "int32(count + done + 1))", at_once(order=90)),
    ("gemm.trsm_fused", "if level < levels - 1 else 0", "if level < levels else 0", at_once()),
    ("gemm.trsm_fused", "(stripes - 1) * BLK_K, order", "stripes * BLK_K, order", at_once(triangle=Triangle.UPPER_LEFT)),
    ("gemm.trsm_fused", "SIGN * next_c", "next_c", at_once(triangle=Triangle.UPPER_LEFT)),
    ("gemm.trsm_fused", "base + SIGN * BLK_K", "base + BLK_K", at_once(triangle=Triangle.LOWER_RIGHT)),
    ("gemm.trsm_fused", "(own - 1) * BLK_K)", "0)", at_once(triangle=Triangle.LOWER_RIGHT)),
    ("gemm.trsm_fused", "if done < own - 1:", "if done < own - 2:", at_once()),
    ("gemm.trsm_fused", "cuda.syncthreads()\n            if t == ASIDE", "if t == ASIDE", at_once()),
    ("gemm.trsm_fused", "cuda.syncthreads()\n        if t == 0:\n            store_release",
     "if t == 0:\n            store_release", at_once()),
    ("gemm.trsm_fused", "strip * FLAG)", "0)", at_once()),
    ("gemm.diagonal_solve", "panel[at] - acc[x]", "panel[at] + acc[x]", at_once()),
    ("gemm.diagonal_solve", "alpha * panel[at] - acc[x]", "panel[at] - acc[x]", at_once()),
    ("gemm.diagonal_solve", "prepared[d] = value[ON_DIAGONAL]", "prepared[d] = real(1)", at_once()),
    ("gemm.diagonal_solve", "THREADS * MANY)), MANY * PARTS", "THREADS * MANY)), 0", at_once()),
    ("gemm.diagonal_solve", "i > j if down else i < j", "i > j", at_once(triangle=Triangle.UPPER_LEFT, quickly=True)),
    ("gemm.diagonal_solve", "(COUNT - 1 - i, COUNT - 1 - j)", "(i, j)",
     at_once(triangle=Triangle.UPPER_LEFT, quickly=True)),
    ("gemm.diagonal_solve", "real(CONJ) * value[x + 1]", "value[x + 1]", at_once("c", conj=True)),
    ("gemm.diagonal_solve", "else (sides, extent)", "else (extent, sides)", at_once(triangle=Triangle.LOWER_RIGHT)),
    ("gemm.diagonal_solve", "(k < extent) & (side < sides)", "(side < sides)",
     solved_by(test_trsm_fused.overflowing)),
    ("gemm.diagonal_solve", "(k < extent) & (side < sides)", "(k < extent)",
     solved_by(test_trsm_fused.overflowing)),
    ("common.substitution", "(i < rows) & (j < cols)", "(j < cols)", at_once()),
    ("common.substitution", "(i < rows) & (j < cols)", "(i < rows)", at_once()),
    ("common.substitution", "i * row + j * col + part", "i * row + j * parts + part",
     at_once(BLK_K=8, UNROLL=8, VEC_K=2)),
    ("gemm.diagonal_solve", "non_finite if size < real(INFINITY) else 1", "non_finite",
     solved_by(test_trsm_fused.overflowing)),
    ("gemm.warp_substitution", "        sync_warp()", "        pass", shared_out()),
    ("gemm.warp_substitution", "            eliminate(column)\n", "", shared_out("z", quickly=True)),
    ("gemm.warp_substitution", "range(1, SHARES)", "range(2, SHARES)", shared_out()),
    ("gemm.warp_substitution", "later_rows(column, own)\n", "pass\n", shared_out("z")),
    ("gemm.warp_substitution", "put(0, column, mine)\n", "pass\n", shared_out("c")),
    ("gemm.warp_substitution", "SIGN * share", "share", shared_out(triangle=Triangle.UPPER_LEFT)),
    ("gemm.warp_substitution", "else places.count - 1", "else 0", shared_out(triangle=Triangle.LOWER_RIGHT)),
    ("gemm.warp_substitution", "share * LINES", "0", shared_out()),
    ("gemm.warp_substitution", "0 if size < real(INFINITY) else 1", "0",
     solved_by(partial(test_trsm_fused.overflowing, **test_trsm_fused.shared(Triangle.LOWER_LEFT)))),
    ("gemm.diagonal_solve", "(p, q) if BY_ROWS", "(q, p) if BY_ROWS", shared_out(quickly=True)),
    ("trmm.diagonal_blocks", "& is_inside(i, j, 0)", "", diagonal(beyond=77)),
    ("trmm.diagonal_blocks", "(i < left) & (j < left) &", "", diagonal()),
    ("trmm.diagonal_blocks", "ok & (i != j)", "ok", diagonal("z", unit=True, beyond=77j)),
    ("trmm.diagonal_blocks", "value[0] = real(1)", "pass", diagonal(unit=True)),
    ("trmm.diagonal_blocks", "(fast, slow) if by_rows", "(slow, fast) if by_rows", diagonal()),
    ("trmm.diagonal_blocks", "flag < count", "flag < count - 1", diagonal()),
    ("gemm.persistent", "matrix * stride_a + begin", "matrix * stride_b + begin", walked("d", batch=2)),
    ("gemm.persistent", "begin_a(row0, along, lda)", "begin_a(row0, int64(0), lda)", walked()),
    ("gemm.persistent", "matrix * stride_c + col0", "col0", walked("d", batch=2)),
    ("gemm.persistent", "if left == 1:", "if left == 0:", walked(k=7, stages=4)),
    ("gemm.persistent", "min(left, more) if", "left if", walked()),
    ("gemm.persistent", "if more == together:", "if more == together + 1:", walked()),
    ("gemm.persistent", "int32(more - together)", "int32(more)", walked()),
    ("gemm.persistent", "k - first * BLK_K if", "k if", walked(k=10)),
    ("gemm.persistent", "if count > 0 else 0", "", walked(walk="whole", k=40)),
    ("gemm.persistent", "if first > 0:", "if first > 1:", walked(blocks=20)),
    ("gemm.persistent", "while count < stripes:", "while count < stripes - 1:", walked(k=40, blocks=13)),
    ("gemm.persistent", "1 if last < remainder", "1 if last <= remainder", walked(k=40, blocks=86)),
    ("gemm.persistent", "int32(last + 1)", "int32(last + 2)", walked()),
    ("gemm.persistent", "int64(other) * PIECE + t", "int64(first) * PIECE + t",
     walked(m=10, n=7, k=80, blocks=9)),
    ("gemm.persistent", "offset(piece, t)", "offset(piece, t // 2)", walked()),
    ("gemm.persistent", "g * (GROUP * THREADS)", "0", walked("d", BLK_M=64, BLK_N=32)),
    ("gemm.persistent", "offset(mine, x * PIECE)", "mine", walked(m=10, n=7, k=80, blocks=9)),
    ("gemm.persistent", "other + TOGETHER <= last + 1", "other <= last", walked(m=10, n=7, k=80, blocks=8)),
    ("gemm.persistent", "int32(other + TOGETHER)", "int32(other + 1)", walked(m=10, n=7, k=80, blocks=9)),
    ("gemm.persistent", "got, first, x * GROUP", "got, first, 0", walked(m=10, n=7, k=80, blocks=9)),
    ("gemm.persistent", "            cuda.syncthreads()\n            if t == 0:\n                set_flag_release",
     "            if t == 0:\n                set_flag_release", walked()),
    ("gemm.persistent", "cuda.syncthreads()\n                add(", "add(", walked()),
    ("gemm.persistent", "if try_take_flag(flags, other):", "if try_take_flag(flags, other) or True:", walked()),
    ("gemm.persistent", "number + 1, tile", "number, tile", walked()),
    ("gemm.persistent", "reading - 1 if reading > 0 else STAGES - 1", "reading", walked()),
    ("common.tile_scheduler", "stripes if tile < tiles else 0", "stripes", walked(walk="whole")),
    ("common.tile_scheduler", "int32(block * k_iters_per_block + min(block, remainder))", "int32(block * k_iters_per_block)", walked()),
    ("common.tile_scheduler", "+ (1 if block < remainder else 0)", "", walked()),
    ("common.tile_scheduler", "full_waves * blocks + which)", "which)", walked()),
    ("common.tile_scheduler", "begin - which * stripes, 0)", "begin - which * stripes, -1)", walked(blocks=7)),
    ("gemm.mainloop", "load(2 * i + 3, ra_next", "load(2 * i + 2, ra_next", tile(stages=2, prefetch=True)),
    ("gemm.mainloop", "update(acc, ra_next, rb_next)\n        load", "load", tile(stages=2, prefetch=True)),
    ("common.triangle_panel", "(slice - 1) * ACC + x", "slice * ACC + x", leaf("trmm", slices=2)),
    ("common.triangle_panel", "kk * LEAD_T)", "kk * (LEAD_T - 1))", leaf("trmm")),
    ("trmm.leaf", "X_STRIPE + slice * DEPTH * LEAD_X", "X_STRIPE", leaf("trmm", slices=2)),
    ("trmm.leaf", "- slice * DEPTH", "", leaf("trmm", unit=True, slices=2)),
    ("trmm.leaf", "if writing < STAGES - 1 else 0", "if writing < STAGES else 0", leaf("trmm")),
    ("trmm.leaf", "batch * stride_b + col0 * b_cs", "batch * stride_t + col0 * b_cs", leaf("trmm", batch=2)),
    ("copy.copy_scaled", "row0 * d_rs + col0 * d_cs", "row0 * d_cs + col0 * d_rs", COPIES),
    ("copy.split_k_reduce", "u * stride * PARTS", "u * stride", sums("c")),
    ("copy.split_k_reduce", "p = offset(p, UNROLL * stride", "p = offset(p, stride", sums()),
    ("copy.split_k_reduce", "begin * stride_p + here", "begin * stride_p + first", sums()),
    ("copy.split_k_reduce", "(s * TILE + place) * PARTS + 1", "(s * TILE + place) * PARTS", sums("z")),
    ("copy.split_k_reduce", "(s * TILE + place) * PARTS]", "place * PARTS]", sums()),
    ("copy.split_k_reduce", "col * ldc + row", "col * ldp + row", sums(m=14)),
    ("copy.split_k_reduce", "first - col0 * ldp", "first", sums()),
    ("copy.symmetrize", "row0 * ldw + col0", "col0 * ldw + row0", mirrored()),
    ("copy.symmetrize", "batch * stride_w + row0", "row0", mirrored(batch=2)),
    ("copy.symmetrize", "batch * stride_c", "batch * stride_w", mirrored(batch=2)),
    ("copy.symmetrize", "line + x * LINES", "line", mirrored()),
    ("copy.symmetrize", "tile, (i * LEAD + j) * PARTS)", "tile, (j * LEAD + i) * PARTS)", mirrored()),
    ("copy.symmetrize", "x * PARTS + part, c", "part, c", mirrored("z")),
    ("copy.pack", "int64(panel) * BLK + i", "int64(panel) * (VECTORS * VEC) + i", pack()),
    ("copy.pack", "x - panel * VECTORS", "x", pack()),
    ("copy.pack", "y - stripe * PIECES", "y", pack()),
    ("copy.pack", "fast = uint32(block - slow * blocks)", "fast = block", pack()),
    ("copy.pack", "x * X + t // SIDE % X", "x * X + t // SIDE", pack()),
    ("copy.pack", "t // (SIDE * X) * SIDE + t % SIDE", "t // (SIDE * X) * SIDE", pack(by_rows=False)),
    ("copy.pack", "n // NEXT * (NEXT * DEEP)", "n // NEXT * DEEP", pack("d", deep=True, by_rows=False)),
    ("copy.pack", "n % NEXT * RUN", "n % NEXT", pack("d", deep=True, by_rows=False)),
    ("copy.pack", "line // VEC * STEP", "line // VEC", pack("z", deep=True, by_rows=False)),
    ("copy.pack", "(load * STEP + run)", "kk", pack("c", deep=True, by_rows=False)),
    ("copy.pack", "(load * VEC + v) * RUN + run", "kk * VEC + v", pack("d", deep=True, by_rows=False)),
    ("copy.pack", "line * STEP) if BY_ROWS", "line) if not BY_ROWS", pack("d", deep=True)),
    ("copy.pack", "kk * k_step) * PARTS + first % PARTS", "kk * k_step) * PARTS", pack("z", shift=1)),
    ("copy.pack", "(step == 1) & uncut", "uncut", pack(deep=True, step=(2, 1))),
    ("copy.pack", "is_wide(s) &", "True &", pack(shift=1)),
    ("copy.pack", "is_wide(offset(s, lead * PARTS))", "True", pack("d")),
    ("copy.pack", "PARTS == 1 or is_whole(s)", "True", pack("c", shift=1)),
    ("copy.pack", "row * s_rs + col * s_ks", "row * s_rs", pack()),
    ("copy.pack", "stripe * d_ss", "stripe * d_ts", pack()),
    ("copy.pack", "kk * d_ks + i", "i", pack()),
    ("copy.pack", "batch * stride_d + panel", "batch * stride_s + panel", pack(batch=2)),
    # order and arithmetic
    ("trmm.leaf", "int64(blocks - 1 - step)", "int64(step)", leaf("trmm")),
    ("trmm.leaf", "== diagonal:", "== diagonal + 1:", leaf("trmm", unit=True)),
    ("trmm.leaf", "store(b, at, alpha * acc[x], ok)", "store(b, at, acc[x], ok)", leaf("trmm")),
    ("common.substitution", "divided(column[x], diagonal[t], inverse[x])", "column[x]", leaf("small")),
    ("common.substitution", "int32((size >= real(TINY)) & (size <= real(HUGE)))", "int32(1)", CAREFUL),
    ("common.substitution", "range(j + 1, n)", "range(j + 2, n)", CAREFUL),
    # the leaves whose warps own columns of B
    ("trsm.body", "g, q)\n                sync_warp()", "g, q)", solved()),
    ("trsm.body", "panels, int32(odd * PANEL)", "panels, 0", solved()),
    ("trsm.body", "if lane < WARP_N:", "if True:", solved()),
    ("trsm.body", "odd == part", "odd != part", solved(changes=BY_TURNS)),
    ("trsm.body", "or mine else 1", "or mine else 0", solved(changes=BY_TURNS)),
    ("trsm.body", "b, part * BLK * b_rs", "b, 0 * b_rs", solved(changes=BY_TURNS)),
    ("trsm.body", "updater, 0, TILES - 1, 1)", "updater, 0, TILES - 1, 0)", solved(n=32, changes=BY_TURNS)),
    ("trsm.body", "NEXT, TILES - LEFT, LEFT)", "TILES, TILES, LEFT)", solved(n=32, changes=BY_TURNS)),
    ("trsm.body", "tiles - j + (WARPS_PER_COLUMN_GROUP - 1)", "tiles - j", solved(n=32, changes=BY_TURNS)),
    ("trsm.mma", "(tile * BLK + g)", "(tile + g)", solved(changes=BY_TURNS)),
    ("trsm.fma", "(tile * BLK + g)", "(tile + g)", by_fma(changes=BY_TURNS)),
    ("trsm.mma", "config.WARPS_PER_COLUMN_GROUP * BLK * STEP_ROW", "BLK * STEP_ROW", solved(n=32, changes=BY_TURNS)),
    ("trsm.fma", "config.WARPS_PER_COLUMN_GROUP * BLK * ROW", "BLK * ROW", by_fma(n=32, changes=BY_TURNS)),
    ("trsm.body", "elif cuda.syncthreads_or(unsolved):", "elif unsolved:", by_fma()),
    ("trsm.body", "wait()\n                if exact_division", "if exact_division", solved()),
    ("trsm.body", "wait_diagonals()\n        cuda.syncthreads()", "cuda.syncthreads()", solved()),
    ("trsm.body", "wait_diagonals()\n        cuda.syncthreads()", "wait_diagonals()", solved()),
    ("trsm.body", "ptx.wait_async(STAGES - 1), ptx", "ptx.wait_async(STAGES), ptx", solved()),
    ("trsm.body", "ptx.wait_async(STAGES - 2)", "ptx.wait_async(STAGES - 1)", solved()),
    ("trsm.body", "int32(0), int32(STAGES - 1)", "int32(0), int32(0)", solved()),
    ("trsm.body", "strip = offset(ring, int32(free * STAGE))", "strip = ring", solved()),
    ("trsm.load_triangle", "int32(t - FIRST), step", "t, step", solved(changes=LOADED)),
    ("trsm.load_triangle", "inside >= first + many", "inside >= first", solved()),
    ("trsm.load_triangle", "size if tile < inside else 0", "size", solved()),
    ("trsm.load_triangle", "elif first < count", "elif first < count - 1", solved()),
    ("trsm.load_triangle", "first + AT_ONCE)", "tiles)", solved(n=61, changes={"ORDER": 64})),
    ("trsm.load_triangle", "config.loading_threads, STEP", "config.threads, STEP", solved(changes=LOADED)),
    ("trsm.body", "(i < rows) & (j < cols)", "(j < cols)", solved(b_by_rows=False)),
    ("trsm.body", "(i < rows) & (j < cols)", "(i < rows)", solved()),
    ("trsm.load_triangle", "if rows - i > last", "if rows - i >= last", solved()),
    ("trsm.load_triangle", "i - j >= FIRST", "i - j > FIRST", solved(unit=True)),
    ("trsm.load_triangle", "if j != row:", "if True:", solved()),
    ("trsm.body", "-acc[x], line[d]", "acc[x], line[d]", solved()),
    ("trsm.body", "col // 2 * 8 + 2 * q + col % 2", "col // 2 * 8 + 2 * q + 1 - col % 2", solved()),
    ("trsm.body", "real(CONJ) * inverse", "inverse", solved("z", conj=True)),
    ("trsm.body", "real(CONJ) * diagonal", "diagonal", solved("z", conj=True)),
    ("trsm.body", "BLK, variant.conj, False, 16", "BLK, False, False, 16", solved("z", conj=True)),
    ("trsm.mma", "PARTS, variant.conj\n", "PARTS, False\n", solved("z", conj=True)),
    ("trsm.mma", "acc[x] = acc[x + behind * TILE]", "pass", solved()),
    ("trsm.body", "if below > first:", "if below > first + 1:", solved()),
    ("trsm.body", "updater, 0, NEXT, LEFT)", "updater, 0, NEXT - 1, LEFT)", solved(n=61, changes=LARGE)),
    ("trsm.body", "batch * stride_b + col0 * b_cs", "batch * stride_t + col0 * b_cs", solved(batch=2)),
    ("trsm.body", "safe and size < real(INFINITY)", "safe", OVERFLOW),
    ("trsm.body", "safe and size < real(INFINITY)", "size < real(INFINITY)", HUGE),
    ("trsm.body", "min(rows, BLK), safe", "BLK, safe", HUGE),
    ("trsm.body", "mend(unsolved, j - 1", "mend(int32(0), j - 1", OVERFLOW_APART),
    ("trsm.body", "mend(unsolved, last", "mend(int32(0), last", OVERFLOW_APART),
    ("trsm.body", "        if j < tiles:", "        if j < 0:", OVERFLOW_APART),
    ("trsm.body", "t_cs, lane)\n            sync_warp()", "t_cs, lane)", OVERFLOW_APART),
    ("trsm.fma", "2 * q * PARTS", "q * PARTS", by_fma()),
    ("trsm.fma", "+ g) * ROW)", "+ q) * ROW)", by_fma()),
    ("trsm.fma", "8 * ROW)", "4 * ROW)", by_fma("s", n=61, changes=LARGE)),
    ("trsm.fma", "e % PAIRS * 8 * PARTS", "0", by_fma(changes={"WARP_N": 16})),
    ("trsm.fma", "PAIR // WIDTH, WIDTH)", "1, WIDTH)", by_fma("z")),
    ("trsm.fma", "variant.conj, sources", "False, sources", by_fma("c", conj=True)),
    ("trsm.fma", "targets if k > 0 else others", "targets", by_fma()),
    ("trsm.fma", "targets if k > 0 else others", "others", by_fma()),
    ("trsm.fma", "places(first + behind, stop + behind)", "places(first, stop)", by_fma()),
    ("trsm.fma", "targets, first=k", "targets, first=0", by_fma("s")),
    ("trsm.fma", "(first + tile) * STEP_TILE", "tile * STEP_TILE", by_fma(n=61, changes=LARGE)),
    ("trsm.fma", "col * GROUPS + group", "group * COLUMNS + col", by_fma(n=61, changes=LARGE)),
    ("trsm.fma", "return self.BLK + self.vector", "return self.BLK + 1", by_fma("s")),
    ("trsm.fma", "return self.BLK + self.vector", "return self.BLK - self.vector", by_fma()),
    ("trsm.fma", "(self.ORDER - self.BLK) *", "(self.ORDER - 2 * self.BLK) *", by_fma(n=32)),
    ("trsm.fma", "return self.row_of_strip, 1", "return 1, self.row_of_strip", by_fma()),
    ("trsm.small", "wait_all()\n        cuda.syncthreads()", "wait_all()", leaf("small", config=WIDE)),
    ("trsm.small", "wait_all()\n        cuda.syncthreads()", "cuda.syncthreads()", leaf("small")),
    ("trsm.small", "alpha_i)\n        cuda.syncthreads()", "alpha_i)", leaf("small", r=40)),
    ("trsm.small", "column[x] = alpha * re\n            if", "column[x] = re\n            if", leaf("small")),
    ("trsm.small", "1, config.lead, variant", "1, ORDER, variant", leaf("small")),
    ("trsm.small", "config.vector, LEAD)", "config.vector)", leaf("small")),
    ("trsm.small", "stride_b + col0 * b_cs", "stride_b", leaf("small", r=40)),
    ("trsm.small", "batch * stride_t", "batch * stride_b", leaf("small", batch=2)),
    ("trsm.small", "offset(panel, t * PARTS)", "offset(panel, t)", leaf("small", "z")),
    ("trsm.small", "facts, ORDER, variant.conj", "facts, ORDER, False", leaf("small", "c", conj=True)),
    ("trsm.small", "t, n, cols, 0)\n        commit", "t, n, r, 0)\n        commit", leaf("small", r=40)),
    ("common.substitution", "j * (lead + 1) * PARTS", "j * (n + 1) * PARTS", leaf("small")),
    # few right-hand sides in one launch
    ("trsv.kernel", "while solved <= j:", "while solved < j:", once()),
    ("trsv.kernel", "if t == 0:\n                while", "if False:\n                while", once()),
    ("trsv.kernel", "            cuda.syncthreads()\n            bring", "            bring", once()),
    ("trsv.kernel", "r)\n            cuda.syncthreads()\n            multiply", "r)\n            multiply", once()),
    ("trsv.kernel", "acc, m, k)\n        cuda.syncthreads()", "acc, m, k)", once()),
    ("trsv.kernel", "wait()\n        cuda.syncthreads()", "cuda.syncthreads()", once()),
    ("trsv.kernel", "wait()\n        cuda.syncthreads()", "wait()", once()),
    ("trsv.kernel", "rows - m if block > 0 else 0", "ROWS if block > 0 else 0", once(t_by_rows=False)),
    ("trsv.kernel", "if is_last:", "if False:", once()),
    ("trsv.kernel", "0 if is_last else block + 1", "block + 1", once()),
    ("trsv.kernel", "0 if is_last else block + 1", "0 if is_last else block", once()),
    ("trsv.kernel", "offset(here, ROWS * t_cs * PARTS)", "offset(here, ROWS * t_rs * PARTS)", once(n=85)),
    ("trsv.kernel", "int64(j) * ROWS * b_rs", "int64(j) * b_rs", once()),
    ("trsv.kernel", "offset(coming, k * SIZE)", "offset(coming, k * PARTS)", once(r=2)),
    ("trsv.kernel", "is_safe and finite else 0", "is_safe else 0", CAREFUL_ONCE),
    ("trsv.kernel", "take(0, y, coming, t)", "pass", CAREFUL_ONCE),
    ("trsv.kernel", "wait()\n            cuda.syncthreads()", "cuda.syncthreads()", CAREFUL_ONCE),
    ("trsv.sums", "row < left", "True", once(t_by_rows=False)),
    ("trsv.sums", "ok & (c < cols))\n        if", "ok)\n        if", once(r=3)),
    ("trsv.sums", "c < cols)\n                for", "True)\n                for", once(r=3)),
    ("trsv.sums", "x[c * PARTS + part], ok & (c < cols))", "x[c * PARTS + part], ok)", once(r=3)),
    ("trsv.sums", "variant.conj, False, at_a", "False, False, at_a", once("c", conj=True)),
    ("trsv.sums", "at_a=(k * THR_M, 1)", "at_a=(0, 1)", once()),
    ("trsv.sums", "k * DIM_K * COLS * PARTS", "k * COLS * PARTS", once()),
    ("trsv.sums", "e // THR_M * DIM_K", "e // THR_M", once()),
    ("trsv.sums", "e % THR_M * DIM_M) * COLS", "e % THR_M) * COLS", once()),
    ("trsv.sums", "range(1, DIM_K.bit_length())", "range(2, DIM_K.bit_length())", once()),
    ("trsv.sums", "y[x] = alpha * y[x]", "pass", once()),
    ("trsv.diagonal", "real(CONJ) * im", "im", once("z", conj=True)),
    ("trsv.diagonal", "real(CONJ) * inverse[r + 1]", "inverse[r + 1]", once("z", conj=True)),
    ("trsv.diagonal", "if i > j and", "if i >= j and", once()),
    ("trsv.diagonal", "is_safe = cuda.syncthreads_and(invert(diagonal, inverse, t, rows)) != 0",
     "invert(diagonal, inverse, t, rows)\n        is_safe = True", CAREFUL_ONCE),
    ("trsv.diagonal", "divided(diagonal[at], diagonal[d], inverse[r])", "diagonal[at]", once()),
    ("trsv.diagonal", "divided(solution[s], diagonal[d], inverse[r])", "solution[s]", once()),
    ("trsv.diagonal", "while first < ROWS:\n            cuda.syncthreads()", "while first < ROWS:", once()),
    ("trsv.diagonal", "first = after\n        cuda.syncthreads()", "first = after", once()),
    ("trsv.diagonal", "+ WARP > first", "> first", once()),
    ("trsv.diagonal", "after <= t and t < after + GROUP", "first <= t and t < after", once()),
    ("trsv.diagonal", "t == ROWS - 1", "t == 0", once(ROWS=64, DIM_M=16, DIM_K=4, n=75)),
    ("trsv.diagonal", "load_ahead(corner, line, diagonal, after, t)", "pass", once()),
    ("common.substitution", "y[i] - t[k] * x[j]\n", "y[i] + t[k] * x[j]\n", once()),
    ("common.substitution", "- t[k + 1] * x[j]\n", "+ t[k + 1] * x[j]\n", once("c")),
    ("trsv.diagonal", "(j + 1) * PARTS // WIDTH * WIDTH", "(j + 1) * PARTS", once()),
    ("trsv.diagonal", "abs(x[part]) < real(INFINITY)", "True", CAREFUL_ONCE),
    ("trsv.diagonal", "if t > j and t < ROWS:", "if t >= j and t < ROWS:", CAREFUL_ONCE),
    ("trsv.diagonal", "solve_row(0, y, diagonal, solution, j)\n            cuda.syncthreads()",
     "solve_row(0, y, diagonal, solution, j)", CAREFUL_ONCE),
    ("trsv.diagonal", "y[x] - t_re * solution[s]\n", "y[x]\n", CAREFUL_ONCE),
]  # fmt: skip


#: What kernels have in common, each after what it is built from.
SHARED = (
    "common.smem_tile",
    "common.coalesced_index",
    "common.triangle_panel",
    "common.substitution",
    "common.tile_scheduler",
    "common.region",
    "gemm.config",
    "gemm.mainloop",
    "gemm.persistent",
    "gemm.trmm_fused",
    "gemm.warp_substitution",
    "gemm.diagonal_solve",
    "gemm.trsm_fused",
    "gemm.source",
    "trsm.config",
    "trsm.load_triangle",
    "trsm.body",
    "trsv.config",
    "trsv.sums",
    "trsv.diagonal",
)


def planted(patch: pytest.MonkeyPatch, module: str, before: str, after: str, stem: str) -> ModuleType:
    """The kernel `stem` made anew, with `after` in place of `before` in the text of `module`."""
    assert before in text_of(module), "the planting is void"
    made = None
    for name in (*SHARED[SHARED.index(module) if module in SHARED else len(SHARED) :], place_of(stem)):
        text = text_of(name)
        made = remade(name, text.replace(before, after) if name == module else text)
        patch.setitem(sys.modules, f"{kernels.__name__}.{name}", made)
    return made


@cache
def place_of(stem: str) -> str:
    """Where the kernel stands, below `kernels`."""
    return family_of(stem).module.__name__.removeprefix(f"{kernels.__name__}.")


def text_of(module: str) -> str:
    return (Path(kernels.__path__[0]) / f"{module.replace('.', '/')}.py").read_text()


def remade(module: str, text: str) -> ModuleType:
    made = ModuleType(f"{kernels.__name__}.{module}")
    made.__package__ = made.__name__.rpartition(".")[0]
    exec(code_of(module, text), vars(made))
    return made


@cache
def code_of(module: str, text: str) -> CodeType:
    return compile(text, f"planted {module}", "exec")


#: The checks that a kernel without a defect has passed.
passed: set[Check] = set()


@pytest.mark.parametrize(
    ("module", "before", "after", "check"),
    [pytest.param(*defect, id=f"{number}-{defect[0]}") for number, defect in enumerate(DEFECTS)],
)
def test_a_planted_defect_is_caught(module, before, after, check, monkeypatch):
    monkeypatch.setattr(launch, "_kernels", {})  # equal sources share a kernel
    if check not in passed:
        check.run(planted(monkeypatch, module, before, before, check.stem))
        passed.add(check)
        launch._kernels.clear()
    defective = planted(monkeypatch, module, before, after, check.stem)
    with pytest.raises((AssertionError, IndexError, SimulatorError)):
        check.run(defective)
