"""Gradients and tangents of Cholesky factors, their reverse mode, and solutions and inverses by them."""

from __future__ import annotations

from typing import Any

from .row import Row, total

__all__ = ["CholeskyBackward", "CholeskyEx", "CholeskyInverse", "CholeskySolve", "leaf_order"]

#: Halving a matrix of a larger order saves more time of a device than its calls cost the host.
LEAF = 3072
LEAST = 256  # of many matrices


def leaf_order(batch: int) -> int:
    """Return the order up to which matrices of a batch are not halved, but computed by whole products.

    A halving saves products, more than half of three times n³ a matrix, and costs a number of calls.
    """
    return max(LEAST, int(LEAF / max(batch, 1) ** (1 / 3)))


class CholeskyEx(Row):
    """Factor L of ``a = L Lᴴ`` or U of ``a = Uᴴ U``, and info."""

    schema = "cholesky_ex(Tensor a, bool upper)"
    returns = ("factor", "info")
    saved = ("factor",)
    constant = ("info",)

    @staticmethod
    def backward(f, s, g, _):
        return f.cholesky_backward(s.factor, g, s.upper)

    @staticmethod
    def jvp(f, s, da):
        if s.upper:
            return f.adjoint(_lower_tangent(f, f.adjoint(s.factor), da)), None
        return _lower_tangent(f, s.factor, da), None


def _lower_tangent(f: Any, l: Any, da: Any) -> Any:
    """Return ``L Φ(L⁻¹ da L⁻ᴴ)``, Φ the lower triangle with half of the diagonal."""
    inner = f.trsm(f.adjoint(l), f.trsm(l, da, 1, True, True, False), 1, False, False, False)
    return f.tril(f.trmm(l, f.half_triangle(inner), 1, True, True, False))


class CholeskyBackward(Row):
    """Gradient of a matrix, Hermitian, from that of its Cholesky factor."""

    schema = "cholesky_backward(Tensor factor, Tensor grad, bool upper)"
    saved = ("factor", "grad", "out")

    @staticmethod
    def backward(f, s, h):
        # out = herm(L⁻ᴴ Φ(Lᴴ G) L⁻¹), Φ the lower triangle with half of the diagonal
        l, g = (f.adjoint(s.factor), f.adjoint(s.grad)) if s.upper else (s.factor, s.grad)
        out, h = s.out, f.hermitian_part(h)
        h = f.trsm(f.adjoint(l), h, 1, False, False, False)  # h L⁻ᴴ
        q = f.half_triangle(f.trsm(l, h, 1, True, True, False))
        gl = f.tril(f.trmm(f.tril(g), f.adjoint(q), 1, True, True, False))
        gl = gl - 2 * f.tril(f.symm(out, h, None, 1, 0, True, True, True))
        gg = f.tril(f.trmm(l, q, 1, True, True, False))
        return (f.adjoint(gl), f.adjoint(gg)) if s.upper else (gl, gg)

    @staticmethod
    def jvp(f, s, dl, dg):
        l, g = (f.adjoint(s.factor), f.adjoint(s.grad)) if s.upper else (s.factor, s.grad)
        dl, dg = (f.adjoint(x) if s.upper and x is not None else x for x in (dl, dg))
        dp = total(
            dl is not None and f.trmm(f.adjoint(dl), f.tril(g), 1, True, False, False),
            dg is not None and f.trmm(f.adjoint(l), f.tril(dg), 1, True, False, False),
        )
        ds = _between(f, l, f.half_triangle(dp))
        if dl is not None:
            # herm(dLᴴ S + S dL) of S = L⁻ᴴ Φ L⁻¹, whose Hermitian part is out
            inner = f.half_triangle(f.trmm(f.adjoint(l), f.tril(g), 1, True, False, False))
            whole = _between(f, l, inner)
            first = f.trmm(f.adjoint(dl), whole, 1, True, False, False)
            ds = ds - f.trsm(f.adjoint(l), first, 1, True, False, False)
            second = f.trmm(dl, whole, 1, False, True, False)
            ds = ds - f.trsm(l, second, 1, False, True, False)
        return f.hermitian_part(ds)


def _between(f: Any, l: Any, x: Any) -> Any:
    """Return ``L⁻ᴴ x L⁻¹``."""
    return f.trsm(l, f.trsm(f.adjoint(l), x, 1, True, False, False), 1, False, True, False)


class CholeskySolve(Row):
    """Solution x of ``a x = b`` from a Cholesky factor of a."""

    schema = "cholesky_solve(Tensor b, Tensor factor, bool upper)"
    saved = ("b", "factor", "out")

    @staticmethod
    def backward(f, s, g):
        y, x = f.cholesky_solve(g, s.factor, s.upper), s.out
        gl = None
        if s.needs["factor"]:
            # -tril((y xᴴ + x yᴴ) L)
            up = s.factor if s.upper else f.adjoint(s.factor)
            lx, ly = (f.adjoint(f.trmm(up, each, 1, True, False, False)) for each in (x, y))
            gl = f.gemmtr(y, lx, None, -1, 0, True) + f.gemmtr(x, ly, None, -1, 0, True)
            gl = f.adjoint(gl) if s.upper else gl
        return s.needs["b"] and y, gl

    @staticmethod
    def jvp(f, s, db, dl):
        right = db
        if dl is not None:
            right = total(db, -_moved(f, s.factor, dl, s.out, s.upper))
        return f.cholesky_solve(right, s.factor, s.upper)


def _moved(f: Any, factor: Any, tangent: Any, x: Any, upper: bool) -> Any:
    """Return ``(dL Lᴴ + L dLᴴ) x``."""
    up, dup = (factor, tangent) if upper else (f.adjoint(factor), f.adjoint(tangent))
    first = f.trmm(f.adjoint(dup), f.trmm(up, x, 1, True, False, False), 1, True, True, False)
    return first + f.trmm(f.adjoint(up), f.trmm(dup, x, 1, True, False, False), 1, True, True, False)


class CholeskyInverse(Row):
    """Inverse of a Hermitian positive definite matrix from its Cholesky factor."""

    schema = "cholesky_inverse(Tensor factor, bool upper)"
    saved = ("factor", "out")

    @staticmethod
    def backward(f, s, g):
        # -tril(x (g + gᴴ) x L), where x L = L⁻ᴴ
        up = s.factor if s.upper else f.adjoint(s.factor)
        product = f.symm(s.out, 2 * f.hermitian_part(g), None, -1, 0, True, True, True)
        gl = f.tril(f.trsm(up, product, 1, False, False, False))
        return f.adjoint(gl) if s.upper else gl

    @staticmethod
    def jvp(f, s, dl):
        moved = _moved(f, s.factor, dl, s.out, s.upper)
        return f.symm(s.out, moved, None, -1, 0, True, True, True)
