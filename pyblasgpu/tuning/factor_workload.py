"""Factorizations, and solutions by factors, on copies of their arrays: what `measure` times of LAPACK."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..gpu import memory
from ..operands import Operand
from ..testing.reference import reals
from ..types import Dtype, Trans, Uplo
from .arenas import Arenas

__all__ = ["FACTORS", "dominant"]

#: Random elements that are repeated: no multiple of an order, so that no column is the one before it.
PERIOD = (1 << 20) - 3

#: The calls on each of the copies, and what gives the first copies their contents back.
Copies = tuple[tuple[Callable[[], None], ...], Callable[[int], None]]


def _cholesky(load: Arenas, routine: Callable, dtype: Dtype, extents: tuple[int, ...]) -> Copies:
    """Diagonals of a matrix are constant, and the main one dominates: it repeats n + 1 elements."""
    (n,) = extents
    source, outs = _matrices(load, "the definite matrix", dtype, (n, n), lambda: dominant(dtype, n))
    infos = load.matrices("info", dtype, 1, 1, len(outs))

    def call(info: Operand, a: Operand) -> Callable[[], None]:
        return lambda: routine(info, a, load.stream, uplo=Uplo.LOWER)

    return tuple(map(call, infos, outs)), _restore(load, source, outs)


def _lu(load: Arenas, routine: Callable, dtype: Dtype, extents: tuple[int, ...]) -> Copies:
    """Random square matrices, so that rows are interchanged."""
    n = extents[0]

    source, outs = _matrices(load, "the matrix", dtype, (n, n), lambda: _random(dtype, n))
    infos, pivots = (
        load.matrices("info", dtype, 1, 1, len(outs)),
        load.matrices("piv", dtype, n, 1, len(outs)),
    )

    def call(piv: Operand, info: Operand, a: Operand) -> Callable[[], None]:
        return lambda: routine(piv, info, a, load.stream)

    return tuple(map(call, pivots, infos, outs)), _restore(load, source, outs)


def _reflectors(load: Arenas, routine: Callable, dtype: Dtype, extents: tuple[int, ...]) -> Copies:
    """Random matrices with more rows than columns."""
    rows, columns = extents
    source, outs = _matrices(load, "the columns", dtype, (rows, columns), lambda: _random(dtype, rows))
    factors = load.matrices("tau", dtype, columns, 1, len(outs))

    def call(tau: Operand, a: Operand) -> Callable[[], None]:
        return lambda: routine(tau, a, load.stream)

    return tuple(map(call, factors, outs)), _restore(load, source, outs)


def _solutions(load: Arenas, routine: Callable, dtype: Dtype, extents: tuple[int, ...]) -> Copies:
    """Solutions of a batch whose matrices are one."""
    n, columns, batch = extents

    def triangles() -> np.ndarray:
        made = reals(np.random.default_rng(n), (n, n), dtype)
        made[np.diag_indices(n)] = n
        return made.ravel()

    def rows() -> np.ndarray:
        made = np.zeros(n, dtype.name)
        made.view(np.int32)[:: dtype.itemsize // 4] = np.arange(n)
        return made

    def operand(name: str, rows: int, cols: int, chunk: Callable[[], np.ndarray]) -> Operand:
        count = rows * cols
        arena = load.arena((name, dtype.letter, *extents), count * batch * dtype.itemsize, chunk)
        return Operand(arena.address, rows, cols, 1, rows, dtype, False, batch, count, load.device)

    factors, pivots = operand("the factors", n, n, triangles), operand("the pivots", n, 1, rows)
    count = load.copies(dtype, batch * n * columns)
    outs = load.matrices("B", dtype, n, columns, count, batch=batch)
    (source,) = load.matrices("A", dtype, n, columns, 1, batch=batch)

    def call(b: Operand) -> Callable[[], None]:
        return lambda: routine(pivots, factors, b, load.stream, trans=Trans.NO)

    return tuple(map(call, outs)), _restore(load, source, outs)


#: Routine -> its operands.
FACTORS: dict[str, Callable[[Arenas, Callable, Dtype, tuple[int, ...]], Copies]] = {
    "getrf": _lu,
    "potrf": _cholesky,
    "getrs": _solutions,
    "geqrf": _reflectors,
}


def dominant(dtype: Dtype, n: int) -> np.ndarray:
    """Return n + 1 elements which, repeated, are a matrix of order n that is dominated by its diagonal."""
    made = reals(np.random.default_rng(n), (n + 1,), dtype)
    made[0] = 2 * n
    return made


def _random(dtype: Dtype, seed: int) -> np.ndarray:
    return reals(np.random.default_rng(seed), (PERIOD,), dtype)


def _matrices(
    load: Arenas, name: str, dtype: Dtype, shape: tuple[int, int], chunk: Callable[[], np.ndarray]
) -> tuple[Operand, list[Operand]]:
    """A matrix that repeats a chunk, and copies to be overwritten."""
    m, n = shape
    outs = load.matrices("B", dtype, m, n, load.copies(dtype, m * n))
    arena = load.arena((name, dtype.letter, m), m * n * dtype.itemsize, chunk)
    return Operand(arena.address, m, n, 1, m, dtype, device=load.device), outs


def _restore(load: Arenas, source: Operand, outs: Sequence[Operand]) -> Callable[[int], None]:
    nbytes = source.batch * source.rows * source.cols * source.dtype.itemsize

    def restore(count: int) -> None:
        for out in outs[:count]:
            memory.copy(out.pointer, source.pointer, nbytes, load.stream)

    return restore
