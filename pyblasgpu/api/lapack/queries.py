"""Queries of the workspaces of QR factors and least squares, as SciPy has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...arguments import Flag
from ...cpu.scipy.cholesky import lapack
from ...types import DTYPES, Dtype, Trans
from ..blas.vectors import whole
from .call import dressed
from .qr_calls import decoded

__all__ = ["FUNCTIONS", "answered", "extents_of"]


def _make_geqrf_lwork(stem: str, name: str, dtype: Dtype) -> Callable[..., Any]:
    def geqrf_lwork(m: int, n: int) -> tuple[Any, int]:
        """The workspace with which SciPy's LAPACK computes `geqrf` of (m, n) matrices fastest.

        Parameters
        ----------
        m, n : int
            Rows and columns.

        Returns
        -------
        work : number
            Its elements.
        info : int
            Always 0.

        See Also
        --------
        geqrf : Takes it, and does not need it.

        Examples
        --------
        >>> from pyblasgpu import lapack
        >>> work, info = lapack.geqrf_lwork(100, 50)
        >>> work.real >= 50, info
        (True, 0)
        """
        rows, columns = extents_of(name, m=m, n=n)
        return answered(stem, dtype, rows, columns)

    return dressed(geqrf_lwork, stem, name, dtype)


def _make_gels_lwork(stem: str, name: str, dtype: Dtype) -> Callable[..., Any]:
    def gels_lwork(m: int, n: int, nrhs: int, trans: Flag = "N") -> tuple[Any, int]:
        """The workspace with which SciPy's LAPACK computes `gels` of (m, n) matrices fastest.

        Parameters
        ----------
        m, n, nrhs : int
            Rows and columns, and the number of right-hand sides.
        trans : {'N', 'T', 'C'}, default 'N'
            The op of the matrix.

        Returns
        -------
        work : number
            Its elements.
        info : int
            Always 0.

        See Also
        --------
        gels : Takes it, and does not need it.

        Examples
        --------
        >>> from pyblasgpu import lapack
        >>> work, info = lapack.gels_lwork(100, 50, 1)
        >>> work.real >= 50, info
        (True, 0)
        """
        rows, columns, sides = extents_of(name, m=m, n=n, nrhs=nrhs)
        op = Trans.parse(decoded(trans), name, "trans")
        letter = "N" if op is Trans.NO else "C" if dtype.is_complex else "T"
        return answered(stem, dtype, rows, columns, sides, trans=letter)

    return dressed(gels_lwork, stem, name, dtype)


def extents_of(name: str, **extents: int) -> list[int]:
    """The extents of a query, from 0."""
    found = [whole(value, name, argument) for argument, value in extents.items()]
    for argument, value in zip(extents, found, strict=True):
        if value < 0:
            raise ValueError(f"{name}: {argument}={value} is negative")
    return found


def answered(stem: str, dtype: Dtype, *extents: int, **flags: Any) -> tuple[Any, int]:
    """SciPy's answer; without elements 1."""
    if 0 in extents[:2]:
        return (1 + 0j if dtype.is_complex else 1.0), 0
    work, info = lapack(stem, dtype.name)(*extents, **flags)
    return work, int(info)


_MAKERS = {"geqrf_lwork": _make_geqrf_lwork, "gels_lwork": _make_gels_lwork}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    letter + stem: make(stem, letter + stem, dtype)
    for stem, make in _MAKERS.items()
    for letter, dtype in DTYPES.items()
}
