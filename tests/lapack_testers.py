"""Matrices and ratios of LAPACK's testers of QR, LQ and QP factors and of least squares (TESTING/LIN).

A ratio is an error over roundoff, norms and an extent; those of a routine that works are less than
`THRESHOLD`, LAPACK's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from matrices import times_power_of_two

from pyblasgpu import lapack
from pyblasgpu.routine_table import ROUTINES
from pyblasgpu.types import DTYPES

__all__ = ["KINDS", "PATHS", "SHAPES", "THRESHOLD", "matrix", "worst"]

THRESHOLD = 30.0
SHAPES = [(1, 2), (3, 5), (5, 3), (10, 50), (50, 50), (50, 10), (70, 66), (300, 260)]
#: Types of matrices as of xLATB4.
KINDS = ["diagonal", "upper", "lower", "random", "condition", "worse condition", "tiny", "huge"]

#: Puts an array on a device, and gets one from there.
Place = tuple[Callable[[np.ndarray], Any], Callable[[Any], np.ndarray]]


def matrix(kind: str, letter: str, m: int, n: int) -> np.ndarray:
    """A matrix of a type of LAPACK's testers."""
    dtype = np.dtype(DTYPES[letter].name)
    rng, facts, k = np.random.default_rng([m, n, KINDS.index(kind)]), np.finfo(dtype), min(m, n)

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if letter in "cz" else 0)

    if kind in KINDS[:3]:
        a = normal(m, n)
        return {"diagonal": a * np.eye(m, n), "upper": np.triu(a), "lower": np.tril(a)}[kind].astype(dtype)
    worst_condition = 0.1 / (facts.eps / 2)
    condition = {"condition": worst_condition**0.5, "worse condition": worst_condition}.get(kind, 2.0)
    small = 0.25 * float(facts.tiny) / (facts.eps / 2)
    size = {"tiny": small, "huge": 1 / small}.get(kind, 1.0)
    left, right = (np.linalg.qr(normal(extent, k))[0] for extent in (m, n))
    return (left * np.geomspace(1, 1 / condition, k) @ right.T.conj()).astype(dtype) * dtype.type(size)


def worst(path: str, letter: str, m: int, n: int, place: Place) -> dict[str, float]:
    """The largest ratio of each kind of matrices."""
    found = {}
    for kind in KINDS:
        a = matrix(kind, letter, m, n)
        scale = np.abs(a).max()
        exponent = np.frexp(scale)[1] if scale else 0  # norms of what is huge overflow
        ratios = list(PATHS[path](letter, a, int(exponent), place))
        found[kind] = float(np.max(ratios))
    return found


def _call(letter: str, stem: str, place: Place, *arguments: Any) -> tuple[Any, ...]:
    """Results of a routine, on the host; arrays among the arguments are put on the device."""
    put, get = place
    name = ROUTINES[stem].scipys(letter)[0] if stem in ROUTINES else letter + stem
    passed = [put(each) if isinstance(each, np.ndarray) else each for each in arguments]
    return tuple(
        get(each) if hasattr(each, "shape") and not isinstance(each, np.ndarray) else each
        for each in getattr(lapack, name)(*passed)
    )


def _norm(a: np.ndarray) -> float:
    return float(np.abs(a).sum(axis=0).max()) if a.size else 0.0


def _ratio(error: np.ndarray, norm: float, extent: int) -> float:
    """An error over a norm, an extent and the roundoff of its dtype."""
    unit = np.finfo(error.dtype).eps / 2
    size = _norm(error)
    return size if norm == 0 else size / norm / (max(extent, 1) * unit)


def _adjoint(a: np.ndarray) -> np.ndarray:
    return a.conj().T


def _orthogonal(q: np.ndarray) -> float:
    """The ratio of QᴴQ - I."""
    return _ratio(_adjoint(q) @ q - np.eye(q.shape[1], dtype=q.dtype), 1.0, q.shape[0])


def by_columns(letter: str, a: np.ndarray, exponent: int, place: Place) -> Iterator[float]:
    """Ratios of xQRT01, xQRT02 and xQRT03."""
    m, k = len(a), min(a.shape)
    qr, tau, *_ = _call(letter, "geqrf", place, a)
    vectors = np.zeros((m, m), a.dtype)
    vectors[:, :k] = qr[:, :k]
    q = _call(letter, "orgqr", place, vectors, tau)[0]
    a, r = times_power_of_two(a, -exponent), times_power_of_two(np.triu(qr), -exponent)
    yield _ratio(r - _adjoint(q) @ a, _norm(a), m)
    yield _orthogonal(q)
    yield _ratio(_call(letter, "orgqr", place, qr[:, :k], tau)[0] - q[:, :k], 1.0, m)
    yield from _products(letter, "ormqr", qr[:, :k], tau, q, place)


def by_rows(letter: str, a: np.ndarray, exponent: int, place: Place) -> Iterator[float]:
    """Ratios of xLQT01, xLQT02 and xLQT03."""
    n, k = a.shape[1], min(a.shape)
    lq, tau, *_ = _call(letter, "gelqf", place, a)
    vectors = np.zeros((n, n), a.dtype)
    vectors[:k] = lq[:k]
    q = _call(letter, "orglq", place, vectors, tau)[0]
    a, lower = times_power_of_two(a, -exponent), times_power_of_two(np.tril(lq), -exponent)
    yield _ratio(lower - a @ _adjoint(q), _norm(a), n)
    yield _orthogonal(q)
    yield _ratio(_call(letter, "orglq", place, lq[:k], tau)[0] - q[:k], 1.0, n)
    yield from _products(letter, "ormlq", lq[:k], tau, q, place)


def _products(
    letter: str, stem: str, vectors: np.ndarray, tau: np.ndarray, q: np.ndarray, place: Place
) -> Iterator[float]:
    """Ratios of products with op(Q) from both sides."""
    order, trans = len(q), "C" if letter in "cz" else "T"
    c = matrix("random", letter, order, 7)
    for side, other in (("L", c), ("R", np.ascontiguousarray(c.T))):
        for flag, op in (("N", q), (trans, _adjoint(q))):
            product = _call(letter, stem, place, side, flag, vectors, tau, other)[0]
            expected = op @ other if side == "L" else other @ op
            yield _ratio(product - expected, _norm(other), order)


def with_pivots(letter: str, a: np.ndarray, exponent: int, place: Place) -> Iterator[float]:
    """Ratios of xQRT12, xQPT01 and xQRT11; and whether the diagonal of R does not increase."""
    (m, n), k = a.shape, min(a.shape)
    qr, jpvt, tau, *_ = _call(letter, "geqp3", place, a)
    q = _call(letter, "orgqr", place, qr[:, :k], tau)[0]
    a, r = times_power_of_two(a, -exponent), times_power_of_two(np.triu(qr[:k]), -exponent)
    values, others = (np.linalg.svd(each, compute_uv=False) for each in (a, r))
    yield _ratio(values - others, _norm(values), max(m, n))
    yield _ratio(a[:, jpvt - 1] - q @ r, _norm(a), max(m, n))
    yield _orthogonal(q)
    sizes = np.abs(np.diagonal(r))
    yield _ratio(np.maximum(sizes[1:] - sizes[:-1], 0), _norm(a), max(m, n))


def least_squares(letter: str, a: np.ndarray, exponent: int, place: Place) -> Iterator[float]:
    """Ratios of xQRT16, of systems that have a solution, xQRT17 and xQRT14, of residuals and rows."""
    if np.linalg.cond(times_power_of_two(a, -exponent)) > 1e3:
        yield 0.0
        return
    for trans, op in (("N", a), ("C" if letter in "cz" else "T", _adjoint(a))):
        (m, n), whole = op.shape, np.zeros((max(a.shape), 3), a.dtype)
        op = times_power_of_two(op, -exponent)
        for b in (op @ matrix("random", letter, n, 3), matrix("random", letter, m, 3)):
            whole[:m] = b
            _, x, _ = _call(letter, "gels", place, a, whole, trans)
            x = times_power_of_two(x[:n], exponent)
            rest = b - op @ x
            if m <= n:
                yield _ratio(rest, _norm(op) * _norm(x), max(m, n))
                nearest = _adjoint(op) @ np.linalg.lstsq(_adjoint(op), x, rcond=None)[0]
                yield _ratio(x - nearest, _norm(x), max(m, n))
            else:
                yield _ratio(
                    _adjoint(rest) @ op, _norm(op) * max(_norm(b), _norm(op) * _norm(x)), max(m, n, 3)
                )


PATHS: dict[str, Callable[[str, np.ndarray, int, Place], Iterator[float]]] = {
    "QR": by_columns,
    "LQ": by_rows,
    "QP": with_pivots,
    "LS": least_squares,
}
