"""Intrinsics of the CUDA target: for memory, for arithmetic, and for kernels made of several functions.

Each name here has a stand-in of the same meaning in `simulator`. A *pointer* is a ``types.CPointer`` to
float32 or float64; complex matrices are passed as pointers to their real parts. Indices count reals.
Predicates are written into the instruction instead of a branch: a branch inside an unrolled loop makes
the compiler index the accumulators at run time, and they fall out of the registers.
"""

from __future__ import annotations

from numba import cuda

from .arithmetic import (
    divide,
    fill,
    fma,
    quotient,
    rank1_update,
    select,
    shifted_update,
    spread_column,
    warp_multiply,
)
from .emit import REALS, types
from .memory import (
    afresh,
    atomic_add,
    commit_async,
    copy_async,
    in_turn,
    is_aligned,
    load_acquire,
    load_global,
    load_shared,
    offset,
    pointer_type,
    prefetch,
    received,
    shared_pointer,
    signal,
    store_global,
    store_global_vector,
    store_relaxed,
    store_release,
    store_shared,
    sync_warp,
    wait_async,
)
from .parts import called, inlined

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
    "is_aligned",
    "prefetch",
    "copy_async",
    "commit_async",
    "wait_async",
    "sync_warp",
    "in_turn",
    "afresh",
    "signal",
    "received",
    "atomic_add",
    "load_acquire",
    "store_release",
    "store_relaxed",
    "pointer_type",
    "REALS",
    "rank1_update",
    "shifted_update",
    "warp_multiply",
    "fill",
    "spread_column",
    "inlined",
    "called",
    "fma",
    "select",
    "divide",
    "quotient",
]
