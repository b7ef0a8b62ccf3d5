"""Intrinsics of the CUDA target: for memory, for arithmetic, and for kernels made of several functions.

Each name here has an equivalent in `simulator`. A *pointer* is a ``types.CPointer`` to float32 or float64;
complex matrices are passed as pointers to their real parts. Indices count reals. Predicates are written into
the instruction instead of a branch: a branch inside an unrolled loop makes the compiler index the
accumulators at run time, and they fall out of the registers.
"""

from __future__ import annotations

from numba import cuda

from .arithmetic import divide, fma, inverse_root_approximation, opaque, quotient, select, square_root
from .async_copy import commit_async, copy_async, wait_async
from .bulk_copy import (
    align_shared,
    bulk_copy,
    bulk_copy_multicast,
    cluster_rank,
    cluster_sync,
    mbarrier_arrive,
    mbarrier_arrive_at,
    mbarrier_expect,
    mbarrier_init,
    mbarrier_init_fence,
    mbarrier_wait,
    shared_address,
    store_async,
)
from .device_functions import called, inlined
from .emit import REALS, types
from .half import (
    bfloat_pair,
    exponent,
    half_pair,
    lower_bfloat,
    lower_half,
    power_of_two,
    upper_bfloat,
    upper_half,
)
from .memory import (
    is_aligned,
    load_global,
    load_shared,
    offset,
    pointer_type,
    prefetch,
    shared_pointer,
    store_global,
    store_global_vector,
    store_int64,
    store_shared,
)
from .messages import send_real, try_receive_real
from .register_tile import axpy_column, eliminate_row, fill, rank1_update, shifted_update
from .residue import (
    byte_as_fraction,
    double_exponent,
    double_power_of_two,
    low_bytes,
    low_word,
    multiply_high,
)
from .synchronization import (
    atomic_add,
    grid_dependency_wait,
    load_acquire,
    set_flag_release,
    store_relaxed,
    store_release,
    sync_warp,
    take_ticket,
    try_take_flag,
)
from .warp_mma import has_wide_mma, warp_mma
from .warp_reduce import NO_LABEL, first_lane, first_max_lane, group_first_max, shuffle, warp_first_max
from .warpgroup_mma import (
    set_max_registers,
    warpgroup_commit,
    warpgroup_fence,
    warpgroup_mma,
    warpgroup_results,
    warpgroup_wait,
)

__all__ = [
    "cuda",
    "types",
    "offset",
    "shared_pointer",
    "load_shared",
    "store_shared",
    "load_global",
    "store_global",
    "store_global_vector",
    "store_int64",
    "is_aligned",
    "prefetch",
    "copy_async",
    "commit_async",
    "wait_async",
    "sync_warp",
    "grid_dependency_wait",
    "opaque",
    "set_flag_release",
    "try_take_flag",
    "take_ticket",
    "atomic_add",
    "load_acquire",
    "store_release",
    "store_relaxed",
    "pointer_type",
    "REALS",
    "rank1_update",
    "shifted_update",
    "has_wide_mma",
    "warp_mma",
    "send_real",
    "try_receive_real",
    "warp_first_max",
    "shuffle",
    "first_lane",
    "first_max_lane",
    "group_first_max",
    "align_shared",
    "shared_address",
    "mbarrier_init",
    "mbarrier_init_fence",
    "mbarrier_arrive",
    "mbarrier_expect",
    "mbarrier_wait",
    "bulk_copy",
    "bulk_copy_multicast",
    "cluster_rank",
    "cluster_sync",
    "mbarrier_arrive_at",
    "store_async",
    "warpgroup_fence",
    "warpgroup_commit",
    "warpgroup_wait",
    "warpgroup_mma",
    "warpgroup_results",
    "set_max_registers",
    "half_pair",
    "lower_half",
    "upper_half",
    "bfloat_pair",
    "lower_bfloat",
    "upper_bfloat",
    "exponent",
    "power_of_two",
    "byte_as_fraction",
    "double_exponent",
    "double_power_of_two",
    "low_bytes",
    "low_word",
    "multiply_high",
    "NO_LABEL",
    "fill",
    "axpy_column",
    "eliminate_row",
    "inlined",
    "called",
    "fma",
    "select",
    "divide",
    "inverse_root_approximation",
    "quotient",
    "square_root",
]
