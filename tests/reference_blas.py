"""The routines of the reference BLAS in NumPy, by SciPy's signatures: what is read, what returns at once.

Matrices are made dense of what the routine reads. Small integers are exact, of roundings nothing is said.
``expected(name, **arguments)`` gives what the function of `pyblasgpu.blas` is to return, arrays and numbers
in a tuple. Absent arguments have SciPy's defaults.
"""

from __future__ import annotations

import re
from math import sqrt

import numpy as np

__all__ = ["default_count", "expected", "length", "stem_of"]

_REAL_RESULT = re.compile(r"(?:sc|dz)(asum|nrm2)|(?:cs|zd)(rot|scal)")
_DTYPES = {"s": "float32", "d": "float64", "c": "complex64", "z": "complex128"}


def stem_of(name: str) -> tuple[str, str]:
    """The letter of the vectors' dtype, and the routine without it; of IDAMAX 'iamax'."""
    if name[0] == "i":
        return name[1], "iamax"
    mixed = _REAL_RESULT.fullmatch(name)
    if mixed is None:
        return name[0], name[1:]
    return name[1 if mixed[1] else 0], mixed[1] or mixed[2]


def length(n: int, inc: int, off: int) -> int:
    """The elements that an array needs for a vector."""
    return off + (n - 1) * abs(inc) + 1 if n > 0 else off


#: Updates of a triangle: by how many vectors, whether it is packed, whether Hermitian.
_UPDATES = {
    "syr": (1, False, False), "her": (1, False, True), "syr2": (2, False, False), "her2": (2, False, True),
    "spr": (1, True, False), "hpr": (1, True, True), "spr2": (2, True, False), "hpr2": (2, True, True),
}  # fmt: skip


def default_count(stem: str, given: dict) -> int:
    """What SciPy takes for an absent n: of Level 1 whole increments behind the offset of x, of its rotations
    and of the updates of a triangle elements.
    """
    counts = []
    for which in "xy" if stem in ("syr2", "her2") else "x":
        step, left = abs(given.get(f"inc{which}", 1)), given[which].size - given.get(f"off{which}", 0)
        counts.append(
            (left - 1) // step + 1 if stem in ("rot", "syr", "her", "syr2", "her2") else left // step
        )
    return min(counts)


def expected(name: str, **given) -> tuple:
    """What the routine returns."""
    letter, stem = stem_of(name)
    written = given.get("c", given.get("b") if stem in ("trmm", "trsm") else None)
    columns = {key: given[key][:, None] for key in "abc" if np.ndim(given.get(key, 0)) == 1}
    call = _Call(letter, stem, given | columns)
    result = call.update(*_UPDATES[stem]) if stem in _UPDATES else getattr(call, stem)()
    if isinstance(written, np.ndarray) and written.ndim == 1:
        return (result[:, 0],)
    return result if isinstance(result, tuple) else (result,)


def substituted(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """x of a x = b for a triangle; where the diagonal is of units it is exact."""
    rows = range(len(a)) if not np.triu(a, 1).any() else range(len(a))[::-1]
    x = np.zeros_like(b)
    for i in rows:
        x[i] = (b[i] - a[i] @ x) / a[i, i]
    return x


class _Call:
    def __init__(self, letter: str, stem: str, given: dict):
        self.dtype, self.stem, self.given = np.dtype(_DTYPES[letter]), stem, given
        self.is_complex = letter in "cz"

    def __getattr__(self, name):
        """An argument, or SciPy's default."""
        if name.startswith("__"):
            raise AttributeError(name)
        value = self.given.get(name)
        if value is None:
            value = 1 if name.startswith("inc") or name == "a" else 0
        return self.array(value) if isinstance(value, np.ndarray) else value

    def array(self, values):
        """A copy in the routine's dtype, of a precision that no integer exceeds."""
        return np.array(values, np.complex128 if self.is_complex else np.float64)

    def rounded(self, values):
        return values.astype(self.dtype)

    # vectors

    def places(self, which: str, n: int) -> np.ndarray:
        """The indices of the elements of x or y, in the order of the vector."""
        inc, off = self.given.get(f"inc{which}", 1), self.given.get(f"off{which}", 0)
        indices = off + np.arange(max(n, 0)) * abs(inc)
        return indices[::-1] if inc < 0 else indices

    def vector(self, which: str, n: int) -> np.ndarray:
        return self.array(self.given[which])[self.places(which, n)]

    def count(self) -> int:
        n = self.given.get("n")
        return default_count(self.stem, self.given) if n is None else n

    def put(self, which: str, values) -> np.ndarray:
        """x or y as it is after its vector became `values`."""
        result = self.array(self.given[which])
        result[self.places(which, len(values))] = values
        return self.rounded(result)

    # Level 1

    def axpy(self):
        n = self.count()
        return self.put("y", self.vector("y", n) + (self.a * self.vector("x", n) if self.a != 0 else 0))

    def copy(self):
        return self.put("y", self.vector("x", self.count()))

    def swap(self):
        n = self.count()
        return self.put("x", self.vector("y", n)), self.put("y", self.vector("x", n))

    def scal(self):
        n = self.count() if self.given.get("incx", 1) > 0 else 0
        return self.put("x", self.a * self.vector("x", n))

    def rot(self):
        n = self.count()
        x, y = self.vector("x", n), self.vector("y", n)
        return self.put("x", self.c * x + self.s * y), self.put("y", self.c * y - self.s * x)

    def rotm(self):
        n = self.count()
        x, y = self.vector("x", n), self.vector("y", n)
        flag, h11, h21, h12, h22 = self.given["param"]
        if flag == -2:
            h11, h21, h12, h22 = 1, 0, 0, 1
        elif flag == 0:
            h11 = h22 = 1
        elif flag == 1:
            h12, h21 = 1, -1
        return self.put("x", h11 * x + h12 * y), self.put("y", h21 * x + h22 * y)

    def dot(self):
        n = self.count()
        return (self.vector("x", n) * self.vector("y", n)).sum()

    dotu = dot

    def dotc(self):
        n = self.count()
        return (self.vector("x", n).conj() * self.vector("y", n)).sum()

    def nrm2(self):
        return sqrt((abs(self.vector("x", self.count())) ** 2).sum())

    def asum(self):
        x = self.vector("x", self.count()) if self.given.get("incx", 1) > 0 else np.zeros(0)
        return (abs(x.real) + abs(x.imag)).sum()

    def iamax(self):
        x = self.vector("x", self.count()) if self.given.get("incx", 1) > 0 else np.zeros(0)
        return int((abs(x.real) + abs(x.imag)).argmax()) if len(x) else -1

    # matrices, dense

    def turned(self, a, trans: int):
        return a if not trans else a.T.conj() if trans == 2 else a.T

    def op(self, a):
        return self.turned(a, self.trans)

    def band(self, m: int, n: int, kl: int, ku: int):
        """The matrix of a general band."""
        band, a = self.array(self.given["a"]), self.array(np.zeros((m, n)))
        for j in range(n):
            for i in range(max(0, j - ku), min(m, j + kl + 1)):
                a[i, j] = band[ku + i - j, j]
        return a

    def band_triangle(self, n: int):
        return self.band(n, n, self.k, 0) if self.lower else self.band(n, n, 0, self.k)

    def packed_triangle(self, n: int):
        ap, a, at = self.array(self.given["ap"]).ravel(order="F"), self.array(np.zeros((n, n))), 0
        for j in range(n):
            rows = slice(j, n) if self.lower else slice(0, j + 1)
            count = n - j if self.lower else j + 1
            a[rows, j] = ap[at : at + count]
            at += count
        return a

    def packed(self, full):
        """ap with the triangle of a matrix in it."""
        result = self.array(self.given["ap"]).ravel(order="F")
        n = len(full)
        columns = [full[j:, j] if self.lower else full[: j + 1, j] for j in range(n)]
        if n:
            result[: n * (n + 1) // 2] = np.concatenate(columns)
        return self.rounded(result)

    def triangle(self, a):
        return np.tril(a) if self.lower else np.triu(a)

    def whole(self, triangle, hermitian: bool):
        """The matrix of which one triangle is read."""
        a = np.where(self.triangle(np.ones(triangle.shape)) != 0, triangle, 0)
        diagonal = np.diag(a).real.copy() if hermitian else np.diag(a).copy()
        np.fill_diagonal(a, 0)
        return a + (a.conj().T if hermitian else a.T) + np.diag(diagonal)

    def unit(self, triangle):
        a = np.where(self.triangle(np.ones(triangle.shape)) != 0, triangle, 0)
        return np.where(np.eye(len(a)) != 0, 1, a) if self.diag else a

    # Level 2

    def product(self, a):
        """alpha a x + beta y; y stays where the matrix is empty."""
        m, n = a.shape
        inc, off = abs(self.given.get("incy", 1)), self.given.get("offy", 0)
        y, beta, places = self.given.get("y"), self.beta, self.places("y", m)
        if y is None:
            y, beta = np.zeros(length(m, inc, off)), 0
        result = self.array(y)
        if 0 not in (m, n):
            start = beta * result[places] if beta != 0 else 0
            result[places] = start + (self.alpha * (a @ self.vector("x", n)) if self.alpha != 0 else 0)
        return self.rounded(result)

    def gemv(self):
        return self.product(self.op(self.array(self.given["a"])))

    def gbmv(self):
        g = self.given
        return self.product(self.op(self.band(g["m"], g["n"], g["kl"], g["ku"])))

    def symv(self):
        return self.product(self.whole(self.array(self.given["a"]), False))

    def hemv(self):
        return self.product(self.whole(self.array(self.given["a"]), True))

    def sbmv(self, hermitian: bool = False):
        return self.product(self.whole(self.band_triangle(self.given["a"].shape[1]), hermitian))

    def hbmv(self):
        return self.sbmv(True)

    def spmv(self):
        return self.product(self.whole(self.packed_triangle(self.n), False))

    def hpmv(self):
        return self.product(self.whole(self.packed_triangle(self.n), True))

    def multiplied(self, triangle):
        a = self.op(self.unit(triangle))
        return self.put("x", a @ self.vector("x", len(a)))

    def solved(self, triangle):
        a = self.op(self.unit(triangle))
        return self.put("x", substituted(a, self.vector("x", len(a))))

    def trmv(self):
        return self.multiplied(self.array(self.given["a"]))

    def trsv(self):
        return self.solved(self.array(self.given["a"]))

    def tbmv(self):
        return self.multiplied(self.band_triangle(self.given["a"].shape[1]))

    def tbsv(self):
        return self.solved(self.band_triangle(self.given["a"].shape[1]))

    def tpmv(self):
        return self.multiplied(self.packed_triangle(self.n))

    def tpsv(self):
        return self.solved(self.packed_triangle(self.n))

    def ger(self, conj: bool = False):
        m, n = self.given["x"].size, self.given["y"].size
        y = self.vector("y", n)
        a = self.given.get("a")
        start = self.array(np.zeros((m, n)) if a is None else a)
        update = np.outer(self.vector("x", m), y.conj() if conj else y)
        return self.rounded(start + self.alpha * update if self.alpha != 0 else start)

    geru = ger

    def gerc(self):
        return self.ger(True)

    def rank_1(self, hermitian: bool, n: int):
        x = self.vector("x", n)
        return np.outer(x, x.conj() if hermitian else x) * self.alpha

    def rank_2(self, hermitian: bool, n: int):
        x, y = self.vector("x", n), self.vector("y", n)
        if not hermitian:
            return self.alpha * (np.outer(x, y) + np.outer(y, x))
        return self.alpha * np.outer(x, y.conj()) + np.conj(self.alpha) * np.outer(y, x.conj())

    def updated(self, start, update, hermitian: bool):
        """A triangle of start + update; of a Hermitian one that is written the diagonal is real."""
        if self.alpha == 0:
            return start
        total = start + update
        if hermitian:
            np.fill_diagonal(total, np.diag(total).real)
        return np.where(self.triangle(np.ones(total.shape)) != 0, total, start)

    def update(self, vectors: int, is_packed: bool, hermitian: bool):
        """A triangle, dense or packed, after an update by one vector or two."""
        n = self.n if is_packed else self.count()
        by = self.rank_1(hermitian, n) if vectors == 1 else self.rank_2(hermitian, n)
        if is_packed:
            return self.packed(self.updated(self.packed_triangle(n), by, hermitian))
        a = self.given.get("a")
        start = self.array(np.zeros((n, n)) if a is None else a)
        return self.rounded(self.updated(start, by, hermitian))

    # Level 3

    def added(self, product, triangle: bool = False, hermitian: bool = False, inner: int = 1):
        """beta c and a product, of which there is none where the inner extent is 0."""
        c, beta = self.given.get("c"), self.beta
        start = self.array(np.zeros(product.shape) if c is None else c)
        before = start.copy()
        if hermitian:
            np.fill_diagonal(before, np.diag(before).real)
        total = (beta * before if beta != 0 else 0) + product
        if beta == 1 and (self.alpha == 0 or not inner):
            total = start  # a Hermitian diagonal stays as it is
        elif hermitian:
            np.fill_diagonal(total, np.diag(total).real)
        if triangle:
            total = np.where(self.triangle(np.ones(total.shape)) != 0, total, start)
        return self.rounded(total)

    def times_alpha(self, *factors):
        """alpha times a product of matrices; nothing is read where alpha is 0."""
        first, last = factors
        if self.alpha == 0:
            return self.array(np.zeros((first.shape[0], last.shape[1])))
        return self.alpha * (first @ last)

    def factor(self, argument: str, trans: int):
        return self.turned(self.array(self.given[argument]), trans)

    def gemm(self):
        return self.added(self.times_alpha(self.factor("a", self.trans_a), self.factor("b", self.trans_b)))

    def gemmtr(self):
        product = self.times_alpha(self.factor("a", self.trans_a), self.factor("b", self.trans_b))
        return self.added(product, triangle=True)

    def symm(self, hermitian: bool = False):
        a, b = self.whole(self.array(self.given["a"]), hermitian), self.array(self.given["b"])
        return self.added(self.times_alpha(b, a) if self.side else self.times_alpha(a, b))

    def hemm(self):
        return self.symm(True)

    def syrk(self, hermitian: bool = False):
        a = self.factor("a", self.trans)
        product = self.times_alpha(a, a.conj().T if hermitian else a.T)
        return self.added(product, True, hermitian, a.shape[1])

    def herk(self):
        return self.syrk(True)

    def syr2k(self, hermitian: bool = False):
        a, b = self.factor("a", self.trans), self.factor("b", self.trans)
        second = b.conj().T if hermitian else b.T
        product = self.times_alpha(a, second)
        product = product + (product.conj().T if hermitian else product.T)
        return self.added(product, True, hermitian, a.shape[1])

    def her2k(self):
        return self.syr2k(True)

    def trmm(self):
        a, b = self.turned(self.unit(self.array(self.given["a"])), self.trans_a), self.array(self.given["b"])
        return self.rounded(self.times_alpha(b, a) if self.side else self.times_alpha(a, b))

    def trsm(self):
        a, b = self.turned(self.unit(self.array(self.given["a"])), self.trans_a), self.array(self.given["b"])
        if self.alpha == 0:
            return self.rounded(np.zeros_like(b))
        if self.side:
            return self.rounded(substituted(a.T, self.alpha * b.T).T)
        return self.rounded(substituted(a, self.alpha * b))
