"""The intrinsics of `ptx` in Python, for kernels that run in the simulator.

Every name means what it means there; a kernel file does not notice which of the two it got.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import frexp, isfinite, ldexp
from types import SimpleNamespace

import numpy as np

from ..intrinsics.mma import taken
from .block import Integer, cuda, current_thread, gives_way, launch, reseed
from .memory import Pointer, SimulatorError, adopt, allocate, release, resolve, view

__all__ = [
    "cuda", "types", "offset", "shared_pointer", "load_shared", "store_shared", "load_global",
    "store_global", "store_global_vector", "copy_async", "commit_async", "wait_async", "sync_warp",
    "signal", "received", "atomic_add", "load_acquire", "store_release", "store_relaxed", "afresh",
    "in_turn", "pointer_type", "prefetch",
    "REALS", "rank1_update", "shifted_update", "warp_multiply", "fill", "spread_column", "inlined", "called",
    "fma", "divide", "quotient", "select", "is_aligned",
    # what only the simulator has
    "Pointer", "SimulatorError", "adopt", "allocate", "launch", "release", "reseed", "resolve", "view",
]  # fmt: skip

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
_COMPLEX: dict[str, np.dtype] = {"f": np.dtype("complex64"), "d": np.dtype("complex128")}


def pointer_type(real: str):
    """What `resolve` makes of an address."""
    return Pointer


def offset(pointer: Pointer, count: int) -> Pointer:
    """``pointer + count``."""
    return pointer.offset(count)


def shared_pointer(array: Pointer) -> Pointer:
    """Pointer to the first element: every simulated array is one."""
    return array


def load_shared(width: int, count: int = 1, step: int = 0):
    """``load(local, i, pointer, j)``: `count` aligned vectors of `width` reals, `step` reals apart."""

    def load(local, i, pointer, j):
        for v in range(count):
            local.write(i + v * width, pointer.read(j + v * step, width, width), width)

    return load


def store_shared(width: int):
    """``store(pointer, i, local, j)``: an aligned vector of `width` reals."""

    def store(pointer, i, local, j):
        pointer.write(i, local.read(j, width), width, width)

    return store


def load_global(width: int, read_only: bool):
    """``load(local, i, pointer, j, ok)``: an aligned vector of `width` reals where `ok`, zeros elsewhere."""

    def load(local, i, pointer, j, ok):
        local.write(i, pointer.read(j, width, width) if ok else 0, width)

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


def is_aligned(width: int):
    """``aligned(pointer)``: whether a vector of `width` reals may lie there."""

    def aligned(pointer):
        return (pointer.phase + pointer.start) % width == 0

    return aligned


@dataclass(frozen=True, slots=True)
class _Copy:
    """An asynchronous copy by `thread`; the part of the target that is longer than the source becomes 0."""

    thread: int
    target: Pointer
    to: slice
    source: Pointer
    origin: slice

    def enter(self) -> None:
        """Note that it may read and write at any time until it is waited for."""
        for pointer, span, kind in ((self.target, self.to, "writes"), (self.source, self.origin, "reads")):
            if pointer.log is not None:
                getattr(pointer.log, kind).append((self.thread, span.start, span.stop - span.start))

    def finish(self) -> None:
        values, target = self.source.array[self.origin], self.target.array[self.to]
        target[: values.size] = values
        target[values.size :] = 0


def copy_async(size: int, through_l1: bool = False):
    """``copy(shared, i, pointer, j, valid)``: `size` bytes by cp.async; those past `valid` become 0."""
    if size not in (4, 8, 16):
        raise SimulatorError(f"cp.async of {size} bytes")

    def copy(shared, i, pointer, j, valid):
        real_size = shared.array.itemsize
        count, rest = divmod(valid, real_size)
        if rest or not 0 <= valid <= size:
            raise SimulatorError(f"cp.async of {valid} valid bytes of {size}")
        width = size // real_size
        to = shared.span(i, width, width)
        origin = pointer.span(j, count, width) if count else slice(0, 0)
        shared.array[to] = np.nan  # what is there until it is waited for, nobody knows
        thread = current_thread()
        started = _Copy(thread.index, shared, to, pointer, origin)
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
    """Ask for the line of memory that ``pointer[i]`` lies in, where `ok`: within what there is."""
    if ok:
        pointer.span(i, 1)


def in_turn() -> None:
    """Wait until the launches before are over: here they always are."""


def afresh(value: int) -> int:
    """The integer `value`."""
    return value


def signal(flags: Pointer, i: int) -> None:
    """Set ``flags[i]``: who has `received` it reads what this thread knows to be written."""
    flags.array[flags.span(i, 1)] = 1
    current_thread().block.publish(flags.offset(i))


def received(flags: Pointer, i: int) -> bool:
    """Whether ``flags[i]`` was set; it is not any more."""
    thread, at = current_thread(), flags.span(i, 1)
    if not flags.array[at].any():
        thread.stall()
        return False
    flags.array[at] = 0
    thread.block.learn(flags.offset(i), once=True)
    return True


def atomic_add(flags: Pointer, i: int, count: int) -> int:
    """What ``flags[i]`` was before `count` was added to it.

    Other blocks come in between, so that those that have their numbers run in any order.
    """
    thread, at = current_thread(), flags.span(i, 1)
    before = int(flags.array[at][0])
    flags.array[at] = before + count
    thread.block.launch.events += 1
    thread.stall()
    return before


def load_acquire(flags: Pointer, i: int) -> int:
    """``flags[i]``; who finds a number reads what was known to the thread that released it.

    A thread that finds what it found before gives way to other blocks.
    """
    thread, at = current_thread(), flags.span(i, 1)
    if thread.found.get(at.start) == flags.array[at][0]:
        thread.stall()
    thread.found[at.start] = flags.array[at][0]
    thread.block.learn(flags.offset(i), once=False)
    return int(flags.array[at][0])


def store_release(flags: Pointer, i: int, value: int) -> None:
    """``flags[i] = value``, for others to acquire, with all that this thread knows to be written.

    Other blocks may come in between, which then find this value, not the last one.
    """
    _store(flags, i, value, written=True)


def store_relaxed(flags: Pointer, i: int, value: int) -> None:
    """``flags[i] = value``, for others to acquire, who may write what this block read up to the last
    barrier, but know nothing of what it wrote.
    """
    _store(flags, i, value, written=False)


def _store(flags: Pointer, i: int, value: int, written: bool) -> None:
    thread = current_thread()
    flags.array[flags.span(i, 1)] = value
    thread.block.publish(flags.offset(i), written)
    if gives_way():
        thread.stall()


def sync_warp() -> None:
    """Wait for all lanes of the warp; what each wrote before, the others read after."""
    thread = current_thread()
    thread.meet(None, lambda _: thread.block.settle(thread))


def _elements(pointer: Pointer, first: int, count: int, parts: int, conj: bool = False) -> np.ndarray:
    """`count` elements of so many parts, in place unless conjugated."""
    reals = pointer.read(first * parts, count * parts)
    values = reals if parts == 1 else reals.view(_COMPLEX[pointer.dtype.char])
    return values.conj() if conj else values


def rank1_update(
    m: int, n: int, parts: int, conj_a: bool = False, conj_b: bool = False, by_rows: bool = False,
    at_a: tuple[int, int] = (0, 1), at_b: tuple[int, int] = (0, 1),
):  # fmt: skip
    """``update(acc, a, b)``: acc[:, j] += a * b[j] over an m-by-n column-major register tile."""

    (first_a, step_a), (first_b, step_b) = at_a, at_b
    span_a, span_b = (m - 1) * step_a + 1, (n - 1) * step_b + 1

    def update(acc, a, b):
        tile = _elements(acc, 0, m * n, parts).reshape(n, m)
        column = _elements(b, first_b, span_b, parts, conj_b)[::step_b, None]
        tile += column * _elements(a, first_a, span_a, parts, conj_a)[::step_a]

    return update


def shifted_update(
    m: int, n: int, depth: int, parts: int, conj_a: bool, sources: tuple[int, ...], targets: tuple[int, ...],
    first: int = 0,
):  # fmt: skip
    """``update(acc, a, b)``: acc[targets] = acc[sources] + A B, of m rows and n columns."""

    def update(acc, a, b):
        left = _elements(a, 0, m * depth, parts, conj_a).reshape(m, depth)
        right = _elements(b, first * n, depth * n, parts).reshape(depth, n)
        before = np.concatenate([_elements(acc.offset(place), 0, 1, parts) for place in sources])
        for place, total in zip(targets, before + (left @ right).ravel(), strict=True):
            _elements(acc.offset(place), 0, 1, parts)[:] = total

    return update


def warp_multiply(
    m: int,
    n: int,
    shape: tuple[int, int],
    parts: int,
    conj_a: bool = False,
    conj_b: bool = False,
    depth: int = 1,
    first: int = 0,
    three_m: bool = False,
):
    """``update(acc, a, b)``: acc += A B by a warp; what a lane holds is told in `ptx.warp_multiply`."""
    rows, along = taken(shape, parts, three_m)
    groups, steps = m * rows // 8, depth * along // 4

    def together(lanes):
        def whole(which, outer, inner, conj):
            """What the lanes hold of an operand: [outer index][inner index][g][t]."""
            held = [_elements(lane[which], 0, outer * inner, parts, conj) for lane in lanes]
            return np.array(held).reshape(8, 4, outer, inner).transpose(2, 3, 0, 1)

        # a[step, group](g, t) is A[8 group + g, 4 step + t]; b[step, j](g, t) is B[4 step + t, 8j + g]
        a = whole(1, steps, groups, conj_a).transpose(1, 2, 0, 3).reshape(groups * 8, steps * 4)
        b = whole(2, steps, n, conj_b).transpose(0, 3, 1, 2).reshape(steps * 4, n * 8)
        if three_m:  # three reals an element
            sums, each = [a.real @ b.real, a.imag @ b.imag, (a.real + a.imag) @ (b.real + b.imag)], 1
        else:
            sums, each = [a @ b], parts
        # acc[2j + odd, group](g, t) is C[8 group + g, 8j + 2t + odd]
        c = np.stack(sums, axis=-1).reshape(groups, 8, n, 4, 2, -1).transpose(1, 3, 2, 4, 0, 5)
        for lane, part in zip(lanes, c.reshape(32, -1), strict=True):
            total = _elements(lane[0].offset(first), 0, part.size, each)
            total += part

    def update(acc, a, b):
        current_thread().meet((acc, a, b), together)

    return update


def spread_column(n: int, j: int, parts: int, conj: bool, sign: int, width: int = 1, lead: int | None = None):
    """``spread(column, pointer)``: column[i] += sign * T[i, j] * column[j] for all i > j."""
    below, lead = (j + 1, n - j - 1), lead or n

    def spread(column, pointer):
        pointer.span(0, n * lead * parts, width)
        x = _elements(column, j, 1, parts)[0]
        t = _elements(pointer, j * lead + below[0], below[1], parts, conj)
        target = _elements(column, *below, parts)
        target += sign * (t * x)

    return spread


def fill(count: int):
    """``set(local, value)``: the first `count` elements of a local array."""

    def set_all(local, value):
        local.write(0, value, count)

    return set_all


def inlined(function):
    """`function` as it is."""
    return function


def called(function):
    """`function` as it is."""
    return function


def fma(x, y, z):
    """``x*y + z`` with one rounding (float32: of a sum in float64, which is 2^-29 of an ulp from it)."""
    if x.dtype == np.float32:
        return np.float32(np.float64(x) * np.float64(y) + np.float64(z))
    x, y, z = float(x), float(y), float(z)
    product = x * y
    if not _is_exact(x, y, product) and isfinite(x) and isfinite(y) and isfinite(z):
        exact = Fraction(x) * Fraction(y) + Fraction(z)
        if exact and abs(exact) <= LARGEST:
            return np.float64(float(exact))
    return np.float64(product + z)


LARGEST = Fraction(float(np.finfo(np.float64).max))


def _is_exact(x: float, y: float, product: float) -> bool:
    """Whether `product` is x * y for certain: short significands, and far from under- and overflow."""
    if not 1e-150 < abs(product) < 1e150:
        return x == 0 or y == 0
    return all(float.is_integer(ldexp(frexp(factor)[0], 26)) for factor in (x, y))


def select(ok: bool, x, y):
    """`x` where `ok`, else `y`."""
    return x if ok else y


def divide(x, y):
    """``x / y`` as IEEE 754 has it: by zero it gives inf or NaN."""
    return np.divide(x, y)


def quotient(x: int, y: int) -> int:
    """``x // y`` of int32 that are not negative."""
    x, y = types.int32(x), types.int32(y)
    if x < 0 or y <= 0:
        raise SimulatorError(f"quotient of {x} and {y}")
    return x // y
