"""SciPy's, NumPy's and the array API's functions of Hermitian eigenproblems: eigh, eigvalsh."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.linalg import LinAlgError

from ...arguments import Array, Flag, enabled, shown
from ...cpu.scipy.stacks import over_stacks, scipys_linalg
from ...types import Uplo
from ..docstrings import Shared, documenting
from ..keyword.triangular import trmm, trsm
from ..lapack import names as lapack
from ..lapack.eigen import Vectors, interval_of, repeated_eigen
from .arrays import Arrays, taken
from .checks import broadcast_batches, check_values, host_values
from .docs import LINALG
from .standard import eigenpairs, is_for_device, of_scipy, refuse_nan, square_order
from .structures import conjugate_transpose, mirrored

__all__ = ["EighResult", "eigh", "eigvalsh"]

_STANDARD, _GENERALIZED = ("ev", "evd", "evr", "evx"), ("gv", "gvd", "gvx")
_OF_SUBSETS = ("evr", "evx", "gvx")
VALUES_FIRST = 8192  # order from which on vectors of an interval are computed after all values

_documented = documenting(
    Shared("""
    Parameters
    ----------
    a : array, shape (..., n, n)
        The Hermitian matrices, of which one triangle is read; leading dimensions count them.
    b : array, shape (..., n, n), optional
        The positive definite matrices of generalized problems. Leading dimensions broadcast with those of
        `a`.
    lower : bool, default True
        Whether the lower triangles are read, else the upper ones.
    type : {1, 2, 3}, default 1
        The generalized problem: ``a v = w b v``, ``a b v = w v`` or ``b a v = w v``.
    subset_by_index : pair of int, optional
        The first and the last eigenvalue that are wanted, counted from 0 in ascending order.
    subset_by_value : pair of float, optional
        The half-open interval ``(low, high]`` of the eigenvalues that are wanted. All matrices of a stack
        need as many in it.
    driver : {'ev', 'evd', 'evr', 'evx', 'gv', 'gvd', 'gvx'}, optional
        LAPACK's routine of host arrays, without its first letters; those that begin with g are for
        generalized problems. By default 'evr', and of generalized problems 'gvd', or 'gvx' of subsets. Device
        arrays have Jacobi's method by any of these names, and divide and conquer if they are large.
    UPLO : {'L', 'U'}, optional
        NumPy's name of the triangle; by default that of `lower`.

    Raises
    ------
    numpy.linalg.LinAlgError
        When the iteration does not converge, or a matrix of `b` is not positive definite.
    ValueError
        When shapes, `type`, a subset or the driver do not fit, or Inf or NaN was found.
    """),
    LINALG,
)


class EighResult(NamedTuple):
    """Eigenvalues and eigenvectors of Hermitian matrices.

    Parameters
    ----------
    eigenvalues : array
        The eigenvalues, in ascending order.
    eigenvectors : array
        The eigenvectors, in columns of the same order.

    See Also
    --------
    eigh : Returns it.

    Examples
    --------
    >>> from pyblasgpu import linalg
    >>> linalg.eigh([[2.0, 0.0], [0.0, 1.0]]).eigenvalues
    array([1., 2.])
    """

    eigenvalues: Array
    eigenvectors: Array


@_documented
def eigh(
    a: Array,
    b: Array | None = None,
    *,
    lower: Flag = True,
    eigvals_only: Flag = False,
    overwrite_a: Flag = False,
    overwrite_b: Flag = False,
    type: int = 1,
    check_finite: Flag = None,
    subset_by_index: Sequence[int] | None = None,
    subset_by_value: Sequence[float] | None = None,
    driver: str | None = None,
    UPLO: str | None = None,
) -> Any:
    """Eigenvalues and eigenvectors of Hermitian matrices, as `scipy.linalg.eigh`.

    Parameters
    ----------
    eigvals_only : bool, default False
        Whether the eigenvalues alone are computed and returned.

    Returns
    -------
    eigenvalues : array, shape (..., k)
        The k eigenvalues, real and ascending: n without a subset. With `eigvals_only` the only result.
    eigenvectors : array, shape (..., n, k)
        The eigenvectors in columns. Those of standard problems are orthonormal; else ``vᴴ b v`` is the
        identity, with type 3 ``vᴴ b⁻¹ v``.

    See Also
    --------
    eigvalsh : Eigenvalues alone.
    svd : Singular values of any matrices.

    Notes
    -----
    A stack in host memory goes to a device where that is the backend and kernels have the order. So does
    one matrix of an order from which on a device takes other factorizations. The LAPACK of SciPy, or NumPy's
    for stacks, computes all else. On a device results are NaN where a matrix is not finite, or where the
    iteration does not converge. Of host matrices that are not checked, those with Inf have NaN as results,
    and NaN raises LinAlgError, as in NumPy.

    Examples
    --------
    >>> from pyblasgpu import linalg
    >>> w, v = linalg.eigh([[1.0, 2.0], [2.0, 1.0]])
    >>> w.round(3), abs(v).round(3)
    (array([-1.,  3.]), array([[0.707, 0.707],
           [0.707, 0.707]]))
    """
    only = enabled(eigvals_only, "eigh", "eigvals_only")
    problem = _Problem("eigh", _triangle("eigh", lower, UPLO), type, subset_by_index, subset_by_value, driver)
    values, vectors = _solved(problem, a, b, not only, (overwrite_a, overwrite_b), check_finite)
    return values if only else EighResult(values, vectors)


@_documented
def eigvalsh(
    a: Array,
    b: Array | None = None,
    *,
    lower: Flag = True,
    overwrite_a: Flag = False,
    overwrite_b: Flag = False,
    type: int = 1,
    check_finite: Flag = None,
    subset_by_index: Sequence[int] | None = None,
    subset_by_value: Sequence[float] | None = None,
    driver: str | None = None,
    UPLO: str | None = None,
) -> Array:
    """Eigenvalues of Hermitian matrices, as `scipy.linalg.eigvalsh`.

    Returns
    -------
    array, shape (..., k)
        The k eigenvalues, real and ascending: n without a subset.

    See Also
    --------
    eigh : Eigenvectors too.

    Examples
    --------
    >>> from pyblasgpu import linalg
    >>> linalg.eigvalsh([[1.0, 2.0], [2.0, 1.0]]).round(3)
    array([-1.,  3.])
    """
    low = _triangle("eigvalsh", lower, UPLO)
    problem = _Problem("eigvalsh", low, type, subset_by_index, subset_by_value, driver)
    return _solved(problem, a, b, False, (overwrite_a, overwrite_b), check_finite)[0]


class _Problem(NamedTuple):
    """The options of a call by the names of its arguments."""

    name: str
    low: bool
    type: int
    subset_by_index: Any
    subset_by_value: Any
    driver: str | None

    @property
    def is_plain(self) -> bool:
        """Whether all eigenvalues are wanted, of a standard problem, without other options."""
        return self[2:] == (1, None, None, None)

    @property
    def is_standard(self) -> bool:
        """Whether all eigenvalues are wanted, or a subset, of a standard problem by any routine."""
        return self.type == 1 and self.driver is None

    def checked(self, n: int, is_generalized: bool) -> _Problem:
        """The options with numbers for subsets of n eigenvalues; ValueError where one does not fit."""
        name, driver = self.name, self.driver
        if self.type not in (1, 2, 3):
            raise ValueError(f"{name}: type={shown(self.type)} is none of 1, 2, 3")
        by_index, by_value = self.subset_by_index, self.subset_by_value
        if by_index is not None and by_value is not None:
            raise ValueError(f"{name}: subset_by_index and subset_by_value exclude each other")
        if by_index is not None:
            low, high = by_index = _pair(name, "subset_by_index", by_index, int)
            if not 0 <= low <= high < n:
                raise ValueError(
                    f"{name}: subset_by_index={shown(self.subset_by_index)} is no range within 0 ... {n - 1}"
                )
        if by_value is not None:
            low, high = by_value = _pair(name, "subset_by_value", by_value, float)
            if not -inf <= low < high <= inf:
                raise ValueError(
                    f"{name}: subset_by_value={shown(self.subset_by_value)} is no interval (low, high]"
                )
        if driver is not None:
            fitting = _GENERALIZED if is_generalized else _STANDARD
            if driver not in fitting:
                which = "with b" if is_generalized else "without b"
                raise ValueError(f"{name}: driver={shown(driver)} {which} is none of {', '.join(fitting)}")
            if driver not in _OF_SUBSETS and (by_index is not None or by_value is not None):
                raise ValueError(f"{name}: driver={shown(driver)} computes no subsets; 'evr' and 'gvx' do")
        return self._replace(subset_by_index=by_index, subset_by_value=by_value)


def _pair(name: str, argument: str, values: Any, kind: Any) -> tuple[Any, Any]:
    """Two numbers of a `kind`."""
    try:
        low, high = map(kind, values)
    except (TypeError, ValueError):
        raise ValueError(f"{name}: {argument}={shown(values)} is no pair of numbers") from None
    return low, high


def _triangle(name: str, lower: Flag, uplo: str | None) -> bool:
    """Whether the lower triangle is meant."""
    if uplo is None:
        return Uplo.parse(lower, name, "lower") is Uplo.LOWER
    if not isinstance(uplo, str) or uplo.upper() not in ("L", "U"):
        raise ValueError(f"{name}: UPLO={shown(uplo)} is none of L, U")
    return uplo.upper() == "L"


def _solved(
    problem: _Problem,
    a: Array,
    b: Array | None,
    with_vectors: bool,
    overwrite: tuple[Flag, Flag],
    check_finite: Flag,
) -> tuple[Any, Any]:
    """Eigenvalues and, unless they are not wanted, eigenvectors."""
    name, passed = problem.name, {"a": a} if b is None else {"a": a, "b": b}
    if b is None and check_finite is None and problem.is_plain and overwrite == (False, False):
        if type(a) is not np.ndarray:
            repeated = repeated_eigen(name, a, problem.low, with_vectors)
            if repeated is not None:
                return repeated[:2]
        if not is_for_device(a):
            found = of_scipy("eigh", a, lower=problem.low, eigvals_only=not with_vectors)
            if found is not None:
                return found if with_vectors else (found, None)
    arrays = taken(name, passed)
    flags = [
        arrays.may_overwrite(flag, name, f"overwrite_{argument}", each)
        for flag, argument, each in zip(overwrite, "ab", arrays.each, strict=False)
    ]
    enabled(overwrite[1], name, "overwrite_b")
    with arrays.silent():
        check_values(arrays, check_finite, name, *arrays.each)
        orders = [
            square_order(name, argument, each) for argument, each in zip("ab", arrays.each, strict=False)
        ]
        if len(set(orders)) > 1:
            shapes = " and b ".join(str(tuple(each.shape)) for each in arrays.each)
            raise ValueError(f"{name}: a has shape {shapes}, of another order")
        problem = problem.checked(orders[0], len(orders) > 1)
        if arrays.library.host and len(orders) == 1 and problem.is_plain and not any(flags):
            values, vectors = eigenpairs(name, arrays, arrays.cast(arrays.each[0]), problem.low, with_vectors)
        elif len(orders) == 1 and problem.is_standard and not any(flags) and is_for_device(arrays.each[0]):
            values, vectors = _of_subset(arrays, problem, arrays.each[0], problem.low, with_vectors)
        elif arrays.library.host:
            values, vectors = _by_scipy(arrays, problem, with_vectors, flags)
        else:
            values, vectors = _on_device(arrays, problem, with_vectors)
        return arrays.returned(values), None if vectors is None else arrays.returned(vectors)


def _by_scipy(arrays: Arrays, problem: _Problem, with_vectors: bool, overwrite: list[bool]) -> Any:
    """Eigenvalues and eigenvectors of host arrays."""
    options = {"type": problem.type, "lower": problem.low, "driver": problem.driver, "check_finite": False}
    options |= {"subset_by_index": problem.subset_by_index, "subset_by_value": problem.subset_by_value}
    for argument, each, flag in zip("ab", arrays.each, overwrite, strict=False):
        others = [other for other in arrays.each if other is not each]
        is_alone = flag and all(len(other.shape) == 2 for other in others)
        options[f"overwrite_{argument}"] = arrays.output(each, is_alone, *others) is not None
    each = [arrays.cast(array) for array in arrays.each]
    for array in each:
        refuse_nan(problem.name, array, problem.low)
    if len(each) > 1:
        each = list(broadcast_batches(arrays, *each))

    def run(*matrices: Any) -> tuple[Any, Any]:
        found = scipys_linalg("eigh")(*matrices, eigvals_only=not with_vectors, **options)
        return found if with_vectors else (found, None)

    return over_stacks(run, *each)


def _on_device(arrays: Arrays, problem: _Problem, with_vectors: bool) -> tuple[Any, Any]:
    """Eigenvalues and eigenvectors of device arrays, of generalized problems by Cholesky factors of b."""
    name, low = problem.name, problem.low
    a, *b = (arrays.cast(array) for array in arrays.each)
    if not b:
        return _of_subset(arrays, problem, a, low, with_vectors)
    a, right = broadcast_batches(arrays, a, b[0])
    factor, info = lapack.potrf(right if low else conjugate_transpose(arrays, right), True)
    _raise_indefinite(name, info)
    whole = mirrored(arrays, a, low)
    if problem.type == 1:  # L⁻¹ a L⁻ᴴ
        half = trsm(factor, whole, lower=True)
        standard = trsm(factor, half, side="R", lower=True, trans="C")
    else:  # Lᴴ a L
        half = trmm(factor, whole, lower=True, trans="C")
        standard = trmm(factor, half, side="R", lower=True)
    values, vectors = _of_subset(arrays, problem, standard, True, with_vectors)
    if vectors is not None:
        back = trmm if problem.type == 3 else trsm
        vectors = back(factor, vectors, lower=True, trans="N" if problem.type == 3 else "C")
    return values, vectors


def _raise_indefinite(name: str, info: Any) -> None:
    """LinAlgError in SciPy's words for the first matrix of b that is not positive definite."""
    infos = host_values(info).ravel()
    bad = infos[infos > 0]
    if bad.size:
        raise LinAlgError(
            f"{name}: The leading minor of order {bad[0]} of B is not positive definite. The factorization "
            "of B could not be completed and no eigenvalues or eigenvectors were computed."
        )


def _of_subset(arrays: Arrays, problem: _Problem, a: Any, low: bool, with_vectors: bool) -> tuple[Any, Any]:
    """The eigenvalues of device matrices that are wanted, and their vectors.

    An interval waits for the values. Of large matrices those are computed first, and then no other vectors.
    """
    name, by_index, by_value = problem.name, problem.subset_by_index, problem.subset_by_value
    n, first, part = a.shape[-1], None, slice(None)
    if by_index is not None:
        part = slice(by_index[0], by_index[1] + 1)
    elif by_value is not None and with_vectors and n >= VALUES_FIRST:
        first, _ = eigenpairs(name, arrays, a, low, False)
        part = _interval(problem, first)
    wanted: Vectors = with_vectors
    if with_vectors and part != slice(None):  # one vector at least
        start = min(part.start, n - 1)
        wanted = start, max(part.stop, start + 1)
    values, vectors = eigenpairs(name, arrays, a, low, wanted)
    if by_value is not None and first is None:
        part = _interval(problem, values)
    return (values if first is None else first)[..., part], None if vectors is None else vectors[..., part]


def _interval(problem: _Problem, values: Any) -> slice:
    """Which of these values are in the interval that is wanted."""
    low, high = problem.subset_by_value
    argument = f"subset_by_value={shown(problem.subset_by_value)}"
    return interval_of(problem.name, host_values(values), low, high, argument)
