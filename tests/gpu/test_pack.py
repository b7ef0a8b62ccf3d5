"""Operands packed on a device: every layout, any strides and alignment, batches, more than 2^31 elements."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from pyblasgpu.gpu.build.compile import KernelSource
from pyblasgpu.kernels.copy.packing import LAYOUTS, Packing
from pyblasgpu.operands import Operand
from pyblasgpu.routines.copies import Packed, emit_packed
from pyblasgpu.routines.launch_list import LaunchList
from pyblasgpu.testing.reference import integers, packed
from pyblasgpu.types import DTYPES

from .running import cupy, same

PACKINGS = [
    Packing("row", 96, 8),
    Packing("cbl", 128, 16, 4),
    Packing("rbl", 64, 16),
    Packing("rbl", 32, 8, 4),
]
EXTENTS = [(1, 1), (1, 300), (300, 1), (256, 64), (257, 65), (129, 31)]
FENCE = 0xFF  # every byte of the workspace before


def operand(array, letter: str, batch: int | None = None, conj: bool = False) -> Operand:
    """A CuPy array of shape (extent, k) or (batch, extent, k)."""
    *lead, extent, k = array.shape
    *step, row, col = (stride // array.itemsize for stride in array.strides)
    count, batch_stride = (lead[0], step[0]) if lead else (batch or 1, 0)
    return Operand(array.data.ptr, extent, k, row, col, DTYPES[letter], conj, count, batch_stride, device=0)


def emitted(source: Operand, packing: Packing) -> tuple[LaunchList, Packed]:
    """Fences before and after the packed operand are scratch that nothing writes."""
    launches = LaunchList(source.dtype, source.device)
    launches.scratch(100, 1, 1)
    result = emit_packed(launches, launches.at_virtual_address(source, 0), packing)
    launches.scratch(100, 1, 1)
    return launches, result


def elements(source: Operand, packing: Packing):
    """What `source` is packed into, on the device: shape (matrices, elements); fences are checked."""
    launches, result = emitted(source, packing)
    room = cupy.full(launches.workspace_bytes, FENCE, np.uint8)
    launches.bound_at(room.data.ptr, 0.0)((source.pointer,), 0)
    memory = result.memory
    first = memory.pointer - LaunchList(source.dtype, source.device).scratch(1, 1, 1).pointer
    matrices = memory.batch if memory.batch_stride else 1
    last = first + matrices * memory.rows * source.dtype.itemsize
    assert (room[:first] == FENCE).all() and (room[last:] == FENCE).all(), f"{packing}: written outside"
    return room[first:last].view(source.dtype.name).reshape(matrices, memory.rows)


def views(letter: str, extent: int, k: int) -> Iterator:
    """Yield integers by rows and by columns, with strides, backwards, at odd addresses, and such that
    lines begin at multiples of 16 bytes.
    """
    dtype = DTYPES[letter]
    values = integers(np.random.default_rng(extent + 3 * k), (2, extent, k), dtype)
    for order, step, aligned in product(("row", "column"), ((1, 1), (1, -1), (-2, 3)), (False, True)):
        rows, cols = extent * abs(step[0]), k * abs(step[1])
        shape = (2, cols, rows) if order == "column" else (2, rows, cols)
        if aligned:
            shape = *shape[:2], -(-shape[2] // 4) * 4
        # one real more before the first element: aligned as a real is, no more
        reals = cupy.full(int(np.prod(shape)) * dtype.reals_per_element + 1, np.nan, dtype.real)[
            0 if aligned else 1 :
        ]
        room = cupy.ndarray(shape, dtype.name, reals.data)
        whole = (room.swapaxes(1, 2) if order == "column" else room)[:, :rows, :cols]
        view = whole[:, :: step[0], :: step[1]]
        if dtype.is_complex:  # by reals: CuPy's kernels take complex numbers to be aligned
            for part, of in enumerate((values.real, values.imag)):
                strides = view.strides
                data = cupy.ndarray(view.shape, dtype.real, view.data + part * dtype.real_size, strides)
                data[...] = cupy.asarray(of)
        else:
            view[...] = cupy.asarray(values)
        yield view, values


def sources() -> Iterator[KernelSource]:
    for letter, packing, order in product(DTYPES, PACKINGS, "CF"):
        array = cupy.empty((2, 2), DTYPES[letter].name, order)
        for conj in (False, True) if letter in "cz" else (False,):
            launches, _ = emitted(operand(array, letter, conj=conj), packing)
            yield from (step.source for step in launches.entries)


@pytest.fixture(scope="module", autouse=True)
def compiled(compile_once) -> None:
    compile_once("pack", sources)


@pytest.mark.parametrize("packing", PACKINGS, ids=str)
@pytest.mark.parametrize("letter", DTYPES)
def test_exact(letter, packing):
    for extent, k in EXTENTS:
        for view, values in views(letter, extent, k):
            for conj in (False, True) if letter in "cz" else (False,):
                actual = elements(operand(view, letter, conj=conj), packing).get()
                expected = [packed(packing, matrix.conj() if conj else matrix) for matrix in values]
                same(actual, np.array(expected), f"{letter} {packing} {extent} x {k}, strides {view.strides}")


def test_more_matrices_than_a_launch_takes():
    values = integers(np.random.default_rng(8), (70_000, 3, 5), DTYPES["s"])
    packing = Packing("cbl", 32, 8, 4)
    actual = elements(operand(cupy.asarray(values), "s"), packing).get().reshape(-1, 8, 36)
    assert np.array_equal(actual[:, :5, :3], values.swapaxes(1, 2))
    assert np.count_nonzero(actual) == np.count_nonzero(values)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_more_than_two_to_the_31_elements(layout):
    """One row, read again and again: its first and last k-tiles are where they should be."""
    free, _ = cupy.cuda.runtime.memGetInfo()
    if free < 20 << 30:
        pytest.skip(f"needs 20 GiB of device memory, {free / 2**30:.0f} are free")
    extent, k, packing = 46_500, 46_501, Packing(layout, 128, 16)
    row = cupy.asarray(integers(np.random.default_rng(9), (1, k), DTYPES["s"]))
    source = operand(cupy.broadcast_to(row, (extent, k)), "s")
    actual = elements(source, packing)[0]
    assert actual.size > 2**31
    steps = packing.steps(extent, k)
    for tile, k_tile in product((0, packing.tiles(extent) - 1), (0, packing.k_tiles(k) - 1)):
        first, k0 = tile * steps.tile + k_tile * steps.k_tile, k_tile * 16
        rows, depth = min(extent - tile * 128, 128), min(k - k0, 16)
        place = first + cupy.arange(depth)[:, None] * steps.k + cupy.arange(rows)
        assert (actual[place] == row[0, k0 : k0 + depth, None]).all()
    assert int(cupy.count_nonzero(actual)) == extent * int(cupy.count_nonzero(row))
    del actual
    cupy.get_default_memory_pool().free_all_blocks()
