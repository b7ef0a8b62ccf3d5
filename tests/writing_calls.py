"""Calls that write into PyTorch's tensors, and a check that the tensors which they change have counted it."""

from __future__ import annotations

from typing import Any

import numpy as np

import pyblasgpu
from pyblasgpu import blas, lapack, linalg

CASES = """
pyblasgpu.gemm(a, b, out=o)
pyblasgpu.gemm(a, b, out=p, beta=2)
pyblasgpu.gemm_grouped([a], [b], out=[o])
pyblasgpu.trsm_grouped([t], [c], lower=True, out=[c])
pyblasgpu.potrf_grouped([p], out=[p])
pyblasgpu.syrk(a, out=o)
pyblasgpu.symm(p, b, out=o)
pyblasgpu.syr2k(a, b, out=o)
pyblasgpu.gemmtr(a, b, out=o)
pyblasgpu.trmm(t, c, lower=True, out=c)
pyblasgpu.trsm(t, c, lower=True, out=c)
pyblasgpu.gemv(a, x, out=z)
pyblasgpu.symv(p, x, out=z)
pyblasgpu.trmv(t, x, lower=True, out=x)
pyblasgpu.trsv(t, x, lower=True, out=x)
pyblasgpu.ger(x, y, out=o)
pyblasgpu.syr(x, out=o)
pyblasgpu.axpy(x, y, out=y)
pyblasgpu.axpy(x, y, out=z)
pyblasgpu.scal(x, alpha=3, out=x)
pyblasgpu.copy(x, out=y)
pyblasgpu.swap(x, y)
pyblasgpu.rot(x, y, c=0.6, s=0.8, out=(x, y))
pyblasgpu.rotm(x, y, param=[0, 1, 2, 3, 4], out=(x, y))
pyblasgpu.dot(x, y, out=n)
pyblasgpu.nrm2(x, out=n)
pyblasgpu.iamax(x, out=i)
blas.daxpy(x, y, a=2)
blas.dscal(2, x)
blas.dcopy(x, y)
blas.dswap(x, y)
blas.drot(x, y, 0.6, 0.8, overwrite_x=1, overwrite_y=1)
blas.dgemv(2, a, x, 1, y, overwrite_y=1)
blas.dger(1, x, y, a=a, overwrite_a=1)
blas.dtrmv(t, x, lower=1, overwrite_x=1)
blas.dtrsv(t, x, lower=1, overwrite_x=1)
blas.dgemm(1, a, b, 2, p, overwrite_c=1)
blas.dsyrk(1, a, 2, p, overwrite_c=1)
blas.dtrmm(2, t, c, lower=1, overwrite_b=1)
blas.dtrsm(2, t, c, lower=1, overwrite_b=1)
blas.dtrsm(2, t, x, lower=1, overwrite_b=1)
lapack.dpotrf(p, overwrite_a=1)
lapack.dpotri(t, lower=1, overwrite_c=1)
lapack.dpotrs(t, c, lower=1, overwrite_b=1)
lapack.dposv(p, c, overwrite_a=1, overwrite_b=1)
lapack.dtrtri(t, lower=1, overwrite_c=1)
lapack.dtrtrs(t, c, lower=1, overwrite_b=1)
lapack.dlauum(t, lower=1, overwrite_c=1)
lapack.dgetrf(a, overwrite_a=1)
lapack.dgetrs(*lapack.dgetrf(b)[:2], c, overwrite_b=1)
lapack.dgetri(*lapack.dgetrf(b, 1)[:2], overwrite_lu=1)
lapack.dgesv(a, c, overwrite_a=1, overwrite_b=1)
lapack.dgesv(a, x, overwrite_a=1, overwrite_b=1)
lapack.dlaswp(a, [1, 2], overwrite_a=1)
lapack.dgeqrf(a, overwrite_a=1)
lapack.dorgqr(a, y, overwrite_a=1)
lapack.dormqr("R", "T", a, y, b, overwrite_c=1)
lapack.dgelqf(a, overwrite_a=1)
lapack.dgeqp3(a, overwrite_a=1)
lapack.dsytrf(p, overwrite_a=1)
lapack.dsytrs(*lapack.dsytrf(p)[:2], c, overwrite_b=1)
lapack.dsytri(*lapack.dsytrf(p, overwrite_a=1)[:2], overwrite_a=1)
lapack.dsysv(p, c, overwrite_a=1, overwrite_b=1)
lapack.dsyevd(p, overwrite_a=1)
linalg.qr(a, mode="raw", overwrite_a=True)
linalg.matmul(a, b, out=o)
linalg.matmul(a, b, out=f)
linalg.matmul(a, a, out=a)
linalg.matmul(a, x, out=z)
linalg.matmul(x, y, out=n)
linalg.matvec(a, x, out=z)
linalg.vecmat(x, a, out=z)
linalg.vecdot(a, b, out=z)
linalg.dot(a, b, out=o)
linalg.dot(x, y, out=n)
linalg.outer(x, y, out=o)
linalg.einsum("ij,jk->ki", a, b, out=o)
linalg.einsum("i,i->", x, y, out=n)
linalg.multi_dot([a, b, a], out=o)
linalg.cholesky(p, overwrite_a=True)
linalg.cho_factor(p, overwrite_a=True)
linalg.cho_solve((t, True), c, overwrite_b=True)
linalg.cho_solve((t, True), x, overwrite_b=True)
linalg.lu_factor(a, overwrite_a=True)
linalg.lu_solve(linalg.lu_factor(b), c, overwrite_b=True)
linalg.lu(a.T, overwrite_a=True)
linalg.solve(a, c, overwrite_a=True, overwrite_b=True)
linalg.solve(p, c, overwrite_a=True, overwrite_b=True, assume_a="pos")
linalg.solve(p, c, overwrite_a=True, overwrite_b=True)
linalg.solve(p, x, overwrite_b=True, assume_a="sym")
linalg.solve(t, c, overwrite_b=True, assume_a="lower triangular")
linalg.solve_triangular(t, c, lower=True, overwrite_b=True)
linalg.inv(a, overwrite_a=True)
linalg.inv(p, overwrite_a=True, assume_a="pos")
linalg.det(a.T, overwrite_a=True)
""".strip().split("\n")

#: Calls that arrays on a device do not serve, or in new arrays.
HOST_CASES = """
linalg.solve(t, c, overwrite_b=True, assume_a="diagonal")
linalg.inv(t, overwrite_a=True, assume_a="lower triangular")
linalg.inv(t, overwrite_a=True, assume_a="diagonal")
linalg.inv(p, overwrite_a=True, assume_a="sym")
lapack.dgesdd(a, overwrite_a=1)
lapack.dsygvd(a, p, overwrite_a=1, overwrite_b=1)
blas.dtbmv(1, h, x, overwrite_x=1)
blas.dsbmv(1, 2, h, x, beta=1, y=y, overwrite_y=1)
blas.dgbmv(4, 4, 1, 0, 2, h, x, beta=1, y=y, overwrite_y=1)
blas.dtpsv(4, w, x, overwrite_x=1)
blas.dspr(4, 1, x, w, overwrite_ap=1)
blas.dspr2(4, 1, x, y, w, overwrite_ap=1)
""".strip().split("\n")

NAMES: dict[str, Any] = {"pyblasgpu": pyblasgpu, "blas": blas, "lapack": lapack, "linalg": linalg}


def arrays() -> dict[str, np.ndarray]:
    """Operands by their letters."""
    rng, n = np.random.default_rng(5), 4
    a, b = (np.asfortranarray(rng.uniform(1, 2, (n, n)) + 4 * np.eye(n)[::-1]) for _ in range(2))
    vectors = dict(zip("xy", rng.uniform(1, 2, (2, n)), strict=True))
    square = {"a": a, "b": b, "p": np.asfortranarray(a @ a.T), "t": np.asfortranarray(np.tril(a) + np.eye(n))}
    zeros = {"o": np.zeros((n, n)), "f": np.zeros((n, n), "f4"), "z": np.zeros(n), "n": np.zeros(())}
    banded = {"h": np.asfortranarray(a[:2]), "w": np.arange(1.0, 11)}
    return {**square, **vectors, **zeros, **banded, "c": np.array(a[:, :3], order="F"), "i": np.array(-1)}


def check_counts(case: str, tensors: dict[str, Any]) -> None:
    """Run `case`, a line of CASES, on `tensors`: what it changes has counted a write, and nothing else."""
    before = {name: (tensor.clone(), tensor._version) for name, tensor in tensors.items()}
    eval(case, NAMES, tensors)  # noqa: S307  # of the list above
    changed = {name for name, tensor in tensors.items() if not bool((tensor == before[name][0]).all())}
    assert changed, "the call writes nothing"
    assert {name for name, tensor in tensors.items() if tensor._version > before[name][1]} == changed
