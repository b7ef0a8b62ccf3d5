"""How the rows of the table are computed: by calls of routines, and by JAX's own functions around them."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

import jax.numpy as jnp

from ..operators import cholesky, gaussian, lu, products
from ..operators import qr as reflectors
from .arrays import ARRAYS, Turned, plain
from .launch import launch
from .operators import register

__all__: list[str] = []


def _view(x: Any) -> tuple[Any, str]:
    """Return an array, and the flag that makes the operand of it."""
    if not isinstance(x, Turned):
        return x, "N"
    return x.array, "C" if jnp.issubdtype(x.dtype, jnp.complexfloating) else "T"


def _triangle(x: Any, lower: bool) -> tuple[Any, dict[str, str]]:
    """Return an array that holds a triangle, and its flags."""
    array, trans = _view(x)
    return array, {"uplo": "L" if lower == (trans == "N") else "U", "trans": trans}


def _is_complex(x: Any) -> bool:
    return bool(jnp.issubdtype(x.dtype, jnp.complexfloating))


@register(products.Gemm)
def gemm(f, a, b, c, alpha, beta, method):
    (one, trans_a), (other, trans_b) = _view(a), _view(b)
    flags = {"trans_a": trans_a, "trans_b": trans_b, **({"method": method} if method else {})}
    scalars = (alpha, 0 if c is None else beta)
    extents = a.shape[-2], b.shape[-1]
    return launch("gemm", flags, (one, other), scalars=scalars, source=plain(c), extents=extents)[0]


@register(products.Gemmtr)
def gemmtr(f, a, b, c, alpha, beta, lower):
    (one, trans_a), (other, trans_b) = _view(a), _view(b)
    flags = {"uplo": "L" if lower else "U", "trans_a": trans_a, "trans_b": trans_b}
    return _of_triangle(f, "gemmtr", flags, (one, other), (a.shape[-2], b.shape[-1]), c, alpha, beta, lower)


@register(products.RankK)
def rank_k(f, a, c, alpha, beta, lower, hermitian):
    flags = {"uplo": "L" if lower else "U", "trans": "N"}
    stem = "herk" if hermitian and _is_complex(a) else "syrk"
    order = a.shape[-2]
    return _of_triangle(f, stem, flags, (plain(a),), (order, order), c, alpha, beta, lower)


def _of_triangle(
    f: Any, stem: str, flags: Any, inputs: Any, extents: Any, c: Any, alpha: Any, beta: Any, lower: bool
) -> Any:
    """Return one triangle of a product, the other one zero."""
    source = jnp.zeros(extents, inputs[0].dtype) if c is None else f.triangle(c, lower)
    scalars = (alpha, 0 if c is None else beta)
    return launch(stem, flags, inputs, scalars=scalars, source=source)[0]


@register(products.Symm)
def symm(f, a, b, c, alpha, beta, left, lower, hermitian):
    flags = {"side": "L" if left else "R", "uplo": "L" if lower else "U"}
    stem = "hemm" if hermitian and _is_complex(a) else "symm"
    scalars = (alpha, 0 if c is None else beta)
    inputs = plain(a), plain(b)
    return launch(stem, flags, inputs, scalars=scalars, source=plain(c), extents=b.shape[-2:])[0]


@register(products.Trmm)
def trmm(f, a, b, alpha, left, lower, unit):
    return _triangular("trmm", a, b, alpha, left, lower, unit)


@register(products.Trsm)
def trsm(f, a, b, alpha, left, lower, unit):
    return _triangular("trsm", a, b, alpha, left, lower, unit)


def _triangular(stem: str, a: Any, b: Any, alpha: Any, left: bool, lower: bool, unit: bool) -> Any:
    array, flags = _triangle(a, lower)
    flags |= {"side": "L" if left else "R", "diag": "U" if unit else "N"}
    return launch(stem, flags, (array,), scalars=(alpha,), source=plain(b))[0]


@register(cholesky.CholeskyEx)
def cholesky_ex(f, a, upper):
    # the triangle that is not read holds anything: the other one of a row-major matrix is its transpose
    flags = {"uplo": "U" if upper else "L", "clean": True}
    factor, info = launch("potrf", flags, (), source=plain(a), counts=(1,))
    return factor, info[..., 0]


@register(cholesky.CholeskyBackward)
def cholesky_backward(f, factor, grad, upper):
    lower, work = (f.adjoint(factor), f.adjoint(grad)) if upper else (factor, grad)
    leaf = cholesky.leaf_order(prod(grad.shape[:-2]))
    return f.mirrored(_reverse(f, plain(lower), plain(work), leaf)) / 2


def _reverse(f: Any, l: Any, g: Any, leaf: int) -> Any:
    """Return twice the gradient of a matrix from `g`, that of its factor L; of both the lower triangle.

    The reverse mode of the blocked factorization (Murray, arXiv:1602.07527), by halves.
    """
    n = l.shape[-1]
    if n <= leaf:
        up = f.adjoint(l)
        p = f.half_triangle(f.trmm(up, f.tril(g), 1, True, False, False))
        p = f.trsm(up, p + f.adjoint(p), 1, True, False, False)
        return f.trsm(l, p, 1, False, True, False)
    k = n // 2
    l1, l21, l2 = l[..., :k, :k], l[..., k:, :k], l[..., k:, k:]
    g1, g21, g2 = g[..., :k, :k], g[..., k:, :k], g[..., k:, k:]
    p2 = _reverse(f, l2, g2, leaf)
    p21 = f.trsm(l1, f.symm(p2, l21, g21, -1, 1, True, True, True), 1, False, True, False)
    p1 = _reverse(f, l1, f.gemmtr(f.adjoint(p21), l21, g1, -1, 1, True), leaf)
    above = jnp.concatenate([p1, jnp.zeros_like(p21.mT)], -1)
    return jnp.concatenate([above, jnp.concatenate([p21, p2], -1)], -2)


@register(cholesky.CholeskySolve)
def cholesky_solve(f, b, factor, upper):
    return launch("potrs", {"uplo": "U" if upper else "L"}, (plain(factor),), source=plain(b))[0]


@register(cholesky.CholeskyInverse)
def cholesky_inverse(f, factor, upper):
    lower = f.adjoint(factor) if upper else factor
    return f.mirrored(launch("potri", {"uplo": "L"}, (), source=plain(lower), counts=(1,))[0])


@register(gaussian.InvQuadLogdet)
def inv_quad_logdet(f, k, y):
    factor, info = f.cholesky_ex(k, False)
    white = f.trsm(factor, y, 1, True, True, False)
    quad = (white.conj() * white).real.sum((-2, -1))
    return quad, 2 * jnp.log(f.diagonal(factor).real).sum(-1), factor, white, info


@register(gaussian.InvQuadLogdetBackward)
def inv_quad_logdet_backward(f, k, y, factor, white, gq, gd):
    x = f.trsm(f.adjoint(factor), white, 1, True, False, False)
    half = launch("potri", {"uplo": "L"}, (), source=plain(factor), counts=(1,))[0]
    weighted = gq[..., None, None] * x
    gk = f.gemmtr(weighted, f.adjoint(x), gd[..., None, None] * half, -1, 1, True)
    batch = jnp.broadcast_shapes(gk.shape[:-2], y.shape[:-2], k.shape[:-2])
    gk = jnp.broadcast_to(f.mirrored(gk), (*batch, *gk.shape[-2:]))
    return gk, jnp.broadcast_to(2 * weighted, (*batch, *y.shape[-2:]))


@register(lu.Interchanged)
def interchanged(f, a, pivots, back):
    flags = {"backwards": back, "first": 0}
    return launch("laswp", flags, (), integers=(pivots,), source=plain(a))[0]


@register(lu.LuFactorEx)
def lu_factor_ex(f, a):
    packed, pivots, info = launch("getrf", {}, (), source=plain(a), counts=(min(a.shape[-2:]), 1))
    return packed, pivots, info[..., 0]


@register(lu.LuSolve)
def lu_solve(f, lu, pivots, b, left, adjoint):
    if not left:
        return plain(f.adjoint(f.lu_solve(lu, pivots, plain(f.adjoint(b)), True, not adjoint)))
    return launch("getrs", {"trans": "C" if adjoint else "N"}, (lu,), integers=(pivots,), source=plain(b))[0]


@register(lu.LuInverse)
def lu_inverse(f, lu, pivots):
    return launch("getri", {}, (), integers=(pivots,), source=lu, counts=(1,))[0]


@register(lu.SolveEx)
def solve_ex(f, a, b, left):
    packed, pivots, info = f.lu_factor_ex(a)
    return f.lu_solve(packed, pivots, b, left, False), packed, pivots, info


@register(lu.Solved)
def solved(f, a, lu, pivots, b, left, adjoint):
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return f.lu_solve(lu, pivots, jnp.broadcast_to(plain(b), (*batch, *b.shape[-2:])), left, adjoint)


@register(lu.InvEx)
def inv_ex(f, a):
    packed, pivots, info = f.lu_factor_ex(a)
    return f.lu_inverse(packed, pivots), info


@register(lu.AdjointInverse)
def adjoint_inverse(f, a, lu, pivots):
    found = plain(f.adjoint(f.lu_inverse(lu, pivots)))
    return jnp.broadcast_to(found, jnp.broadcast_shapes(a.shape, found.shape))


def _diagonal_and_sign(f: Any, lu: Any, pivots: Any) -> tuple[Any, Any]:
    """Return the diagonal of U, and 1 or -1 as the interchanges are even or odd."""
    odd = (pivots != jnp.arange(pivots.shape[-1], dtype=pivots.dtype)).sum(-1) % 2
    return f.diagonal(lu), (1 - 2 * odd).astype(lu.dtype)


@register(lu.Slogdet)
def slogdet(f, a):
    packed, pivots, _ = f.lu_factor_ex(a)
    diagonal, parity = _diagonal_and_sign(f, packed, pivots)
    return jnp.sign(diagonal).prod(-1) * parity, jnp.log(jnp.abs(diagonal)).sum(-1), packed, pivots


@register(lu.Det)
def det(f, a):
    packed, pivots, _ = f.lu_factor_ex(a)
    diagonal, parity = _diagonal_and_sign(f, packed, pivots)
    return diagonal.prod(-1) * parity, packed, pivots


def determinant_gradient(f: Any, a: Any, out: Any, lu: Any, pivots: Any, g: Any) -> Any:
    """Return the gradient of a determinant.

    The adjugate of a singular matrix is near that of a regular one: zeros of U become the roundoff.
    """
    diagonal, parity = _diagonal_and_sign(f, lu, pivots)
    small = jnp.where(diagonal == 0, jnp.finfo(lu.dtype).eps, 0).astype(lu.dtype)
    near = jnp.where((diagonal == 0).any(-1), (diagonal + small).prod(-1) * parity, out)
    return (g * near.conj())[..., None, None] * f.adjoint_inverse(a, lu + f.embedded(small), pivots)


setattr(ARRAYS, determinant_gradient.__name__, partial(determinant_gradient, ARRAYS))


@register(reflectors.Qr)
def qr(f, a, complete):
    (m, n), a = a.shape[-2:], plain(a)
    k = min(m, n)
    columns = m if complete else k
    if not k:
        eye = jnp.eye(m, columns, dtype=a.dtype)
        return jnp.broadcast_to(eye, (*a.shape[:-2], m, columns)), a[..., :columns, :]
    factors, tau = launch("geqrf", {}, (), source=a, counts=(k,))
    more = jnp.zeros((*a.shape[:-1], columns - k), a.dtype)
    vectors = jnp.concatenate([factors[..., :k], more], -1) if columns > k else factors[..., :k]
    q = launch("orgqr", {}, (tau[..., None],), source=vectors)[0]
    return q, f.triu(factors[..., :columns, :])
