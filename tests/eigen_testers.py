"""Matrices and ratios of LAPACK's testers of Hermitian eigenvalues and singular values (TESTING/EIG).

They are those of xDRVST and xDRVBD. A ratio is an error over roundoff, norms and an extent; those of a
routine that works are less than `THRESHOLD`, that of LAPACK's own runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pyblasgpu import lapack, linalg
from pyblasgpu.types import DTYPES

__all__ = ["ORDERS", "SHAPES", "THRESHOLD", "TYPES", "singular_ratios", "symmetric_ratios", "worst"]

THRESHOLD = 50.0
ORDERS = [1, 2, 3, 5, 20, 70, 130]
SHAPES = [(1, 1), (1, 3), (3, 1), (10, 20), (50, 50), (130, 130), (140, 70), (70, 140)]

#: Eigenvalues or singular values, with what makes their signs: 1 to ulp, even, geometric, or all but one ulp.
SPECTRA: dict[str, Callable[[int, float], np.ndarray]] = {
    "even": lambda n, ulp: np.linspace(1, ulp, n),
    "geometric": lambda n, ulp: np.geomspace(1, ulp, n),
    "clustered": lambda n, ulp: np.r_[1, np.full(n - 1, ulp)],
}
#: Types: the spectrum, whether it is of a diagonal matrix, and a power of the range.
TYPES: dict[str, tuple[str, bool, float]] = {
    "zero": ("zero", True, 0),
    "identity": ("identity", True, 0),
    **{f"diagonal, {spectrum}": (spectrum, True, 0) for spectrum in SPECTRA},
    "diagonal, large": ("geometric", True, 0.5),
    "diagonal, small": ("geometric", True, -0.5),
    **{spectrum: (spectrum, False, 0) for spectrum in SPECTRA},
    "large": ("even", False, 0.5),
    "small": ("even", False, -0.5),
    "random": ("random", False, 0),
    "random, large": ("random", False, 0.5),
    "random, small": ("random", False, -0.5),
}

#: Puts an array on a device, and gets one from there.
Place = tuple[Callable[[np.ndarray], Any], Callable[[Any], np.ndarray]]


def _matrix(kind: str, letter: str, m: int, n: int, is_hermitian: bool) -> np.ndarray:
    """A matrix of a type of LAPACK's testers."""
    (name, is_diagonal, power), dtype, k = TYPES[kind], np.dtype(DTYPES[letter].name), min(m, n)
    rng, facts = np.random.default_rng([m, n, list(TYPES).index(kind)]), np.finfo(dtype)

    def uniform(*shape: int) -> np.ndarray:
        return rng.uniform(-1, 1, shape) + (1j * rng.uniform(-1, 1, shape) if letter in "cz" else 0)

    if name == "random":
        a = uniform(m, n)
        a = np.tril(a) + np.tril(a, -1).conj().T if is_hermitian else a
    elif name in ("zero", "identity"):
        a = np.eye(m, n) * (name == "identity")
    else:
        values = SPECTRA[name](k, float(facts.eps)) * (rng.choice([-1, 1], k) if is_hermitian else 1)
        left, right = (
            np.eye(extent, k) if is_diagonal else np.linalg.qr(uniform(extent, k))[0] for extent in (m, n)
        )
        a = (left * values) @ (left if is_hermitian else right).conj().T
    if is_hermitian:
        a[np.diag_indices(n)] = a.diagonal().real
    size = float(facts.max) ** power if power >= 0 else float(facts.tiny) ** -power
    return a.astype(dtype) * dtype.type(size)


def _ratio(error: np.ndarray, norm: float, extent: int) -> float:
    """The norm of an error, by columns, over another norm, an extent and ulp."""
    size, ulp = float(np.abs(error).sum(axis=0).max(initial=0)), np.finfo(error.dtype).eps
    return size if norm == 0 else size / norm / (max(extent, 1) * ulp)


def _scaled(*arrays: np.ndarray) -> Iterator[np.ndarray]:
    """The arrays in double precision over the size of the first one, whose norms might overflow."""
    size = float(np.abs(arrays[0]).max(initial=0)) or 1.0
    for each in arrays:
        yield (each.astype("D" if each.dtype.kind == "c" else "d") / size).astype(each.dtype)


def symmetric_ratios(letter: str, kind: str, n: int, place: Place) -> Iterator[float]:
    """Ratios of xDRVST of the matrices of a type: xSYT21, and eigenvalues alone."""
    put, get = place
    a, names = _matrix(kind, letter, n, n, True), {"c": "cheevd", "z": "zheevd"}
    routine = getattr(lapack, names.get(letter, f"{letter}syevd"))
    for lower in (0, 1):
        w, v, info = (
            np.asarray(get(each)) if hasattr(each, "shape") else each for each in routine(put(a), lower=lower)
        )
        others = np.asarray(get(routine(put(a), compute_v=0, lower=lower)[0]))
        assert not np.any(info)
        scaled, w, others = _scaled(a, w, others)
        norm = float(np.abs(scaled).sum(axis=0).max(initial=0))
        yield _ratio(scaled - (v * w) @ v.conj().T, norm, n)
        yield _ratio(v @ v.conj().T - np.eye(n, dtype=v.dtype), 1.0, n)
        yield _ratio(w - others, float(np.abs(w).max(initial=0)) * n, 1)
        yield float((np.diff(w) < 0).any()) / np.finfo(w.dtype).eps


def singular_ratios(letter: str, kind: str, shape: tuple[int, int], place: Place) -> Iterator[float]:
    """Ratios of xDRVBD of the matrices of a type: xBDT01, xORT01 twice, the order of values, other jobs."""
    (put, get), (m, n) = place, shape
    a = _matrix(kind, letter, m, n, False)
    values = np.asarray(get(linalg.svdvals(put(a))))
    for full in (False, True):
        u, s, vh = (np.asarray(get(each)) for each in linalg.svd(put(a), full_matrices=full))
        scaled, s, others = _scaled(a, s, values)
        norm, k = float(np.abs(scaled).sum(axis=0).max(initial=0)), len(s)
        yield _ratio(scaled - (u[:, :k] * s) @ vh[:k], norm, max(m, n))
        for vectors in (u, vh.conj().T):
            yield _ratio(
                vectors.conj().T @ vectors - np.eye(vectors.shape[1], dtype=a.dtype), 1.0, len(vectors)
            )
        yield float((np.diff(s) > 0).any() or (s < 0).any()) / np.finfo(s.dtype).eps
        yield _ratio(s - others, float(s.max(initial=0)), k)


def worst(ratios: Callable[..., Iterator[float]], letter: str, size: Any, place: Place) -> dict[str, float]:
    """The largest ratio of each type of matrices; infinite where one is no number."""
    found = {kind: np.array(list(ratios(letter, kind, size, place))) for kind in TYPES}
    return {kind: float(np.where(np.isnan(each), np.inf, each).max()) for kind, each in found.items()}
