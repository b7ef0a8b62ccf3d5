"""Gradients and tangents of eigenvalues, singular values, their vectors, and of pseudoinverses.

Where values are equal, derivatives of their vectors are not finite, as those of PyTorch and JAX are not.
"""

from __future__ import annotations

from typing import Any

from .row import Row, total

__all__ = ["Eigh", "Eigvalsh", "Pinv", "Svd", "Svdvals"]


def _product(f: Any, a: Any, b: Any, c: Any = None, alpha: int = 1) -> Any:
    """Return ``alpha a b + c``."""
    return f.gemm(a, b, c, alpha, 0 if c is None else 1, None)


def _inverse_gaps(f: Any, differences: Any) -> Any:
    """Return the inverse of a matrix's elements; zeros on the diagonal, where they are zero."""
    identity = f.embedded(f.zeros(differences.shape[:-1], differences) + 1)
    return 1 / (differences + identity) - identity


def _column(values: Any) -> Any:
    return values[..., :, None]


def _row(values: Any) -> Any:
    return values[..., None, :]


def _with_diagonal(f: Any, x: Any, diagonal: Any) -> Any:
    """Return the sum of matrices and real diagonal ones, if there are any."""
    return x if diagonal is None else x + f.embedded(f.converted(diagonal, x))


class Eigh(Row):
    """Eigenvalues in ascending order, eigenvectors, and info, of Hermitian matrices by one triangle."""

    schema = "eigh(Tensor a, bool lower)"
    returns = ("w", "v", "info")
    saved = ("w", "v")
    constant = ("info",)

    @staticmethod
    def backward(f, s, gw, gv, _):
        up = f.adjoint(s.v)
        if gv is None:
            return _product(f, s.v * _row(gw), up)
        turned = _product(f, up, gv)
        f.check_phases("linalg_eigh_backward", f.diagonal(turned))
        middle = (turned - f.adjoint(turned)) * (_gaps(f, s.w) / 2)
        return _product(f, _product(f, s.v, _with_diagonal(f, middle, gw)), up)

    @staticmethod
    def jvp(f, s, da):
        moved = _product(f, f.adjoint(s.v), _product(f, f.hermitian_part(da), s.v))
        return f.diagonal(moved).real, _product(f, s.v, moved * _gaps(f, s.w)), None


def _gaps(f: Any, w: Any) -> Any:
    """Return ``1 / (w_j - w_i)``, zero for i = j."""
    return _inverse_gaps(f, _row(w) - _column(w))


class Eigvalsh(Row):
    """Eigenvalues in ascending order, and info, of Hermitian matrices by one triangle."""

    schema = "eigvalsh(Tensor a, bool lower)"
    returns = ("w", "info")
    saved = ("a",)
    constant = ("info",)

    @staticmethod
    def backward(f, s, gw, _):
        v = f.eigh(s.a, s.lower)[1]
        return _product(f, v * _row(gw), f.adjoint(v))

    @staticmethod
    def jvp(f, s, da):
        v = f.eigh(s.a, s.lower)[1]
        return (v.conj() * _product(f, f.hermitian_part(da), v)).real.sum(-2), None


class Svd(Row):
    """Left singular vectors, singular values, right ones as rows, and info.

    Vectors beyond the lesser extent, which `full` adds, span what the others leave: they have no derivatives.
    """

    schema = "svd(Tensor a, bool full)"
    returns = ("u", "sigma", "vh", "info")
    saved = ("u", "sigma", "vh")
    constant = ("info",)

    @staticmethod
    def backward(f, s, gu, gsigma, gvh, _):
        k, m, n = s.sigma.shape[-1], s.u.shape[-2], s.vh.shape[-1]
        u, vh, sigma = s.u[..., :k], s.vh[..., :k, :], s.sigma
        if gu is None and gvh is None:
            return _product(f, u * _row(gsigma), vh)
        gu = None if gu is None else gu[..., :k]
        gvh = None if gvh is None else gvh[..., :k, :]
        left = None if gu is None else _product(f, f.adjoint(u), gu)
        right = None if gvh is None else _product(f, vh, f.adjoint(gvh))
        if f.is_complex(u):
            one, *other = (2 * f.diagonal(each) for each in (left, right) if each is not None)
            f.check_phases("svd_backward", one, *other)
        gaps = _square_gaps(f, sigma)
        middle = total(
            left is not None and (left - f.adjoint(left)) * (gaps * _row(sigma)),
            right is not None and (right - f.adjoint(right)) * (gaps * _column(sigma)),
        )
        if left is not None and f.is_complex(u):
            middle = middle + f.embedded(1j * f.diagonal(left).imag / sigma)
        result = _product(f, _product(f, u, _with_diagonal(f, middle, gsigma)), vh)
        if m > k and gu is not None:
            beyond = gu / _row(sigma)
            beyond = _product(f, u, _product(f, f.adjoint(u), beyond), beyond, -1)
            result = _product(f, beyond, vh, result)
        if n > k and gvh is not None:
            beyond = gvh / _column(sigma)
            beyond = _product(f, _product(f, beyond, f.adjoint(vh)), vh, beyond, -1)
            result = _product(f, u, beyond, result)
        return result

    @staticmethod
    def jvp(f, s, da):
        k, m, n = s.sigma.shape[-1], s.u.shape[-2], s.vh.shape[-1]
        u, vh, sigma = s.u[..., :k], s.vh[..., :k, :], s.sigma
        by_u, by_v = _product(f, f.adjoint(u), da), _product(f, da, f.adjoint(vh))
        moved = _product(f, by_u, f.adjoint(vh))
        up, gaps = f.adjoint(moved), _square_gaps(f, sigma)
        left = (moved * _row(sigma) + _column(sigma) * up) * gaps
        right = (_column(sigma) * moved + _row(sigma) * up) * gaps
        if f.is_complex(u):
            left = left + f.embedded(1j * f.diagonal(moved).imag / sigma)
        du, dvh = _product(f, u, left), _product(f, f.adjoint(right), vh)
        if m > k:
            du = du + _product(f, u, moved, by_v, -1) / _row(sigma)
        if n > k:
            dvh = dvh + _product(f, moved, vh, by_u, -1) / _column(sigma)
        return _widened(f, du, s.u, -1), f.diagonal(moved).real, _widened(f, dvh, s.vh, -2), None


def _square_gaps(f: Any, sigma: Any) -> Any:
    """Return ``1 / (sigma_j² - sigma_i²)``, zero for i = j."""
    return _inverse_gaps(f, (_row(sigma) - _column(sigma)) * (_row(sigma) + _column(sigma)))


def _widened(f: Any, tangent: Any, like: Any, axis: int) -> Any:
    """Return a tangent with zeros beyond its columns, or rows, up to the shape of `like`."""
    shape = [*like.shape]
    shape[axis] = like.shape[axis] - tangent.shape[axis]
    if not shape[axis]:
        return tangent
    return f.concatenated([tangent, f.converted(f.zeros(shape, tangent), tangent)], axis)


class Svdvals(Row):
    """Singular values in descending order, and info."""

    schema = "svdvals(Tensor a)"
    returns = ("sigma", "info")
    saved = ("a",)
    constant = ("info",)

    @staticmethod
    def backward(f, s, gsigma, _):
        u, _, vh, _ = f.svd(s.a, False)
        return _product(f, u * _row(gsigma), vh)

    @staticmethod
    def jvp(f, s, da):
        u, _, vh, _ = f.svd(s.a, False)
        return (u.conj() * _product(f, da, f.adjoint(vh))).real.sum(-2), None


class Pinv(Row):
    """Pseudoinverse by the values above the larger one of two bounds, and info.

    `atol`, and `rtol` in units of the largest value, are real numbers, one for each matrix. Derivatives are
    those of constant rank (Golub and Pereyra, *SIAM J. Numer. Anal.* 10, 1973).
    """

    schema = "pinv(Tensor a, Tensor atol, Tensor rtol, bool hermitian)"
    returns = ("out", "info")
    saved = ("a", "out")
    constant = ("info",)
    of_first = ("info",)

    @staticmethod
    def backward(f, s, g, _):
        up, gup = f.adjoint(s.out), f.adjoint(g)
        outside = _product(f, s.a, _product(f, s.out, gup), gup, -1)  # (I - a p) gᴴ
        inside = _product(f, _product(f, gup, s.out), s.a, gup, -1)  # gᴴ (I - p a)
        result = _product(f, _product(f, up, g), up, None, -1)
        result = _product(f, _product(f, outside, s.out), up, result)
        return _product(f, up, _product(f, s.out, inside), result), None, None

    @staticmethod
    def jvp(f, s, da, *_):
        if da is None:  # the rank is constant
            return f.converted(f.zeros(s.out.shape, s.out), s.out), None
        up, dup = f.adjoint(s.out), f.adjoint(da)
        outside = _product(f, _product(f, dup, s.a), s.out, dup, -1)  # daᴴ (I - a p)
        inside = _product(f, s.out, _product(f, s.a, dup), dup, -1)  # (I - p a) daᴴ
        result = _product(f, _product(f, s.out, da), s.out, None, -1)
        result = _product(f, s.out, _product(f, up, outside), result)
        return _product(f, _product(f, inside, up), s.out, result), None
