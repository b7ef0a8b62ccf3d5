"""The intrinsics of `warpgroup_mma` in Python: products that are there once they are waited for.

Sums are rounded as in the worst model of tensor cores. Each addend is cut to 24 bits of the largest one, and
so is their sum. Those of integers are exact, and wrap around.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .block import Thread, current_thread
from .memory import WARP, Pointer, SimulatorError

__all__ = [
    "set_max_registers",
    "truncated_sum",
    "warpgroup_commit",
    "warpgroup_fence",
    "warpgroup_mma",
    "warpgroup_results",
    "warpgroup_wait",
]

WARPS = 4  # of a warpgroup
ROW = 128  # bytes of a swizzled row
#: Values of sums, FP16's and integers', that are read before they were waited for.
NOBODY_KNOWS = np.float32(np.nan), np.int32(-1)
BFLOAT = np.uint16  # what BF16 numbers are read as
LEAST_EXPONENT: dict[type, int] = {np.float16: -14, BFLOAT: -126}  # of a subnormal number
DEPTH = 32  # bytes of a row that an instruction multiplies


@dataclass
class _Warp:
    """State of a warp's products: sums by the accumulators of lane 0, and pending groups."""

    sums: dict[int, np.ndarray] = field(default_factory=dict)
    history: list[tuple[int, int]] = field(default_factory=list)  # addresses of what was multiplied
    open: int = 0  # products of the group that is not closed
    pending: list[int] = field(default_factory=list)  # of each group under way, the number of its last
    fenced: bool = False


def _warp(thread: Thread) -> _Warp:
    warps = thread.block.proxy.warps
    state = warps.setdefault(thread.index // WARP, _Warp())
    assert isinstance(state, _Warp)
    return state


def warpgroup_fence() -> None:
    """Before the first product of a group: accumulators that this thread has touched are ready."""
    thread = current_thread()
    thread.meet(thread, _fence)


def _fence(lanes: list[Thread]) -> None:
    _warp(lanes[0]).fenced = True


def warpgroup_commit() -> None:
    """Close the warpgroup's current group of products."""
    thread = current_thread()
    thread.meet(thread, _commit)


def _commit(lanes: list[Thread]) -> None:
    warp = _warp(lanes[0])
    if warp.open == 0:
        raise SimulatorError("a group of no products is closed")
    warp.pending.append(len(warp.history))
    warp.open = 0


def warpgroup_wait(pending: int):
    """``wait()``: until at most `pending` groups of this warpgroup are under way."""

    def wait():
        thread = current_thread()
        thread.meet(thread, lambda lanes: _wait(lanes, pending))

    return wait


def _wait(lanes: list[Thread], pending: int) -> None:
    warp, number = _warp(lanes[0]), lanes[0].index // WARP
    while len(warp.pending) > pending:
        over = warp.pending.pop(0)
        for lane in lanes:
            lane.clock["warp", lane.block.number, number] = over


def warpgroup_results(count: int):
    """``results(acc)``: wait for all groups of this warpgroup; the `count` sums in `acc` are there then."""

    def results(acc):
        thread = current_thread()
        thread.meet((thread, acc), together)

    def together(brought):
        lanes = [lane for lane, _ in brought]
        _wait(lanes, 0)
        warp = _warp(lanes[0])
        if warp.open:
            raise SimulatorError("results are read while a group of products is not closed")
        sums = warp.sums.pop(id(brought[0][1].array), None)
        if sums is None:
            raise SimulatorError("results of accumulators that no product has")
        warp.fenced = False
        for (_, acc), values in zip(brought, _of_lanes(sums), strict=True):
            acc.write(0, values, count)

    return results


def warpgroup_mma(n: int, first: bool, integers: bool = False, bfloat: bool = False):
    """``multiply(acc, a, b)``: acc += A B, m64 `n` k16, of `integers` k32; with `first` acc = A B."""
    kind = np.int8 if integers else BFLOAT if bfloat else np.float16
    if n % 8 or not 8 <= n <= 256:
        raise SimulatorError(f"wgmma of {n} columns")

    def multiply(acc, a, b):
        thread = current_thread()
        thread.meet((thread, acc, a, b), together)

    def together(brought):
        lanes, accs, a, b = [list(part) for part in zip(*brought, strict=True)]
        if len({*a}) > 1 or len({*b}) > 1:
            raise SimulatorError("the lanes of a warp multiply what lies at different addresses")
        _multiply(lanes, accs, a[0], b[0], n, first, kind)

    return multiply


def _multiply(
    lanes: list[Thread], accs: list[Pointer], a: int, b: int, n: int, first: bool, element: type
) -> None:
    warp, number, integers = _warp(lanes[0]), lanes[0].index // WARP, element is np.int8
    if not warp.fenced:
        raise SimulatorError("a product after accumulators were touched, without warpgroup_fence")
    _agree(lanes[0], warp, (a, b))
    key = id(accs[0].array)
    if first:
        before = np.zeros((16, n), np.int32 if integers else np.float32)
    elif key in warp.sums:
        before = warp.sums[key]
    else:
        before = _of_warp([acc.read(0, n // 2) for acc in accs])
    proxy, at = lanes[0].block.proxy, len(warp.history)
    left = _rows(proxy.read_by_products(lanes, number, at, *_extent(a, 64)), a, element)
    right = _rows(proxy.read_by_products(lanes, number, at, *_extent(b, n)), b, element)
    left = left[number % WARPS * 16 :][:16]
    if integers:
        warp.sums[key] = _wrapped_sum(before, left, right)
    else:
        warp.sums[key] = truncated_sum(before, left, right, LEAST_EXPONENT[element])
    warp.open += 1
    for acc in accs:
        acc.write(0, NOBODY_KNOWS[integers], n // 2)


def _agree(lane: Thread, warp: _Warp, addresses: tuple[int, int]) -> None:
    """Note what is multiplied; the warps of a warpgroup do the same one after the other."""
    at, first = len(warp.history), lane.index // WARP // WARPS * WARPS
    warp.history.append(addresses)
    for number in range(first, first + WARPS):
        other = lane.block.proxy.warps.get(number)
        if isinstance(other, _Warp) and len(other.history) > at and other.history[at] != addresses:
            raise SimulatorError("the warps of a warpgroup multiply what lies at different addresses")


def _extent(address: int, rows: int) -> tuple[int, int]:
    """Return the address of an operand's swizzled rows, and their bytes."""
    start = address // ROW * ROW
    if start % 1024 or address % DEPTH:
        raise SimulatorError(f"misaligned: an operand of wgmma at shared address {address:#x}")
    return start, rows * ROW


def _rows(memory: np.ndarray, address: int, element: type) -> np.ndarray:
    """Return the elements of each row that an instruction multiplies, as float64."""
    rows = memory.reshape(-1, ROW // 16, 16)
    chunks = address % ROW // 16 + np.arange(2)
    which = np.arange(len(rows))[:, None]
    values = rows[which, chunks ^ which % 8].reshape(len(rows), -1).view(element)
    if element is BFLOAT:
        values = (values.astype(np.uint32) << 16).view(np.float32)
    return values.astype(np.float64)


def _wrapped_sum(before: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """``before + left @ right.T`` as int32."""
    return (before.astype(np.int64) + (left @ right.T).astype(np.int64)).astype(np.int32)


def truncated_sum(before: np.ndarray, left: np.ndarray, right: np.ndarray, lowest: int = -14) -> np.ndarray:
    """``before + left @ right.T`` as float32, each addend cut to 24 bits of the largest, and so the sum.

    A product counts as large as the exponents of its factors say. That of a subnormal number is the `lowest`
    (Khattak and Mikaitis, *Accurate models of NVIDIA tensor cores*, 2025, who find 26 bits on Hopper).
    """
    products = left.T[:, :, None] * right.T[:, None, :]
    addends = np.concatenate([before.astype(np.float64)[None], products])
    if not np.isfinite(addends).all():
        return addends.sum(axis=0).astype(np.float32)
    factors = _exponents(left, lowest).T[:, :, None] + _exponents(right, lowest).T[:, None, :]
    factors = np.maximum(factors, _exponents(products, _LOWEST))
    factors[products == 0] = _LOWEST
    largest = np.maximum(factors.max(axis=0), _exponents(before, _LOWEST))
    unit = np.ldexp(1.0, largest - 23)
    total = np.trunc(addends / unit).sum(axis=0) * unit
    unit = np.ldexp(1.0, _exponents(total, -126) - 23)
    return (np.trunc(total / unit) * unit).astype(np.float32)


_LOWEST = -500  # below all exponents


def _exponents(values: np.ndarray, lowest: int) -> np.ndarray:
    """The largest e with 2^e <= |value|, but at least `lowest`; of zero that."""
    _, exponents = np.frexp(values.astype(np.float64))
    return np.where(values == 0, lowest, np.maximum(exponents - 1, lowest))


def _of_lanes(sums: np.ndarray) -> np.ndarray:
    """Return each lane's share of a warp's 16 rows: acc[4j + 2h + odd](g, t) is C[8h + g, 8j + 2t + odd]."""
    n = sums.shape[1]
    return sums.reshape(2, 8, n // 8, 4, 2).transpose(1, 3, 2, 0, 4).reshape(WARP, n // 2)


def _of_warp(held: list[np.ndarray]) -> np.ndarray:
    values = np.array(held)
    n = values.shape[1] * 2
    return values.reshape(8, 4, n // 8, 2, 2).transpose(3, 0, 2, 1, 4).reshape(16, n)


def set_max_registers(count: int, more: bool):
    """``set()``: the warpgroup's threads have `count` registers from here on."""
    if count % 8 or not 24 <= count <= 256:
        raise SimulatorError(f"setmaxnreg of {count} registers")

    def set_them():
        thread = current_thread()
        thread.meet(None, lambda _: None)

    return set_them
