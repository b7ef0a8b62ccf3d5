"""Matrices that try eigenvalue routines, and the bounds that eigenvalues and singular values keep."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from pyblasgpu.types import DTYPES

__all__ = ["KINDS", "check_eigen", "check_reference", "check_singular", "hermitian", "reference"]

#: Matrices of each kind in float64, and their eigenvalues to 20 digits, by mpmath with 400.
REFERENCE = Path(__file__).with_name("eigen_reference.json")

SINGULAR_VALUES = partial(np.linalg.svd, compute_uv=False)
#: Multiple of n u that bounds residuals and departures from orthogonality.
FACTOR = 10

#: Eigenvalues of a matrix of order n, for the unit roundoff u.
SPECTRA: dict[str, Callable[[int, float], np.ndarray]] = {
    "equal": lambda n, u: np.ones(n),
    "clustered": lambda n, u: 1 + u * np.arange(n),
    "two clusters": lambda n, u: np.where(np.arange(n) % 2, 1, 1e-3) * (1 + 10 * u * np.arange(n)),
    "geometric": lambda n, u: np.geomspace(1, u**2, n),
    "even": lambda n, u: np.linspace(1, u, n),
    "signs": lambda n, u: np.where(np.arange(n) % 2, 1, -1),
    "one": lambda n, u: np.eye(n)[n // 2],
}
#: Matrices made of a random one.
MADE: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "random": lambda a: a,
    "zero": np.zeros_like,
    "diagonal": lambda a: np.diag(a.diagonal()),
    "ones": np.ones_like,
    "arrow": lambda a: (
        np.where(np.add.outer(*[np.arange(len(a)) % len(a)] * 2) < len(a), 0, 1) + np.diag(a.real[0])
    ),
    "graded": lambda a: a * np.multiply.outer(*[np.geomspace(1, 1e-12, len(a))] * 2),
    "huge": lambda a: a * (np.finfo(a.dtype).max / 1e4),
    "tiny": lambda a: a * (np.finfo(a.dtype).tiny * 4),
}
KINDS = (*SPECTRA, *MADE)


def hermitian(kind: str, letter: str, *shape: int, seed: int = 0) -> np.ndarray:
    """A matrix of a kind, or a stack of different ones; `shape` ends in its order."""
    dtype, (*batch, n) = np.dtype(DTYPES[letter].name), shape
    if batch:
        stack = [hermitian(kind, letter, *shape[1:], seed=seed + index) for index in range(batch[0])]
        return np.stack(stack) if stack else np.zeros((0, *shape[1:], n), dtype)
    rng = np.random.default_rng(seed + 100 * n)
    a = rng.uniform(-1, 1, (n, n)) + (1j * rng.uniform(-1, 1, (n, n)) if dtype.kind == "c" else 0)
    if kind in SPECTRA:
        q = np.linalg.qr(a)[0]
        a = (q * SPECTRA[kind](n, DTYPES[letter].unit_roundoff)) @ q.conj().T
    a = np.tril(a) + np.tril(a, -1).conj().T
    a[np.diag_indices(n)] = a.diagonal().real
    return (MADE[kind](a.astype(dtype)) if kind in MADE else a).astype(dtype)


def check_eigen(a: np.ndarray, w: np.ndarray, v: np.ndarray | None = None) -> None:
    """Check that `w` are the eigenvalues of Hermitian matrices `a` in ascending order, as NumPy has them in
    double precision. Columns of `v` have to be orthonormal eigenvectors.
    """
    n, unit = a.shape[-1], np.finfo(a.dtype).eps / 2
    bound = FACTOR * max(n, 2) * unit
    wide = np.dtype("D" if a.dtype.kind == "c" else "d")
    scale = np.abs(a).max(axis=(-2, -1), keepdims=True, initial=0).astype("d")
    scale = np.where(scale == 0, 1, scale)
    matrices, values = a.astype(wide) / scale, w.astype("d") / scale[..., 0]
    norms = np.linalg.norm(matrices, axis=(-2, -1))[..., None]
    lost = np.finfo(a.dtype).smallest_subnormal / scale[..., 0]  # by rounding of what is not normal
    assert np.isfinite(w).all() and (np.diff(w, axis=-1) >= 0).all()
    assert (np.abs(values - _values(np.linalg.eigvalsh, matrices)) <= bound * norms + lost).all()
    if v is not None:
        vectors = v.astype(wide)
        departures = vectors.conj().swapaxes(-1, -2) @ vectors - np.eye(n)
        residuals = matrices @ vectors - vectors * values[..., None, :]
        assert np.linalg.norm(departures, axis=(-2, -1)).max(initial=0) <= bound * np.sqrt(n)
        assert (np.linalg.norm(residuals, axis=-2) <= bound * norms + lost).all()


@lru_cache(maxsize=1)
def _computed(function: Callable, elements: bytes, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    return function(np.frombuffer(elements, dtype).reshape(shape))


def _values(function: Callable, matrices: np.ndarray) -> np.ndarray:
    """What a function of NumPy makes of matrices; for those of the last call it is kept."""
    return _computed(function, matrices.tobytes(), matrices.shape, matrices.dtype)


def reference(n: int) -> tuple[np.ndarray, np.ndarray]:
    """The matrices of order n of `REFERENCE`, as a stack, and their eigenvalues."""
    cases = [case for case in json.loads(REFERENCE.read_text()) if len(case["eigenvalues"]) == n]
    a = np.zeros((len(cases), n, n))
    a[:, *np.tril_indices(n)] = [case["lower"] for case in cases]
    a += np.tril(a, -1).swapaxes(1, 2)
    return a, np.array([case["eigenvalues"] for case in cases], "d")


def check_reference(values: np.ndarray, w: np.ndarray) -> None:
    """Check that `w` are these eigenvalues of `reference`."""
    bound = FACTOR * values.shape[-1] * np.finfo("d").eps / 2 * np.abs(values).max(axis=-1)
    assert (np.abs(w - values).max(axis=-1) <= bound + np.finfo("d").smallest_subnormal).all()


def check_singular_in_one(a: np.ndarray, sigma: np.ndarray, u: np.ndarray, vh: np.ndarray) -> None:
    """Check what one launch computes: `check_singular`, and that vectors of zeros are columns of I. So those
    of the lesser extent are the first ones of all.
    """
    check_singular(a, sigma, u, vh)
    if not a.any():
        for vectors in (u, _adjoint(vh)):
            np.testing.assert_array_equal(
                np.abs(vectors), np.broadcast_to(np.eye(*vectors.shape[-2:]), vectors.shape)
            )


def check_singular(
    a: np.ndarray, sigma: np.ndarray, u: np.ndarray | None = None, vh: np.ndarray | None = None
) -> None:
    """Check that `sigma` are the singular values of matrices in descending order, as NumPy has them in double
    precision. Columns of `u` and rows of `vh` have to be orthonormal, and their product `a`.
    """
    m, n = a.shape[-2:]
    bound = FACTOR * max(m, n, 2) * np.finfo(a.dtype).eps / 2
    wide = np.dtype("D" if a.dtype.kind == "c" else "d")
    scale = np.abs(a).max(axis=(-2, -1), keepdims=True, initial=0).astype("d")
    scale = np.where(scale == 0, 1, scale)
    matrices, values = a.astype(wide) / scale, sigma.astype("d") / scale[..., 0]
    norms = np.linalg.norm(matrices, axis=(-2, -1))[..., None]
    lost = np.finfo(a.dtype).smallest_subnormal / scale[..., 0]  # by rounding of what is not normal
    assert np.isfinite(sigma).all() and (np.diff(sigma, axis=-1) <= 0).all() and (sigma >= 0).all()
    assert (np.abs(values - _values(SINGULAR_VALUES, matrices)) <= bound * norms + lost).all()
    for vectors in [
        each.astype(wide) for each in (u, None if vh is None else _adjoint(vh)) if each is not None
    ]:
        departures = _adjoint(vectors) @ vectors - np.eye(vectors.shape[-1])
        assert np.linalg.norm(departures, axis=(-2, -1)).max(initial=0) <= bound * np.sqrt(min(m, n))
    if u is not None and vh is not None:
        k = sigma.shape[-1]
        product = (u[..., :k].astype(wide) * values[..., None, :]) @ vh[..., :k, :].astype(wide)
        assert (
            np.linalg.norm(product - matrices, axis=(-2, -1)) <= bound * norms[..., 0] + lost[..., 0] * k
        ).all()


def _adjoint(a: np.ndarray) -> np.ndarray:
    return a.conj().swapaxes(-1, -2)
