"""SciPy's functions that update QR factors: qr_insert, qr_delete, qr_update.

SciPy's own rotate rows of host arrays. On a device the changed matrix is made and factored: a product and new
factors are fast there, and a chain of rotations is not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...arguments import Array, Flag, enabled
from ..docstrings import Shared, documenting
from ..keyword.level3 import gemm
from ..processor import on_processor
from .arrays import Arrays, taken
from .checks import check_values
from .docs import LINALG
from .qr import qr

__all__ = ["qr_delete", "qr_insert", "qr_update"]
#: ``change(name, xp, a, terms, axis)``: the changed matrix, of the other arguments in their order.
Change = Callable[[str, Any, Any, tuple[Any, ...], int], Any]

_documented = documenting(
    Shared("""
    SciPy's function computes it of host arrays. Factors of device arrays are made anew, and may differ from
    SciPy's by signs.

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
        The least reciprocal condition of Q with the column u, of host arrays' reduced factors; by default 0.
    overwrite_qru : bool, default False
        Whether `Q`, `R` and `u` may be overwritten.

    Raises
    ------
    NotImplementedError
        When there is an `rcond`, and arrays are on a device.
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
    return _updated("qr_insert", {"Q": Q, "R": R, "u": u}, (k,), options, check_finite, _inserted)


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
    return _updated("qr_delete", {"Q": Q, "R": R}, (k, p), options, check_finite, _deleted)


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
    return _updated("qr_update", arrays, (), {"overwrite_qruv": overwrite_qruv}, check_finite, _added)


def _updated(
    name: str,
    passed: dict[str, Array],
    numbers: tuple[int, ...],
    options: dict[str, Any],
    check_finite: Flag,
    change: Change,
) -> tuple[Array, Array]:
    """The factors that SciPy's function returns."""
    flag = next(key for key in options if key.startswith("overwrite_"))
    options[flag] = enabled(options[flag], name, flag)
    arrays = taken(name, passed)
    if not arrays.library.host:
        return _on_device(name, arrays, numbers, options, check_finite, change)
    with on_processor(name, passed, "linalg"), arrays.silent():
        check_values(arrays, check_finite, name, *arrays.each)
        from scipy import linalg  # slow to import

        each = [arrays.cast(array) for array in arrays.each]
        try:
            q, r = getattr(linalg, name)(*each, *numbers, check_finite=False, **options)
        except ValueError as error:
            raise type(error)(f"{name}: {error}") from None
        return arrays.returned(q), arrays.returned(r)


def _on_device(
    name: str,
    arrays: Arrays,
    numbers: tuple[int, ...],
    options: dict[str, Any],
    check_finite: Flag,
    change: Change,
) -> tuple[Array, Array]:
    """The factors of the changed matrix, reduced ones where Q is no square."""
    which = options.get("which", "row")
    if options.get("rcond") is not None:
        raise NotImplementedError(f"{name}: rcond is for arrays in host memory")
    if which not in ("row", "col"):
        raise ValueError(f"{name}: which={which!r} is neither 'row' nor 'col'")
    check_values(arrays, check_finite, name, *arrays.each)
    q, r, *others = map(arrays.cast, arrays.each)
    shapes, is_square = (tuple(q.shape[-2:]), tuple(r.shape[-2:])), q.shape[-2] == q.shape[-1]
    if q.shape[-1] != r.shape[-2] or not (is_square or shapes[1][0] == shapes[1][1]):
        raise ValueError(f"{name}: Q has shape {shapes[0]} and R {shapes[1]}, which are no factors")
    axis = -2 if which == "row" else -1
    changed = change(name, arrays.xp, gemm(q, r), (*others, *numbers), axis)
    q1, r1 = qr(changed, mode="full" if is_square else "economic", check_finite=False)
    return q1, r1


def _added(name: str, _xp: Any, a: Any, terms: tuple[Any, ...], _axis: int) -> Any:
    """A plus u v^H."""
    u, v = terms
    left, right = (each[..., None] if len(each.shape) < len(a.shape) else each for each in terms)
    if left.shape[-2:] != (a.shape[-2], right.shape[-1]) or right.shape[-2] != a.shape[-1]:
        shapes = tuple(u.shape), tuple(v.shape)
        raise ValueError(f"{name}: u has shape {shapes[0]} and v {shapes[1]}, of A {tuple(a.shape)}")
    return a + gemm(left, right, trans_b="C")


def _inserted(name: str, xp: Any, a: Any, terms: tuple[Any, ...], axis: int) -> Any:
    """A with rows or columns u before the k-th one."""
    u, k = terms
    new, extent, other = u, a.shape[axis], -3 - axis
    if len(u.shape) < len(a.shape):
        new = u[..., None] if axis == -1 else u[..., None, :]
    if new.shape[other] != a.shape[other] or not new.shape[axis]:
        raise ValueError(f"{name}: u has shape {tuple(u.shape)}, of A {tuple(a.shape)}")
    at = _index(name, k, extent, extent)
    first, last = _parted(a, at, at, axis)
    return xp.concat([first, new, last], axis=axis)


def _deleted(name: str, xp: Any, a: Any, terms: tuple[Any, ...], axis: int) -> Any:
    """A without p rows or columns from the k-th one on."""
    (k, p), extent = terms, a.shape[axis]
    at = _index(name, k, extent, extent - 1)
    if not 0 < p <= extent - at:
        raise ValueError(f"{name}: p={p} is out of range")
    return xp.concat(list(_parted(a, at, at + p, axis)), axis=axis)


def _index(name: str, k: int, extent: int, last: int) -> int:
    """An index of an extent, which may count from its end; none after `last`."""
    if not -extent <= k <= last:
        raise ValueError(f"{name}: k={k} is out of bounds")
    return k + extent if k < 0 else k


def _parted(a: Any, end: int, begin: int, axis: int) -> tuple[Any, Any]:
    """The rows or columns before `end`, and those from `begin` on."""
    if axis == -2:
        return a[..., :end, :], a[..., begin:, :]
    return a[..., :end], a[..., begin:]
