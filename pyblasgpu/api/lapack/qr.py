"""QR factors of `lapack` by Householder reflectors, and Q as a matrix and as a factor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...arguments import Array, Flag
from ...frontend.calls.factor_replay import call_key, replay_factor
from ...types import Dtype
from ..blas.functions import functions_of
from .call import dressed
from .docs import QR
from .qr_calls import factors_of, of_device, orthogonal_of, pivoted_factors_of, product_of

__all__ = ["FUNCTIONS"]


def _make_geqrf(stem: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    def geqrf(a: Array, lwork: int | None = None, overwrite_a: Flag = 0) -> tuple[Array, Array, Array, int]:
        """QR factors of a matrix by Householder reflectors: ``Q R = a``.

        Parameters
        ----------
        a : array, shape (m, n) or (..., m, n)
            The matrix, or a stack, of any shape.

        Returns
        -------
        qr : array, shape (m, n) or (..., m, n)
            R in the upper triangle. Below its diagonal are the vectors v of the reflectors without their
            first elements, which are 1; column-major unless it is `a`.
        tau : array, shape (min(m, n),) or (..., min(m, n))
            The factors of the reflectors: Q is the product of all ``I - tau v vᴴ``, from the left.
        work : array
        info : int
            Always 0.

        See Also
        --------
        orgqr : Q as a matrix.
        ormqr : Products with Q.
        pyblasgpu.linalg.qr : SciPy's signature, with Q and R as matrices.

        Notes
        -----
        Conventions are LAPACK's: R has a real diagonal, of either sign. Where a column is zero below the
        diagonal, and the diagonal real, tau is 0. ``Q R = a + E`` with columns of E at most a small multiple
        of ``m n u`` times those of `a`. u is the unit roundoff (Higham, *Accuracy and Stability of Numerical
        Algorithms*, Theorem 19.4).

        Examples
        --------
        >>> from pyblasgpu import lapack
        >>> qr, tau, work, info = lapack.geqrf([[0, 1], [2, 3]])
        >>> qr.real.tolist(), tau.real.tolist(), info
        ([[-2.0, -3.0], [1.0, -1.0]], [1.0, 0.0], 0)
        """
        key = call_key(name)
        if lwork is None and (repeated := replay_factor(key, (a,), overwrite_a)) is not None:
            qr, tau = repeated
            return qr, tau, of_device(dtype, a.shape[-1]), 0
        return factors_of(stem, name, dtype, a, lwork, overwrite_a, key)

    return dressed(geqrf, stem, name, dtype, QR)


def _make_geqp3(stem: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    def geqp3(
        a: Array, lwork: int | None = None, overwrite_a: Flag = 0
    ) -> tuple[Array, Any, Array, Array, int]:
        """QR factors of a matrix with its columns interchanged: ``Q R = a[:, jpvt - 1]``.

        Parameters
        ----------
        a : array, shape (m, n) or (..., m, n)
            The matrix, or a stack, of any shape.

        Returns
        -------
        qr : array, shape (m, n) or (..., m, n)
            R and the vectors of the reflectors, as of `geqrf`. The diagonal of R does not increase in
            modulus.
        jpvt : array of int32, shape (n,) or (..., n)
            The columns of `a` in their order, counted from 1.
        tau : array, shape (min(m, n),) or (..., min(m, n))
            The factors of the reflectors.
        work : array
        info : int
            Always 0.

        See Also
        --------
        geqrf : Factors without pivots.

        Notes
        -----
        Each step takes the column whose rest has the largest norm, of equal ones the first. On a device norms
        are computed anew in each step. LAPACK updates them, and computes those anew that lose too many
        digits. So columns of norms that differ by rounding errors may change places.

        Examples
        --------
        >>> from pyblasgpu import lapack
        >>> qr, jpvt, tau, work, info = lapack.geqp3([[3, 6], [4, 8]])
        >>> jpvt.tolist(), abs(qr[0, 0].real).round(3).tolist()
        ([2, 1], 10.0)
        """
        key = call_key(name)
        if lwork is None and (repeated := replay_factor(key, (a,), overwrite_a)) is not None:
            qr, columns, tau = repeated
            return qr, columns, tau, of_device(dtype, a.shape[-1] + 1), 0
        return pivoted_factors_of(stem, name, dtype, a, lwork, overwrite_a, key)

    return dressed(geqp3, stem, name, dtype, QR)


def _make_orgqr(stem: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    def orgqr(
        a: Array, tau: Array, lwork: int | None = None, overwrite_a: Flag = 0
    ) -> tuple[Array, Array, int]:
        """The first n columns of Q, from the reflectors that `geqrf` leaves.

        Parameters
        ----------
        a : array, shape (m, n) or (..., m, n)
            The vectors of the reflectors below the diagonal of the first k columns; ``m >= n >= k``. The rest
            is not read.

        Returns
        -------
        q : array, shape (m, n) or (..., m, n)
            Orthonormal columns, column-major unless it is `a`.
        work : array
        info : int
            Always 0.

        See Also
        --------
        geqrf : The reflectors.
        ormqr : Products with Q, which need no such matrix.

        Notes
        -----
        ``Qᴴ Q`` differs from the identity by a small multiple of ``m n u``, u the unit roundoff.

        Examples
        --------
        >>> from pyblasgpu import lapack
        >>> qr, tau, work, info = lapack.geqrf([[0], [2]])
        >>> q, work, info = lapack.orgqr(qr, tau)
        >>> q.real.tolist(), info
        ([[0.0], [-1.0]], 0)
        """
        key = call_key(name)
        if lwork is None and (repeated := replay_factor(key, (tau, a), overwrite_a)) is not None:
            return repeated[0], of_device(dtype, a.shape[-1]), 0
        return orthogonal_of(stem, name, dtype, a, tau, lwork, overwrite_a, key)

    return dressed(orgqr, stem, name, dtype, QR)


def _make_ormqr(stem: str, name: str, dtype: Dtype | None) -> Callable[..., Any]:
    def ormqr(
        side: Flag,
        trans: Flag,
        a: Array,
        tau: Array,
        c: Array,
        lwork: int | None = None,
        overwrite_c: Flag = 0,
    ) -> tuple[Array, Array, int]:
        """Product of op(Q) and a matrix, from the reflectors that `geqrf` leaves.

        Parameters
        ----------
        side : {'L', 'R'} or {0, 1}
            Whether ``op(Q) c`` is computed, or ``c op(Q)``.
        trans : {'N', 'T', 'C'} or {0, 1, 2}
            The op: Q itself, or its conjugate transpose; 'T' for real matrices alone.
        a : array, shape (order, k) or (..., order, k)
            The vectors of the k reflectors below the diagonal; order is m from the left, n from the right.
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
        geqrf : The reflectors.
        orgqr : Q as a matrix.

        Examples
        --------
        >>> from pyblasgpu import lapack
        >>> qr, tau, work, info = lapack.geqrf([[0], [2]])
        >>> cq, work, info = lapack.ormqr("L", "C", qr, tau, [5, 10])
        >>> cq.real.tolist(), info
        ([-10.0, -5.0], 0)
        """
        key = call_key(name, side, trans)
        if lwork is None and (repeated := replay_factor(key, (tau, a, c), overwrite_c)) is not None:
            least = c.shape[-1] if side in ("L", b"L") else c.shape[-2]
            return repeated[0], of_device(dtype, least), 0
        flags = {"side": side, "trans": trans}
        return product_of(stem, name, dtype, flags, a, tau, c, lwork, overwrite_c, key)

    return dressed(ormqr, stem, name, dtype, QR)


FUNCTIONS = functions_of(
    {"geqrf": _make_geqrf, "geqp3": _make_geqp3, "orgqr": _make_orgqr, "ormqr": _make_ormqr},
    generic=True,
)
