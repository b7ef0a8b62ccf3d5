"""Numbers of a device by which dispatch decides: rates, seconds, ranges of orders, widths, crossovers.

``policy.json`` holds those that were measured on one device, the reference. Those of another device are
computed from them by the two devices' descriptions, until a file of tuned values says otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from math import isfinite, sqrt
from typing import Any, NamedTuple

from ..gpu.device import Device, known, simulated
from ..package_files import package_file
from ..types import DTYPES

__all__ = [
    "MAX_VALUE",
    "REFERENCE",
    "Policy",
    "Trial",
    "checked",
    "computed",
    "described",
    "is_by_dtype",
    "merged",
    "reference",
    "trials",
    "with_values",
]

MAX_VALUE = 1 << 60  # of a value: as a bound it is never reached

Scale = Callable[[Device], float]
ByDtype = Mapping[str, float]
Steps = Mapping[str, float]
ByRoutine = Mapping[str, float]

# -------------------------------------------------------------------------- what a value is proportional to


def _sms(device: Device) -> float:
    """Return multiprocessors, and so blocks and elements that are worked on at a time."""
    return device.sm_count


def _order(device: Device) -> float:
    """Return the order of a C whose tiles occupy all multiprocessors."""
    return sqrt(device.sm_count)


def _cycles(device: Device) -> float:
    return device.clock_mhz


def _seconds_of_cycle(device: Device) -> float:
    return 1 / device.clock_mhz if device.clock_mhz else 0.0


def _operations(device: Device) -> float:
    """Return operations in a second that grow with multiprocessors and clock."""
    return device.sm_count * device.clock_mhz


def _double_operations(device: Device) -> float:
    return _operations(device) * device.lanes_float64


def _dram(device: Device) -> float:
    return device.dram_bytes * device.clock_mhz


def _l2(device: Device) -> float:
    return device.l2_bytes


def _refinement(device: Device) -> float:
    """Return the order from which on what float32 saves of float64 pays for the steps of refinement."""
    saved = 1 / device.lanes_float64 - 1 / device.lanes_float32
    return _operations(device) / saved if saved > 0 else 0.0


# ---------------------------------------------------------------------------------- how a value is measured


class Trial(NamedTuple):
    """Calls that are timed with one value after another, and what the value decides about them.

    Attributes
    ----------
    by : str
        'least', 'most', 'below', 'beyond': calls of sizes from the value on, up to it, below or beyond it
        take the one way, others the other. 'best': the best of the present value times `values`. 'one': the
        best of `values`. 'widths': the best of `values` from an order on, 0 for none.
    routine : str
        The routine.
    points : tuple of tuple of int
        Extents of the calls.
    size : {'order', 'columns', 'elements', 'work'}
        The size that a bound compares: the first extent, the second, the product of these two or of all.
    values : tuple of number
        Candidates.
    dtypes : str
        Dtypes of the calls.
    overrides : tuple of (str, Any)
        Overrides meanwhile.
    others : tuple of (str, number)
        Further values of the policy meanwhile, of all dtypes.
    needs : str
        The family that the device has to run.
    on_host : bool
        Whether matrices are the host's, and times those that a caller waits.
    """

    by: str
    routine: str
    points: tuple[tuple[int, ...], ...]
    size: str = "order"
    values: tuple[float, ...] = ()
    dtypes: str = "sd"
    overrides: tuple[tuple[str, Any], ...] = ()
    others: tuple[tuple[str, float], ...] = ()
    needs: str = ""
    on_host: bool = False


def _squares(*orders: int, extents: int = 2) -> tuple[tuple[int, ...], ...]:
    return tuple((order,) * extents for order in orders)


_LONG = ((256, 256, 2048), (256, 256, 16384), (512, 512, 4096), (1024, 128, 8192), (1024, 1024, 2048))
_FACTORS = 0.25, 0.5, 0.7, 1.0, 1.4, 2.0, 4.0
_SUM = Trial("best", "gemm", _LONG, values=_FACTORS)
_STOP_POINTS = ((1024, 1024), (2048, 256), (2048, 2048))
_TRSM_STOP = Trial(
    "one", "trsm", _STOP_POINTS, "", (64, 128, 256, 512), "sdcz", (("trsm_algorithm", "recursion"),)
)
_TRMM_STOP = Trial(
    "one", "trmm", _STOP_POINTS, "", (64, 128, 256, 512), "sdcz", (("trmm_algorithm", "recursion"),)
)
_TENSOR = (("math_mode", "tensor"),)
_FP16_WORK = Trial(
    "least",
    "gemm",
    _squares(256, 512, 768, 1024, 2048, extents=3),
    "work",
    (),
    "s",
    _TENSOR,
    (),
    "gemm_wgmma",
)
_INT8_RATE = Trial(
    "best", "gemm", _squares(512, 1024, 2048, 4096, extents=3), "", _FACTORS, "d", _TENSOR, (), "gemm_int8"
)
_TENSOR_TRMM = Trial(
    "least",
    "trmm",
    _squares(512, 1024, 2048, 4096),
    dtypes="s",
    overrides=_TENSOR,
    others=(("tensor_trmm_min_rhs", 0), ("tensor_trmm_min_elements", 0)),
    needs="gemm_wgmma",
)
_TENSOR_TRSM = Trial(
    "least",
    "trsm",
    _squares(2048, 4096, 8192),
    dtypes="s",
    overrides=_TENSOR,
    others=(("tensor_trsm_min_rhs", 0), ("tensor_trsm_min_elements", 0)),
    needs="gemm_wgmma",
)
_TENSOR_LU = Trial(
    "least", "getrf", _squares(4096, 8192, 12288), dtypes="s", overrides=_TENSOR, needs="gemm_wgmma"
)
_TRSV = Trial("beyond", "trsm", tuple((order, 1) for order in (128, 256, 512, 1024, 2048)), dtypes="sdcz")
_FEW_SIDES = Trial("least", "trsm", tuple((order, 8) for order in (256, 512, 1024, 2048)), dtypes="sdcz")
_TRMM_ORDERS = Trial("most", "trmm", _squares(1024, 2048, 3072, 4096), dtypes="sdcz")
_TRMM_COLUMNS = Trial("least", "trmm", tuple((4096, columns) for columns in (4, 8, 16, 32, 64)), "columns")
_SMALL_SYSTEMS = Trial(
    "most", "getrs", tuple((32, columns, 1000) for columns in (1, 4, 16, 32, 64)), "columns"
)
_QR_ROWS = Trial("least", "geqrf", tuple((rows, 128) for rows in (256, 512, 1024, 2048, 4096, 8192)))
_ORDERS = 1024, 2048, 4096, 6144, 8192, 12288
_FACTOR_ORDERS = tuple((order,) for order in _ORDERS)
_LU_WIDTHS = Trial("widths", "getrf", _squares(*_ORDERS), values=(0, 128, 256, 512))
_CHOLESKY_WIDTHS = Trial(
    "widths",
    "potrf",
    _FACTOR_ORDERS,
    values=(0, 128, 256, 512),
    others=(("potrf_lookahead_max_order", MAX_VALUE),),
)
_CHOLESKY_ORDERS = Trial("below", "potrf", _FACTOR_ORDERS[1:], dtypes="sdcz")
_TILES = Trial("one", "getrf", _squares(4096, 8192), values=(1, 2, 4))
_HOST_ORDERS = _squares(64, 96, 128, 160, 192, 256, 384, 512, 768, 1024, 2048, extents=3)
_HOST = Trial("least", "gemm", _HOST_ORDERS, dtypes="sdcz", on_host=True)


def _value(
    unit: str, meaning: str, scale: Scale | None = None, multiple: int = 0, trial: Trial | None = None
) -> Any:
    """Return the field of a value: its unit and meaning, what it is proportional to, the multiple to which
    an order is rounded, and how it is measured.
    """
    return field(
        metadata={"unit": unit, "meaning": meaning, "scale": scale, "multiple": multiple, "trial": trial}
    )


# ------------------------------------------------------------------------------------------------ the values


@dataclass(frozen=True)
class Policy:
    """The values of a device, by dtype where they are mappings; of a dtype that is not there, none applies.

    Widths of lookahead are mappings from columns of a block to the order from which on they are used.
    """

    launch_seconds: float = _value("seconds", "of a launch, without the work of its blocks", trial=_SUM)
    sum_seconds: float = _value("seconds", "of a sum of partials, without moving them", trial=_SUM)
    host_seconds: float = _value("seconds", "in which the host enqueues two launches")
    cycle_seconds: float = _value("seconds", "of a cycle where nothing was timed", _seconds_of_cycle)
    copy_seconds: float = _value("seconds", "of a copy, without moving its bytes")
    copied_share: ByDtype = _value("share of DRAM's rate", "that a copy of an operand reaches")
    packed_share: float = _value("share of DRAM's rate", "that packing reaches")
    read_c_share: ByDtype = _value("share of DRAM's rate", "at which products read C")
    read_c_wait: float = _value("seconds", "that persistent blocks of batches wait for an element of C")
    long_code_seconds: float = _value("seconds", "that a kernel of much code waits for it, where others ran")
    prefetch_c_max_k: float = _value("k", "up to which products ask L2 for C ahead")

    packed_min_work: float = _value("m n k", "of products that are worth packing", _sms)

    int8_rate: float = _value("INT8 operations in a second", "on tensor cores", _operations)
    int8_bytes_per_second: float = _value(
        "bytes in a second", "that packing and combining residues move", _dram
    )
    int8_fma_rate: float = _value(
        "float64 operations in a second", "of a product by FMAs", _double_operations, trial=_INT8_RATE
    )
    int8_launch_seconds: float = _value("seconds", "of the launches of a product by residues")
    int8_min_sampled_work: float = _value(
        "m n k", "from which on data are sampled before they are packed", _sms
    )
    fp16_min_extent: float = _value("m and n", "from which on tensor cores multiply")
    fp16_min_work: float = _value("m n k", "from which on tensor cores multiply", _sms, trial=_FP16_WORK)
    fp16_min_equilibrated_work: float = _value("m n k", "from which on A and B are equilibrated", _sms)
    fp16_tile_overhead: float = _value("columns", "of a tile that take as long as its beginning and its end")
    tensor_trmm_min_order: ByDtype = _value(
        "order", "from which on TRMM uses tensor cores", _order, 64, trial=_TENSOR_TRMM
    )
    tensor_trmm_min_rhs: ByDtype = _value("columns", "from which on it does")
    tensor_trmm_min_elements: ByDtype = _value("elements of B", "from which on it does", _sms)
    tensor_trsm_min_order: ByDtype = _value(
        "order", "from which on TRSM uses tensor cores", _order, 64, trial=_TENSOR_TRSM
    )
    tensor_trsm_min_rhs: ByDtype = _value("columns", "from which on it does")
    tensor_trsm_min_elements: ByDtype = _value("elements of B", "from which on it does", _sms)
    tensor_symm_min_order: float = _value(
        "order", "from which on SYMM completes A for tensor cores", _order, 64
    )
    tensor_stop: float = _value("order", "of fused triangles below products on tensor cores")
    tensor_stop_min_elements: float = _value("elements of B", "below which that order is halved", _sms)
    tensor_stop_of_double: float = _value("order", "of such triangles in double precision")
    tensor_potrf_min_order: ByDtype = _value(
        "order", "from which on Cholesky factors keep residues for tensor cores", _order, 64
    )
    tensor_potrf_columns: float = _value("columns", "of the blocks of such factors")
    tensor_potrf_lookahead_max_order: float = _value(
        "order", "from which on Cholesky in single precision there does not look ahead", _order, 64
    )
    tensor_getrf_min_order: ByDtype = _value(
        "order", "from which on LU's products use tensor cores", _order, 64, trial=_TENSOR_LU
    )

    tensor_getrf_lookahead: Steps = _value(
        "columns", "of LU's blocks on tensor cores, and their least orders", _order, 64
    )
    tensor_getrf_lookahead_of_double: Steps = _value("columns", "of such in float64", _order, 64)
    tensor_getrf_lookahead_of_double_complex: Steps = _value("columns", "of such in complex128", _order, 64)
    trsv_min_order: float = _value(
        "order", "beyond which TRSV serves one to four right-hand sides", trial=_TRSV
    )
    fused_trsm_min_order: ByDtype = _value("order", "from which on TRSM is one launch", trial=_FEW_SIDES)
    fused_trsm_max_rhs: ByDtype = _value("right-hand sides", "up to which TRSM is one launch")
    fused_trsm_max_elements: ByDtype = _value("elements of B", "up to which TRSM is one launch", _sms)
    small_trsm_max_order: float = _value("order", "up to which a small TRSM kernel serves one triangle")
    small_trsm_max_order_of_batch: float = _value("order", "up to which it serves a batch")
    small_trsm_min_rhs: ByDtype = _value("right-hand sides", "from which on it serves two leaves' rows", _sms)
    fused_trmm_max_order: ByDtype = _value(
        "order", "up to which TRMM is one launch", _order, 64, trial=_TRMM_ORDERS
    )
    fused_trmm_wide: float = _value("columns", "from which on larger triangles are one launch too")
    fused_trmm_min_rhs: float = _value(
        "columns", "from which on TRMM of a large triangle is one launch", trial=_TRMM_COLUMNS
    )
    fused_trmm_max_order_of_few: float = _value("order", "up to which it is with fewer", _order, 64)
    trmm_stop: ByDtype = _value("order", "at which TRMM's recursion ends in leaves", trial=_TRMM_STOP)
    trsm_stop: ByDtype = _value("order", "at which TRSM's recursion ends in leaves", trial=_TRSM_STOP)
    trtri_fused_min_order: float = _value("order", "from which on blocks of an inverse use one TRMM each")
    lauum_product_max_order: float = _value("order", "up to which LAUUM is one product")
    getrs_small_max_rhs: float = _value(
        "right-hand sides", "up to which small systems are one launch", trial=_SMALL_SYSTEMS
    )
    getrs_small_warps: float = _value("warps", "of a multiprocessor, beyond which systems share lanes")
    getrs_small_many_warps: float = _value("warps", "of one, from which on longer systems are one launch")
    getrf_lookahead: Steps = _value(
        "columns", "of LU's blocks, and their least orders", _order, 64, trial=_LU_WIDTHS
    )
    potrf_lookahead: Steps = _value(
        "columns", "of Cholesky's blocks, and their least orders", _order, 64, trial=_CHOLESKY_WIDTHS
    )
    potrf_lookahead_max_order: ByDtype = _value(
        "order", "from which on it does not", _order, 64, trial=_CHOLESKY_ORDERS
    )
    potrf_by_columns_min_order: ByDtype = _value(
        "order", "from which on a row-major triangle is factored by columns", _order, 64
    )
    lookahead_tiles: float = _value("tiles", "after which a block of an update ends", trial=_TILES)
    getrf_inner_columns: float = _value("columns", "at which the recursion within LU's wide blocks ends")
    getrf_first_columns: float = _value("columns", "of the first part of LU's wide blocks")
    getrf_permuted_min_order: float = _value(
        "order", "from which on LU's blocks permute whole columns", _order, 64
    )
    getrf_refined_min_order: float = _value(
        "order", "from which on LU in float32 is refined", _refinement, 64
    )
    potrf_refined_min_order: float = _value("order", "from which on Cholesky in float32 is", _refinement, 64)
    refined_max_rhs_share: float = _value(
        "right-hand sides", "of a refined solution, as a share of the order"
    )
    symv_small_max_bytes: ByDtype = _value("bytes", "of A up to which SYMV is one launch", _l2)

    cholesky_panel_min_rows: float = _value(
        "rows", "from which on GEQRF's blocks of columns come from Cholesky factors", trial=_QR_ROWS
    )
    cholesky_qr_min_rows: float = _value(
        "rows", "from which on reduced QR factors come from Cholesky's", _sms
    )
    band_eigh_min_order: ByDtype = _value(
        "order", "from which on one symmetric matrix becomes a band before it is tridiagonal", _order, 64
    )
    jacobi_eigh_max_order: ByDtype = _value(
        "order", "up to which matrices of a batch are diagonal by rotations, not tridiagonal first"
    )
    few_jacobi_eigh_max_order: ByDtype = _value(
        "order", "up to which those of a batch with no more matrices than multiprocessors are, if it is less"
    )
    jacobi_svd_max_columns: ByDtype = _value(
        "columns", "up to which singular vectors come from rotations of columns"
    )
    gram_svd_min_columns: ByDtype = _value(
        "columns", "from which on singular vectors come from eigenvectors of AᴴA, where these serve"
    )
    gram_svd_max_columns: ByDtype = _value("columns", "up to which they do")

    host_min_order: ByDtype = _value("order", "from which on host matrices go to the device", trial=_HOST)
    streamed_min_bytes: float = _value("bytes", "of host matrices from which on Level 3 is streamed")
    streamed_factor_min_bytes: ByRoutine = _value("bytes", "from which on a factorization of one is")
    tiled_lu_columns: float = _value("columns", "of a block column of LU by tiles")
    tiled_lu_min_panels: float = _value("block columns", "from which on LU on several cards goes by panels")
    narrow_tiles_max_order: ByDtype = _value(
        "order", "up to which a streamed call takes as long as its transfers", _double_operations, 256
    )
    routed_min_size: ByRoutine = _value("order", "from which on SciPy's routines of a kind go to the device")
    routed_function_min_size: ByRoutine = _value("order", "from which on functions of scipy.linalg do")
    replaced_min_size: ByRoutine = _value("order", "from which on functions of PyTorch and CuPy are replaced")


REFERENCE = "h200"  # the device of ``policy.json``, as `gpu.device.known` names it


@cache
def reference() -> Policy:
    """Return the values that were measured on the reference."""
    return Policy(**json.loads(package_file("database", "policy.json").read_bytes())["policy"])


def computed(device: Device) -> Policy:
    """Return the values of a device by the reference's, and by what the devices' descriptions differ in."""
    measured, there = reference(), known(REFERENCE)
    # the simulator decides as the reference, so that its tests run the same algorithms
    if device.name in (there.name, simulated().name):
        return measured
    changed = {}
    for each in fields(Policy):
        scale = each.metadata["scale"]
        if scale is not None and scale(device) > 0:
            factor, multiple = scale(device) / scale(there), each.metadata["multiple"]
            changed[each.name] = _scaled(getattr(measured, each.name), factor, multiple)
    return replace(measured, **changed)


def _scaled(value: Any, factor: float, multiple: int) -> Any:
    if isinstance(value, Mapping):
        return {key: _scaled(each, factor, multiple) for key, each in value.items()}
    if multiple:
        return max(round(value * factor / multiple), 1) * multiple
    return int(value * factor) if isinstance(value, int) else value * factor


def merged(policy: Policy, values: Mapping[str, Any]) -> Policy:
    """Return `policy` with other values; a mapping replaces those of its dtypes alone."""
    return replace(policy, **with_values({name: getattr(policy, name) for name in values}, values))


def with_values(present: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by name with others in their place, of mappings those of the same keys; widths are
    replaced as a whole.
    """
    changed = dict(present)
    for name, value in values.items():
        is_part = isinstance(value, Mapping) and name not in _STEPS
        changed[name] = {**changed.get(name, {}), **value} if is_part else value
    return changed


_STEPS = {each.name for each in fields(Policy) if each.type == "Steps"}
_BY_DTYPE = {each.name for each in fields(Policy) if each.type == "ByDtype"}
_BY_ROUTINE = {each.name for each in fields(Policy) if each.type == "ByRoutine"}


def checked(raw: Mapping[str, Any], require: Callable[[bool, str], None]) -> dict[str, Any]:
    """Return the values of a file, by name; `require` takes a condition and what is wrong otherwise."""
    known_names = {each.name for each in fields(Policy)}
    for name, value in raw.items():
        require(name in known_names, f"policy: {name!r} is unknown")
        numbers = [value]
        if name in _STEPS | _BY_DTYPE | _BY_ROUTINE:
            require(isinstance(value, dict) and len(value) > 0, f"policy.{name} is no object with values")
            is_key = str.isdecimal if name in _STEPS else DTYPES.__contains__ if name in _BY_DTYPE else bool
            require(all(map(is_key, value)), f"policy.{name} has a key of another kind")
            numbers = list(value.values())
        for number in numbers:
            is_number = type(number) in (int, float) and isfinite(number)
            require(is_number and 0 <= number <= MAX_VALUE, f"policy.{name}: {number!r}")
    return dict(raw)


def described() -> dict[str, str]:
    """Return what each value means, with its unit, by name."""
    return {each.name: f"{each.metadata['unit']} {each.metadata['meaning']}" for each in fields(Policy)}


def trials() -> dict[str, Trial]:
    """Return how values are measured, by name, in the order in which they are."""
    return {each.name: each.metadata["trial"] for each in fields(Policy) if each.metadata["trial"]}


def is_by_dtype(name: str) -> bool:
    """Whether a value is one of each dtype."""
    return name in _BY_DTYPE
