"""Lists of tile tasks run by the engine on fake cards, and what SciPy makes of the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from pyblasgpu.cpu.scipy import level3 as cpu
from pyblasgpu.engine.matrices import HostMatrix
from pyblasgpu.engine.placement import owners_of
from pyblasgpu.engine.run import Controls, run_tasks, slot_bytes
from pyblasgpu.engine.schedule import Schedule
from pyblasgpu.gpu.context import current_context
from pyblasgpu.tasks import Task, TaskList, cut, gemm, potrf, symm, syrk, trmm, trsm
from pyblasgpu.testing.fake_cards import FakeDriver
from pyblasgpu.testing.leaves_on_host import enqueue_on
from pyblasgpu.testing.reference import integers
from pyblasgpu.types import DTYPES, Diag, Dtype, Side, Trans, Uplo

NO = Trans.NO


@dataclass
class Problem:
    """A routine, its arrays by name, the output's name, and the result expected there; `sources` are what
    outputs hold at first, where it is not in them.
    """

    tasks: TaskList
    arrays: dict[str, np.ndarray]
    output: str
    expected: np.ndarray
    dtype: Dtype
    side: Side | None = None
    sources: dict[str, np.ndarray] = field(default_factory=dict)

    def matrices(self, driver: FakeDriver | None = None, locked: str = "") -> dict[str, HostMatrix]:
        """The arrays as matrices; the pages of those named in `locked` are locked."""
        for name in locked:
            for arrays in (self.arrays, self.sources):
                if name in arrays:
                    assert driver is not None
                    driver.lock_pages(arrays[name])
        return {
            name: HostMatrix(name, grid, self.dtype, self.arrays[name], self.sources.get(name))
            for name, grid in self.tasks.grids.items()
        }

    def run(
        self,
        driver: FakeDriver,
        devices=(0,),
        slots: int = 1000,
        locked: str = "",
        weights=None,
        controls: Controls | None = None,
        enqueue: Callable | None = None,
        scatter: int | None = None,
    ) -> int:
        """Run by the engine, with memory for `slots` tiles on each card.

        With a seed to `scatter` tasks, these are dealt at random.
        """
        with current_context(devices[0]):
            matrices = self.matrices(driver, locked)
        owners = owners_of(self.tasks, weights or [1] * len(devices), self.side)
        if scatter is not None:
            owners = list(np.random.default_rng(scatter).integers(0, len(devices), len(owners)))
        schedule = Schedule(self.tasks, owners)
        limit = slots * slot_bytes(schedule, matrices)
        enqueue = enqueue or enqueue_on(driver)
        options = {} if controls is None else {"controls": controls}
        return run_tasks(schedule, matrices, devices, limit, enqueue=enqueue, **options)

    def check(self) -> None:
        np.testing.assert_array_equal(self.arrays[self.output], self.expected)


def filled(rng, shape, dtype: Dtype, order: str) -> np.ndarray:
    return np.asarray(integers(rng, shape, dtype), order=order)


def problem(kind: str, letter: str = "d", order: str = "F", seed: int = 0, size: int = 1) -> Problem:
    """A problem of small integers, whose result is exact; `size` scales the count of tiles."""
    rng, dtype = np.random.default_rng(seed), DTYPES[letter]
    return _PROBLEMS[kind](rng, dtype, order, size)


def _gemm(rng, dtype, order, size) -> Problem:
    m, n, k = 7 * size + 3, 9 * size, 8 * size + 1
    a, b, c = (filled(rng, shape, dtype, order) for shape in ((m, k), (n, k), (m, n)))
    trans = Trans.CONJ if dtype.is_complex else Trans.TRANS
    expected = 2 * a @ b.conj().T + 3 * c
    tasks = gemm(cut(m, 4), cut(n, 4), cut(k, 4), NO, trans, alpha=2, beta=3)
    return Problem(tasks, {"a": a, "b": b, "c": c}, "c", expected, dtype)


def _gemm_new(rng, dtype, order, size) -> Problem:
    m, n, k = 8 * size, 7 * size, 9 * size
    a, b = filled(rng, (k, m), dtype, order), filled(rng, (k, n), dtype, order)
    c = np.full((m, n), np.nan, dtype.name, order)
    tasks = gemm(cut(m, 4), cut(n, 4), cut(k, 4), Trans.TRANS, NO, beta=0)
    return Problem(tasks, {"a": a, "b": b, "c": c}, "c", a.T @ b, dtype)


def _syrk(rng, dtype, order, size) -> Problem:
    n, k = 9 * size, 7 * size
    a, c = filled(rng, (n, k), dtype, order), filled(rng, (n, n), dtype, order)
    expected = c.copy()
    cpu.syrk(2, a[None], 3, expected[None], Uplo.LOWER, NO, False, False)
    tasks = syrk(cut(n, 4), cut(k, 4), Uplo.LOWER, alpha=2, beta=3)
    return Problem(tasks, {"a": a, "c": c}, "c", expected, dtype)


def _symm(rng, dtype, order, size) -> Problem:
    m, n = 9 * size, 7 * size
    a, b, c = (filled(rng, shape, dtype, order) for shape in ((n, n), (m, n), (m, n)))
    expected = c.copy()
    cpu.symm(1, a[None], b[None], 1, expected[None], Side.RIGHT, Uplo.UPPER, False)
    tasks = symm(cut(m, 4), cut(n, 4), Side.RIGHT, Uplo.UPPER, beta=1)
    return Problem(tasks, {"a": a, "b": b, "c": c}, "c", expected, dtype)


def _trmm(rng, dtype, order, size) -> Problem:
    m, n = 9 * size, 8 * size
    a, b = filled(rng, (n, n), dtype, order), filled(rng, (m, n), dtype, order)
    expected = b.copy()
    cpu.trmm(2, a[None], expected[None], Side.RIGHT, Uplo.LOWER, NO, Diag.UNIT)
    tasks = trmm(cut(m, 4), cut(n, 4), Side.RIGHT, Uplo.LOWER, NO, Diag.UNIT, alpha=2)
    arrays = {"a": a, "b": np.full_like(b, np.nan)}
    return Problem(tasks, arrays, "b", expected, dtype, Side.RIGHT, {"b": b})


def _trsm(rng, dtype, order, size) -> Problem:
    m, n = 9 * size, 8 * size
    # unit triangular with few entries: the solution is of small integers
    a = np.asarray(np.triu(filled(rng, (m, m), dtype, order)) * (rng.random((m, m)) < 0.2), order=order)
    b = filled(rng, (m, n), dtype, order)
    expected = b.copy()
    cpu.trsm(2, a[None], expected[None], Side.LEFT, Uplo.UPPER, Trans.TRANS, Diag.UNIT)
    tasks = trsm(cut(m, 4), cut(n, 4), Side.LEFT, Uplo.UPPER, Trans.TRANS, Diag.UNIT, alpha=2)
    arrays = {"a": a, "b": np.full_like(b, np.nan)}
    return Problem(tasks, arrays, "b", expected, dtype, Side.LEFT, {"b": b})


def _potrf(rng, dtype, order, size) -> Problem:
    n = 10 * size
    factor = np.tril(filled(rng, (n, n), dtype, "C"), -1) + 2 * np.eye(n, dtype=dtype.name)
    a = np.asarray(factor @ factor.conj().T, order=order)
    expected = np.triu(a, 1) + factor
    return Problem(potrf(cut(n, 4), Uplo.LOWER), {"a": a}, "a", expected, dtype)


def _chain(rng, dtype, order, size) -> Problem:
    """c := a b and d := c b: tiles that are written without being read, and then read."""
    n = cut(9 * size, 4)
    a, b = (filled(rng, (9 * size, 9 * size), dtype, order) for _ in range(2))
    first, then = gemm(n, n, n), gemm(n, n, n)
    names = {"a": "c", "b": "b", "c": "d"}

    def renamed(tiles):
        return tuple(tile._replace(matrix=names[tile.matrix]) for tile in tiles)

    tasks = [Task(x.leaf, renamed(x.reads), renamed(x.writes), renamed(x.finishes)) for x in then.tasks]
    both = TaskList("gemm", {**first.grids, "d": first.grids["c"]}, (*first.tasks, *tasks))
    arrays = {"a": a, "b": b, "c": np.full_like(a, np.nan), "d": np.full_like(a, np.nan)}
    return Problem(both, arrays, "d", a @ b @ b, dtype)


_PROBLEMS = {
    "gemm": _gemm,
    "gemm_new": _gemm_new,
    "syrk": _syrk,
    "symm": _symm,
    "trmm": _trmm,
    "trsm": _trsm,
    "potrf": _potrf,
    "chain": _chain,
}
#: Those of one routine.
KINDS = tuple(kind for kind in _PROBLEMS if kind != "chain")
