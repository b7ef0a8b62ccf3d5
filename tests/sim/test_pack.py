"""`pack`: operands in packed layouts, compared element by element with where `Packing` puts them."""

from __future__ import annotations

import numpy as np
import pytest
from covering import pairs

from pyblasgpu.dispatch.overrides import override
from pyblasgpu.errors import ConfigError
from pyblasgpu.gpu.simulator import intrinsics as simulator
from pyblasgpu.kernels.common.options import options_of
from pyblasgpu.kernels.copy import pack
from pyblasgpu.kernels.copy.pack import Pack
from pyblasgpu.kernels.copy.packing import LAYOUTS, Packing
from pyblasgpu.operands import Operand
from pyblasgpu.routines.copies import emit_packed
from pyblasgpu.routines.launch_list import LaunchList
from pyblasgpu.testing.reference import fenced, integers, packed
from pyblasgpu.types import DTYPES

from .launching import run, strides

FORMS = [Packing("row", 20, 6), *(Packing(layout, 20, 6, pad) for layout in ("cbl", "rbl") for pad in (0, 4))]
DEEP = [Packing("row", 20, 16), Packing("cbl", 20, 8, 4), Packing("rbl", 20, 32, 4)]  # pieces 4 deep


def small(letter: str, packing: Packing, kernels=pack, dim_x: int = 8, dim_y: int = 4) -> Pack:
    return kernels.Pack(letter, DIM_X=dim_x, DIM_Y=dim_y).specialize(packing)


def check(
    letter="s",
    packing=FORMS[-1],
    extent=43,
    k=15,
    step=(1, 1),
    by_rows=True,
    conj=False,
    batch=1,
    shift=0,
    gap=0,
    kernels=pack,
    **shape,
) -> None:
    """Pack integers that lie amid NaN, into memory between fences; compare with ``==``.

    The source begins `shift` reals after a multiple of 16 bytes, every ``step``-th of its rows and columns
    is taken, backwards where that is negative. A `gap` of so many elements is between lines of its memory.
    """
    dtype = DTYPES[letter]
    config = small(letter, packing, kernels, **shape)
    rows, cols = extent * abs(step[0]) + gap * by_rows, k * abs(step[1]) + gap * (not by_rows)
    order = (0, 2, 1) if by_rows else (0, 1, 2)
    room = np.full(batch * rows * cols * dtype.reals_per_element + 8, np.nan, dtype.real)
    room = room[-(room.ctypes.data // dtype.real_size) % (16 // dtype.real_size) + shift :]
    reals = room[: batch * rows * cols * dtype.reals_per_element]
    flat = np.ndarray(batch * rows * cols, dtype.name, reals.data)  # aligned as a real is, no more
    around = flat.reshape(batch, *((cols, rows) if by_rows else (rows, cols))).transpose(order)
    source = around[:, : extent * abs(step[0]), : k * abs(step[1])][:, :: step[0], :: step[1]]
    source[...] = integers(np.random.default_rng(extent + k), source.shape, dtype)
    size = packing.size(extent, k)
    target, unharmed = fenced(np.full((1, batch * size), np.nan, dtype.name), margin=16)
    steps, per_matrix = strides(source), packing.steps(extent, k)
    run(
        kernels.source(config),
        config.grid(extent, k),
        (source, target),
        (extent, k, options_of(conj=conj), *steps[1:], *per_matrix, steps[0], size),
        (),
        batch,
    )
    for matrix, actual in zip(source, target.reshape(batch, size), strict=True):
        assert np.array_equal(actual, packed(packing, matrix.conj() if conj else matrix))
    assert unharmed()


@pytest.mark.parametrize("packing", FORMS, ids=str)
@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("by_rows", [False, True])
def test_layouts(letter, packing, by_rows):
    check(letter, packing, by_rows=by_rows)
    check(letter, packing, 40, 12, by_rows=by_rows)


@pytest.mark.parametrize("packing", DEEP, ids=str)
@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("by_rows", [False, True])
def test_reads_of_sixteen_bytes(letter, packing, by_rows):
    """Lines that begin aligned and end within a vector, in one or both extents."""
    for extent, k in ((43, 37), (40, 32), (41, 34), (18, 7)):
        check(letter, packing, extent, k, by_rows=by_rows, gap=-(extent if by_rows else k) % 4)


@pytest.mark.parametrize("packing", [FORMS[-1], DEEP[-1]], ids=str)
@pytest.mark.parametrize("letter", "cz")
@pytest.mark.parametrize("by_rows", [False, True])
def test_conjugates(letter, packing, by_rows):
    check(letter, packing, by_rows=by_rows, conj=True)
    check(letter, packing, 44, 36, by_rows=by_rows, conj=True)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("step", [(1, 3), (2, 1), (-1, 1), (1, -2), (-3, -1)])
def test_strides(letter, step):
    for by_rows in (False, True):
        check(letter, FORMS[1], step=step, by_rows=by_rows, batch=2)
        check(letter, DEEP[1], 44, 20, step, by_rows, gap=4)


@pytest.mark.parametrize("letter", "sc")
@pytest.mark.parametrize("shift", [1, 2, 3])
def test_any_alignment(letter, shift):
    for by_rows in (False, True):
        check(letter, shift=shift, by_rows=by_rows)
        check(letter, DEEP[1], 44, 20, shift=shift, by_rows=by_rows)


@pytest.mark.parametrize("letter", "dz")
@pytest.mark.parametrize("by_rows", [False, True])
def test_any_alignment_of_a_double(letter, by_rows):
    check(letter, shift=1, by_rows=by_rows)
    check(letter, DEEP[1], 44, 20, shift=1, by_rows=by_rows)


@pytest.mark.parametrize("extent, k", [(1, 1), (1, 50), (50, 1), (19, 7), (20, 6), (21, 5), (61, 6)])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_extents(layout, extent, k):
    check("d", Packing(layout, 20, 6), extent, k)
    check("c", Packing(layout, 20, 6), extent, k, by_rows=False)


@pytest.mark.parametrize("blk, depth, pad", [(4, 1, 0), (8, 3, 12), (64, 16, 4), (128, 4, 0)])
@pytest.mark.parametrize("dim_x, dim_y", [(8, 4), (3, 32), (16, 8)])
def test_tiles_of_any_size(blk, depth, pad, dim_x, dim_y):
    """Tiles of the operand smaller and larger than those of a block of threads."""
    for letter, layout, by_rows in pairs("sz", ("cbl", "rbl"), (False, True)):
        check(letter, Packing(layout, blk, depth, pad), 70, 19, by_rows=by_rows, dim_x=dim_x, dim_y=dim_y)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_batches(layout):
    check("s", Packing(layout, 20, 6), batch=3)


def test_the_defaults_serve_every_dtype():
    for letter in DTYPES:
        packing = Packing("rbl", 32, 8, 4)
        values = integers(np.random.default_rng(4), (37, 9), DTYPES[letter])
        target = np.full(packing.size(37, 9), np.nan, values.dtype)
        config = Pack(letter).specialize(packing)
        run(
            pack.source(config),
            config.grid(37, 9),
            (values, target),
            (37, 9, options_of(), 9, 1, *packing.steps(37, 9), 0, 0),
            (),
        )
        assert np.array_equal(target, packed(packing, values))


def test_special_values_stay_as_they_are():
    values = np.array([[np.nan, np.inf, -np.inf], [-0.0, 5e-324, -1.0]])
    packing = Packing("cbl", 4, 4)
    target = np.full(16, 7.0)
    config = small("d", packing)
    run(
        pack.source(config),
        config.grid(2, 3),
        (values, target),
        (2, 3, options_of(), 3, 1, *packing.steps(2, 3), 0, 0),
        (),
    )
    assert target.tobytes() == packed(packing, values).tobytes()


# ---------------------------------------------------------------------------------------------- the routine


def run_packed(values: np.ndarray, dtype, packing: Packing, conj: bool = False, batch: int | None = None):
    """What `emit_packed` makes of `values`, run: the Packed, and the elements of its matrices."""
    *lead, rows, cols = values.shape
    steps = strides(values)
    count = batch or (lead[0] if lead else 1)
    operand = Operand(
        simulator.adopt(values), rows, cols, *steps[-2:], dtype, conj, count, steps[0] if lead else 0
    )
    launches = LaunchList(dtype, 0)
    with override("pack", small(dtype.letter, packing)):
        launches.scratch(5, 3, 1)  # what it takes does not begin the workspace
        result = emit_packed(launches, launches.at_virtual_address(operand, 0), packing)
    workspace = simulator.allocate(launches.workspace_bytes)
    launches.bound_at(workspace, 0.0)((operand.pointer,), 0)
    memory = result.memory
    distance = memory.pointer - LaunchList(dtype, 0).scratch(1, 1, 1).pointer
    count = memory.batch if memory.batch_stride else 1
    elements = simulator.view(workspace + distance, count * memory.rows * dtype.itemsize).view(dtype.name)
    assert (workspace + distance) % 16 == 0 and distance + elements.nbytes <= launches.workspace_bytes
    return result, elements.reshape(count, memory.rows)


@pytest.mark.parametrize("packing", FORMS, ids=str)
@pytest.mark.parametrize("letter", DTYPES)
def test_emit_packed(letter, packing):
    dtype = DTYPES[letter]
    values = integers(np.random.default_rng(6), (2, 23, 13), dtype)
    for batch in (values, values.swapaxes(1, 2), values[:, ::-2, ::3]):
        result, actual = run_packed(batch, dtype, packing, conj=dtype.is_complex)
        assert result[1:] == (packing, *batch.shape[1:]) and not result.memory.conj
        for matrix, elements in zip(batch, actual, strict=True):
            assert np.array_equal(elements, packed(packing, matrix.conj()))


def test_a_matrix_for_a_whole_batch_is_packed_once():
    values = integers(np.random.default_rng(7), (9, 21), DTYPES["d"])
    result, actual = run_packed(values, DTYPES["d"], FORMS[1], batch=70_000)
    assert (result.memory.batch, result.memory.batch_stride) == (70_000, 0)
    assert np.array_equal(actual, packed(FORMS[1], values)[None])


def test_rows_that_vectors_do_not_fit():
    with pytest.raises(ConfigError, match=r"vectors: BLK \* itemsize % 16 == 0 .* BLK=21"):
        run_packed(np.ones((4, 4)), DTYPES["d"], Packing("cbl", 21, 4))
