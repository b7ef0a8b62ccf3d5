"""Gradients and tangents of QR factors."""

from __future__ import annotations

from typing import Any

from .row import Row, total

__all__ = ["Qr"]


def _product(f: Any, a: Any, b: Any) -> Any:
    return f.gemm(a, b, None, 1, 0, None)


def _right_divided(f: Any, x: Any, r: Any, adjoint: bool) -> Any:
    """Return ``x R⁻ᴴ`` or ``x R⁻¹``, R upper triangular."""
    return f.trsm(f.adjoint(r) if adjoint else r, x, 1, False, adjoint, False)


class Qr(Row):
    """QR factors: Q with as many columns as R has rows, k or all m."""

    schema = "qr(Tensor a, bool complete)"
    returns = ("q", "r")
    saved = ("q", "r")

    @staticmethod
    def backward(f, s, gq, gr):
        m, k = s.q.shape[-2:]
        n = s.r.shape[-1]
        _check_square(s)
        if m < n:  # R = (R1, R2) with a1 = Q R1 and R2 = Qᴴ a2
            first, rest = s.r[..., :m], s.r[..., m:]
            second = f.converted(f.zeros(rest.shape, rest), rest)
            if gr is not None:
                one, two = gr[..., :m], gr[..., m:]
                gq = total(gq, _product(f, s.q, _product(f, rest, f.adjoint(two))))
                gr, second = one, _product(f, s.q, two)
            return f.concatenated([_square_backward(f, s.q, first, gq, gr), second], -1)
        return _square_backward(f, s.q, s.r[..., :k, :], gq, gr)

    @staticmethod
    def jvp(f, s, da):
        m, up = s.q.shape[-2], f.adjoint(s.q)
        _check_square(s)
        square = min(m, s.r.shape[-1])
        r = s.r[..., :square, :square]
        divided = _right_divided(f, da[..., :square], r, False)
        c = _product(f, up, divided)
        lower = f.tril(c, -1)
        turned = lower - f.adjoint(lower)
        if f.is_complex(c):
            turned = turned + f.embedded(1j * f.diagonal(c).imag)
        dq = divided - _product(f, s.q, c - turned)
        return dq, f.triu(_product(f, up, da) - _product(f, turned, s.r))


def _check_square(s: Any) -> None:
    """Raise PyTorch's error where Q has columns that R does not determine."""
    if s.q.shape[-1] > s.r.shape[-1]:
        raise RuntimeError(
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols"
        )


def _square_backward(f: Any, q: Any, r: Any, gq: Any, gr: Any) -> Any:
    """Return the gradient of a matrix with at least as many rows as columns."""
    up = f.adjoint(q)
    inner = total(gr is not None and _product(f, gr, f.adjoint(r)), gq is not None and -_product(f, up, gq))
    upper = f.triu(inner)
    both = upper + f.adjoint(upper) - f.embedded(f.real_diagonal(upper))
    return _right_divided(f, total(gq, _product(f, q, both)), r, True)
