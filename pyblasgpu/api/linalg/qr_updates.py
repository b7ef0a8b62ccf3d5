"""SciPy's functions that update QR factors: qr_insert, qr_delete, qr_update."""

from __future__ import annotations

from typing import Any

from ...arguments import Array, Flag, enabled
from ..docstrings import Shared, documenting
from ..processor import on_processor
from .arrays import taken
from .checks import check_values
from .docs import LINALG

__all__ = ["qr_delete", "qr_insert", "qr_update"]

_documented = documenting(
    Shared("""
    SciPy's function computes it, of host arrays alone.

    Parameters
    ----------
    Q : array, shape (..., m, m) or (..., m, n)
        Orthonormal columns, of `qr`; leading dimensions count matrices, where SciPy takes them.
    R : array, shape (..., m, n) or (..., n, n)
        The triangular factor.
    which : {'row', 'col'}, default 'row'
        Whether rows are meant or columns.

    Returns
    -------
    Q1 : array
        The orthonormal factor of the changed matrix.
    R1 : array
        Its triangular factor.

    Raises
    ------
    NotImplementedError
        When an array is on a device.
    ValueError
        When shapes do not fit, an index or `which` is none, or Inf or NaN was found.

    See Also
    --------
    qr : The factors.
    """),
    LINALG,
)


@_documented
def qr_insert(
    Q: Array,
    R: Array,
    u: Array,
    k: int,
    which: str = "row",
    rcond: float | None = None,
    overwrite_qru: Flag = False,
    check_finite: Flag = None,
) -> tuple[Array, Array]:
    """QR factors of a matrix with rows or columns inserted, as `scipy.linalg.qr_insert`.

    Parameters
    ----------
    u : array, shape (n,), (p, n), (m,) or (m, p)
        The rows or the columns.
    k : int
        The index of the first of them in the new matrix.
    rcond : float, optional
        The least reciprocal condition of Q with the column u, for reduced factors; by default 0.
    overwrite_qru : bool, default False
        Whether `Q`, `R` and `u` may be overwritten.

    Raises
    ------
    numpy.linalg.LinAlgError
        When the condition is worse than `rcond`.

    Examples
    --------
    >>> import numpy as np
    >>> from pyblasgpu import linalg
    >>> q, r = linalg.qr(np.array([[3.0], [4.0]]))
    >>> q1, r1 = linalg.qr_insert(q, r, np.array([12.0]), 2)
    >>> abs(r1[0, 0]).round(3).tolist()
    13.0
    """
    options = {"which": which, "rcond": rcond, "overwrite_qru": overwrite_qru}
    return _updated("qr_insert", {"Q": Q, "R": R, "u": u}, (k,), options, check_finite)


@_documented
def qr_delete(
    Q: Array,
    R: Array,
    k: int,
    p: int = 1,
    which: str = "row",
    overwrite_qr: Flag = False,
    check_finite: Flag = None,
) -> tuple[Array, Array]:
    """QR factors of a matrix without some rows or columns, as `scipy.linalg.qr_delete`.

    Parameters
    ----------
    k : int
        The index of the first row or column that is left out.
    p : int, default 1
        The number of rows or columns that are left out.
    overwrite_qr : bool, default False
        Whether `Q` and `R` may be overwritten.

    Examples
    --------
    >>> import numpy as np
    >>> from pyblasgpu import linalg
    >>> q, r = linalg.qr(np.array([[3.0], [4.0], [12.0]]))
    >>> q1, r1 = linalg.qr_delete(q, r, 2)
    >>> abs(r1[0, 0]).round(3).tolist()
    5.0
    """
    options = {"which": which, "overwrite_qr": overwrite_qr}
    return _updated("qr_delete", {"Q": Q, "R": R}, (k, p), options, check_finite)


@_documented
def qr_update(
    Q: Array, R: Array, u: Array, v: Array, overwrite_qruv: Flag = False, check_finite: Flag = None
) -> tuple[Array, Array]:
    """QR factors of a matrix plus ``u vᴴ``, as `scipy.linalg.qr_update`.

    Parameters
    ----------
    u : array, shape (m,) or (m, k)
        The left factor.
    v : array, shape (n,) or (n, k)
        The right factor.
    overwrite_qruv : bool, default False
        Whether all four arrays may be overwritten.

    Examples
    --------
    >>> import numpy as np
    >>> from pyblasgpu import linalg
    >>> q, r = linalg.qr(np.array([[3.0], [0.0]]))
    >>> q1, r1 = linalg.qr_update(q, r, np.array([0.0, 4.0]), np.array([1.0]))
    >>> abs(r1[0, 0]).round(3).tolist()
    5.0
    """
    arrays = {"Q": Q, "R": R, "u": u, "v": v}
    return _updated("qr_update", arrays, (), {"overwrite_qruv": overwrite_qruv}, check_finite)


def _updated(
    name: str,
    passed: dict[str, Array],
    numbers: tuple[int, ...],
    options: dict[str, Any],
    check_finite: Flag,
) -> tuple[Array, Array]:
    """The factors that SciPy's function returns."""
    flag = next(key for key in options if key.startswith("overwrite_"))
    options[flag] = enabled(options[flag], name, flag)
    with on_processor(name, passed, "linalg"):
        arrays = taken(name, passed)
        with arrays.silent():
            check_values(arrays, check_finite, name, *arrays.each)
            from scipy import linalg  # slow to import

            each = [arrays.cast(array) for array in arrays.each]
            q, r = getattr(linalg, name)(*each, *numbers, check_finite=False, **options)
            return arrays.returned(q), arrays.returned(r)
