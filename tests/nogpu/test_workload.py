"""The operands of what is timed."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from fake_routines import elements

from pyblasgpu.database import T_LAYOUTS
from pyblasgpu.routines.level3.triangular import fused_operands
from pyblasgpu.tuning import arenas, measure
from pyblasgpu.types import DTYPES, Side, Uplo

pytestmark = pytest.mark.usefixtures("home")


def test_a_rotation_has_operands_of_its_own_for_each_call(stage, monkeypatch):
    monkeypatch.setattr(arenas, "MOST_CALLS", 3)
    seen = []
    work = measure.Workload(0, 0).rotation(
        lambda alpha, t, b, stream, **flags: seen.append((t.pointer, b.pointer, elements(b).copy())),
        "trsm",
        DTYPES["d"],
        "any",
        (8, 4),
    )
    assert len(work.calls) == 3
    work.restore(3)
    for call in work.calls:
        call()
    assert len({t for t, *_ in seen}) == len({b for _, b, _ in seen}) == 3
    assert all(np.array_equal(seen[0][2], b) for *_, b in seen)  # the same numbers


@pytest.mark.parametrize("layout", T_LAYOUTS)
def test_a_triangle_lies_as_asked(stage, layout):
    """Column- or row-major, on either side, NaN beyond it; the kernel meets it as `T_LAYOUTS` says."""
    seen = []
    work = measure.Workload(0, 0).rotation(
        lambda alpha, t, b, stream, **flags: seen.append((t, b, flags)),
        "trsm",
        DTYPES["d"],
        layout,
        (8, 4),
    )
    work.calls[0]()
    ((t, b, flags),) = seen
    on_left = layout.startswith("left")
    assert flags["side"] is (Side.LEFT if on_left else Side.RIGHT)
    assert (t.row_stride == 1) == layout.endswith("colmajor") and b.row_stride == 1
    assert (b.rows, b.cols) == ((8, 4) if on_left else (4, 8))
    made = fused_operands(t, b, flags["side"], flags["uplo"])
    assert (made.layout, made.triangle) == T_LAYOUTS[layout]
    ones = np.ones((8, 8), bool)
    beyond = np.triu(ones, 1) if flags["uplo"] is Uplo.LOWER else np.tril(ones, -1)
    assert np.array_equal(np.isnan(elements(t)[0]), beyond)


@pytest.mark.parametrize("layout", ["nn", "tt"])
@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize(("pad", "shift"), [(0, 0), (2, 1)])
def test_products_lie_as_asked(stage, layout, batch, pad, shift):
    seen = []
    load = measure.Workload(0, 0)
    made = load.products(lambda *call: seen.append(call), DTYPES["d"], layout, (9, 7, 5, *batch), pad, shift)
    for call in made.calls:
        call()
    for _, a, b, _, c, _ in seen:
        leads = {"nn": (9, 5), "tt": (5, 7)}[layout]
        inner = (a.row_stride, b.row_stride) if layout == "nn" else (a.col_stride, b.col_stride)
        outer = (a.col_stride, b.col_stride) if layout == "nn" else (a.row_stride, b.row_stride)
        assert inner == (1, 1) and outer == tuple(lead + pad for lead in leads)
        assert (c.row_stride, c.col_stride) == (1, 9 + pad)
        assert [(x.pointer - seen[0][4].pointer) % 256 for x in (c, seen[0][4])] == [0, 0]
        assert [x.batch for x in (a, b, c)] == [*(batch or (1,)) * 3]
        assert c.batch_stride == (7 * (9 + pad) if batch else 0)
        elements(c)[...] = 0
    first = load.arenas["C", "d"].address
    assert seen[0][4].pointer == first + 8 * shift
    load.check()  # every element is inside


def test_restoring_undoes_what_calls_in_place_have_done(stage):
    def ruin(alpha, t, b, stream, **flags):
        values.append(elements(b).copy())
        elements(b)[...] = 0

    values = []
    work = measure.Workload(0, 0).rotation(ruin, "trmm", DTYPES["z"], "any", (8, 4))
    for _ in range(2):
        work.restore(1)
        work.calls[0]()
    assert np.array_equal(*values) and values[0].all()


def test_memory_that_is_short_is_taken_from_other_problems(stage, monkeypatch):
    load, plain = measure.Workload(0, 0), stage.memory.allocate
    load.rotation(print, "gemm", DTYPES["s"], "nn", (8, 8, 8))
    full = iter([True])

    def allocate(nbytes, device, stream):
        if next(full, False):
            raise MemoryError("out of memory")
        return plain(nbytes, device, stream)

    monkeypatch.setattr(stage.memory, "allocate", allocate)
    load.rotation(print, "gemm", DTYPES["d"], "tt", (8, 8, 8))
    assert {dtype for _, dtype in load.arenas} == {"d"} and len(stage.memory.held) == 3
    load.release()
    assert not stage.memory.held


def test_an_arena_repeats_its_pattern(stage):
    arena = arenas.Arena(100, np.arange(7, dtype=np.uint8), 0, 0)
    held = np.ctypeslib.as_array((ctypes.c_uint8 * 100).from_address(arena.address))
    assert np.array_equal(held, np.resize(np.arange(7), 100)) and arena.intact()
    ctypes.memset(arena.address + 100, 0, 1)
    assert not arena.intact()
