"""Calls of PyTorch's linear algebra: those that are served, and those that it refuses."""

from __future__ import annotations

import torch
from torch_cases import random, spd

__all__ = [
    "DTYPES", "NAMES", "REFUSED", "calls", "rectangular_calls", "reflector_calls", "spectral_calls", "theirs",
    "without_phases",
]  # fmt: skip

DTYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128]
#: Where PyTorch has a function that `torch.linalg` has not.
OUTSIDE = {"cholesky_solve", "cholesky_inverse", "geqrf", "logdet", "ormqr"}
NAMES = [
    "cholesky", "cholesky_ex", "cholesky_inverse", "cholesky_solve", "det", "eigh", "eigvalsh",
    "inv", "inv_ex", "logdet", "lstsq", "lu_factor", "lu_factor_ex", "lu_solve", "matrix_rank", "pinv", "qr",
    "slogdet", "solve", "solve_ex", "solve_triangular", "svd", "svdvals",
]  # fmt: skip


def theirs(name):
    return getattr(torch if name in OUTSIDE else torch.linalg, name)


def calls(dtype, batch, n, k):
    """Arguments of calls, positional and by name; leading dimensions of right-hand sides broadcast."""
    a, p = random(dtype, *batch, n, n) + n * torch.eye(n, dtype=dtype), spd(dtype, *batch, n, n)
    b, row = random(dtype, n, k), random(dtype, *batch, k, n)
    factor = {upper: torch.linalg.cholesky(p, upper=upper) for upper in (False, True)}
    packed = torch.linalg.lu_factor(a)
    for upper in (False, True):
        yield "cholesky", (p,), {"upper": upper}
        yield "cholesky_ex", (p,), {"upper": upper}
        yield "cholesky_inverse", (factor[upper], upper), {}
        yield "cholesky_solve", (b, factor[upper], upper), {}
        for unit in (False, True):
            flags = {"upper": upper, "unitriangular": unit}
            yield "solve_triangular", (factor[upper], b), flags
            yield "solve_triangular", (factor[upper].contiguous(), row), {**flags, "left": False}
    for shape in ((n, n), (n, n + 2), (n + 1, n)):
        yield "lu_factor", (random(dtype, *batch, *shape),), {}
        yield "lu_factor_ex", (random(dtype, *batch, *shape).mT.contiguous().mT,), {}
    for adjoint in (False, True):
        yield "lu_solve", (*packed, b), {"adjoint": adjoint}
        yield "lu_solve", (*packed, row), {"adjoint": adjoint, "left": False}
    for name in ("solve", "solve_ex"):
        yield name, (a, b), {}
        yield name, (a, row), {"left": False}
        yield name, (a, random(dtype, *batch, n)), {}
        yield name, (a.expand(2, *a.shape), b.conj()), {}
    for name in ("inv", "inv_ex", "det", "slogdet"):
        yield name, (a.mH / n,), {}  # whose determinant is a finite number of every dtype
    yield "logdet", (p,), {}


def rectangular_calls(dtype, batch, n, k):
    """Arguments of QR factors and least squares."""
    for shape in ((n, n), (n, n + 2), (n + 3, n)):
        for mode in ("reduced", "complete", "r"):
            yield "qr", (random(dtype, *batch, *shape), mode), {}
        rectangle = random(dtype, *batch, *shape) + 4 * torch.eye(*shape, dtype=dtype)
        for driver in ("gels", "gelsy", None) if n and 0 not in batch else ():
            yield "lstsq", (rectangle, random(dtype, *batch, shape[0], k)), {"driver": driver}
            yield "lstsq", (rectangle, random(dtype, *batch, shape[0])), {"driver": driver}


def reflector_calls(dtype, batch, n, k):
    """Arguments of QR factors by reflectors, and of products with their Q."""
    for shape in ((n, n), (n, n + 2), (n + 3, n)):
        a = random(dtype, *batch, *shape)
        yield "geqrf", (a,), {}
        factors, tau = torch.geqrf(a)
        columns = min(shape)
        yield "householder_product", (factors[..., :columns], tau), {}
        yield "householder_product", (factors[..., :columns].contiguous(), tau[..., : columns // 2]), {}
        for transpose in (False, True):
            c, row = random(dtype, *batch, shape[0], k), random(dtype, *batch, k, shape[0])
            yield "ormqr", (factors[..., :columns], tau, c, True, transpose), {}
            yield "ormqr", (factors[..., :columns], tau, row), {"left": False, "transpose": transpose}


def spectral_calls(dtype, batch, n, k):
    """Arguments of eigenvalues, singular values and what is made of them."""
    a, p = random(dtype, *batch, n, n), spd(dtype, *batch, n, n)
    for uplo in ("L", "U"):
        yield "eigh", (a, uplo), {}
    yield "eigvalsh", (a.mT.contiguous().mT, "U"), {}
    for shape in ((n, n), (n, n + 2), (n + 3, n)):
        rectangle = random(dtype, *batch, *shape) + 4 * torch.eye(*shape, dtype=dtype)
        for full in (False, True):
            yield "svd", (rectangle, full), {}
    yield "svdvals", (rectangle,), {}
    if rectangle.numel():
        yield "pinv", (p,), {"hermitian": True}
        yield "pinv", (rectangle,), {"atol": torch.full(batch, 2.0), "rtol": torch.tensor(0.1)}
        yield "pinv", (rectangle, 0.3), {}
        yield "pinv", (rectangle.mT,), {"atol": 0.1}
        yield "matrix_rank", (p,), {"hermitian": True}
        yield "matrix_rank", (rectangle, 3.0), {}
        yield "matrix_rank", (rectangle,), {"rtol": torch.full(batch, 0.4)}


def without_phases(name, result):
    """Results as they are compared: vectors by what determines them but for phases."""
    if name not in ("eigh", "svd"):
        return tuple(result) if isinstance(result, tuple) else (result,)
    u, values, right = result if name == "svd" else (result[1], result[0], result[1].mH)
    k = values.shape[-1]
    product = u[..., :k] * values[..., None, :] @ right[..., :k, :]
    return values, product, u.mH @ u, right @ right.mH


A = torch.eye(3)
REFUSED = {
    "cholesky of integers": ("cholesky", (torch.eye(3, dtype=torch.int64),), {}),
    "cholesky of a vector": ("cholesky", (A[0],), {}),
    "cholesky of a rectangle": ("cholesky", (A[:2],), {}),
    "cholesky of a bad pivot": ("cholesky", (A - 2 * torch.eye(3),), {}),
    "cholesky of a bad pivot in a stack": ("cholesky", (torch.stack([A, A - 2 * torch.eye(3)]),), {}),
    "cholesky_ex, errors checked": ("cholesky_ex", (-A,), {"check_errors": True}),
    "solve_triangular of other shapes": ("solve_triangular", (A, A[:2]), {"upper": True}),
    "cholesky_solve of a vector": ("cholesky_solve", (A[0], A), {}),
    "cholesky_inverse of a rectangle": ("cholesky_inverse", (A[:2],), {}),
    "lu_factor of a singular matrix": ("lu_factor", (0 * A,), {}),
    "lu_factor without pivots": ("lu_factor", (A,), {"pivot": False}),
    "lu_solve of other pivots": ("lu_solve", (A, torch.ones(2, dtype=torch.int32), A), {}),
    "lu_solve of long pivots": ("lu_solve", (A, torch.ones(3, dtype=torch.int64), A), {}),
    "solve of a singular matrix": ("solve", (0 * A, A), {}),
    "solve of other shapes": ("solve", (A, A[:2]), {}),
    "solve of a vector from the right": ("solve", (A, A[0]), {"left": False}),
    "solve_ex, errors checked": ("solve_ex", (0 * A, A), {"check_errors": True}),
    "inv of a singular matrix": ("inv", (torch.stack([A, 0 * A]),), {}),
    "inv of a rectangle": ("inv", (A[:2],), {}),
    "inv of half": ("inv", (A.half(),), {}),
    "det of a rectangle": ("det", (A[:2],), {}),
    "qr in another mode": ("qr", (A, "thin"), {}),
    "qr of a vector": ("qr", (A[0],), {}),
    "qr of integers": ("qr", (torch.eye(3, dtype=torch.int64),), {}),
    "lstsq of other rows": ("lstsq", (A, A[:2]), {"driver": "gels"}),
    "lstsq without full rank": ("lstsq", (torch.eye(3, 2) * torch.eye(1, 2), A), {"driver": "gels"}),
    "lstsq by no driver": ("lstsq", (A, A), {"driver": "geqrf"}),
    "geqrf of a vector": ("geqrf", (A[0],), {}),
    "householder_product of a wide matrix": ("householder_product", (A[:2], A[0]), {}),
    "householder_product of more factors": ("householder_product", (A[:, :2], A[0]), {}),
    "ormqr of other rows": ("ormqr", (A, A[0], A[:2]), {}),
    "ormqr of another dtype": ("ormqr", (A, A[0], A.double()), {}),
    "eigh of a rectangle": ("eigh", (A[:2],), {}),
    "eigh of a vector": ("eigh", (A[0],), {}),
    "eigh of integers": ("eigh", (torch.eye(3, dtype=torch.int64),), {}),
    "eigh of no triangle": ("eigh", (A, "X"), {}),
    "eigvalsh of half": ("eigvalsh", (A.half(),), {}),
    "svd of a vector": ("svd", (A[0],), {}),
    "svd of half": ("svd", (A.half(),), {}),
    "svd by no driver": ("svd", (A,), {"driver": "gesvx"}),
    "svdvals of integers": ("svdvals", (torch.eye(3, dtype=torch.int64),), {}),
    "pinv of a vector": ("pinv", (A[0],), {}),
    "pinv of a Hermitian rectangle": ("pinv", (A[:2],), {"hermitian": True}),
    "matrix_rank of a vector": ("matrix_rank", (A[0],), {}),
    "slogdet of integers": ("slogdet", (torch.eye(3, dtype=torch.int64),), {}),
}
