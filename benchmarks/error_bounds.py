"""Errors over their bounds: the worst case of each routine.

``python -m benchmarks.error_bounds --out DIR [--backend cpu]``. The bounds are those of docs/numerics.md; the
exact results come from arithmetic in twice the precision, or from extended precision, on the host. Data are
normal, uniform in [0, 1), and normal with rows and columns that differ by eight orders of magnitude; those of
level 3 are normal.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import LinAlgWarning

import pyblasgpu
from benchmarks.study import Namespace, Option, Row, Rows, Study, cupy, device_facts, host_facts, main
from pyblasgpu import lapack, linalg
from pyblasgpu.testing.problems import Problem, fits
from pyblasgpu.types import DTYPES, Dtype

SIZES = {"s": (5, 64, 257, 1000), "c": (5, 64, 257), "d": (5, 64, 129), "z": (5, 64, 129)}
LARGEST_OF_QR = 300  # whose exact results take long, and whose errors are far below the bound
KINDS = ("normal", "uniform", "graded")
WIDE: dict[str, Any] = {"s": np.float64, "d": np.longdouble, "c": np.complex128, "z": np.clongdouble}

LEVEL3 = {
    "gemm": ("NN", "TN"),
    "gemmtr": ("LNN",),
    "symm": ("LL", "RU"),
    "hemm": ("LL",),
    "syrk": ("LN", "UT"),
    "herk": ("LN",),
    "syr2k": ("LN",),
    "her2k": ("LN",),
    "trmm": ("LLNN", "RUTN"),
    "trsm": ("LLNN", "RUTN"),
}

#: Name, error entry by entry, and what the bound multiplies by u.
Case = tuple[str, Any, Any]


class Data:
    """Random data of a kind, and where calls run.

    Parameters
    ----------
    dtype : Dtype
    n : int
    kind : str
        One of `KINDS`.
    on_device : bool
        Whether arrays are CuPy's.
    """

    def __init__(self, dtype: Dtype, n: int, kind: str, on_device: bool):
        self.dtype, self.n, self.kind, self.on_device = dtype, n, kind, on_device
        self.rng = np.random.default_rng([n, KINDS.index(kind)])
        self.wide = WIDE[dtype.letter]
        self.scales = 10.0 ** self.rng.permutation(np.linspace(-4, 4, n)) if kind == "graded" else np.ones(n)

    def reals(self, *shape: int) -> Any:
        uniform = self.kind == "uniform"
        return self.rng.random(shape) if uniform else self.rng.standard_normal(shape)

    def make(self, *shape: int) -> Any:
        """Random numbers, graded along each dimension of length n."""
        values = self.reals(*shape)
        if self.dtype.is_complex:
            values = values + 1j * self.reals(*shape)
        for axis, length in enumerate(shape):
            if length == self.n:
                values = values * np.expand_dims(self.scales, [i for i in range(len(shape)) if i != axis])
        return np.asfortranarray(values.astype(self.dtype.name))

    def definite(self) -> Any:
        plain = Data(self.dtype, self.n, "uniform" if self.kind == "uniform" else "normal", False)
        made = plain.make(self.n, self.n).astype(plain.wide)
        a = made @ made.conj().T / self.n + np.eye(self.n)
        return np.asfortranarray((a * self.scales[:, None] * self.scales).astype(self.dtype.name))

    def triangle(self) -> Any:
        """Lower, of moderate condition but for the grading."""
        a = np.tril(self.make(self.n, self.n), -1) / self.n**0.5
        a[np.diag_indices(self.n)] = (1 + self.rng.random(self.n)) * self.scales**2
        return np.asfortranarray(a.astype(self.dtype.name))

    def run(self, function: Callable[..., Any], *arrays: Any, **options: Any) -> Any:
        """The result, in host memory and the wide type; of several, all of them."""
        put = cupy.asarray if self.on_device else np.asarray
        moved = [put(x) if isinstance(x, np.ndarray) else x for x in arrays]
        result = function(*moved, **options)
        return tuple(map(self.back, result)) if isinstance(result, tuple) else self.back(result)

    def back(self, x: Any) -> Any:
        x = np.asarray(x.get() if hasattr(x, "get") else x)
        return x.astype(self.wide) if x.dtype.kind in "fc" else x


def level1(data: Data) -> Iterator[Case]:
    n, wide = data.n, data.wide
    x, y = data.make(n), data.make(n)
    u, v = x.astype(wide), y.astype(wide)
    product = abs(u) @ abs(v)
    yield "axpy", data.run(pyblasgpu.axpy, x, y, alpha=0.75) - (wide(0.75) * u + v), 1.5 * abs(u) + 2 * abs(v)
    yield "dot", data.run(pyblasgpu.dot, x, y) - u @ v, (n + 2) * product
    parts = 2 if data.dtype.is_complex else 1
    size = (abs(u.real) + abs(u.imag)).sum()
    norm = np.sqrt((abs(u) ** 2).sum())
    yield "asum", data.run(pyblasgpu.asum, x) - size, parts * n * size
    yield "nrm2", data.run(pyblasgpu.nrm2, x) - norm, (parts * n / 2 + 3) * norm


def level2(data: Data) -> Iterator[Case]:
    n, wide = data.n, data.wide
    a, x, y = data.make(n, n), data.make(n), data.make(n)
    b, u, v = (each.astype(wide) for each in (a, x, y))
    yield "gemv", data.run(pyblasgpu.gemv, a, x) - b @ u, (n + 2) * abs(b) @ abs(u)
    yield "gemv", data.run(pyblasgpu.gemv, a, x, trans="T") - b.T @ u, (n + 2) * abs(b.T) @ abs(u)
    low, strict = np.tril(b), np.tril(b, -1)
    full = low + strict.T
    yield "symv", data.run(pyblasgpu.symv, a, x, lower=True) - full @ u, (n + 2) * abs(full) @ abs(u)
    yield "trmv", data.run(pyblasgpu.trmv, a, x, lower=True) - low @ u, (n + 2) * abs(low) @ abs(u)
    t = data.triangle()
    solved, wide_t = data.run(pyblasgpu.trsv, t, x, lower=True), t.astype(wide)
    yield "trsv", wide_t @ solved - u, n * abs(wide_t) @ abs(solved)
    outer = np.outer(u, v)
    yield "ger", data.run(pyblasgpu.ger, x, y) - outer, 3 * abs(outer)
    square = np.outer(u, u)
    yield "syr", np.tril(data.run(pyblasgpu.syr, x, lower=True) - square), 3 * abs(square)
    both = outer + outer.T
    sizes = abs(outer) + abs(outer.T)
    yield "syr2", np.tril(data.run(pyblasgpu.syr2, x, y, lower=True) - both), 4 * sizes


def factors(data: Data) -> Iterator[Case]:
    n, wide, letter = data.n, data.wide, data.dtype.letter
    a, b = data.definite(), data.make(n, 3)
    definite, right = a.astype(wide), b.astype(wide)
    c, _ = data.run(getattr(lapack, letter + "potrf"), a, lower=1)
    size = abs(c) @ abs(c).T
    yield "potrf", np.tril(c @ c.conj().T - definite), (n + 4) * size
    rounded = np.asfortranarray(c.astype(data.dtype.name))
    x, _ = data.run(getattr(lapack, letter + "potrs"), rounded, b, lower=1)
    yield "potrs", c @ (c.conj().T @ x) - right, 2 * n * size @ abs(x)
    x = data.run(linalg.solve, a, b, assume_a="pos", lower=True)
    yield "solve, 'pos'", definite @ x - right, (3 * n + 4) * size @ abs(x)
    t = data.triangle()
    low = t.astype(wide)
    inverse, _ = data.run(getattr(lapack, letter + "trtri"), t, lower=1)
    inverse = np.tril(inverse)
    size = abs(inverse) @ abs(low)
    yield "trtri", inverse @ low - np.eye(n), 4 * (n + 1) * size @ size
    product, _ = data.run(getattr(lapack, letter + "lauum"), t, lower=1)
    yield "lauum", np.tril(product - low.conj().T @ low), (n + 2) * abs(low).T @ abs(low)


def lu(data: Data) -> Iterator[Case]:
    n, wide, letter = data.n, data.wide, data.dtype.letter
    a, b = data.make(n, n), data.make(n, 3)
    general, right = a.astype(wide), b.astype(wide)
    packed, piv, _ = data.run(getattr(lapack, letter + "getrf"), a)
    lower, upper = np.tril(packed, -1) + np.eye(n), np.triu(packed)
    order = np.arange(n)
    for i, other in enumerate(piv):
        order[[i, other]] = order[[other, i]]
    back = np.argsort(order)
    size = (abs(lower) @ abs(upper))[back]
    yield "getrf", (lower @ upper)[back] - general, n * size
    factored = np.asfortranarray(packed.astype(data.dtype.name))
    put = cupy.asarray(piv) if data.on_device else piv
    x, _ = data.run(lambda f, r: getattr(lapack, letter + "getrs")(f, put, r), factored, b)
    yield "getrs", general @ x - right, (3 * n + 1) * size @ abs(x)
    x = data.run(linalg.solve, a, b, assume_a="gen")
    yield "solve, 'gen'", general @ x - right, 3 * n * size @ abs(x)


def qr(data: Data) -> Iterator[Case]:
    """Twice as many rows as columns; constants of the bounds are 1."""
    n, m, letter = data.n, 2 * data.n, data.dtype.letter
    a, b = data.make(m, n), data.make(m, 3)
    q_of = letter + ("un" if data.dtype.is_complex else "or")
    sizes, rights = norms(a.astype(data.wide)), norms(b.astype(data.wide))
    packed, tau, _, _ = data.run(getattr(lapack, letter + "geqrf"), a)
    yield "geqrf", norms(a - reflected(packed, tau, np.triu(packed))), m * n * sizes
    rounded = [np.asfortranarray(each.astype(data.dtype.name)) for each in (packed, tau)]
    q, _, _ = data.run(getattr(lapack, f"{q_of}gqr"), *rounded)
    gram = q.conj().T @ q - np.eye(n)
    yield "orgqr", np.sqrt((abs(gram) ** 2).sum()), np.asarray(m * n * n**0.5)
    product, _, _ = data.run(partial(getattr(lapack, f"{q_of}mqr"), "L", "N"), *rounded, b)
    yield "ormqr", norms(product - reflected(packed, tau, b.astype(data.wide))), m * n * rights
    packed, columns, tau, _, _ = data.run(getattr(lapack, letter + "geqp3"), a)
    order = np.asarray(columns, int) - 1
    yield "geqp3", norms(a[:, order] - reflected(packed, tau, np.triu(packed))), m * n * sizes[order]
    _, x, _ = data.run(getattr(lapack, letter + "gels"), a, b)
    rest = b - a.astype(data.wide) @ x[:n]
    # A + E with E = -r r^H A / |r|^2 has this solution
    yield "gels", (abs(rest.conj().T @ a) / norms(rest)[:, None]).max(axis=0), m * n * sizes


def norms(a: Any) -> Any:
    """The norms of columns."""
    return np.sqrt((abs(a) ** 2).sum(axis=0))


def reflected(packed: Any, tau: Any, c: Any) -> Any:
    """Q C in the wide type, by the block reflector of what a QR factorization leaves."""
    n = packed.shape[1]
    v = np.tril(packed, -1)
    v[np.diag_indices(n)] = 1
    products, t = v.conj().T @ v, np.zeros((n, n), v.dtype)
    for i in range(n):
        t[:i, i] = -tau[i] * (t[:i, :i] @ products[:i, i])
        t[i, i] = tau[i]
    return c - v @ (t @ (v.conj().T @ c))


def level3(dtype: Dtype, n: int, backend: str) -> Iterator[tuple[str, float]]:
    """Each routine, and its error over the bound."""
    for routine, variants in LEVEL3.items():
        for variant in (each for each in variants if fits(routine, dtype, each)):
            problem = Problem.square(routine, dtype, variant, n, 0.75, -0.5)
            before, after = problem.data(n), problem.data(n)
            problem.ours(after, backend)
            yield routine, problem.error(before, after.out)


def ratio(dtype: Dtype, name: str, error: Any, bound: Any) -> float:
    """The largest error over its bound; an error where the bound is 0 is infinite."""
    factor = 8**0.5 if dtype.is_complex and name not in ("asum", "nrm2") else 1
    size = np.asarray(bound * dtype.unit_roundoff * factor, float)
    quotient = np.divide(np.asarray(abs(error), float), size, out=np.zeros_like(size), where=size > 0)
    return float(np.where((size == 0) & (abs(error) > 0), np.inf, quotient).max())


def measured(on_device: bool, letters: Iterable[str]) -> Rows:
    """A row for each routine, dtype, order and kind."""
    for letter in letters:
        dtype = DTYPES[letter]
        for n in SIZES[letter]:
            for name, over in level3(dtype, n, "cuda" if on_device else "cpu"):
                yield {"routine": name, "dtype": letter, "n": n, "data": "normal", "over": over}
            for kind in KINDS:
                data = Data(dtype, n, kind, on_device)
                for part in (level1, level2, factors, lu, *((qr,) if n <= LARGEST_OF_QR else ())):
                    for name, error, bound in part(data):
                        over = ratio(dtype, name, error, bound)
                        yield {"routine": name, "dtype": letter, "n": n, "data": kind, "over": over}


def rows(options: Namespace) -> Rows:
    warnings.simplefilter("ignore", LinAlgWarning)  # graded matrices are ill-conditioned
    return measured(options.backend == "cuda", options.letters)


def worst(rows: Iterable[Row]) -> dict[str, Row]:
    """The worst row of each routine; of equal ones the last."""
    worst: dict[str, Row] = {}
    for row in rows:
        if row["over"] >= worst.setdefault(row["routine"], row)["over"]:
            worst[row["routine"]] = row
    return worst


def document(facts: Row, lists: dict[str, list[Row]]) -> Row:
    checked = lists["results"]
    return {**facts, "worst": list(worst(checked).values()), "checked": len(checked)}


def facts(options: Namespace) -> Row:
    if options.backend == "cuda":
        return device_facts(options)
    return host_facts()


def summary(rows: list[Row], options: Namespace) -> Iterator[str]:
    for row in worst(rows).values():
        yield f"{row['routine']:14}{row['over']:8.3f}  {row['dtype']}, n = {row['n']}, {row['data']}"


STUDY = Study(
    "error_bounds",
    __doc__,
    rows,
    {"letters": "sdcz", "backend": Option("cuda", ("cuda", "cpu"))},
    facts,
    document=document,
    summary=summary,
    prints_rows=False,
)

if __name__ == "__main__":
    main(STUDY)
