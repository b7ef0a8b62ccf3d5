"""Checks of the kernels that take a kernel's module, for the defects that are planted in it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import wraps
from typing import NamedTuple

import numpy as np
import pytest

from pyblasgpu import kernels
from pyblasgpu.frontend.calls import call_cache, kept_lists
from pyblasgpu.gpu.simulator import intrinsics as simulator
from pyblasgpu.kernels.trsm.small import TrsmSmall
from pyblasgpu.ragged import products as ragged_products
from pyblasgpu.ragged import stacks
from pyblasgpu.routines import launch_list
from pyblasgpu.routines.level3 import diagonal_copies, trmm_stack
from pyblasgpu.types import Region, Triangle

from . import (
    test_copy_scaled,
    test_gemm_mma,
    test_gemm_simt,
    test_grouped,
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
from .simulated import arrays_on_device
from .test_gemm_simt import config

#: Parameters of a small product whose k is in two slices, or four.
SLICED = {"SLICES_K": 2, "BLK_N": 16, "BLK_K": 8, "UNROLL": 4, "stages": 2, "DIM_YA": 4, "DIM_YB": 16}
SLICED_IN_FOUR = {**SLICED, "SLICES_K": 4, "UNROLL": 2, "DIM_YA": 8, "DIM_XB": 8}
SLICED_MMA = {"SLICES_K": 2, "BLK_K": 16, "DIM_XA": 16, "DIM_YA": 8, "DIM_XB": 16, "DIM_YB": 8}


class Check(NamedTuple):
    """``run(module)`` raises where `module`, in the place of the kernel `stem`, is wrong."""

    stem: str
    run: Callable


def one_each(make: Callable[..., Check]) -> Callable[..., Check]:
    """Equal checks are one, which the sound kernel has to pass once."""
    made: dict[str, Check] = {}

    @wraps(make)
    def cached(*arguments, **options) -> Check:
        key = repr((arguments, sorted(options.items())))
        if key not in made:
            made[key] = make(*arguments, **options)
        return made[key]

    return cached


@one_each
def simt(letter="s", trans_a=False, trans_b=False, m=17, n=9, k=11, alpha=2, beta=-1, **changes) -> Check:
    """A product by the `gemm_simt` of this Config."""
    names = "conj_a", "conj_b", "batch", "region", "gap", "margin"
    flags = {name: changes.pop(name) for name in names if name in changes}
    small = config(letter, trans_a, trans_b, **changes)

    def run(module):
        chosen = module.GemmSimt(**asdict(small))
        test_gemm_simt.check(chosen, m, n, k, alpha=alpha, beta=beta, kernels=module, **flags)

    return Check("gemm_simt", run)


@one_each
def simt_3m(**flags) -> Check:
    """A complex product by three real ones, of a `gemm_simt` with prefetching."""
    small = asdict(config("c", stages=2, prefetch=True))

    def run(module):
        tile = module.GemmSimtThreeM(**small)
        test_gemm_simt.check(tile, 17, 9, 11, alpha=1 - 2j, kernels=module, **flags)

    return Check("gemm_simt_3m", run)


@one_each
def mma(letter="d", trans_a=False, trans_b=False, m=37, n=19, k=27, **changes) -> Check:
    """A product by the `gemm_mma` of this Config."""
    flags = {name: changes.pop(name) for name in ("conj_a", "conj_b") if name in changes}
    small = test_gemm_mma.config(letter, trans_a, trans_b, prefetch=True, **changes)

    def run(module):
        test_gemm_simt.check(module.GemmMma(**asdict(small)), m, n, k, kernels=module, **flags)

    return Check("gemm_mma", run)


@one_each
def grouped(letter="s") -> Check:
    """Products of unequal sizes."""

    def run(module):
        kept_lists.forget()  # calls keep their kernels
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ragged_products, "source", module.source)
            test_grouped.check(arrays_on_device(patch), letter, test_grouped.MIXED)

    return Check("gemm_grouped", run)


@one_each
def ragged(letter="s", check=test_grouped.check_systems) -> Check:
    """Triangles of unequal sizes."""

    def run(module):
        kept_lists.forget()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(stacks, "source", module.source)
            check(arrays_on_device(patch), letter)

    return Check("ragged_copy", run)


@one_each
def leaf(family, letter="d", n=21, r=11, **options) -> Check:
    """A triangle by a leaf kernel."""

    def run(module):
        test_leaves.check(family, letter, n, r, kernels=module, **options)

    stem = {"small": "trsm_small", "trmm_small": "trmm_small"}.get(family, f"{family}_leaf")
    return Check(stem, run)


@one_each
def trsm_mma(letter="d", n=21, r=11, stem="trsm_mma", first_pass_only=False, **options) -> Check:
    """A triangle by a leaf whose warps own columns of B; `first_pass_only`: without exact division, which
    repairs what the first pass got wrong.
    """

    def run(module):
        if first_pass_only:
            sys.modules[f"{kernels.__name__}.trsm.body"].exact_division_solver = lambda *_: (
                refuse_exact_division
            )
        test_trsm_body.check(stem, letter, n, r, kernels=module, **options)

    return Check(stem, run)


@one_each
def trsm_fma(letter="d", **options) -> Check:
    """Return the check of a `trsm_fma`."""
    return trsm_mma(letter, stem="trsm_fma", **options)


def overflow(module) -> None:
    """What overflows where rows are divided first must be solved again; elsewhere nothing is spoilt."""
    for rows, at in ((9, 4), (29, 12), (29, 26)):
        t, b, x = test_trsm_body.overflowing("float64", rows, at)
        np.testing.assert_allclose(test_trsm_body.solve(module.STEM, t, b, kernels=module), x, rtol=1e-14)


def huge_diagonal(module) -> None:
    """The square of its size overflows, and its inverse counts as zero."""
    t, x = np.eye(9, dtype=complex), np.ones((9, 2), complex)
    t[4, 4] = 1e200
    np.testing.assert_array_equal(test_trsm_body.solve(module.STEM, t, t @ x, kernels=module), x)


@one_each
def trsv(letter="d", n=53, **options) -> Check:
    """A triangle with few right-hand sides in one launch, some orders of its blocks."""

    def unneeded(*_):
        raise AssertionError("solved again")

    def run(module):
        module.by_exact_division = lambda *_: unneeded
        for seed in range(2):
            simulator.reseed(seed)
            test_trsv.check(letter, n, kernels=module, **options)

    return Check("trsv", run)


def trsv_exact_division(module) -> None:
    """What is not safe to divide by, or overflows where columns are divided first."""
    test_trsv.check_true_divisions("d", 3e300, module)
    test_trsv.check_true_divisions("z", 1e-310, module)
    test_trsv.check_overflow(module)


@one_each
def split_k_reduce(letter="s", **options) -> Check:
    """Partials added up."""

    def run(module):
        test_split_k_reduce.check(letter, kernels=module, **options)

    return Check("split_k_reduce", run)


@one_each
def symmetrize(letter="d", **options) -> Check:
    """A matrix and its mirror image, in one triangle."""

    def run(module):
        test_symmetrize.check(letter, kernels=module, **options)

    return Check("symmetrize", run)


@one_each
def pack(letter="s", deep=False, **options) -> Check:
    """An operand packed by k-tiles, its rows lengthened; or by `deep` ones, read by 16 bytes."""
    defaults = {"packing": test_pack.DEEP[-1], "extent": 44, "k": 36} if deep else {}

    def run(module):
        test_pack.check(letter, kernels=module, **{**defaults, **options})

    return Check("pack", run)


@one_each
def for_packed(letter="s", family="gemm_simt", m=37, n=19, k=27, schedule=None, batch=1, **changes) -> Check:
    """A product of packed operands."""
    small = test_packed_products.config(letter, family, persistent=bool(schedule), **changes)

    def run(module):
        chosen = getattr(module, type(small).__name__)(**asdict(small))
        test_packed_products.product(chosen, m, n, k, schedule, batch=batch, kernels=module)

    return Check(family, run)


@one_each
def persistent(
    letter="s",
    m=35,
    n=19,
    k=26,
    schedule="streamed",
    blocks=4,
    batch=1,
    region=Region.ALL,
    seeds=1,
    prefetch_c=False,
    **changes,
) -> Check:
    """A product by persistent blocks, in some orders of them."""
    options = {"region": region, "prefetch_c": prefetch_c}

    def run(module):
        small = test_persistent.tile(letter, **changes)
        for seed in range(seeds):
            simulator.reseed(seed)
            test_persistent.check(small, m, n, k, schedule, blocks, batch, kernels=module, **options)

    return Check("gemm_simt", run)


@one_each
def trmm_fused(letter="s", triangle=Triangle.LOWER_LEFT, seeds=1, **options) -> Check:
    """The fused TRMM in some orders of its blocks, which signal each level."""

    def run(module):
        sys.modules[f"{kernels.__name__}.gemm.trmm_fused"].SPAN = 1
        for seed in range(seeds):
            simulator.reseed(seed)
            test_trmm_fused.check(letter, triangle, kernels=module, **options)

    return Check("gemm_simt", run)


@one_each
def trmm_non_finite(letter="s", triangle=Triangle.LOWER_LEFT) -> Check:
    """Return the check with one number that is not finite."""

    def run(module):
        sys.modules[f"{kernels.__name__}.gemm.trmm_fused"].SPAN = 1
        test_trmm_fused.check_not_finite(letter, triangle, kernels=module)

    return Check("gemm_simt", run)


@one_each
def trsm_fused(letter="s", triangle=Triangle.LOWER_LEFT, seeds=1, first_pass_only=False, **options) -> Check:
    """A triangle that is solved in one launch, some orders of its blocks, that tell of each k-tile.

    `first_pass_only`: without exact division, which repairs what the first pass got wrong.
    """

    def run(module):
        sys.modules[f"{kernels.__name__}.gemm.trsm_fused_phases"].SPAN = 1
        if first_pass_only:
            sys.modules[f"{kernels.__name__}.gemm.diagonal_solve"].exact_division_solver = lambda *_: (
                refuse_exact_division
            )
        for seed in range(seeds):
            simulator.reseed(seed)
            test_trsm_fused.check(letter, triangle, kernels=module, **options)

    return Check("gemm_simt", run)


@one_each
def trsm_by_warps(letter="s", triangle=Triangle.LOWER_LEFT, **options) -> Check:
    """Return the check by threads that share a right-hand side."""
    return trsm_fused(letter, triangle, **options, **test_trsm_fused.shared(triangle))


def refuse_exact_division(*_) -> None:
    raise AssertionError("it is solved again")


@one_each
def trsm_test(test: Callable, *arguments) -> Check:
    """A test of what has no safe reciprocal, or no finite quotient."""
    return Check("gemm_simt", lambda module: test(*arguments, kernels=module))


@one_each
def diagonal_blocks(letter="d", **options) -> Check:
    """The copy of the diagonal blocks."""

    def run(module):
        test_trmm_fused.check(letter, Triangle.LOWER_LEFT, copier=module, **options)

    return Check("diagonal_blocks", run)


@one_each
def k_major_b(letter="s", m=19, n=21, k=20, **changes) -> Check:
    """A product whose k-tile of B stays as it lies, along k."""

    def run(module):
        small = test_gemm_simt.kept(letter, **changes)
        test_gemm_simt.check(module.GemmSimt(**asdict(small)), m, n, k, kernels=module)

    return Check("gemm_simt", run)


@one_each
def stacked_trmm(*arguments, stem="trmm_stack") -> Check:
    """TRMM of a stack, by one of its two kernels."""

    def run(module):
        launch_list.cache.clear()  # calls keep their kernels
        call_cache.clear()
        kept_lists.forget()
        with pytest.MonkeyPatch.context() as patch:
            if stem == "trmm_stack":
                patch.setattr(trmm_stack, "source", module.source)
            else:
                patch.setattr(diagonal_copies, "diagonal_blocks", module)
            test_trmm_fused.check_stack(arrays_on_device(patch), *arguments)

    return Check(stem, run)


@one_each
def copy_test(test: Callable, *arguments) -> Check:
    """A test of `copy_scaled`, which finds its kernel by the module's name."""

    def run(module):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(test_copy_scaled, "copy_scaled", module)
            test(*arguments)

    return Check("copy_scaled", run)


def unsafe_reciprocal(module) -> None:
    t, x = np.asfortranarray([[1.0, 0, 0], [2, 1e-310, 0], [3, 4, -1]]), np.ones((3, 1))
    b = np.asfortranarray(t @ x)
    test_leaves.launch(module, test_leaves.small("small", "d"), t, b, test_leaves.VARIANT, 1.0)
    np.testing.assert_array_equal(b[:1], x[:1])
    np.testing.assert_allclose(b, [[1], [(t @ x - 2)[1, 0] / 1e-310], [3 + 4 * b[1, 0] - (t @ x)[2, 0]]])


def nan_in_b(module) -> None:
    """A NaN in B must not meet the zeros that stand for what lies above the diagonal."""
    t, b = np.asfortranarray(np.tril(np.ones((13, 13)))), np.ones((13, 6), order="F")
    b[5, 2] = np.nan
    test_leaves.launch(module, test_leaves.small("trmm", "d"), t, b, test_leaves.VARIANT, 1.0)
    assert np.isnan(b).sum() == 8


NAN_IN_B = Check("trmm_leaf", nan_in_b)
BLOCKS_OF_STACKS = Check(
    "trmm_small", lambda module: test_leaves.test_the_diagonal_blocks_of_a_stack("d", module)
)
UNSAFE_RECIPROCAL = Check("trsm_small", unsafe_reciprocal)
EXACT_DIVISION = Check("trsv", trsv_exact_division)
MMA_OVERFLOW, HUGE_DIAGONAL = Check("trsm_mma", overflow), Check("trsm_mma", huge_diagonal)
FMA_OVERFLOW = Check("trsm_fma", overflow)
LARGE = {"ORDER": 64, "BLK": 16}
PRODUCER = {"PRODUCER_WARPS": 1}
TWO_WARPS = {"WARPS_PER_COLUMN_GROUP": 2}
COPIES = copy_test(test_copy_scaled.test_copies, "z", True, False, True)
ZEROS = copy_test(test_copy_scaled.test_zeros_without_reading, "z")
TRIANGLE = copy_test(
    test_copy_scaled.test_triangles_are_copied_alone, "c", Region.HERMITIAN_LOWER, True, False
)
MIRROR = copy_test(test_copy_scaled.test_a_triangle_is_mirrored, "c", Region.HERMITIAN_LOWER, True, False)
STRICT = copy_test(test_copy_scaled.test_triangles_are_copied_alone, "d", Region.STRICT_LOWER, True, False)
#: Vectors of A, whose columns begin within them: every other one, or all.
WIDE = {"stages": 2, "VEC_A": 2, "DIM_XA": 8, "DIM_YA": 4}
ODD_LEAD, ODD_START = {**WIDE, "gap": 4}, {**WIDE, "gap": 3, "margin": 17}
VECTORS_OF_A = simt(trans_a=True, k=12, VEC_A=2, DIM_XA=4, DIM_YA=8, BLK_K=8)
T_BY_ROWS = leaf("trmm", t_by_rows=False)
WIDE_SMALL = TrsmSmall("d", BLK_N=64)  # threads whose elements of the diagonal others bring
NOT_SHARED = {"share_a": False, "share_b": False}
WAIT = "wait()\n            cuda.syncthreads()"
LOAD_NEXT = "load(0, ra, rb, there"
INSIDE = "rows >= BLK_M and cols >= BLK_N and"
FILL_PIPELINE = "wait()\n            cuda.syncthreads()\n            load(0, ra"
