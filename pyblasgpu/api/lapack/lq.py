"""LQ factors of `lapack` by Householder reflectors, and Q as a matrix and as a factor.

SciPy has no such functions. Their signatures are those of its QR factors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...arguments import Array, Flag
from ...frontend.calls.factor_replay import call_key, replay_factor
from ...types import Dtype
from ..blas.functions import functions_of
from .call import dressed
from .docs import QR
from .qr_calls import factors_of, of_device, orthogonal_of, product_of

__all__ = ["FUNCTIONS"]


def _make_gelqf(stem: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    def gelqf(a: Array, lwork: int | None = None, overwrite_a: Flag = 0) -> tuple[Array, Array, Array, int]:
        """LQ factors of a matrix by Householder reflectors: ``L Q = a``.

        Parameters
        ----------
        a : array, shape (m, n) or (..., m, n)
            The matrix, or a stack, of any shape.

        Returns
        -------
        lq : array, shape (m, n) or (..., m, n)
            L in the lower triangle. Right of its diagonal are the conjugated vectors v of the reflectors
            without their first elements, which are 1; column-major unless it is `a`.
        tau : array, shape (min(m, n),) or (..., min(m, n))
            The factors of the reflectors. The conjugate transpose of Q is the product of all
            ``I - tau v vᴴ``, from the left.
        work : array
        info : int
            Always 0.

        See Also
        --------
        orglq : Q as a matrix.
        ormlq : Products with Q.
        geqrf : QR factors.

        Notes
        -----
        Conventions are LAPACK's. The factors are those of `geqrf` of the conjugate transpose, transposed and
        conjugated, and so are their errors.

        Examples
        --------
        >>> from pyblasgpu import lapack
        >>> lq, tau, work, info = lapack.gelqf([[0, 2], [1, 3]])
        >>> lq.real.tolist(), tau.real.tolist(), info
        ([[-2.0, 1.0], [-3.0, -1.0]], [1.0, 0.0], 0)
        """
        key = call_key(name)
        if lwork is None and (repeated := replay_factor(key, (a,), overwrite_a)) is not None:
            lq, tau = repeated
            return lq, tau, of_device(dtype, a.shape[-2]), 0
        return factors_of(stem, name, dtype, a, lwork, overwrite_a, key)

    return dressed(gelqf, stem, name, dtype, QR)


def _make_orglq(stem: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    def orglq(
        a: Array, tau: Array, lwork: int | None = None, overwrite_a: Flag = 0
    ) -> tuple[Array, Array, int]:
        """The first m rows of Q, from the reflectors that `gelqf` leaves.

        Parameters
        ----------
        a : array, shape (m, n) or (..., m, n)
            The conjugated vectors of the reflectors right of the diagonal of the first k rows;
            ``n >= m >= k``. The rest is not read.
        tau : array, shape (k,) or (..., k)
            The factors of the reflectors, as `gelqf` leaves them.

        Returns
        -------
        q : array, shape (m, n) or (..., m, n)
            Orthonormal rows, column-major unless it is `a`.
        work : array
        info : int
            Always 0.

        See Also
        --------
        gelqf : The reflectors.
        ormlq : Products with Q, which need no such matrix.

        Examples
        --------
        >>> from pyblasgpu import lapack
        >>> lq, tau, work, info = lapack.gelqf([[0, 2]])
        >>> q, work, info = lapack.orglq(lq, tau)
        >>> q.real.tolist(), info
        ([[0.0, -1.0]], 0)
        """
        key = call_key(name)
        if lwork is None and (repeated := replay_factor(key, (tau, a), overwrite_a)) is not None:
            return repeated[0], of_device(dtype, a.shape[-2]), 0
        return orthogonal_of(stem, name, dtype, a, tau, lwork, overwrite_a, key)

    return dressed(orglq, stem, name, dtype, QR)


def _make_ormlq(stem: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    def ormlq(
        side: Flag,
        trans: Flag,
        a: Array,
        tau: Array,
        c: Array,
        lwork: int | None = None,
        overwrite_c: Flag = 0,
    ) -> tuple[Array, Array, int]:
        """Product of op(Q) and a matrix, from the reflectors that `gelqf` leaves.

        Parameters
        ----------
        side : {'L', 'R'} or {0, 1}
            Whether ``op(Q) c`` is computed, or ``c op(Q)``.
        trans : {'N', 'T', 'C'} or {0, 1, 2}
            The op: Q itself, or its conjugate transpose; 'T' for real matrices alone.
        a : array, shape (k, order) or (..., k, order)
            The conjugated vectors of the k reflectors right of the diagonal; order is m from the left, n from
            the right.
        tau : array, shape (k,) or (..., k)
            The factors of the reflectors, as `gelqf` leaves them.
        c : array, shape (m, n) or (..., m, n)
            The matrix, or a stack.
        overwrite_c : bool, default False
            Whether `c` may hold the result.

        Returns
        -------
        cq : array, shape of `c`
            The product, column-major unless it is `c`.
        work : array
        info : int
            Always 0.

        See Also
        --------
        gelqf : The reflectors.
        orglq : Q as a matrix.

        Examples
        --------
        >>> from pyblasgpu import lapack
        >>> lq, tau, work, info = lapack.gelqf([[0, 2]])
        >>> cq, work, info = lapack.ormlq("L", "N", lq, tau, [5, 10])
        >>> cq.real.tolist(), info
        ([-10.0, -5.0], 0)
        """
        key = call_key(name, side, trans)
        if lwork is None and (repeated := replay_factor(key, (tau, a, c), overwrite_c)) is not None:
            least = c.shape[-1] if side in ("L", b"L") else c.shape[-2]
            return repeated[0], of_device(dtype, least), 0
        flags = {"side": side, "trans": trans}
        return product_of(stem, name, dtype, flags, a, tau, c, lwork, overwrite_c, key)

    return dressed(ormlq, stem, name, dtype, QR)


FUNCTIONS = functions_of({"gelqf": _make_gelqf, "orglq": _make_orglq, "ormlq": _make_ormlq}, generic=True)
