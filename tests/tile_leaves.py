"""Task lists run on NumPy arrays by NumPy and SciPy."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from pyblasgpu.tasks import Grid, Task, TaskList, Tile, dependencies
from pyblasgpu.types import Diag, Side, Trans, Uplo


def op(a: np.ndarray, trans: Trans) -> np.ndarray:
    return {Trans.NO: a, Trans.TRANS: a.T, Trans.CONJ: a.conj().T}[trans]


def view(array: np.ndarray, grid: Grid, tile: Tile) -> np.ndarray:
    row, col = grid.row_offsets[tile.row], grid.col_offsets[tile.col]
    rows, cols = grid.tile_shape(tile)
    return array[row : row + rows, col : col + cols]


def triangle(a: np.ndarray, uplo: Uplo, diag: Diag = Diag.NON_UNIT) -> np.ndarray:
    """With zeros in the other triangle, and ones on the diagonal if it is not read."""
    t = (np.tril if uplo is Uplo.LOWER else np.triu)(a).copy()
    if diag is Diag.UNIT:
        np.fill_diagonal(t, 1)
    return t


def mirrored(a: np.ndarray, uplo: Uplo, hermitian: bool) -> np.ndarray:
    t = triangle(a, uplo)
    strict = t - np.diag(np.diag(t))
    return t + (strict.conj() if hermitian else strict).T


def product(c, product, beta, region=None) -> None:
    """``c := product + beta c`` in the elements where `region` is not zero."""
    value = product + (beta * c if beta else 0)
    c[...] = value if region is None else np.where(region, value, c)


def gemm(a, b, c, *, trans_a, trans_b, alpha, beta):
    product(c, alpha * (op(a, trans_a) @ op(b, trans_b)), beta)


def rank_k(other: Trans):
    def update(a, c, *, lower, trans, alpha, beta):
        left, right = (a, op(a, other)) if trans is Trans.NO else (op(a, trans), a)
        product(c, alpha * (left @ right), beta, triangle(np.ones(c.shape), lower))

    return update


def symmetric(hermitian: bool):
    def update(a, b, c, *, side, lower, alpha, beta):
        whole = mirrored(a, lower, hermitian)
        product(c, alpha * (whole @ b if side is Side.LEFT else b @ whole), beta)

    return update


def trmm(a, b, *, side, lower, trans, unit_diag, alpha):
    t = op(triangle(a, lower, unit_diag), trans)
    b[...] = alpha * (t @ b if side is Side.LEFT else b @ t)


def trsm(a, b, *, side, lower, trans, unit_diag, alpha):
    t = op(triangle(a, lower, unit_diag), trans)
    b[...] = alpha * (np.linalg.solve(t, b) if side is Side.LEFT else np.linalg.solve(t.T, b.T).T)


def potrf(a, *, lower, clean):
    factor = scipy.linalg.cholesky(mirrored(a, lower, hermitian=True), lower=lower is Uplo.LOWER)
    product(a, factor, 0, None if clean else triangle(np.ones(a.shape), lower))


def getrf(a, piv):
    a[...], piv[:, 0], _ = scipy.linalg.get_lapack_funcs("getrf", [a])(a)


def laswp(piv, a):
    a[...] = scipy.linalg.get_lapack_funcs("laswp", [a])(a, piv[:, 0].astype(int))


LEAVES = {
    "gemm": gemm,
    "syrk": rank_k(Trans.TRANS),
    "herk": rank_k(Trans.CONJ),
    "symm": symmetric(False),
    "hemm": symmetric(True),
    "trmm": trmm,
    "trsm": trsm,
    "potrf": potrf,
    "getrf": getrf,
    "laswp": laswp,
}


def run_task(tasks: TaskList, task: Task, arrays: dict[str, np.ndarray]) -> None:
    operands = [
        view(arrays[tile.matrix], tasks.grids[tile.matrix], tile) for tile in task.reads + task.writes
    ]
    LEAVES[task.leaf.routine](*operands, **task.leaf.keywords)


def random_order(tasks: TaskList, rng: np.random.Generator) -> list[int]:
    """An order in which no task comes before one that it needs."""
    needs = dependencies(tasks.tasks)
    waiting = [len(need) for need in needs]
    users = [[] for _ in needs]
    for task, need in enumerate(needs):
        for other in need:
            users[other].append(task)
    ready, order = [task for task, count in enumerate(waiting) if not count], []
    while ready:
        order.append(ready.pop(rng.integers(len(ready))))
        for user in users[order[-1]]:
            waiting[user] -= 1
            if not waiting[user]:
                ready.append(user)
    return order


def run_in_random_order(tasks: TaskList, arrays: dict[str, np.ndarray], seed: int) -> None:
    for number in random_order(tasks, np.random.default_rng(seed)):
        run_task(tasks, tasks.tasks[number], arrays)
