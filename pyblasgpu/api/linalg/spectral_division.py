"""Eigenvalues and eigenvectors of one large Hermitian matrix by spectral divide and conquer.

The sign function of A - s I says which eigenvalues are above s. An orthonormal basis of their space, and one
of the rest, make A block diagonal. The blocks are divided in turn, down to orders that kernels have, and
these are solved as one stack (Nakatsukasa and Higham, 2013). All of it is products and factorizations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import nan, pi
from typing import Any, NamedTuple

import numpy as np
from numpy.linalg import LinAlgError

from ..keyword.level3 import gemm
from .arrays import Arrays
from .checks import host_values
from .halley import hermitian_part, hermitian_sign, norm_bound, scaled
from .qr import qr

__all__ = ["divided_eigenpairs", "shifts"]

#: Multiples of the precision times the norm: up to the first one a block is zero; up to the second one two
#: are apart; beyond the third one another shift is tried.
ZERO, GOOD, ENOUGH = 10, 20, 200
ROUNDS = 3  # bases that are tried for a shift
CONVERGED = 0.1  # largest defect of a sign function

Solve = Callable[[Any], tuple[Any, Any]]


class _Task(NamedTuple):
    """Arguments that all divisions of a matrix share.

    Attributes
    ----------
    arrays : Arrays
    order : int
        The largest order of a block that is not divided.
    norm : float
        A bound of the norm of the matrix.
    """

    arrays: Arrays
    order: int
    norm: float

    @property
    def tolerance(self) -> float:
        """The precision times the norm."""
        return self.arrays.precision * self.norm


class _Division(NamedTuple):
    """A block in a basis in which it is block diagonal: `below` and `above` are its parts, divided in turn.

    Attributes
    ----------
    basis : array, shape (n, n)
        First a basis of `above`.
    rank : int
        The order of `above`.
    below, above : _Division or array
        An array is a block that is not divided; of more than the largest order it is a multiple of I.
    """

    basis: Any
    rank: int
    below: Any
    above: Any


def divided_eigenpairs(
    name: str, arrays: Arrays, a: Any, order: int, with_vectors: bool, solve: Solve
) -> tuple[Any, Any]:
    """Eigenvalues, ascending, and orthonormal eigenvectors; None for vectors that are not wanted.

    Parameters
    ----------
    name : str
        The function that is called, for messages.
    arrays : Arrays
    a : array, shape (n, n)
        The matrix, with both triangles, in the dtype of the computation. Results are NaN where it is not
        finite.
    order : int
        The largest order of matrices for `solve`.
    with_vectors : bool
    solve : callable
        ``solve(stack)`` returns eigenvalues and eigenvectors of a stack of matrices.

    Raises
    ------
    LinAlgError
        When no shift divides a block.
    """
    xp, found = arrays.xp, scaled(arrays, a)
    if found is None:
        return xp.real(a[0]) * nan, a * nan if with_vectors else None
    a, scale_back = found
    a = hermitian_part(arrays, a)
    task = _Task(arrays, order, norm_bound(arrays, a))
    root = _divided(name, task, a)
    leaves = [leaf for leaf in _leaves(root) if leaf.shape[-1] <= order]
    solved = iter(_solved(task, leaves, solve))
    values, vectors = _joined(task, root, solved, with_vectors)
    ascending = xp.argsort(values)
    values = scale_back(xp.take(values, ascending, axis=0))
    return values, xp.take(vectors, ascending, axis=1) if with_vectors else None


def _divided(name: str, task: _Task, a: Any) -> Any:
    """The block, divided until its parts are small or multiples of I."""
    if a.shape[-1] <= task.order:
        return a
    arrays = task.arrays
    diagonal = host_values(arrays.xp.real(arrays.xp.linalg.diagonal(a))).astype(np.float64)
    for shift in shifts(diagonal):
        moved = a - shift * arrays.identity(a.shape[-1])
        bound = norm_bound(arrays, moved)
        if bound <= ZERO * task.tolerance:
            return a
        found = _divided_at(task, a, moved / bound)
        if found is not None:
            basis, rank, blocks = found
            above, below = blocks[:rank, :rank], blocks[rank:, rank:]
            parts = [_divided(name, task, hermitian_part(arrays, part)) for part in (below, above)]
            return _Division(basis, rank, *parts)
    raise LinAlgError(f"{name}: the eigenvalues of a block of order {a.shape[-1]} did not converge")


def shifts(diagonal: np.ndarray) -> Iterator[float]:
    """Yield shifts, the likeliest first to have eigenvalues on both sides, and none near.

    That is the middle of the widest gap between the elements of the diagonal around the median: of a diagonal
    matrix no eigenvalue is there. The mean always has eigenvalues on both sides.
    """
    n, ascending = len(diagonal), np.sort(diagonal)
    middle = ascending[n // 3 : 2 * n // 3 + 2]
    gap = int(np.argmax(np.diff(middle)))
    yield float(middle[gap] + middle[gap + 1]) / 2
    yield float(ascending.mean())
    spread = float(ascending[-1] - ascending[0])
    for share in (0.4, 0.6, 0.25, 0.75, 0.1, 0.9):
        yield float(np.quantile(ascending, share)) + 1e-3 * share * spread


def _divided_at(task: _Task, a: Any, moved: Any) -> tuple[Any, int, Any] | None:
    """An orthonormal basis, the order of the part above, and A in that basis, for `moved` of a norm below 1;
    None where that does not divide it.
    """
    arrays, n = task.arrays, a.shape[-1]
    sign = hermitian_sign(arrays, moved)
    if not (sign.defect <= CONVERGED and 0 < sign.rank < n):
        return None
    projector = (sign.matrix + arrays.identity(n)) / 2
    columns, error = gemm(projector, _mixed(arrays, n, sign.rank)), nan
    for _ in range(ROUNDS):
        basis = qr(columns, mode="full", check_finite=False)[0]
        blocks = gemm(basis, gemm(a, basis), trans_a="C")
        coupling = arrays.xp.abs(blocks[sign.rank :, : sign.rank])
        error = float(host_values(arrays.xp.sqrt(arrays.xp.sum(coupling * coupling))))
        if error <= GOOD * task.tolerance:
            break
        columns = gemm(projector, basis[:, : sign.rank])
    return (basis, sign.rank, blocks) if error <= ENOUGH * task.tolerance else None


def _mixed(arrays: Arrays, n: int, rank: int) -> Any:
    """Columns that no space is likely to be orthogonal to: those of a cosine transform of random signs."""
    random = np.random.default_rng(n)
    signs, chosen = random.choice([-1.0, 1.0], (n, 1)), np.sort(random.permutation(n)[:rank])[None]
    rows, chosen = (arrays.from_host(each) for each in (np.arange(n)[:, None] + 0.5, chosen * 1.0))
    waves = arrays.from_host(signs) * arrays.xp.cos(rows * chosen * (pi / n))
    return arrays.xp.astype(waves, getattr(arrays.xp, arrays.dtype.name))


def _leaves(part: Any) -> Iterator[Any]:
    """Yield the blocks that are not divided, in ascending order."""
    if isinstance(part, _Division):
        yield from _leaves(part.below)
        yield from _leaves(part.above)
    else:
        yield part


def _solved(task: _Task, leaves: list[Any], solve: Solve) -> Iterator[tuple[Any, Any]]:
    """Yield eigenvalues and eigenvectors of each block. They are one stack: filled up by a multiple of I that
    is beyond all eigenvalues.
    """
    if not leaves:
        return
    arrays, order = task.arrays, max(leaf.shape[-1] for leaf in leaves)
    xp = arrays.xp
    beyond = 4 * task.norm

    def filled(leaf: Any) -> Any:
        n = leaf.shape[-1]
        if n == order:
            return leaf
        corner = xp.zeros((n, order - n), dtype=leaf.dtype, **arrays.placement)
        lower = [xp.matrix_transpose(corner), beyond * arrays.identity(order - n)]
        return xp.concat([xp.concat([leaf, corner], axis=1), xp.concat(lower, axis=1)], axis=0)

    values, vectors = solve(xp.stack([filled(leaf) for leaf in leaves]))
    for number, leaf in enumerate(leaves):
        n = leaf.shape[-1]
        yield values[number, :n], None if vectors is None else vectors[number, :n, :n]


def _joined(task: _Task, part: Any, solved: Iterator[tuple[Any, Any]], with_vectors: bool) -> tuple[Any, Any]:
    """Eigenvalues and eigenvectors of a block from those of its parts."""
    xp = task.arrays.xp
    if not isinstance(part, _Division):
        n = part.shape[-1]
        if n <= task.order:
            return next(solved)
        return xp.real(xp.linalg.diagonal(part)), task.arrays.identity(n)
    pairs = [_joined(task, each, solved, with_vectors) for each in (part.below, part.above)]
    values = xp.concat([each for each, _ in pairs], axis=0)
    if not with_vectors:
        return values, None
    bases = part.basis[:, part.rank :], part.basis[:, : part.rank]
    return values, xp.concat(
        [gemm(basis, vectors) for basis, (_, vectors) in zip(bases, pairs, strict=True)], axis=1
    )
