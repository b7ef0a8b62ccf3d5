"""The algorithms of TRSM, TRMM and SYR2K: by an override, by measured rates, or by a rule."""

from __future__ import annotations

from collections.abc import Iterable

from ..database import (
    RECURSION,
    TRSM_FUSED,
    TRSM_SMALL,
    families_of,
    nearest_points,
    nearest_small_points,
)
from ..database.policy import Policy
from ..gpu.device import Device
from ..kernels.trsv.limits import MAX_COLS
from ..types import TENSOR, Dtype
from . import overrides, tuned_files
from .leaf import fixed, runs
from .overrides import COMPUTED, OVERRIDE, Algorithm, splits_singles
from .tuned_files import policy_of, policy_origin

__all__ = [
    "LEAF",
    "SYMMETRIZE",
    "TRMM_FUSED",
    "TRMM_SMALL",
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
TRSV, TRMM_FUSED, TRMM_SMALL, TRMM_TENSOR = "trsv", "trmm_fused", "trmm_small", "trmm_tensor"
SYMMETRIZE, TWO_PRODUCTS = "symmetrize", "two_products"

MOST_COMPLETED = 2 << 30  # bytes of a symmetric matrix in double precision that is copied whole
LEAF = 64  # rows up to which a triangle is a leaf, one launch as well


def override_of(routine: str) -> str | None:
    """The algorithm that an override requests; None: to be decided.

    An override of the leaves of a routine, or of its stop size, requests the recursion.
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
    """Return TRSM's algorithm for `batch` triangles of `order` rows, with `rhs` right-hand sides each.

    The fastest at the nearest point of which a file has rates, else by `default_heuristic`.
    """
    requested = override_of("trsm")
    if requested is not None:
        return Algorithm(requested, OVERRIDE)
    policy = policy_of(device)
    if batch == 1 and rhs <= MAX_COLS and order > policy.trsv_min_order and runs(TRSV, device):
        return Algorithm(TRSV, _by_policy("trsv_min_order", device))
    if _has_tensor_products("trsm", dtype, order, rhs, batch, device):
        is_large = dtype.real_size == 8 or order * rhs >= policy.tensor_stop_min_elements
        stop = _tensor_stop(dtype, device)
        return Algorithm(f"{TRSM_FUSED}_{stop if is_large else stop // 2}", IN_MODE)
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
    policy, letter = policy_of(device), dtype.letter
    if batch == 1 and order > LEAF:
        if _has_many_sides(letter, order, rhs, policy, device):
            return Algorithm(TRSM_SMALL, _by_policy("small_trsm_min_rhs", device))
        in_range = order >= policy.fused_trsm_min_order[letter]
        in_range = in_range and MAX_COLS < rhs <= policy.fused_trsm_max_rhs[letter]
        in_range = in_range and order * rhs <= policy.fused_trsm_max_elements[letter]
        origin = _by_policy("fused_trsm_max_elements", device)
        return Algorithm(TRSM_FUSED if in_range else RECURSION, origin)
    if not runs(TRSM_SMALL, device):
        return Algorithm(RECURSION, COMPUTED)
    is_batch = batch > 1 and order <= policy.small_trsm_max_order_of_batch
    is_small = order <= policy.small_trsm_max_order or (
        is_batch and _fills_half(dtype, order, rhs, batch, device)
    )
    name = "small_trsm_max_order" if batch == 1 else "small_trsm_max_order_of_batch"
    return Algorithm(TRSM_SMALL if is_small else RECURSION, _by_policy(name, device))


def _has_many_sides(letter: str, order: int, rhs: int, policy: Policy, device: Device) -> bool:
    """Whether a triangle of at most two leaves has enough right-hand sides for a thread each."""
    least = policy.small_trsm_min_rhs.get(letter)
    return least is not None and rhs >= least and order <= 2 * LEAF and runs(TRSM_SMALL, device)


def _fills_half(dtype: Dtype, order: int, rhs: int, batch: int, device: Device) -> bool:
    """Whether small triangles of a batch fill half of the device."""
    config = fixed(TRSM_SMALL, dtype.letter, device)
    blocks = batch * config.specialize(min(order, config.max_rows), rhs).grid(rhs)
    return bool(2 * blocks >= device.sm_count)


def _has_tensor_products(
    routine: str, dtype: Dtype, order: int, rhs: int, batch: int, device: Device
) -> bool:
    """Whether one triangle gains by a recursion whose products are made on tensor cores."""
    if not _is_on_tensor_cores(dtype, batch, device):
        return False
    policy, letter = policy_of(device), dtype.letter
    if routine == "trmm":
        ranges = policy.tensor_trmm_min_order, policy.tensor_trmm_min_rhs, policy.tensor_trmm_min_elements
    else:
        ranges = policy.tensor_trsm_min_order, policy.tensor_trsm_min_rhs, policy.tensor_trsm_min_elements
    sizes = order, rhs, order * rhs
    return all(letter in least and size >= least[letter] for size, least in zip(sizes, ranges, strict=True))


def completes_all(dtype: Dtype, order: int, columns: int, batch: int, device: Device) -> bool:
    """Whether SYMM copies all of A, completed, for one product on tensor cores."""
    if batch != 1 or min(order, columns) < policy_of(device).tensor_symm_min_order:
        return False
    if dtype.real_size == 4:
        return _is_on_tensor_cores(dtype, batch, device)
    if overrides.method_of(None) != TENSOR or order * order * dtype.itemsize > MOST_COMPLETED:
        return False
    return _is_of_residues(dtype, order, columns, device)


def _is_of_residues(dtype: Dtype, order: int, columns: int, device: Device) -> bool:
    """Whether a square times a matrix in double precision is made of residues."""
    from .tensor import Int8Product, TensorProblem, int8_product  # with kernels that others do without

    problem = TensorProblem(dtype, "nn", (order, columns, order, 1), device)
    return isinstance(int8_product(problem), Int8Product)


def _is_on_tensor_cores(dtype: Dtype, batch: int, device: Device) -> bool:
    """Whether products of one matrix are requested on tensor cores, and can be made there."""
    stem = "gemm_wgmma" if dtype.real_size == 4 else "gemm_int8"
    return batch == 1 and overrides.method_of(None) == TENSOR and runs(stem, device)


def _tensor_stop(dtype: Dtype, device: Device) -> int:
    """The order of fused triangles below products on tensor cores, of residues with more terms."""
    policy = policy_of(device)
    return int(policy.tensor_stop if dtype.real_size == 4 else policy.tensor_stop_of_double)


def trmm_algorithm(
    dtype: Dtype, order: int, rhs: int, batch: int, device: Device, apart: bool = False
) -> Algorithm:
    """Return TRMM's algorithm: fused, of stacks too. Exceptions are large complex64, few, long rows, and
    stacks of small triangles, or of few complex columns where the result is `apart` from B.
    """
    requested = override_of("trmm")
    if requested is not None:
        return Algorithm(requested, OVERRIDE)
    if _has_tensor_products("trmm", dtype, order, rhs, batch, device):
        return Algorithm(trmm_recursion(dtype, device) if dtype.letter == "c" else TRMM_TENSOR, IN_MODE)
    policy = policy_of(device)
    if batch > 1 and runs(TRMM_SMALL, device):
        is_few = apart and dtype.is_complex and rhs <= policy.fused_trmm_min_rhs
        # leaves of complex128 are half as large, and so twice as many launches follow
        is_few = is_few and (dtype.real_size == 4 or batch * order <= LEAF * device.sm_count)
        if is_few or order <= fixed(TRMM_SMALL, dtype.letter, device).ORDER:
            return Algorithm(TRMM_SMALL, COMPUTED)
    if batch > 1:
        is_fused = _fuses_stack(dtype, order, rhs, batch, policy, device)
        return Algorithm(TRMM_FUSED if is_fused else RECURSION, _by_policy("fused_trmm_min_rhs", device))
    # the tiles with which FMAs of complex64 are fastest leave a large fused TRMM no registers
    most = policy.fused_trmm_max_order.get(dtype.letter, order)
    is_wide = rhs >= policy.fused_trmm_wide and order * rhs <= most * most
    is_fused = order > LEAF and (order <= most or is_wide)
    # with few columns, all tiles wait for the longest
    is_fused = is_fused and (rhs >= policy.fused_trmm_min_rhs or order <= policy.fused_trmm_max_order_of_few)
    return Algorithm(TRMM_FUSED if is_fused else RECURSION, _by_policy("fused_trmm_max_order", device))


def _fuses_stack(dtype: Dtype, order: int, rhs: int, batch: int, policy: Policy, device: Device) -> bool:
    """Whether a TRMM of a stack is one launch. Of complex numbers and few columns, for which its tiles are
    too wide, it is only while these do not occupy the device.
    """
    if order <= LEAF:
        return order == LEAF and 2 * rhs >= LEAF
    is_few = dtype.is_complex and rhs <= policy.fused_trmm_min_rhs
    return not is_few or batch * order <= LEAF * device.sm_count


def _by_policy(name: str, device: Device) -> str:
    """Return the origin of what a value of the policy has decided."""
    return f"{policy_origin(name, device)}, {name}"


def trmm_recursion(dtype: Dtype, device: Device) -> str:
    """The algorithm of TRMM whose products are made on tensor cores, and its diagonal blocks by FMAs."""
    return f"{TRMM_FUSED}_{_tensor_stop(dtype, device)}"


def syr2k_algorithm(fits: bool) -> Algorithm:
    """Return the algorithm of SYR2K and HER2K: one product, symmetrized, where its scratch `fits` the
    workspace.
    """
    requested = overrides.get_override("syr2k_algorithm")
    if requested is not None:
        return Algorithm(requested, OVERRIDE)
    return Algorithm(SYMMETRIZE if fits else TWO_PRODUCTS, COMPUTED)


# ------------------------------------------------------------------------------------------------ lookahead


def lookahead_width(routine: str, dtype: Dtype, order: int, policy: Policy, batch: int = 1) -> int:
    """Columns of a block; 0: no lookahead. There is none in small matrices and in batches by one launch,
    which fill the device. Nor is there in large Cholesky factors whose products are made on tensor cores.
    """
    if batch > 1:
        return 0
    requested: int | None = overrides.get_override("lookahead")
    if requested is not None:
        return requested
    if routine == "potrf":
        is_split, most = splits_singles(dtype), policy.potrf_lookahead_max_order[dtype.letter]
        if order >= (policy.tensor_potrf_lookahead_max_order if is_split else most):
            return 0
        widths = policy.potrf_lookahead
    elif overrides.method_of(None) != TENSOR:
        widths = policy.getrf_lookahead
    else:
        widths = {
            "d": policy.tensor_getrf_lookahead_of_double,
            "z": policy.tensor_getrf_lookahead_of_double_complex,
        }.get(dtype.letter, policy.tensor_getrf_lookahead)
    return max((int(width) for width, least in widths.items() if order >= least), default=0)


def tiles_per_block(policy: Policy) -> int:
    """Tiles after which blocks of an update give a multiprocessor back."""
    requested: int | None = overrides.get_override("tiles")
    return int(policy.lookahead_tiles) if requested is None else requested


# ----------------------------------------------------------------------------------------------- refinement


def refinement_pays(routine: str, order: int, columns: int, policy: Policy) -> bool:
    """Return whether a system is solved sooner by factors in float32 and refinement, by `routine`."""
    least = policy.potrf_refined_min_order if routine == "potrf" else policy.getrf_refined_min_order
    return order >= least and columns <= max(1, order * policy.refined_max_rhs_share)
