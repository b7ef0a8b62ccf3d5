"""The intrinsics of `ptx` in Python, for kernels that run in the simulator.

Every name means what it means there; a kernel file does not notice which of the two it got.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np

from . import bulk_copy as _bulk_copy
from . import half as _half
from . import messages as _messages
from . import register_tile as _register_tile
from . import residue as _residue
from . import synchronization as _synchronization
from . import warp_reduce as _warp_reduce
from . import warpgroup_mma as _warpgroup_mma
from .block import current_thread
from .bulk_copy import *  # noqa: F403
from .fused import fused
from .half import *  # noqa: F403
from .launch import Integer, cuda, launch
from .memory import Pointer, SimulatorError, adopt, allocate, release, resolve, view
from .messages import *  # noqa: F403
from .register_tile import *  # noqa: F403
from .residue import *  # noqa: F403
from .synchronization import *  # noqa: F403
from .thread_order import reseed
from .warp_reduce import *  # noqa: F403
from .warpgroup_mma import *  # noqa: F403

__all__ = [
    "REALS",
    "called",
    "commit_async",
    "copy_async",
    "cuda",
    "divide",
    "fma",
    "has_wide_mma",
    "inlined",
    "inverse_root_approximation",
    "is_aligned",
    "load_global",
    "load_shared",
    "offset",
    "opaque",
    "pointer_type",
    "prefetch",
    "quotient",
    "select",
    "shared_pointer",
    "square_root",
    "store_global",
    "store_global_vector",
    "store_int64",
    "store_shared",
    "types",
    "wait_async",
    # what only the simulator has
    "Pointer",
    "SimulatorError",
    "adopt",
    "allocate",
    "launch",
    "release",
    "reseed",
    "resolve",
    "view",
]
__all__ += _bulk_copy.__all__
__all__ += _half.__all__
__all__ += _messages.__all__
__all__ += _register_tile.__all__
__all__ += _residue.__all__
__all__ += _synchronization.__all__
__all__ += _warp_reduce.__all__
__all__ += _warpgroup_mma.__all__

types = SimpleNamespace(
    int32=Integer("int32"),
    int64=Integer("int64"),
    uint32=Integer("uint32"),
    uint64=Integer("uint64"),
    boolean=bool,
    float32=np.float32,
    float64=np.float64,
)
REALS = {"float32": types.float32, "float64": types.float64}
_LARGEST = types.int32.highest


def pointer_type(real: str):
    """Return the type of `resolve`'s result."""
    return Pointer


offset = Pointer.offset  # not a function of its own: kernels call it often


def shared_pointer(array: Pointer) -> Pointer:
    """Pointer to the first element: every simulated array is one."""
    return array


def load_shared(width: int, count: int = 1, step: int = 0):
    """``load(local, i, pointer, j)``: `count` aligned vectors of `width` reals, `step` reals apart."""

    def load(local, i, pointer, j):
        for v in range(count):
            local.load(i + v * width, pointer, j + v * step, width)

    def load_by_columns(local, i, pointer, j):
        if not local.gather(i, pointer, j, width, count, step):
            load(local, i, pointer, j)  # which says what is wrong

    return load_by_columns if 1 < count >= width and step >= width and step % width == 0 else load


def store_shared(width: int):
    """``store(pointer, i, local, j)``: an aligned vector of `width` reals."""

    def store(pointer, i, local, j):
        pointer.write(i, local.read(j, width), width, width)

    return store


def load_global(width: int, read_only: bool):
    """``load(local, i, pointer, j, ok)``: an aligned vector of `width` reals where `ok`, zeros elsewhere."""

    def load(local, i, pointer, j, ok):
        if ok:
            local.load(i, pointer, j, width)
        else:
            local.write(i, 0, width)

    return load


def store_global(pointer: Pointer, i: int, value, ok: bool) -> None:
    """``pointer[i] = value`` where `ok`."""
    if ok:
        pointer.write(i, value)


def store_global_vector(width: int):
    """``store(pointer, i, local, j, ok)``: an aligned vector of `width` reals where `ok`."""

    def store(pointer, i, local, j, ok):
        if ok:
            pointer.write(i, local.read(j, width), width, width)

    return store


def store_int64(pointer: Pointer, i: int, value: int) -> None:
    """The integer `value` in the eight bytes from ``pointer[i]`` on."""
    reals = np.array([types.int64(value)], np.int64).view(pointer.dtype)
    pointer.write(i, reals, reals.size, reals.size)


def is_aligned(width: int):
    """``aligned(pointer)``: whether a vector of `width` reals may be there."""

    def aligned(pointer):
        return (pointer.phase + pointer.start) % width == 0

    return aligned


@dataclass(slots=True)  # a frozen one takes long to make
class _Copy:
    """An asynchronous copy; the part of the target that is longer than the source becomes 0."""

    target: Pointer
    written: tuple[int, int, int]  # thread, first element, count
    source: Pointer
    read: tuple[int, int, int]

    def enter(self) -> None:
        """Note that it may read and write at any time until it is waited for."""
        written, read = self.target.log, self.source.log
        if written is not None:
            written.writes.append(self.written)
        if read is not None:
            read.reads.append(self.read)

    def finish(self) -> None:
        (_, to, width), (_, at, count) = self.written, self.read
        target, source = self.target.array, self.source.array
        if count == width == 1:
            target[to] = source[at]
            return
        target[to : to + count] = source[at : at + count]
        if count < width:
            target[to + count : to + width] = 0


def copy_async(size: int, policy: str = "cg"):
    """``copy(shared, i, pointer, j, valid)``: `size` bytes by cp.async; those past `valid` become 0."""
    if size not in (4, 8, 16):
        raise SimulatorError(f"cp.async of {size} bytes")

    def copy(shared, i, pointer, j, valid):
        real_size = shared.array.itemsize
        width, count = size // real_size, valid // real_size
        if not 0 <= valid <= size or valid % real_size:
            raise SimulatorError(f"cp.async of {valid} valid bytes of {size}")
        to = shared.checked(i, width, width)
        at = pointer.checked(j, count, width) if count else 0
        # what is there until it is waited for, nobody knows
        if width == 1:
            shared.array[to] = np.nan
        else:
            shared.array[to : to + width] = np.nan
        thread = current_thread()
        started = _Copy(shared, (thread.index, to, width), pointer, (thread.index, at, count))
        started.enter()
        thread.copies.append(started)

    return copy


def commit_async() -> None:
    """Close this thread's current group of asynchronous copies."""
    thread = current_thread()
    thread.groups.append(thread.copies)
    thread.copies = []


def wait_async(pending: int):
    """``wait()``: until at most `pending` of this thread's groups are still under way."""

    def wait():
        groups = current_thread().groups
        while len(groups) > pending:
            for copy in groups.pop(0):
                copy.finish()

    return wait


def prefetch(pointer: Pointer, i: int, ok: bool) -> None:
    """Prefetch the line of memory with ``pointer[i]``, where `ok`: check that it is within its memory."""
    if ok:
        pointer.span(i, 1)


def opaque(value: int) -> int:
    """The integer `value`."""
    return value


def inlined(function):
    """`function` as it is."""
    return function


def called(function):
    """`function` as it is."""
    return function


def fma(x, y, z):
    """``x*y + z`` with one rounding (float32: of a sum in float64, which is 2^-29 of an ulp from it)."""
    dtype, x, y, z = x.dtype, float(x), float(y), float(z)
    if dtype == np.float32:
        return np.float32(x * y + z)
    return np.float64(fused(x, y, z))


def select(ok: bool, x, y):
    """`x` where `ok`, else `y`."""
    return x if ok else y


def divide(x, y):
    """``x / y`` as IEEE 754 has it: by zero it gives inf or NaN."""
    return np.divide(x, y)


def inverse_root_approximation(x):
    """``1 / sqrt(x)``, with the error that the instruction may have; a subnormal number counts as zero."""
    if abs(x) < np.finfo(x.dtype).tiny:
        x = x * 0
    return (1 / np.sqrt(x) * (1 + 2.0**-22)).astype(x.dtype)


def square_root(x):
    """The square root of `x`."""
    return np.sqrt(x)


def has_wide_mma() -> bool:
    """Whether instructions of sixteen rows are there."""
    return True


def quotient(x: int, y: int) -> int:
    """``x // y`` of int32 that are not negative."""
    if type(x) is int and type(y) is int and 0 <= x <= _LARGEST and 0 < y <= _LARGEST:
        return x // y
    x, y = types.int32(x), types.int32(y)
    if x < 0 or y <= 0:
        raise SimulatorError(f"quotient of {x} and {y}")
    return x // y
