"""The standard problems: eigenvalues of Hermitian matrices, and singular values."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any, Literal

import numpy as np
from numpy.linalg import LinAlgError

from ...cpu.scipy.eigen import read_elements, small_pairs, small_triplets
from ...cpu.scipy.level3 import at_elements
from ...cpu.scipy.stacks import over_stacks, scipys_linalg
from ...cpu.scipy.values import is_finite
from ...database.policy import MAX_VALUE
from ...frontend.calls.direct import order_on_processor
from ...frontend.calls.lazy_routines import policy_at, routine_module
from ...types import Dtype, dtype_of
from ..lapack.eigen import Vectors, eigen_of_host_arrays, eigen_on_device
from ..lapack.singular import refined_columns, svd_of_host_stack, svd_on_device
from .arrays import Arrays
from .gram_triplets import gram_triplets
from .hermitian_triplets import hermitian_triplets, problem_of
from .polar_division import divided_triplets, polar_triplets
from .spectral_division import divided_eigenpairs
from .structures import mirrored

__all__ = [
    "eigenpairs",
    "is_for_device",
    "matrix_or_stack",
    "of_scipy",
    "refuse_nan",
    "singular_triplets",
    "square_order",
]


def matrix_or_stack(name: str, argument: str, array: Any) -> tuple[int, int]:
    """The rows and columns of an argument; LinAlgError where it has fewer than two dimensions."""
    if len(array.shape) < 2:
        raise LinAlgError(
            f"{name}: {argument} has shape {tuple(array.shape)}; a matrix, or a stack, is needed"
        )
    return array.shape[-2], array.shape[-1]


def square_order(name: str, argument: str, array: Any) -> int:
    """The order of square matrices; LinAlgError where they are none."""
    m, n = matrix_or_stack(name, argument, array)
    if m != n:
        raise LinAlgError(f"{name}: {argument} has shape {tuple(array.shape)}; square matrices are needed")
    return n


def eigenpairs(
    name: str,
    arrays: Arrays,
    matrix: Any,
    low: bool,
    with_vectors: Vectors = True,
    driver: str | None = None,
) -> tuple[Any, Any]:
    """Eigenvalues, ascending, and orthonormal eigenvectors of Hermitian matrices; None for vectors that are
    not wanted. Those of matrices that are not finite are NaN.

    Parameters
    ----------
    name : str
        The function that is called, for messages.
    arrays : Arrays
    matrix : array, shape (..., n, n)
        The matrices in the dtype of the computation.
    low : bool
        Whether the lower triangle is read, else the upper one.
    with_vectors : bool or pair of int, default True
        A pair, of device arrays, is the first vector to compute, and the one after the last. Others may be
        anything.
    driver : str, optional
        LAPACK's routine, of host arrays.

    Raises
    ------
    LinAlgError
        When the iteration fails, or a host matrix holds NaN.
    """
    if not arrays.library.host:
        return _eigenpairs_on_device(name, arrays, matrix, low, with_vectors)
    are_wanted = bool(with_vectors)

    def solve(each: np.ndarray) -> tuple[Any, Any]:
        found = eigen_of_host_arrays(name, arrays.dtype, each, low, with_vectors)
        if found is None:
            return _eigenpairs_on_host(each, low, are_wanted, driver)
        _raise_unconverged(name, found[-1])
        return found[0], found[1] if are_wanted else None

    values, vectors = _of_finite(name, matrix, low, solve)
    return values, vectors


def _eigenpairs_on_device(
    name: str, arrays: Arrays, matrix: Any, low: bool, with_vectors: Vectors
) -> tuple[Any, Any]:
    """Eigenvalues and eigenvectors of device matrices; those that kernels do not have are divided, one after
    the other.
    """

    def solve_all(each: Any) -> tuple[Any, Any]:
        values, vectors, _ = eigen_on_device(name, arrays.dtype, each, True, bool(with_vectors))
        return values, vectors if with_vectors else None

    def divide(each: Any) -> tuple[Any, Any]:
        order = routine_module("lapack.syevd").max_order(arrays.dtype, arrays.device)
        return divided_eigenpairs(
            name, arrays, mirrored(arrays, each, low), order, bool(with_vectors), solve_all
        )

    try:
        values, vectors, _ = eigen_on_device(name, arrays.dtype, matrix, low, with_vectors)
        return values, vectors if with_vectors else None
    except NotImplementedError:
        if not matrix.size:
            return arrays.xp.real(matrix[..., 0]), matrix
    values, vectors = _one_after_another(arrays, matrix, divide)
    return values, vectors


def _one_after_another(arrays: Arrays, matrix: Any, run: Callable[[Any], tuple[Any, ...]]) -> tuple[Any, ...]:
    """The results of ``run(matrix)`` for each matrix of a stack, as stacks."""
    xp, (*batch, m, n) = arrays.xp, matrix.shape
    stack = xp.reshape(matrix, (prod(batch), m, n))
    found = zip(*(run(stack[index]) for index in range(prod(batch))), strict=True)
    return tuple(
        None if each[0] is None else xp.reshape(xp.stack(each), (*batch, *each[0].shape)) for each in found
    )


def _eigenpairs_on_host(
    matrix: np.ndarray, low: bool, with_vectors: bool, driver: str | None
) -> tuple[Any, Any]:
    """Eigenvalues and eigenvectors by SciPy's LAPACK, of stacks by NumPy's, which loops in C."""
    if (small := small_pairs(matrix, low, with_vectors, driver)) is not None:
        return small if with_vectors else (small[0], None)
    if matrix.ndim > 2 and driver is None:
        uplo: Literal["L", "U"] = "L" if low else "U"
        even = at_elements(matrix)  # NumPy reads wrong elements of others
        return np.linalg.eigh(even, uplo) if with_vectors else (np.linalg.eigvalsh(even, uplo), None)

    def run(each: np.ndarray) -> tuple[Any, Any]:
        options = {"eigvals_only": not with_vectors, "check_finite": False, "driver": driver}
        found = scipys_linalg("eigh")(each, lower=low, **options)
        return found if with_vectors else (found, None)

    values, vectors = over_stacks(run, matrix)
    return values, vectors


def of_scipy(name: str, a: Any, *arguments: Any, **options: Any) -> Any | None:
    """SciPy's result for one NumPy matrix of the four dtypes, which SciPy checks as the function here does.

    None where it is none, and where SciPy raises: the error has other words here.
    """
    if type(a) is not np.ndarray or a.ndim != 2 or a.dtype.char not in "fdFD":
        return None
    try:
        return scipys_linalg(name)(a, *arguments, **options)
    except Exception:
        return None


def is_for_device(a: Any) -> bool:
    """Whether `a` is a NumPy matrix of one of the four dtypes that is large enough for a device."""
    if type(a) is not np.ndarray or a.ndim != 2 or a.dtype.char not in "fdFD":
        return False
    return bool(a.shape[-1] >= order_on_processor(dtype_of(a.dtype).letter))


def _raise_unconverged(name: str, info: Any) -> None:
    """LinAlgError where the iteration has failed for a host matrix, or some of a stack."""
    bad = np.flatnonzero(info)
    if bad.size:
        which = f" for the matrices {bad.tolist()}" if np.ndim(info) else ""
        raise LinAlgError(f"{name}: the iteration does not converge{which}")


def refuse_nan(name: str, matrix: np.ndarray, low: bool | None = None) -> None:
    """LinAlgError for host matrices with NaN, as for an iteration that fails: LAPACK's may never end.

    With `low` a triangle of Hermitian matrices is read, else all elements.
    """
    if not is_finite(matrix):
        _raise_unconverged(name, np.isnan(read_elements(matrix, low)).any(axis=(-2, -1)))


def _of_finite(
    name: str, matrix: np.ndarray, low: bool | None, solve: Callable[[np.ndarray], tuple[Any, ...]]
) -> tuple[Any, ...]:
    """Results of ``solve(matrix)`` of host matrices; NaN of those with Inf, with which LAPACK may not end."""
    if is_finite(matrix):
        return solve(matrix)
    refuse_nan(name, matrix, low)
    infinite = np.isinf(read_elements(matrix, low)).any(axis=(-2, -1))
    found = solve(np.where(infinite[..., None, None], 0, matrix))
    for each in found:
        if each is not None:
            each[infinite] = np.nan
    return found


def singular_triplets(
    name: str,
    arrays: Arrays,
    matrix: Any,
    full: bool = False,
    with_vectors: bool = True,
    driver: str = "gesdd",
    overwrite: bool = False,
    divides: bool = True,
) -> tuple[Any, Any, Any]:
    """Left singular vectors, singular values, descending, and right vectors, conjugated, as rows. Those of
    matrices that are not finite are NaN.

    Parameters
    ----------
    name : str
        The function that is called, for messages.
    arrays : Arrays
    matrix : array, shape (..., m, n)
        The matrices in the dtype of the computation.
    full : bool, default False
        Whether there are m left and n right vectors, else as many as singular values.
    with_vectors : bool, default True
        Without it the vectors are None.
    driver : str, default 'gesdd'
        LAPACK's routine, of host arrays.
    overwrite : bool, default False
        Whether one host matrix may be overwritten.
    divides : bool, default True
        Whether device matrices that kernels do not have are divided, one after the other.

    Raises
    ------
    NotImplementedError
        When device matrices are larger than kernels have them, and are not divided.
    LinAlgError
        When the iteration fails, or a host matrix holds NaN.
    """
    if not arrays.library.host:
        return _triplets_on_device(name, arrays, matrix, full, with_vectors, divides)

    def solve(each: np.ndarray) -> tuple[Any, Any, Any]:
        return _triplets_on_host(name, arrays, each, full, with_vectors, driver, overwrite)

    u, s, vh = _of_finite(name, matrix, None, solve)
    return u, s, vh


def _triplets_on_host(
    name: str,
    arrays: Arrays,
    matrix: np.ndarray,
    full: bool,
    with_vectors: bool,
    driver: str,
    overwrite: bool,
) -> tuple[Any, Any, Any]:
    """Singular values and vectors of finite host matrices, see `singular_triplets`."""

    def run(each: Any) -> tuple[Any, Any, Any]:
        found = scipys_linalg("svd")(each, full, with_vectors, overwrite, False, driver)
        return found if with_vectors else (None, found, None)

    if not overwrite and (small := small_triplets(matrix, full, with_vectors, driver)) is not None:
        return small if with_vectors else (None, small[1], None)
    found = svd_of_host_stack(name, arrays.dtype, matrix, full, with_vectors)
    if found is None and matrix.ndim > 2 and driver == "gesdd":  # by NumPy, which loops in C
        u, s, vh = (
            np.linalg.svd(at_elements(matrix), full)
            if with_vectors
            else (None, np.linalg.svd(at_elements(matrix), compute_uv=False), None)
        )
        return u, s, vh
    if found is None:
        u, s, vh = over_stacks(run, matrix)
        return u, s, vh
    _raise_unconverged(name, found[-1])
    return (found[0], found[1], found[2]) if with_vectors else (None, found[1], None)


def _triplets_on_device(
    name: str, arrays: Arrays, matrix: Any, full: bool, with_vectors: bool, divides: bool
) -> tuple[Any, Any, Any]:
    """Singular values and vectors of device matrices, see `singular_triplets`."""
    *batch, m, n = matrix.shape
    if m and n:
        by_products = with_vectors and _goes_by_products(arrays, m, n, divides)

        def solve(matrix: Any, full: bool) -> tuple[Any, Any, Any]:
            return _other_triplets(name, arrays, matrix, full, with_vectors, divides, not by_products)

        if by_products and arrays.may_wait:
            return gram_triplets(name, arrays, matrix, full, partial(solve, full=False))
        u, s, vh = solve(matrix, full)
        return (u, s, vh) if with_vectors else (None, s, None)
    s = arrays.xp.abs(arrays.xp.reshape(matrix, (*batch, 0)))
    if not with_vectors:
        return None, s, None
    u, vh = (
        arrays.xp.broadcast_to(each, (*batch, *each.shape))
        for each in (arrays.identity(m, m if full else 0), arrays.identity(n if full else 0, n))
    )
    return u, s, vh


def _other_triplets(
    name: str, arrays: Arrays, matrix: Any, full: bool, with_vectors: bool, divides: bool, keeps: bool
) -> tuple[Any, Any, Any]:
    """Singular values and vectors of device matrices by kernels that have them, else by other ways; the call
    is kept if it `keeps`.
    """
    try:
        if divides and _takes_longer(arrays, min(matrix.shape[-2:]), with_vectors):
            raise NotImplementedError(name)
        return svd_on_device(name, arrays.dtype, matrix, full, with_vectors, keeps)[:3]
    except NotImplementedError:
        if not divides:
            raise
        return _large_triplets(name, arrays, matrix, full, with_vectors)


def _takes_longer(arrays: Arrays, k: int, with_vectors: bool) -> bool:
    """Whether kernels have singular values of matrices of a lesser extent k, but take longer for them."""
    most = policy_at(arrays.device).jacobi_svd_max_columns.get(arrays.dtype.letter, MAX_VALUE)
    return with_vectors and k > most and arrays.may_wait


def _goes_by_products(arrays: Arrays, m: int, n: int, divides: bool) -> bool:
    """Whether singular vectors of m by n matrices come from eigenvectors of AᴴA, where these serve; of
    matrices that kernels do not have if they may be divided.
    """
    policy, dtype, k = policy_at(arrays.device), arrays.dtype, min(m, n)
    least: float = policy.gram_svd_min_columns.get(dtype.letter, MAX_VALUE)
    most: float = policy.gram_svd_max_columns.get(dtype.letter, 0)
    if not least <= k <= min(most, refined_columns(dtype, arrays.device)):
        return False
    return divides or routine_module("lapack.gesdd").serves(m, n, dtype, arrays.device, vectors=True)


def _large_triplets(
    name: str, arrays: Arrays, matrix: Any, full: bool, with_vectors: bool
) -> tuple[Any, Any, Any]:
    """Singular values and vectors of device matrices that kernels do not have, see `singular_triplets`."""
    *batch, m, n = matrix.shape
    dtype, order = problem_of(arrays.dtype, min(m, n))

    def fits(dtype: Dtype, order: int) -> bool:
        return bool(order <= routine_module("lapack.syevd").max_order(dtype, arrays.device))

    def solve_hermitian(each: Any, first: int = 0) -> tuple[Any, Any]:
        wanted: Vectors = (first, each.shape[-1]) if with_vectors and first else with_vectors
        values, vectors, _ = eigen_on_device(name, dtype, each, True, wanted)
        return values, vectors

    is_one = prod(batch) == 1 and with_vectors
    goes_by_polar = dtype is arrays.dtype and arrays.may_wait
    if goes_by_polar and fits(dtype, min(m, n)) and not is_one:
        found = polar_triplets(name, arrays, matrix, full, with_vectors, solve_hermitian)
        if found is not None:
            return found
    if fits(dtype, order) and not (goes_by_polar and is_one):
        return hermitian_triplets(name, arrays, matrix, full, with_vectors, solve_hermitian)
    solve = partial(_eigenpairs_on_device, name, arrays, low=True, with_vectors=True)
    u, s, vh = _one_after_another(arrays, matrix, lambda each: divided_triplets(arrays, each, full, solve))
    return u, s, vh
