"""The structures that a matrix can have, by SciPy's names, and matrices made whole from one triangle."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

import numpy as np

from ...cpu.scipy.stacks import scipys_linalg
from .arrays import Arrays

__all__ = [
    "STRUCTURES",
    "conjugate_transpose",
    "host_identity",
    "identity_for",
    "mirror",
    "mirrored",
    "square",
    "structure_of",
    "triangle_of",
    "with_both_triangles",
]

BLOCK = 64  # rows and columns that are mirrored at a time
#: Elements of small host matrices, whose masks and identities are kept: these take as long as a factor.
SMALL, MOST_KEPT = 1024, 256

#: SciPy's names of the structures of a matrix, and how a system with one is solved.
STRUCTURES = {
    None: "any",
    "general": "general",
    "gen": "general",
    "diagonal": "diagonal",
    "tridiagonal": "banded",
    "banded": "banded",
    "upper triangular": "upper",
    "lower triangular": "lower",
    "symmetric": "symmetric",
    "sym": "symmetric",
    "hermitian": "hermitian",
    "her": "hermitian",
    "positive definite": "definite",
    "pos": "definite",
}


def square(arrays: Arrays, matrix: Any, name: str) -> Any:
    """`matrix` in the dtype of the computation, of two dimensions or more."""
    if len(matrix.shape) < 2:
        matrix = arrays.xp.reshape(matrix, (1, -1))
    if matrix.shape[-1] != matrix.shape[-2]:
        raise ValueError(f"{name}: Expected square matrix, got a of shape {tuple(matrix.shape)}")
    return arrays.cast(matrix)


def structure_of(arrays: Arrays, matrix: Any) -> str:
    """Return the structure that SciPy would find of one host matrix, as far as it makes a difference here."""
    if not arrays.library.host or matrix.ndim > 2 or len(matrix) < 2:
        return "general"
    low, high = matrix[-1, 0], matrix[0, -1]  # the corners, which rule out most structures
    if low == 0 or high == 0:
        below, above = scipys_linalg("bandwidth")(matrix)
        if not below or not above:
            return "upper" if not below else "lower"
    if low == high.conjugate() and scipys_linalg("ishermitian")(matrix):
        return "perhaps definite" if (matrix.diagonal().real > 0).all() else "hermitian"
    is_complex = arrays.dtype.is_complex
    return "symmetric" if is_complex and low == high and scipys_linalg("issymmetric")(matrix) else "general"


def with_both_triangles(
    arrays: Arrays, matrix: Any, structure: str, low: bool, in_place: bool = False
) -> Any:
    """`matrix` with both triangles; `in_place` is for a host matrix whose other triangle may be written."""
    if structure not in ("symmetric", "hermitian"):
        return matrix
    if in_place:
        mirror(matrix, low, structure == "hermitian")
        return matrix
    return mirrored(arrays, matrix, low, conj=structure == "hermitian")


def conjugate_transpose(arrays: Arrays, matrix: Any) -> Any:
    """The conjugate transpose of matrices."""
    # NumPy's arrays in less time than by the namespace
    other = matrix.swapaxes(-1, -2) if arrays.library.host else arrays.xp.matrix_transpose(matrix)
    return arrays.xp.conj(other) if arrays.dtype.is_complex else other


def mirrored(arrays: Arrays, matrix: Any, low: bool, conj: bool = True) -> Any:
    """The symmetric or Hermitian matrix of which one triangle is read."""
    triangle = triangle_of(arrays, matrix, low)
    off = triangle_of(arrays, matrix, low, -1 if low else 1)
    other = conjugate_transpose(arrays, off) if conj else arrays.xp.matrix_transpose(off)
    return triangle + other


def triangle_of(arrays: Arrays, matrix: Any, low: bool, first: int = 0) -> Any:
    """The lower triangle of matrices, or the upper one, up to or from the diagonal `first`, and zeros."""
    rows, cols = matrix.shape[-2:]
    if not arrays.library.host or rows * cols > SMALL:
        return (arrays.xp.tril if low else arrays.xp.triu)(matrix, k=first)
    return np.where(_mask(rows, cols, low, first), matrix, 0)


@lru_cache(maxsize=MOST_KEPT)
def _mask(rows: int, cols: int, low: bool, first: int) -> np.ndarray[Any, Any]:
    return (np.tril if low else np.triu)(np.ones((rows, cols), bool), k=first)


def identity_for(arrays: Arrays, rows: int, cols: int) -> Any:
    """A matrix with ones on the diagonal, which is read alone."""
    return (
        host_identity(rows, cols, arrays.dtype.name) if arrays.library.host else arrays.identity(rows, cols)
    )


def host_identity(rows: int, cols: int, dtype: str) -> np.ndarray[Any, Any]:
    """Return the same in host memory."""
    return _identity(rows, cols, dtype) if rows * cols <= SMALL else np.eye(rows, cols, dtype=dtype)


@lru_cache(maxsize=MOST_KEPT)
def _identity(rows: int, cols: int, dtype: str) -> np.ndarray[Any, Any]:
    kept = np.eye(rows, cols, dtype=dtype)
    kept.flags.writeable = False
    return kept


def mirror(matrix: np.ndarray[Any, Any], low: bool, conj: bool = True) -> None:
    """Make host matrices symmetric, or Hermitian, in place; `low` is the triangle that stays."""
    stays = matrix if low else matrix.swapaxes(-1, -2)
    conj = conj and matrix.dtype.kind == "c"
    n = stays.shape[-1]
    for first in range(0, n, BLOCK):
        last = min(first + BLOCK, n)
        block = stays if n <= BLOCK else stays[..., first:last, first:last]
        corner = block.swapaxes(-1, -2).copy()
        np.copyto(block, corner.conj() if conj else corner, where=_above_diagonal(last - first))
        if last < n:
            other = stays[..., last:, first:last].swapaxes(-1, -2)
            stays[..., first:last, last:] = other.conj() if conj else other


@cache
def _above_diagonal(n: int) -> np.ndarray[Any, Any]:
    return np.triu(np.ones((n, n), bool), 1)
