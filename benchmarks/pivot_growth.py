"""Growth and backward errors of LU factors by partial and by tournament pivoting, with NumPy.

    python -m benchmarks.pivot_growth [--sizes 512 1024] [--widths 32 128] [--sets normal ...] [--out FOLDER]

Tournament pivoting (Grigori, Demmel and Xiang, *CALU: a communication optimal LU factorization algorithm*,
2011) takes the pivots of a panel of some columns at once: blocks of `--rows` rows propose as many rows as the
panel has columns, by LU factors of their own, and proposals play against each other until one group is left.

`growth` is the largest element of all steps, panel by panel, over that of A; `multiplier` is the largest one
of L. `backward` is max |A - P L U| / (u max |A|), u of the dtype, and `solution` the residual of HPL,
max |b - A x| / (u n (norm(A, inf) max |x| + max |b|)).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import get_lapack_funcs, solve_triangular

from benchmarks.study import Namespace, Option, Row, Rows, Study, attempt, host_facts, main
from pyblasgpu.types import DTYPES

Matrix = np.ndarray[Any, Any]
#: Returns the rows of a panel that become its pivots, in their order.
Choose = Callable[[Matrix], Matrix]


def normal(n: int) -> Matrix:
    """Independent normal numbers."""
    return np.random.default_rng(n).standard_normal((n, n))


def uniform(n: int) -> Matrix:
    """Independent numbers between 0 and 1."""
    return np.random.default_rng(n).random((n, n))


def orthogonal(n: int) -> Matrix:
    """A random orthogonal matrix, whose factors grow more than those of most others."""
    return np.asarray(np.linalg.qr(normal(n))[0])


def wilkinson(n: int) -> Matrix:
    """Wilkinson's (1961), with the largest growth that partial pivoting can have; the rows after 48 are those
    of the identity, so that nothing overflows.
    """
    a, k = np.eye(n), min(n, 48)
    a[:k, :k] -= np.tril(np.ones((k, k)), -1)
    a[:k, k - 1] = 1
    return a


def foster(n: int, kh: float = 2 / 3, c: float = 1.0) -> Matrix:
    """Foster's (1994), of quadrature for a Volterra equation, on which partial pivoting fails; likewise."""
    a, k = np.eye(n), min(n, 48)
    part = np.tril(np.full((k, k), -kh), -1)
    part[1:, 0] = -kh / 2
    np.fill_diagonal(part, 1 - kh / 2)
    part[0, 0] = 1
    part[:, -1] -= 1 / c
    a[:k, :k] = part
    return a


SETS = {each.__name__: each for each in (normal, uniform, orthogonal, wilkinson, foster)}


def partial_pivots(panel: Matrix) -> Matrix:
    """The rows that partial pivoting takes, in their order."""
    order = np.arange(len(panel))
    (getrf,) = get_lapack_funcs(("getrf",), (panel,))
    for i, other in enumerate(getrf(panel)[1]):
        order[[i, other]] = order[[other, i]]
    return order[: panel.shape[1]]


def tournament_pivots(panel: Matrix, rows: int) -> Matrix:
    """The rows that win, where blocks of `rows` rows propose."""
    players, count = np.arange(len(panel)), max(rows, 2 * panel.shape[1])
    while True:
        groups = [players[first : first + count] for first in range(0, len(players), count)]
        players = np.concatenate([group[partial_pivots(panel[group])] for group in groups])
        if len(groups) == 1:
            return players


def factor(a: Matrix, width: int, choose: Choose) -> tuple[Matrix, Matrix, float]:
    """L and U in one matrix, the order of the rows, and the largest element of all steps."""
    a, order, largest = a.copy(), np.arange(len(a)), float(abs(a).max())
    n = len(a)
    for first in range(0, n, width):
        last = min(first + width, n)
        winners = first + choose(a[first:, first:last])
        rest = np.setdiff1d(np.arange(first, n), winners, assume_unique=True)
        rows = np.concatenate([winners, rest])
        a[first:], order[first:] = a[rows], order[rows]
        for k in range(first, last):
            a[k + 1 :, k] /= a[k, k]
            a[k + 1 :, k + 1 : last] -= np.outer(a[k + 1 :, k], a[k, k + 1 : last])
            largest = max(largest, float(abs(a[k:, k + 1 : last]).max(initial=0)))
        above, below = a[first:last, last:], a[last:, last:]
        above[...] = solve_triangular(a[first:last, first:last], above, lower=True, unit_diagonal=True)
        below -= a[last:, first:last] @ above
        largest = max(largest, float(abs(a[first:, last:]).max(initial=0)))
    return a, order, largest


def measured(a: Matrix, width: int, choose: Choose) -> Row:
    """Growth and errors of a matrix's factors."""
    n, u, wide = len(a), np.finfo(a.dtype).eps / 2, np.float64
    with np.errstate(all="ignore"):
        factors, order, largest = factor(a, width, choose)
        low, up = np.tril(factors, -1), np.triu(factors)
        b = np.random.default_rng(1).standard_normal(n).astype(a.dtype)
        x = solve_triangular(low, b[order], lower=True, unit_diagonal=True, check_finite=False)
        x = solve_triangular(up, x, check_finite=False)
        size = abs(a).max()
        error = abs(a[order].astype(wide) - (low.astype(wide) + np.eye(n)) @ up.astype(wide)).max()
        residual = abs(b - a.astype(wide) @ x).max() / (abs(a).sum(1).max() * abs(x).max() + abs(b).max())
    return {
        "growth": largest / float(size),
        "multiplier": float(abs(low).max()),
        "backward": float(error / (u * size)),
        "solution": float(residual / (u * n)),
    }


def rows(options: Namespace) -> Rows:
    """A row for each matrix and way to pivot."""
    ways: dict[str, Choose] = {
        "partial": partial_pivots,
        "tournament": partial(tournament_pivots, rows=options.rows),
    }
    for letter, name, n, width, way in product(
        options.letters, options.sets, options.sizes, options.widths, ways
    ):
        case = {"set": name, "dtype": letter, "n": n, "width": width, "pivoting": way}
        yield attempt(case, measured, SETS[name](n).astype(DTYPES[letter].name), width, ways[way])


def facts(options: Namespace) -> Row:
    """What holds for all rows."""
    return {**host_facts(), "rows": options.rows}


STUDY = Study(
    "pivot_growth",
    __doc__,
    rows,
    {
        "letters": "sd",
        "sets": Option(tuple(SETS), tuple(SETS)),
        "sizes": (512, 1024),
        "widths": (32, 128),
        "rows": Option(128, help="of a block that proposes (%(default)s)"),
    },
    facts=facts,
    folder=Path(__file__).parent / "results",
)

if __name__ == "__main__":
    main(STUDY)
