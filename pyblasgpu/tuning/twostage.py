"""Two-stage tuning: tune the kernels, keep the few best, then time the caller with these only.

PLASMA tunes its serial kernels first and times a factorization only with the (NB, IB) pairs that do best
there (Dongarra and Moore, *Empirical Performance Tuning of Dense Linear Algebra Software*, 3.3.1). Here the
caller is the recursion of TRSM and TRMM, and what is combined are a leaf kernel, the order at which the
recursion stops, and a Config of the products in between.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from .search_problem import Times

__all__ = ["Combination", "combinations", "predicted"]


class Combination(NamedTuple):
    """What a recursive routine needs to run, and the seconds that its kernels' times promise."""

    leaf: Any
    stop: int
    gemm: Any
    seconds: float


def combinations(
    leaves: Times, products: Times, n: int, rhs: int, stops: Sequence[int], keep: int = 8, best: int = 3
) -> list[Combination]:
    """The `keep` combinations that promise the shortest time for a triangle of `n` and `rhs` columns.

    Parameters
    ----------
    leaves : mapping of Measurement to float
        Seconds of leaf kernels; extents are (order, right-hand sides).
    products : mapping of Measurement to float
        Seconds of GEMM kernels; extents are (m, n, k).
    n, rhs : int
        The problem that decides.
    stops : sequence of int
        Orders at which the recursion may stop.
    keep : int
        How many combinations are to be timed.
    best : int
        How many kernels of each kind are combined: at each extents that were timed the fastest so many.

    Raises
    ------
    ValueError
        Where one of the kinds has no times.
    """
    if not leaves or not products:
        raise ValueError(f"combinations: {len(leaves)} times of leaves, {len(products)} of products")
    at_leaves, at_products = _by_config(leaves), _by_config(products)
    found = [
        Combination(leaf, stop, gemm, predicted(at_leaves[leaf], at_products[gemm], n, rhs, stop))
        for leaf, gemm, stop in product(_fastest(leaves, best), _fastest(products, best), stops)
    ]
    return sorted(found, key=lambda combination: combination.seconds)[:keep]


def predicted(
    leaf: Mapping[tuple[int, ...], float], gemm: Mapping[tuple[int, ...], float], n: int, rhs: int, stop: int
) -> float:
    """Seconds of the recursion: leaves of at most `stop` rows, and a product between the two halves of each
    larger triangle. `leaf` and `gemm` are the seconds of one kernel of each kind, by extents.
    """
    if n <= stop:
        return _scaled(leaf, (n, rhs), n * n * rhs)
    half = n // 2
    return (
        predicted(leaf, gemm, half, rhs, stop)
        + predicted(leaf, gemm, n - half, rhs, stop)
        + _scaled(gemm, (n - half, rhs, half), (n - half) * half * rhs)
    )


def _scaled(times: Mapping[tuple[int, ...], float], extents: tuple[int, ...], work: int) -> float:
    """The time at the nearest extents, by each one's logarithm, at the rate that was reached there."""

    def distance(other: tuple[int, ...]) -> float:
        return sum(abs(math.log(a / b)) for a, b in zip(extents, other, strict=True))

    nearest = min(times, key=distance)
    if nearest == extents:
        return times[nearest]
    done = nearest[0] ** 2 * nearest[1] if len(nearest) == 2 else math.prod(nearest)
    return times[nearest] * work / done


def _by_config(times: Times) -> dict[Any, dict[tuple[int, ...], float]]:
    found: dict[Any, dict[tuple[int, ...], float]] = {}
    for measurement, seconds in times.items():
        found.setdefault(measurement.config, {})[measurement.extents] = seconds
    return found


def _fastest(times: Times, best: int) -> list[Any]:
    """At each extents the `best` fastest, each once."""
    at: dict[tuple[int, ...], list[tuple[float, Any]]] = {}
    for measurement, seconds in times.items():
        at.setdefault(measurement.extents, []).append((seconds, measurement.config))
    ranked = (sorted(found, key=lambda pair: pair[0])[:best] for found in at.values())
    return list(dict.fromkeys(config for found in ranked for _, config in found))
