"""What `patch_scipy` replaces, as it is without a patch, and a patch for tests."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.linalg.blas
import scipy.linalg.lapack

from pyblasgpu import patch_scipy, unpatch_scipy

ORIGINALS = {
    name: getattr(scipy.linalg, name)
    for name in (
        *("cholesky", "cho_factor", "cho_solve", "solve_triangular", "solve", "inv", "det", "lu_factor"),
        *("lu_solve", "lu", "eigh", "eigvalsh", "get_blas_funcs", "get_lapack_funcs"),
    )
}
NUMPYS = {
    name: getattr(np.linalg, name)
    for name in ("cholesky", "solve", "inv", "det", "slogdet", "qr", "eigh", "eigvalsh", "svd")
}


@pytest.fixture(autouse=True)
def nothing_is_left_behind():
    yield
    unpatch_scipy()
    for module, originals in ((scipy.linalg, ORIGINALS), (np.linalg, NUMPYS)):
        for name, original in originals.items():
            assert getattr(module, name) is original
    assert type(scipy.linalg.blas.dgemm).__name__ == type(scipy.linalg.lapack.dpotrf).__name__ == "fortran"


def taken(**options):
    """A patch that takes calls of all sizes to the CPU backend."""
    return patch_scipy(**{"backend": "cpu", "thresholds": 0, **options})
