"""Calls on arrays of any library, by operands of one letter each, and what they give."""

from __future__ import annotations

from typing import Any

import numpy as np

import pyblasgpu
from pyblasgpu import blas, lapack, linalg
from pyblasgpu.testing.reference import integers
from pyblasgpu.types import DTYPES, Dtype

N = 7

#: Operands by one letter each: `x y z` vectors, `u` a column, `v` a row, `a b c` matrices, `t` triangular,
#: `p` positive definite, `g` well-conditioned, `r` tridiagonal, `k m` stacks, `q` a positive definite one.
CASES = """
blas.axpy(x, y)
blas.axpy(a, b)
blas.axpy(u, y)
blas.axpy(k, m, n=5, offx=1, incy=2)
blas.copy(x, y)
blas.copy(k, m)
blas.swap(x, y)
blas.swap(a, b)
blas.rot(x, y, 0.6, 0.8)
blas.rot(v, x, 0.6, 0.8, overwrite_x=1)
blas.dot(x, y)
blas.dot(a, b)
blas.nrm2(x)
blas.asum(k)
blas.amax(u)
blas.scal(2, x)
blas.scal(2, a)
blas.scal(2, k, n=3)
blas.gemv(1, a, x)
blas.gemv(1, a, u)
blas.gemv(2, a, x, beta=3, y=y, trans=1)
blas.ger(1, x, y)
blas.ger(1, x, y, a=a, overwrite_a=1)
blas.trmv(t, x, lower=1)
blas.trsv(t, x, lower=1)
blas.gemm(1, a, c)
blas.gemm(1, a, x)
blas.gemm(1, a, b, beta=2, c=p, trans_b=1)
blas.gemm(1, a, b, beta=2, c=p, overwrite_c=1)
blas.trmm(1, t, c, lower=1)
blas.trmm(1, t, x, lower=1, overwrite_b=1)
blas.trmm(1, t, v, lower=1, side=1)
blas.trsm(1, t, c, lower=1, overwrite_b=1)
blas.trsm(1, t, x, lower=1)
blas.trsm(1, t, u, lower=1)
blas.syrk(1, a)
blas.syr2k(1, a, b)
blas.symm(1, p, c)
blas.symm(1, p, x)
lapack.potrf(p)
lapack.potri(p)
lapack.trtri(p)
lapack.lauum(p)
lapack.getrf(g)
lapack.posv(p, c)
lapack.posv(p, x)
lapack.gesv(g, c)
lapack.gesv(q, c)
lapack.potrs(t, c, lower=1)
lapack.trtrs(t, c, lower=1)
lapack.getrs(*lapack.getrf(g)[:2], c)
lapack.getri(*lapack.getrf(g)[:2])
pyblasgpu.gemm(a, c)
pyblasgpu.gemm(k, m, trans_b="T")
pyblasgpu.gemm(a, b, out=p, beta=2)
pyblasgpu.trsm(t, c, lower=True)
pyblasgpu.trmm(t, c, lower=True, out=c)
pyblasgpu.syrk(k)
pyblasgpu.symm(p, c)
pyblasgpu.gemv(a, x, out=y)
pyblasgpu.trsv(t, x, lower=True)
pyblasgpu.dot(k, m)
pyblasgpu.copy(k)
pyblasgpu.iamax(x)
pyblasgpu.nrm2(k)
linalg.matmul(a, c)
linalg.matmul(a, x)
linalg.matmul(x, a)
linalg.matmul(x, y)
linalg.matmul(q, x)
linalg.matmul(a, b, out=p)
linalg.matvec(k, z)
linalg.matvec(a, x, out=y)
linalg.vecmat(x, a)
linalg.vecdot(k, m)
linalg.dot(a, x)
linalg.dot(x, y)
linalg.vdot(a, b)
linalg.inner(a, b)
linalg.outer(x, y)
linalg.tensordot(k, m, axes=([0], [0]))
linalg.tensordot(x, y, axes=1)
linalg.einsum("ij,jk->ki", a, c)
linalg.einsum("bij,bkj->bik", k, m)
linalg.einsum("ij,jk->ki", a, b, out=p)
linalg.multi_dot([a, b, c])
linalg.matrix_power(a, 3)
linalg.solve(g, c)
linalg.solve(q, x)
linalg.solve_triangular(t, c, lower=True)
linalg.inv(q)
linalg.det(q)
linalg.slogdet(g)
linalg.cholesky(q)
linalg.cho_solve(linalg.cho_factor(p), x)
linalg.lu(g, p_indices=True)
linalg.lu_factor(g)
linalg.lu_solve(linalg.lu_factor(g), c)
linalg.lu_solve(linalg.lu_factor(q), c, trans=1)
lapack.geqrf(c)[:2]
lapack.orgqr(a, x)[0]
lapack.ormqr("L", "C", a, x, c)[0]
lapack.geqp3(c)[:3]
lapack.gelqf(c)[:2]
lapack.orglq(a, x)[0]
lapack.ormlq("R", "N", a, x, b)[0]
lapack.gels(g, c)[1]
linalg.qr(q)
linalg.qr(c, mode="reduced")
linalg.qr(c, mode="reduced", pivoting=True)
linalg.qr_multiply(c, x)
linalg.lstsq(g, x, lapack_driver="gels")[0]
lapack.sytrf(q)
lapack.sysv(p, c, lower=1)
lapack.sytrs(*lapack.sytrf(p)[:2], c)
lapack.sytri(*lapack.sytrf(p)[:2])
linalg.ldl(q)
lapack.syevd(q)[0]
lapack.gesdd(m)[1]
linalg.eigvalsh(p)
linalg.eigvalsh(q, p)
linalg.svdvals(k)
linalg.pinv(c)
linalg.pinvh(q)
linalg.matrix_norm(k, ord=1)
linalg.norm(x)
linalg.cond(g)
linalg.trace(q)
"""

#: Functions with flags, in place too: of real arrays, whose repeated calls enter few functions.
MORE_CASES = """
linalg.cholesky(p)
linalg.cholesky(p, lower=True)
linalg.cho_factor(p)
linalg.cho_solve((t, True), c)
linalg.cho_solve((t, True), c, overwrite_b=True)
linalg.solve(g, x)
linalg.solve(g, c, overwrite_b=True)
linalg.solve(p, c, assume_a="pos")
linalg.solve(q, x, assume_a="pos")
linalg.solve(t, c, assume_a="lower triangular")
linalg.solve(t, x, assume_a="lower triangular")
linalg.solve_triangular(t, x, lower=True)
linalg.solve_triangular(t, x, lower=True, overwrite_b=True)
linalg.inv(g)
linalg.inv(p, assume_a="pos")
linalg.det(g)
linalg.slogdet(q)
linalg.lu_factor(q)
linalg.lu_solve(linalg.lu_factor(g), x)
blas.gemv(1, a, x, beta=3, y=y, overwrite_y=1)
blas.trsv(t, x, lower=1, overwrite_x=1)
blas.trmm(1, t, x, lower=1)
blas.symv(1, p, x)
blas.ger(1, x, y, a=a)
blas.syr(1, x)
blas.syr2(1, x, y, a=p, overwrite_a=1)
pyblasgpu.ger(x, y)
pyblasgpu.ger(x, y, out=a)
pyblasgpu.gemv(a, x)
pyblasgpu.trsm(t, a, lower=True, out=b)
pyblasgpu.trmm(t, a, lower=True, out=b)
"""

#: Those of arrays in host memory alone.
HOST_CASES = [f"linalg.solve(r, {b}, assume_a={kind!r})" for b in "cx" for kind in ("tridiagonal", "banded")]

#: SciPy's names of routines that are not their letter before the stem.
NAMES = {"damax": "idamax", "zamax": "izamax", "zdot": "zdotu", "zger": "zgeru", "znrm2": "dznrm2"}
NAMES |= {
    "zsyevd": "zheevd",
    "csyevd": "cheevd",
    "zorgqr": "zungqr",
    "zormqr": "zunmqr",
    "zorglq": "zunglq",
    "zormlq": "zunmlq",
    "zasum": "dzasum",
    "zrot": "zdrot",
}


class NumPy:
    put = staticmethod(lambda array: array)
    get = staticmethod(np.asarray)


def values(dtype: Dtype) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    shapes: dict[str, tuple[int, ...]] = {"x": (N,), "y": (N,), "a": (N, N), "b": (N, N)}
    shapes |= {"k": (2, 3, 4), "m": (2, 3, 4), "z": (4,), "u": (N, 1), "v": (1, N), "c": (N, 3)}
    found = {name: integers(rng, shape, dtype, limit=4) for name, shape in shapes.items()}
    one = np.eye(N, dtype=dtype.name)
    definite = found["a"] @ found["a"].conj().T + 10 * one
    found |= {"t": np.tril(found["b"], -1) + one, "p": definite, "g": found["a"] + 20 * one}
    found["r"] = np.triu(np.tril(found["g"], 1), -1)
    return {**found, "q": np.stack([definite, 2 * definite])}


class Operands(dict):
    """Arrays of a library by their letters, made when they are asked for."""

    def __init__(self, library: Any, letter: str, layout: Any):
        super().__init__()
        self._library, self._layout, self._values = library, layout, values(DTYPES[letter])

    def __missing__(self, name: str) -> Any:
        self[name] = self._placed(self._values[name])
        return self[name]

    def _placed(self, values: np.ndarray) -> Any:
        if self._layout != "strided":
            return self._library.put(np.array(values, order=self._layout))
        around = np.zeros([2 * extent for extent in values.shape], values.dtype)
        every_other = (slice(None, None, 2),) * values.ndim
        around[every_other] = values
        return self._library.put(around)[every_other]


class Routines:
    """The routines of SciPy's names in one dtype, by their stems."""

    def __init__(self, module: Any, letter: str):
        self._module, self._letter = module, letter

    def __getattr__(self, stem: str) -> Any:
        return getattr(self._module, NAMES.get(self._letter + stem, self._letter + stem))


def evaluated(library: Any, letter: str, layout: str, case: str) -> tuple[tuple[Any, ...], Operands]:
    """What a call gives, and its operands."""
    operands = Operands(library, letter, layout)
    names: dict[str, Any] = {"pyblasgpu": pyblasgpu, "linalg": linalg}
    names |= {"blas": Routines(blas, letter), "lapack": Routines(lapack, letter)}
    result = eval(case, names, operands)  # noqa: S307  # of the list above
    return result if isinstance(result, tuple) else (result,), operands


def fetched(library: Any, result: Any) -> np.ndarray:
    """An array of the library, or a number or pivots, in host memory."""
    return library.get(result) if hasattr(result, "shape") else np.asarray(result)
