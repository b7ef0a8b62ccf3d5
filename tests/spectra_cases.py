"""Matrices that try eigenvalues and singular values of `linalg`, and comparisons of results."""

from __future__ import annotations

from typing import Any

import numpy as np
from qr_cases import matrix_of

__all__ = ["definite_of", "eps_of", "hermitian_of", "host", "mismatch", "same", "stack_of"]


def eps_of(array: np.ndarray) -> float:
    return float(np.finfo(array.dtype).eps)


def hermitian_of(letter: str, *shape: int, seed: int = 0) -> np.ndarray:
    """Hermitian matrices of the order `shape` ends with."""
    *batch, n = shape
    a = matrix_of("random", letter, int(np.prod(batch)), n, n, seed=seed).reshape(*batch, n, n)
    return a + a.swapaxes(-1, -2).conj()


def definite_of(letter: str, *shape: int, seed: int = 50) -> np.ndarray:
    a = hermitian_of(letter, *shape, seed=seed)
    return a @ a + np.eye(shape[-1], dtype=a.dtype)


def same(ours: Any, theirs: Any, factor: float = 200) -> None:
    """Numbers of the same shape and kind, within some roundoff of the largest."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape and ours.dtype.kind == theirs.dtype.kind
    if ours.dtype.kind == "i":
        np.testing.assert_array_equal(ours, theirs)
        return
    finite = np.abs(theirs[np.isfinite(theirs)])
    scale = finite.max() if finite.size else 1
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=factor * eps_of(ours) * max(scale, 1e-30))


def mismatch(a: np.ndarray, b: np.ndarray) -> float:
    """The largest difference over the largest element of the first."""
    return float(np.abs(a - b).max() / np.abs(a).max()) if a.size else 0.0


def host(array: Any) -> Any:
    """An array of the fake device in host memory."""
    return getattr(array, "host", array)


def stack_of(letter: str, *shape: int) -> np.ndarray:
    *batch, m, n = shape
    return matrix_of("random", letter, int(np.prod(batch)), m, n).reshape(shape)
