"""QR factors in the place of singular values, of device matrices that have full rank.

R has the singular values of the matrix. So the least one is at least ``1 / ||R⁻¹||`` and the largest at most
``||R||``, in Frobenius' norm. Where the one is above the tolerance of the other, none counts as zero.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..keyword.triangular import trmm
from ..lapack import names as lapack
from .arrays import Arrays
from .checks import host_values
from .qr import orthogonal_of
from .structures import conjugate_transpose

__all__ = ["FullRank"]


class FullRank(NamedTuple):
    """QR factors of matrices of full rank, or of their conjugate transposes where they are wide.

    Attributes
    ----------
    arrays : Arrays
    is_wide : bool
    factors, tau : array
        The reflectors, as of `geqrf`.
    inverse : array
        The inverse of R.
    """

    arrays: Arrays
    is_wide: bool
    factors: Any
    tau: Any
    inverse: Any

    @classmethod
    def of(cls, arrays: Arrays, matrix: Any, atol: Any, rtol: Any) -> FullRank | None:
        """Return the factors, for which the call waits; None where a matrix may have less than full rank.

        Parameters
        ----------
        arrays : Arrays
        matrix : array, shape (..., m, n)
            Device matrices with elements.
        atol, rtol : float or array, shape (..., 1)
            Singular values up to ``atol + rtol s`` count as zero, s the largest one.
        """
        xp, is_wide = arrays.xp, matrix.shape[-2] < matrix.shape[-1]
        tall = conjugate_transpose(arrays, matrix) if is_wide else matrix
        factors, tau, _, _ = lapack.geqrf(tall)
        triangle = xp.triu(factors[..., : tall.shape[-1], :])
        inverse, _ = lapack.trtri(triangle)
        sizes = [xp.abs(each) for each in (triangle, inverse)]
        norm, inverse_norm = (xp.sqrt(xp.sum(each * each, axis=(-2, -1)))[..., None] for each in sizes)
        has_zero = xp.any(xp.linalg.diagonal(triangle) == 0, axis=-1)[..., None]
        is_full = (inverse_norm * (norm * rtol + atol) < 1) & ~has_zero
        found = cls(arrays, is_wide, factors, tau, inverse)
        return found if bool(host_values(is_full).all()) else None

    @property
    def pseudo_inverse(self) -> Any:
        """R⁻¹ Qᴴ, or its conjugate transpose."""
        q = orthogonal_of(self.arrays, self.factors, self.tau, False)
        found = trmm(self.inverse, conjugate_transpose(self.arrays, q))
        return conjugate_transpose(self.arrays, found) if self.is_wide else found

    @property
    def range(self) -> Any:
        """An orthonormal basis of the range, in columns."""
        if not self.is_wide:
            return orthogonal_of(self.arrays, self.factors, self.tau, False)
        order = self.factors.shape[-1]
        return self.arrays.xp.broadcast_to(
            self.arrays.identity(order), (*self.factors.shape[:-2], order, order)
        )

    @property
    def null_space(self) -> Any:
        """An orthonormal basis of the null space, in columns."""
        n = self.factors.shape[-1]
        if self.is_wide:
            return orthogonal_of(self.arrays, self.factors, self.tau, True)[..., n:]
        return self.factors[..., :n, :0]
