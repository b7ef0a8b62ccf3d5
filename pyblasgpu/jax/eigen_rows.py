"""How the rows of eigenvalues and singular values are computed.

Matrices that are larger than the kernels of the first device have them are computed by JAX's own functions.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from ..frontend.calls.lazy_routines import largest_order
from ..operators import eigen
from .arrays import plain
from .launch import LETTERS, first_device, launch
from .operators import register

__all__: list[str] = []


def _have_kernels(stem: str, a: Any, vectors: bool = True) -> bool:
    """Whether there are kernels for matrices of this shape; the processor computes all."""
    device = first_device()
    return device is None or min(a.shape[-2:]) <= largest_order(
        stem, LETTERS[np.dtype(a.dtype)], device, vectors
    )


def _converged(info: Any, *arrays: Any) -> Any:
    """Return arrays that are NaN where info is not 0, and info."""
    failed = info != 0
    masks = [jnp.expand_dims(failed, range(info.ndim, x.ndim)) for x in arrays]
    return *[jnp.where(mask, jnp.nan, x) for mask, x in zip(masks, arrays, strict=True)], info


def _successes(a: Any) -> Any:
    return jnp.zeros(a.shape[:-2], np.int32)


def _hermitian(a: Any, lower: bool, vectors: bool) -> list[Any]:
    """Return vectors, info and eigenvalues, as the routine leaves them."""
    flags = {"uplo": "L" if lower else "U", "vectors": vectors}
    columns, info, w = launch("syevd", flags, (), source=a, counts=(1, a.shape[-1]))
    return [columns, info[..., 0], w.real]


@register(eigen.Eigh)
def eigh(f, a, lower):
    a = plain(a)
    if not _have_kernels("syevd", a):
        return *jnp.linalg.eigh(a, "L" if lower else "U", False), _successes(a)
    columns, info, w = _hermitian(a, lower, True)
    return _converged(info, w, columns)


@register(eigen.Eigvalsh)
def eigvalsh(f, a, lower):
    a = plain(a)
    if not _have_kernels("syevd", a):
        return jnp.linalg.eigvalsh(a, "L" if lower else "U", symmetrize_input=False), _successes(a)
    _, info, w = _hermitian(a, lower, False)
    return _converged(info, w)


@register(eigen.Svd)
def svd(f, a, full):
    a = plain(a)
    *batch, m, n = a.shape
    k = min(m, n)
    left, right = (m, n) if full else (k, k)
    if not k:
        u, vh = (jnp.eye(*shape, dtype=a.dtype) for shape in ((m, left), (right, n)))
        stacks = [jnp.broadcast_to(x, (*batch, *x.shape)) for x in (u, vh)]
        return stacks[0], jnp.zeros((*batch, 0), a.real.dtype), stacks[1], _successes(a)
    if not _have_kernels("gesdd", a):
        return *jnp.linalg.svd(a, full), _successes(a)
    counts = 1, k, m * left, right * n
    _, info, sigma, u, vh = launch("gesdd", {"vectors": True}, (), source=a, counts=counts)
    u, vh = u.reshape(*batch, left, m).mT, vh.reshape(*batch, right, n)
    return _converged(info[..., 0], u, sigma.real, vh)


@register(eigen.Svdvals)
def svdvals(f, a):
    a = plain(a)
    k = min(a.shape[-2:])
    if k and not _have_kernels("gesdd", a, vectors=False):
        return jnp.linalg.svd(a, compute_uv=False), _successes(a)
    _, info, sigma, _, _ = launch("gesdd", {"vectors": False}, (), source=a, counts=(1, k, 1, 1))
    return _converged(info[..., 0], sigma.real)


@register(eigen.Pinv)
def pinv(f, a, atol, rtol, hermitian):
    a = plain(a)
    if hermitian:
        values, u, info = f.eigh(a, True)
        right = u
    else:
        u, values, vh, info = f.svd(a, False)
        right = vh.mT.conj()
    sizes = jnp.abs(values)
    bound = jnp.maximum(atol, rtol * sizes.max(-1, initial=0))
    inverse = jnp.where(sizes > bound[..., None], 1 / values, 0)
    # of a matrix that is not finite no value is greater than the bound
    inverse = jnp.where(jnp.isnan(values), values, inverse)
    return f.gemm(right * inverse[..., None, :], f.adjoint(u), None, 1, 0, None), info
