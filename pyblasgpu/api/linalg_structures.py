"""The structures that a matrix can have, by SciPy's names, and matrices made whole from one triangle."""

from __future__ import annotations

from typing import Any

import numpy as np

from .linalg_arrays import Arrays

__all__ = ["STRUCTURES", "mirrored", "square", "structure_of", "with_both_triangles"]

#: What SciPy calls the structures of a matrix, and how a system with one is solved.
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
    """What SciPy would find of one host matrix, as far as it makes a difference here."""
    if not arrays.library.host or matrix.ndim > 2 or len(matrix) < 2:
        return "general"
    from scipy.linalg import bandwidth, ishermitian  # slow to import

    below, above = bandwidth(matrix)
    if not below or not above:
        return "upper" if not below else "lower"
    diagonal = np.diagonal(matrix)
    return "perhaps definite" if (diagonal.real > 0).all() and ishermitian(matrix) else "general"


def with_both_triangles(arrays: Arrays, matrix: Any, structure: str, low: bool) -> Any:
    """`matrix` with both triangles."""
    if structure in ("symmetric", "hermitian"):
        return mirrored(arrays, matrix, low, conj=structure == "hermitian")
    return matrix


def mirrored(arrays: Arrays, matrix: Any, low: bool, conj: bool = True) -> Any:
    """The symmetric or Hermitian matrix of which one triangle is read."""
    xp = arrays.xp
    triangle, off = (
        (xp.tril(matrix), xp.tril(matrix, k=-1)) if low else (xp.triu(matrix), xp.triu(matrix, k=1))
    )
    other = xp.matrix_transpose(off)
    return triangle + (xp.conj(other) if conj and arrays.dtype.is_complex else other)
