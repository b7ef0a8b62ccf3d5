"""Which algorithm TRSM, TRMM and SYR2K run: by an override, by rates that were measured, or by a rule."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..database import (
    RECURSION,
    TRSM_FUSED,
    TRSM_SMALL,
    families_of,
    nearest_points,
    nearest_small_points,
)
from ..gpu.device import Device
from ..kernels.trsv.limits import MOST_COLS
from ..types import Dtype
from . import overrides, tuned_files
from .leaf import fixed, runs
from .overrides import COMPUTED, OVERRIDE, Algorithm, splits_singles

__all__ = [
    "LEAF",
    "MAX_COLUMNS_SHARE",
    "MAX_FUSED_TRMM",
    "MIN_REFINED",
    "MIN_TRSV_ORDER",
    "SYMMETRIZE",
    "TRMM_FUSED",
    "TRMM_TENSOR",
    "TRSV",
    "TWO_PRODUCTS",
    "completes_all",
    "leaves_requested",
    "lookahead_width",
    "override_of",
    "refinement_pays",
    "syr2k_algorithm",
    "tiles_per_block",
    "trmm_algorithm",
    "trmm_recursion",
    "trsm_algorithm",
]

IN_MODE = "products on tensor cores"
TRSV, TRMM_FUSED, TRMM_TENSOR = "trsv", "trmm_fused", "trmm_tensor"
SYMMETRIZE, TWO_PRODUCTS = "symmetrize", "two_products"

LEAF = 64  # rows up to which a triangle is a leaf, one launch as well
MIN_TRSV_ORDER = 256  # rows beyond which `trsv` is faster than the recursion

#: Beyond so many rows complex64 goes by the recursion: the tiles with which its FMAs are fastest are too
#: large for a fused TRMM, and have no registers left.
MAX_FUSED_TRMM = {"c": 2048}
#: Columns from which on more rows are fused, too, where B has no more elements than a square of that order.
WIDE = 512
#: With fewer right-hand sides and more rows the longest tile of a fused TRMM is what all others wait for.
FEW_RHS, MANY_ROWS = 16, 1024


#: Order, and columns, from which on SYMM completes all of A for one product on tensor cores.
TENSOR_SYMM = 2048


#: Order of the triangles that are one launch where products above them are made on tensor cores; half of it
#: where B has fewer elements.
TENSOR_STOP, LARGE_B = 1024, 1 << 26


class TensorRange(NamedTuple):
    """From where on a recursion whose products are made on tensor cores is ahead of one launch by FMAs."""

    min_order: int
    min_rhs: int
    min_elements: int  # of B


#: Routine, dtype -> range; measured at orders of 1024 to 16384 with 256 to 16384 columns on an H200.
TENSOR_RANGE = {
    ("trmm", "s"): TensorRange(1024, 256, 3 << 17),
    ("trmm", "c"): TensorRange(8192, 8192, 64 << 20),
    ("trsm", "s"): TensorRange(4096, 1024, 8 << 20),
}


class FusedRange(NamedTuple):
    """Where a fused TRSM is ahead of the recursion, if nothing was measured nearby."""

    min_order: int
    max_rhs: int
    max_elements: int  # of B


#: Measured at orders from 256 to 8192 with 32 to 8192 right-hand sides on an H200.
FUSED_TRSM_RANGE = {
    "s": FusedRange(512, 8192, 16 << 20),
    "d": FusedRange(768, 8192, 36 << 20),
    "c": FusedRange(256, 8192, 9 << 20),
    "z": FusedRange(512, 8192, 9 << 20),
}

#: Rows up to which small triangles are ahead of the leaves where nothing was measured nearby: of one
#: triangle, and of a batch that fills half of the device.
SMALL_ALONE, SMALL_OF_BATCH = 32, 512


def override_of(routine: str) -> str | None:
    """The algorithm that an override asks for; None: to be decided.

    An override of the leaves of a routine, or of its stop size, asks for the recursion.
    """
    requested: str | None = overrides.get_override(f"{routine}_algorithm")
    if requested is None and leaves_requested(routine):
        return RECURSION
    return requested


def leaves_requested(routine: str) -> bool:
    """Whether an override is for the leaves of a recursion, or for where it ends."""
    names = {routine, *families_of(routine)}
    return any(name in names for name, _ in overrides.active())


def trsm_algorithm(dtype: Dtype, order: int, rhs: int, batch: int, device: Device) -> Algorithm:
    """That of TRSM for `batch` triangles of so many rows, with `rhs` right-hand sides each.

    The fastest at the nearest point of which a file has rates, else by `default_heuristic`.
    """
    requested = override_of("trsm")
    if requested is not None:
        return Algorithm(requested, OVERRIDE)
    if batch == 1 and rhs <= MOST_COLS and order > MIN_TRSV_ORDER and runs(TRSV, device):
        return Algorithm(TRSV, COMPUTED)
    if _has_tensor_products("trsm", dtype, order, rhs, batch, device):
        stop = TENSOR_STOP if order * rhs >= LARGE_B else TENSOR_STOP // 2
        return Algorithm(f"{TRSM_FUSED}_{stop}", IN_MODE)
    if batch == 1 and order > LEAF:
        points = nearest_points(order, rhs)
    else:
        points = nearest_small_points(order, rhs, batch) if runs(TRSM_SMALL, device) else []
    return _fastest(dtype, points, device) or default_heuristic(dtype, order, rhs, batch, device)


def _fastest(dtype: Dtype, points: Iterable[str], device: Device) -> Algorithm | None:
    """The algorithm with the best rate at the first of `points` of which a file has rates."""
    for point in points:
        for origin, document in tuned_files.documents(device):
            rates = document.trsm_rates.get((dtype.letter, point))
            if rates:
                return Algorithm(max(rates, key=rates.__getitem__), f"{origin}, {point}")
    return None


def default_heuristic(dtype: Dtype, order: int, rhs: int, batch: int, device: Device) -> Algorithm:
    """The algorithm of TRSM where nothing was measured nearby."""
    if batch == 1 and order > LEAF:
        fused = FUSED_TRSM_RANGE[dtype.letter]
        in_range = order >= fused.min_order and MOST_COLS < rhs <= fused.max_rhs
        in_range = in_range and order * rhs <= fused.max_elements
        return Algorithm(TRSM_FUSED if in_range else RECURSION, COMPUTED)
    if not runs(TRSM_SMALL, device):
        return Algorithm(RECURSION, COMPUTED)
    is_batch = batch > 1 and order <= SMALL_OF_BATCH
    is_small = order <= SMALL_ALONE or (is_batch and _fills_half(dtype, order, rhs, batch, device))
    return Algorithm(TRSM_SMALL if is_small else RECURSION, COMPUTED)


def _fills_half(dtype: Dtype, order: int, rhs: int, batch: int, device: Device) -> bool:
    """Whether small triangles of a batch fill half of the device."""
    config = fixed(TRSM_SMALL, dtype.letter, device)
    blocks = batch * config.specialize(min(order, config.most_rows), rhs).grid(rhs)
    return bool(2 * blocks >= device.sm_count)


def _has_tensor_products(
    routine: str, dtype: Dtype, order: int, rhs: int, batch: int, device: Device
) -> bool:
    """Whether one triangle gains by a recursion whose products are made on tensor cores."""
    tensor_range = TENSOR_RANGE.get((routine, dtype.letter))
    if (
        tensor_range is None
        or order < tensor_range.min_order
        or rhs < tensor_range.min_rhs
        or order * rhs < tensor_range.min_elements
    ):
        return False
    return _is_on_tensor_cores(dtype, batch, device)


def completes_all(dtype: Dtype, order: int, columns: int, batch: int, device: Device) -> bool:
    """Whether SYMM copies all of A, completed, for one product on tensor cores."""
    return min(order, columns) >= TENSOR_SYMM and _is_on_tensor_cores(dtype, batch, device)


def _is_on_tensor_cores(dtype: Dtype, batch: int, device: Device) -> bool:
    """Whether products of one matrix are asked to be made on tensor cores, and can be."""
    return batch == 1 and splits_singles(dtype) and runs("gemm_wgmma", device)


def trmm_algorithm(dtype: Dtype, order: int, rhs: int, batch: int, device: Device) -> Algorithm:
    """That of TRMM for triangles of so many rows: fused, but for large complex64 and few, long rows."""
    requested = override_of("trmm")
    if requested is not None:
        return Algorithm(requested, OVERRIDE)
    if _has_tensor_products("trmm", dtype, order, rhs, batch, device):
        return Algorithm(TRMM_TENSOR if dtype.letter == "s" else trmm_recursion(), IN_MODE)
    most = MAX_FUSED_TRMM.get(dtype.letter, order)
    is_fused = order > LEAF and (order <= most or (rhs >= WIDE and order * rhs <= most * most))
    is_fused = is_fused and (rhs >= FEW_RHS or order <= MANY_ROWS)
    return Algorithm(TRMM_FUSED if is_fused else RECURSION, COMPUTED)


def trmm_recursion() -> str:
    """The algorithm of TRMM whose products are made on tensor cores, and its diagonal blocks by FMAs."""
    return f"{TRMM_FUSED}_{TENSOR_STOP}"


def syr2k_algorithm(fits: bool) -> Algorithm:
    """That of SYR2K and HER2K: one product, symmetrized, where its scratch `fits` in the workspace."""
    requested = overrides.get_override("syr2k_algorithm")
    if requested is not None:
        return Algorithm(requested, OVERRIDE)
    return Algorithm(SYMMETRIZE if fits else TWO_PRODUCTS, COMPUTED)


# ------------------------------------------------------------------------------------------------ lookahead


#: By routine: orders, and from each one on the columns of a block; measured at 512 to 16384 on an H200.
WIDTHS = {"getrf": ((1024, 128), (6144, 256), (12288, 512)), "potrf": ((1024, 128), (2048, 256))}
#: By bytes of a real: orders from which on Cholesky factors lose more by products of so few columns than they
#: gain.
MAX_POTRF = {4: 12288, 8: 4096}
#: Tiles after which a block of an update gives its multiprocessor back, to the next panel.
TILES_PER_BLOCK = 1


def lookahead_width(routine: str, dtype: Dtype, order: int, batch: int = 1) -> int:
    """Columns of a block; 0: no lookahead. There is none in small matrices and in batches by one launch,
    which fill the device, nor where products are made on tensor cores, which take more columns.
    """
    if batch > 1:
        return 0
    requested: int | None = overrides.get_override("lookahead")
    if requested is not None:
        return requested
    if splits_singles(dtype) or (routine == "potrf" and order >= MAX_POTRF[dtype.real_size]):
        return 0
    return next((width for least, width in reversed(WIDTHS[routine]) if order >= least), 0)


def tiles_per_block() -> int:
    """Tiles after which blocks of an update give a multiprocessor back."""
    requested: int | None = overrides.get_override("tiles")
    return TILES_PER_BLOCK if requested is None else requested


# ----------------------------------------------------------------------------------------------- refinement


#: Factors -> order from which on those in float32, with their corrections, take less time than in float64.
MIN_REFINED = {"getrf": 8192, "potrf": 16384}
#: Of the order, how many right-hand sides there may be: a correction computes a residual of each in float64.
MAX_COLUMNS_SHARE = 1 / 16


def refinement_pays(routine: str, order: int, columns: int) -> bool:
    """Whether factors by `routine`, of matrices of an order, are worth to be refined for so many columns."""
    return order >= MIN_REFINED[routine] and columns <= max(1, order * MAX_COLUMNS_SHARE)
