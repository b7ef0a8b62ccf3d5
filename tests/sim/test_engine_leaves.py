"""The leaves of lists of tile tasks as the engine launches them, on tiles as they lie on a card."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg.lapack
from tiled_runs import KINDS, Problem, problem

from pyblasgpu.engine import leaves
from pyblasgpu.engine.block_columns import by_columns
from pyblasgpu.engine.leaves import LeafRun, enqueue_leaf
from pyblasgpu.engine.matrices import TileLayout
from pyblasgpu.gpu.simulator import intrinsics as simulator
from pyblasgpu.operands import Operand
from pyblasgpu.tasks import getrf
from pyblasgpu.types import DTYPES

from .test_routines import small_kernels


class Tiles:
    """The tiles of a problem's matrices, each in simulated memory of its own."""

    def __init__(self, p, row_major: bool):
        self.p, self.held = p, {}
        for name, grid in p.tasks.grids.items():
            array = p.sources.get(name, p.arrays[name])
            for task in p.tasks.tasks:
                for tile in (*task.reads, *task.writes):
                    if tile.matrix == name and tile not in self.held:
                        region = self.region(grid, tile)
                        layout = TileLayout.of(*array[region].shape, row_major, p.dtype)
                        address = simulator.allocate(layout.nbytes)
                        simulator.view(address, layout.nbytes)[:] = 0xFF
                        held = self.held[tile] = (layout, address)
                        self.view(*held)[...] = array[region]

    @staticmethod
    def region(grid, tile):
        rows, cols = grid.row_offsets, grid.col_offsets
        return slice(rows[tile.row], rows[tile.row + 1]), slice(cols[tile.col], cols[tile.col + 1])

    @staticmethod
    def view(layout, address) -> np.ndarray:
        return layout.array(simulator.view(address, layout.nbytes))

    def operand(self, tile) -> Operand:
        layout, address = self.held[tile]
        return layout.operand(address, 0)

    def bring_home(self, name: str) -> None:
        for tile, held in self.held.items():
            if tile.matrix == name:
                self.p.arrays[name][self.region(self.p.tasks.grids[name], tile)] = self.view(*held)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("letter", "dz")
@pytest.mark.parametrize("row_major", [False, True])
def test_lists_run_by_our_routines(monkeypatch, kind, letter, row_major):
    """Leaves of one layout are prepared once, wherever their tiles are."""
    p = problem(kind, letter, seed=3)
    tiles = Tiles(p, row_major)
    info = simulator.allocate(16)
    prepared, known = [], set()
    monkeypatch.setattr(leaves, "LeafRun", lambda *given: prepared.append(given) or LeafRun(*given))
    monkeypatch.setattr(leaves, "kept_leaves", {})
    with small_kernels(letter):
        for task in p.tasks.tasks:
            operands = [tiles.operand(tile) for tile in (*task.reads, *task.writes)]
            if task.leaf.routine == "potrf":
                operands.insert(0, Operand(info, 1, 1, 1, 1, DTYPES[letter]))
            known.add((task.leaf, *(each.layout for each in operands)))
            enqueue_leaf(task.leaf, operands, 0)
            if task.leaf.routine == "potrf":
                assert simulator.view(info, 16).view(np.int32)[0] == 0
    assert len(prepared) == len(known) < len(p.tasks.tasks)
    tiles.bring_home(p.output)
    actual, expected = p.arrays[p.output], p.expected
    if kind == "potrf":  # square roots are not exact
        np.testing.assert_allclose(actual, expected, rtol=1e-13, atol=1e-12)
    else:
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("letter", "dz")
@pytest.mark.parametrize("row_major", [False, True])
def test_lu_factors_by_block_columns(letter, row_major):
    """The leaves mean some rows of block columns, and pivots in the first bytes of elements."""
    dtype, (m, n), block = DTYPES[letter], (24, 20), 8
    rng = np.random.default_rng(5)
    a = (rng.normal(size=(m, n)) + (1j * rng.normal(size=(m, n)) if dtype.is_complex else 0)).astype(
        dtype.name
    )
    factors, piv, _ = scipy.linalg.lapack.get_lapack_funcs("getrf", dtype=dtype.name)(a)
    tasks = by_columns(getrf((8, 8, 4, 4), (8, 8, 4)))
    arrays = {"a": a, "piv": np.zeros((n, 1), dtype.name)}
    p = Problem(tasks, arrays, "a", factors, dtype)
    tiles = Tiles(p, row_major)
    info = simulator.allocate(16)
    with small_kernels(letter):
        for task in tasks.tasks:
            operands = [tiles.operand(tile) for tile in (*task.reads, *task.writes)]
            if task.leaf.routine == "getrf":
                operands.insert(0, Operand(info, 1, 1, 1, 1, dtype))
            enqueue_leaf(task.leaf, operands, 0)
    tiles.bring_home("a")
    tiles.bring_home("piv")
    np.testing.assert_allclose(a, factors, atol=1e-12)
    pivots = arrays["piv"].view(np.int32)[:, 0] + np.arange(n) // block * block
    np.testing.assert_array_equal(pivots, piv)
