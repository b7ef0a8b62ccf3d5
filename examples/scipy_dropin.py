"""
In place of scipy.linalg.blas
=============================

`pyblasgpu.blas` has the names, the order of arguments, the defaults and the results of
``scipy.linalg.blas``. A program that is written for SciPy's functions takes these without another change.

Host arrays run on the GPU where there is one, else on SciPy's BLAS. Device arrays stay on their device.
"""

import numpy as np
import scipy.linalg
import scipy.linalg.blas

import pyblasgpu as pb

print("host arrays run on:", pb.backend_status().backend)

# %%
# A blocked Cholesky factorization as one writes it for SciPy. The BLAS comes in as a module.


def cholesky(a: np.ndarray, blas, block: int = 64) -> np.ndarray:
    """The lower factor of a positive definite matrix, by blocks from left to right."""
    trsm, syrk = blas.get_blas_funcs(("trsm", "syrk"), (a,))
    factor = np.array(a, order="F")
    n = len(factor)
    for start in range(0, n, block):
        stop = min(start + block, n)
        diagonal = np.linalg.cholesky(factor[start:stop, start:stop])
        factor[start:stop, start:stop] = diagonal
        if stop < n:
            panel = trsm(1.0, diagonal, factor[stop:, start:stop], side=1, lower=1, trans_a=1)
            factor[stop:, start:stop] = panel
            factor[stop:, stop:] = syrk(-1.0, panel, beta=1.0, c=factor[stop:, stop:], lower=1)
    return np.tril(factor)


# %%
# With SciPy's functions and with these the factors agree.

rng = np.random.default_rng(0)
g = rng.standard_normal((300, 300))
a = g @ g.T + 300 * np.eye(300)
ours, scipys = cholesky(a, pb.blas), cholesky(a, scipy.linalg.blas)
assert np.allclose(ours, scipys)
assert np.allclose(ours @ ours.T, a)

# %%
# `pyblasgpu.linalg` does the same for `numpy.matmul` and ``scipy.linalg.solve_triangular``.

b = rng.standard_normal((300, 5))
x = pb.linalg.solve_triangular(ours, b, lower=True)
assert np.allclose(x, scipy.linalg.solve_triangular(ours, b, lower=True))
assert np.allclose(pb.linalg.matmul(ours, x), b)

print("a Cholesky factorization of order", len(a), "by dtrsm and dsyrk: the factors agree")
