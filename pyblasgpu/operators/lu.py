"""Gradients and tangents of LU factors, and of solutions, inverses and determinants."""

from __future__ import annotations

from typing import Any

from .row import Row, total

__all__ = [
    "AdjointInverse",
    "Det",
    "Interchanged",
    "InvEx",
    "LuFactorEx",
    "LuInverse",
    "LuSolve",
    "Slogdet",
    "Solved",
    "SolveEx",
]


class Interchanged(Row):
    """Rows interchanged as pivots say, from the first pivot to the last, or back."""

    schema = "interchanged(Tensor a, Tensor pivots, bool back)"
    saved = ("pivots",)

    @staticmethod
    def backward(f, s, g):
        return f.interchanged(g, s.pivots, not s.back), None

    @staticmethod
    def jvp(f, s, da, _):
        return f.interchanged(da, s.pivots, s.back)


class LuFactorEx(Row):
    """Factors of ``a = P L U``, pivots and info."""

    schema = "lu_factor_ex(Tensor a)"
    returns = ("lu", "pivots", "info")
    saved = ("lu", "pivots")
    constant = ("pivots", "info")

    @staticmethod
    def backward(f, s, g, *_):
        (m, n), lu = s.lu.shape[-2:], s.lu
        k = min(m, n)
        square, gl, gu = lu[..., :k, :k], f.tril(g[..., :k], -1), f.triu(g[..., :k, :])
        up = f.adjoint(square)  # Lᴴ above a diagonal of ones, and Uᴴ
        inner_l = f.tril(f.trmm(up, gl[..., :k, :], 1, True, False, True), -1)
        inner_u = f.triu(f.trmm(up, gu[..., :k], 1, False, True, False))
        if n > m:  # A₂ = P L U₂
            rest = f.trsm(up, gu[..., k:], 1, True, False, True)
            inner_l = inner_l - f.tril(f.gemmtr(gu[..., k:], f.adjoint(lu[..., k:]), None, 1, 0, True), -1)
        if m > n:  # A₂ = L₂ U
            rest = f.trsm(up, gl[..., k:, :], 1, False, True, False)
            inner_u = inner_u - f.gemmtr(f.adjoint(lu[..., k:, :]), gl[..., k:, :], None, 1, 0, False)
        whole = f.trsm(up, inner_l + inner_u, 1, True, False, True)
        whole = f.trsm(up, whole, 1, False, True, False)
        if m != n:
            whole = f.concatenated([whole, rest], -1 if n > m else -2)
        return f.interchanged(whole, s.pivots, True)

    @staticmethod
    def jvp(f, s, da):
        (m, n), lu = s.lu.shape[-2:], s.lu
        k = min(m, n)
        square, moved = lu[..., :k, :k], f.interchanged(da, s.pivots, False)
        inner = f.trsm(square, moved[..., :k, :k], 1, True, True, True)
        inner = f.trsm(square, inner, 1, False, False, False)
        dl = f.trmm(square, f.tril(inner, -1), 1, True, True, True)
        du = f.trmm(square, f.triu(inner), 1, False, False, False)
        tangent = f.tril(dl, -1) + f.triu(du)
        if n > m:
            rest = f.trsm(square, moved[..., k:], 1, True, True, True)
            rest = rest - f.trmm(f.tril(inner, -1), lu[..., k:], 1, True, True, False)
            tangent = f.concatenated([tangent, rest], -1)
        if m > n:
            right = moved[..., k:, :] - f.trmm(du, lu[..., k:, :], 1, False, False, False)
            tangent = f.concatenated([tangent, f.trsm(square, right, 1, False, False, False)], -2)
        return tangent, None, None


def _factor_gradient(f: Any, lu: Any, pivots: Any, v: Any, w: Any) -> Any:
    """Return the gradient of L and U from ``-v wᴴ``, that of the matrix."""
    v = f.interchanged(v, pivots, False)
    uw = f.trmm(lu, w, 1, True, False, False)
    lv = f.trmm(f.adjoint(lu), v, 1, True, False, True)
    below = f.tril(f.gemmtr(v, f.adjoint(uw), None, -1, 0, True), -1)
    return below + f.gemmtr(lv, f.adjoint(w), None, -1, 0, False)


def _matrix_tangent(f: Any, lu: Any, pivots: Any, dlu: Any, x: Any) -> Any:
    """Return ``P (dL U + L dU) x``."""
    first = f.trmm(f.tril(dlu, -1), f.trmm(lu, x, 1, True, False, False), 1, True, True, False)
    second = f.trmm(lu, f.trmm(dlu, x, 1, True, False, False), 1, True, True, True)
    return f.interchanged(first + second, pivots, True)


class LuSolve(Row):
    """Solution x of ``op(a) x = b`` or ``x op(a) = b`` from the LU factors of a; op may be the adjoint."""

    schema = "lu_solve(Tensor lu, Tensor pivots, Tensor b, bool left, bool adjoint)"
    saved = ("lu", "pivots", "b", "out")

    @staticmethod
    def backward(f, s, g):
        gb = f.lu_solve(s.lu, s.pivots, g, s.left, not s.adjoint)
        glu = None
        if s.needs["lu"]:
            v, w = (gb, s.out) if s.left else (f.adjoint(s.out), f.adjoint(gb))
            v, w = (w, v) if s.adjoint else (v, w)
            glu = _factor_gradient(f, s.lu, s.pivots, v, w)
        return glu, None, s.needs["b"] and gb

    @staticmethod
    def jvp(f, s, dlu, _, db):
        right = db
        if dlu is not None:
            x = s.out if s.left else f.adjoint(s.out)
            moving = _matrix_tangent if s.left != s.adjoint else _adjoint_tangent
            moved = moving(f, s.lu, s.pivots, dlu, x)
            right = total(db, -(moved if s.left else f.adjoint(moved)))
        return f.lu_solve(s.lu, s.pivots, right, s.left, s.adjoint)


def _adjoint_tangent(f: Any, lu: Any, pivots: Any, dlu: Any, x: Any) -> Any:
    """Return ``(P (dL U + L dU))ᴴ x``."""
    x, up, dup = f.interchanged(x, pivots, False), f.adjoint(lu), f.adjoint(dlu)
    first = f.trmm(up, f.trmm(f.triu(dup, 1), x, 1, True, False, False), 1, True, True, False)
    return first + f.trmm(dup, f.trmm(up, x, 1, True, False, True), 1, True, True, False)


class SolveEx(Row):
    """Solution x of ``a x = b`` or ``x a = b``, the factors of a, pivots and info."""

    schema = "solve_ex(Tensor a, Tensor b, bool left)"
    returns = ("x", "lu", "pivots", "info")
    saved = ("a", "b", "x", "lu", "pivots")
    constant = ("lu", "pivots", "info")
    of_first = ("lu", "pivots", "info")

    @staticmethod
    def backward(f, s, g, *_):
        gb = f.solved(s.a, s.lu, s.pivots, g, s.left, True)
        one, other = (gb, f.adjoint(s.x)) if s.left else (f.adjoint(s.x), gb)
        return s.needs["a"] and f.gemm(one, other, None, -1, 0, None), s.needs["b"] and gb

    @staticmethod
    def jvp(f, s, da, db):
        one, other = (da, s.x) if s.left else (s.x, da)
        right = total(db, da is not None and f.gemm(one, other, None, -1, 0, None))
        return f.solved(s.a, s.lu, s.pivots, right, s.left, False), None, None, None


class LuInverse(Row):
    """Inverse of a matrix from its LU factors."""

    schema = "lu_inverse(Tensor lu, Tensor pivots)"
    saved = ("lu", "pivots", "out")

    @staticmethod
    def backward(f, s, g):
        v = f.gemm(f.adjoint(s.out), g, None, 1, 0, None)
        return _factor_gradient(f, s.lu, s.pivots, v, s.out), None

    @staticmethod
    def jvp(f, s, dlu, _):
        return f.gemm(s.out, _matrix_tangent(f, s.lu, s.pivots, dlu, s.out), None, -1, 0, None)


class InvEx(Row):
    """Inverse of a matrix, and info."""

    schema = "inv_ex(Tensor a)"
    returns = ("inverse", "info")
    saved = ("inverse",)
    constant = ("info",)

    @staticmethod
    def backward(f, s, g, _):
        up = f.adjoint(s.inverse)
        return f.gemm(f.gemm(up, g, None, -1, 0, None), up, None, 1, 0, None)

    @staticmethod
    def jvp(f, s, da):
        return f.gemm(f.gemm(s.inverse, da, None, -1, 0, None), s.inverse, None, 1, 0, None), None


class Slogdet(Row):
    """Sign and logarithm of the absolute value of a determinant, and the factors."""

    schema = "slogdet(Tensor a)"
    returns = ("sign", "logabsdet", "lu", "pivots")
    saved = ("a", "sign", "lu", "pivots")
    constant = ("lu", "pivots")

    @staticmethod
    def backward(f, s, gs, gl, *_):
        weight = gl
        if f.is_complex(s.a):
            weight = total(gl, gs is not None and (gs.conj() * s.sign).imag * -1j)
        if weight is None:
            return None
        return weight[..., None, None] * f.adjoint_inverse(s.a, s.lu, s.pivots)

    @staticmethod
    def jvp(f, s, da):
        trace = _trace(f, s, da)
        sign = s.sign * trace.imag * 1j if f.is_complex(s.a) else f.zeros(s.sign.shape, s.sign)
        return sign, trace.real, None, None


def _trace(f: Any, s: Any, da: Any) -> Any:
    """Return the trace of ``a⁻¹ da``."""
    return f.diagonal(f.solved(s.a, s.lu, s.pivots, da, True, False)).sum(-1)


class Det(Row):
    """Determinant, and the factors."""

    schema = "det(Tensor a)"
    returns = ("det", "lu", "pivots")
    saved = ("a", "det", "lu", "pivots")
    constant = ("lu", "pivots")

    @staticmethod
    def backward(f, s, g, *_):
        return f.determinant_gradient(s.a, s.det, s.lu, s.pivots, g)

    @staticmethod
    def jvp(f, s, da):
        return s.det * _trace(f, s, da), None, None


class Solved(Row):
    """Solution x of ``op(a) x = b`` or ``x op(a) = b``, for which the LU factors of a are at hand."""

    schema = "solved(Tensor a, Tensor lu, Tensor pivots, Tensor b, bool left, bool adjoint)"
    saved = ("a", "lu", "pivots", "out")

    @staticmethod
    def backward(f, s, g):
        gb = f.solved(s.a, s.lu, s.pivots, g, s.left, not s.adjoint)
        ga = None
        if s.needs["a"]:
            one, other = (gb, f.adjoint(s.out)) if s.left else (f.adjoint(s.out), gb)
            one, other = (f.adjoint(other), f.adjoint(one)) if s.adjoint else (one, other)
            ga = f.gemm(one, other, None, -1, 0, None)
        return ga, None, None, s.needs["b"] and gb

    @staticmethod
    def jvp(f, s, da, _, __, db):
        right = db
        if da is not None:
            moved = f.adjoint(da) if s.adjoint else da
            one, other = (moved, s.out) if s.left else (s.out, moved)
            right = total(db, f.gemm(one, other, None, -1, 0, None))
        return f.solved(s.a, s.lu, s.pivots, right, s.left, s.adjoint)


class AdjointInverse(Row):
    """``a⁻ᴴ``, for which the LU factors of a are at hand."""

    schema = "adjoint_inverse(Tensor a, Tensor lu, Tensor pivots)"
    saved = ("out",)

    @staticmethod
    def backward(f, s, g):
        return f.gemm(f.gemm(s.out, f.adjoint(g), None, -1, 0, None), s.out, None, 1, 0, None), None, None

    @staticmethod
    def jvp(f, s, da, *_):
        return f.gemm(f.gemm(s.out, f.adjoint(da), None, -1, 0, None), s.out, None, 1, 0, None)
