"""SciPy's functions of matrices: expm, sqrtm, logm, funm."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, isfinite, log2
from typing import Any

import numpy as np

from ...arguments import Array, Flag, enabled
from ...cpu.scipy.stacks import over_stacks, scipys_linalg
from ...types import DTYPES
from ..docstrings import Shared, documenting
from ..lapack import names as lapack
from ..processor import on_processor
from .arrays import Arrays, gemm_of, taken
from .checks import check_values, host_values
from .docs import LINALG
from .standard import eigenpairs, square_order

__all__ = ["expm", "funm", "logm", "sqrtm"]

_documented = documenting(
    Shared("""
    Parameters
    ----------
    A : array, shape (..., n, n)
        The matrices; leading dimensions count them.
    disp : bool, default True
        Whether SciPy says that a result may be inaccurate; else an estimate of the error is returned too.
        Hermitian matrices have none.
    hermitian : bool, default False
        Whether matrices are Hermitian: eigenvalues and eigenvectors of the lower triangles serve then.

    Raises
    ------
    numpy.linalg.LinAlgError
        When eigenvalues do not converge.
    NotImplementedError
        When an array is on a device: SciPy computes this, on the CPU alone so far. Hermitian matrices are
        served.
    numpy.linalg.LinAlgError
        When `A` is not square.
    """),
    LINALG,
)
#: The largest 1-norms for which Padé approximants of these orders serve, by the size of real numbers.
_NORMS = {
    4: {3: 4.258730016922831e-1, 5: 1.880152677804762, 7: 3.925724783138660},
    8: {
        3: 1.495585217958292e-2,
        5: 2.539398330063230e-1,
        7: 9.504178996162932e-1,
        9: 2.097847961257068,
        13: 5.371920351148152,
    },
}


@_documented
def expm(A: Array) -> Array:
    """Exponentials of matrices, as `scipy.linalg.expm`.

    Returns
    -------
    array, shape (..., n, n)
        The exponentials.

    Raises
    ------
    numpy.linalg.LinAlgError
        When `A` is not square.

    See Also
    --------
    funm : Other functions.

    Notes
    -----
    Device arrays are computed by scaling and squaring, each matrix with its own scale. See Higham, *The
    scaling and squaring method for the matrix exponential revisited*, SIAM Journal on Matrix Analysis and
    Applications 26, 2005. The call waits for their norms.

    Examples
    --------
    >>> from pyblasgpu import linalg
    >>> linalg.expm([[0.0, 1.0], [0.0, 0.0]])
    array([[1., 1.],
           [0., 1.]])
    """
    on_host = isinstance(A, (np.ndarray, np.generic, list, int, float, complex))
    if on_host and np.ndim(A) < 2 and np.size(A) == 1:
        A = np.reshape(A, (1, 1))  # a number is a matrix of order 1
    arrays, matrix = _square("expm", A)
    with arrays.silent():
        if arrays.library.host:
            return arrays.returned(scipys_linalg("expm")(matrix))
        return arrays.returned(_exponential(arrays, matrix) if 0 not in matrix.shape else matrix)


@_documented
def sqrtm(A: Array, *, hermitian: Flag = False) -> Array:
    """Square roots of matrices, as `scipy.linalg.sqrtm`.

    Returns
    -------
    array, shape (..., n, n)
        The principal square roots. Of Hermitian matrices, eigenvalues that are negative by no more than the
        roundoff count as zero; roots of others with negative eigenvalues are NaN.

    See Also
    --------
    funm : Other functions.

    Examples
    --------
    >>> from pyblasgpu import linalg
    >>> linalg.sqrtm([[2.0, 2.0], [2.0, 2.0]], hermitian=True).round(3)
    array([[1., 1.],
           [1., 1.]])
    """
    return _function("sqrtm", A, hermitian, _root, scipys="sqrtm")


@_documented
def logm(A: Array, *, hermitian: Flag = False) -> Array:
    """Logarithms of matrices, as `scipy.linalg.logm`.

    Returns
    -------
    array, shape (..., n, n)
        The principal logarithms. Those of Hermitian matrices with negative eigenvalues are NaN.

    See Also
    --------
    expm : Exponentials.

    Examples
    --------
    >>> from pyblasgpu import linalg
    >>> linalg.logm([[1.0, 0.0], [0.0, 1.0]])
    array([[0., 0.],
           [0., 0.]])
    """
    return _function("logm", A, hermitian, lambda xp, values: xp.log(values), scipys="logm")


@_documented
def funm(A: Array, func: Callable[..., Any], disp: Flag = True, *, hermitian: Flag = False) -> Any:
    """Functions of matrices, as `scipy.linalg.funm`.

    Parameters
    ----------
    func : callable
        Returns the function of each of an array of numbers, in an array of the library of `A`. The numbers
        are complex ones, or real ones of Hermitian matrices.

    Returns
    -------
    F : array, shape (..., n, n)
        The functions of the matrices.
    err : float or array
        The estimated errors. Left out with `disp`, and of Hermitian matrices.

    See Also
    --------
    expm, sqrtm, logm : Exponentials, square roots and logarithms, more accurate.

    Examples
    --------
    >>> from pyblasgpu import linalg
    >>> linalg.funm([[2.0, 0.0], [0.0, 3.0]], lambda x: x * x, hermitian=True)
    array([[4., 0.],
           [0., 9.]])
    """
    with_error = not enabled(disp, "funm", "disp")
    return _function("funm", A, hermitian, lambda xp, values: func(values), func, with_error=with_error)


def _square(name: str, a: Array) -> tuple[Arrays, Any]:
    """The arrays of a call, and the matrices in the dtype of the computation."""
    arrays = taken(name, {"A": a})
    square_order(name, "A", arrays.each[0])
    return arrays, arrays.cast(arrays.each[0])


def _function(
    name: str,
    a: Array,
    hermitian: Flag,
    of_values: Callable[[Any, Any], Any],
    *arguments: Any,
    scipys: str = "funm",
    with_error: bool = False,
) -> Any:
    """The function of Hermitian matrices by ``of_values(xp, eigenvalues)``, of others by SciPy's function."""
    is_hermitian = enabled(hermitian, name, "hermitian")
    arrays, matrix = _square(name, a)
    if not is_hermitian:
        options = {"disp": False} if with_error else {}
        with on_processor(name, {"A": a}, "linalg"):
            run = scipys_linalg(scipys)
            found = over_stacks(
                lambda each: found if type(found := run(each, *arguments, **options)) is tuple else (found,),
                matrix,
            )
        results = tuple(arrays.returned(np.asarray(each)) for each in found)
        return results if with_error else results[0]
    with arrays.silent():
        check_values(arrays, None, name, matrix)
        values, vectors = eigenpairs(name, arrays, matrix, True)
        return arrays.returned(_rebuilt(name, arrays, of_values(arrays.xp, values), vectors))


def _rebuilt(name: str, arrays: Arrays, values: Any, vectors: Any) -> Any:
    """The matrices with these eigenvalues, which may be complex, and eigenvectors."""
    xp, dtype = arrays.xp, arrays.dtype
    if xp.isdtype(values.dtype, "complex floating") and not dtype.is_complex:
        dtype = DTYPES["c" if dtype.real_size == 4 else "z"]
    vectors = xp.astype(vectors, getattr(xp, dtype.name), copy=False)
    scaled = xp.astype(vectors * values[..., None, :], getattr(xp, dtype.name), copy=False)
    return gemm_of(name, scaled, vectors, dtype, trans_b="C")


def _root(xp: Any, values: Any) -> Any:
    """Square roots of eigenvalues; of those within the roundoff of zero 0."""
    n = values.shape[-1]
    if not n:
        return values
    bound = n * float(xp.finfo(values.dtype).eps) * xp.max(xp.abs(values), axis=-1, keepdims=True)
    return xp.sqrt(xp.where(xp.abs(values) <= bound, 0, values))


def _exponential(arrays: Arrays, matrix: Any) -> Any:
    """Exponentials of device matrices by scaling and squaring."""
    xp, dtype = arrays.xp, arrays.dtype
    norms = host_values(xp.max(xp.sum(xp.abs(matrix), axis=-2), axis=-1)).astype(float)
    orders = _NORMS[dtype.real_size]
    finite = np.where(np.isfinite(norms), norms, 0)
    largest = float(finite.max())
    order = next((order for order, norm in orders.items() if largest <= norm), max(orders))
    steps = np.vectorize(lambda norm: max(0, _doublings(norm / orders[order])), otypes=[np.int64])(finite)
    count = int(steps.max())
    if count:
        shrunk = arrays.from_host(np.ldexp(1.0, -steps).astype(dtype.real))
        matrix = matrix * shrunk[..., None, None]
    found = _approximant(arrays, matrix, order)
    remaining = arrays.from_host(steps)[..., None, None]
    for step in range(count):
        squared = gemm_of("expm", found, found, dtype)
        found = squared if int(steps.min()) > step else xp.where(remaining > step, squared, found)
    return found


def _doublings(ratio: float) -> int:
    """The least number of halvings after which a number is at most 1."""
    return ceil(log2(ratio)) if ratio > 1 and isfinite(ratio) else 0


def _approximant(arrays: Arrays, a: Any, order: int) -> Any:
    """The Padé approximant of the exponential of an order: ``(V - U)⁻¹ (V + U)``."""
    numbers = _coefficients(order)
    one = arrays.identity(a.shape[-1])

    def product(x: Any, y: Any) -> Any:
        return gemm_of("expm", x, y, arrays.dtype)

    powers = [product(a, a)]  # a², a⁴, a⁶, ...
    while len(powers) < (order // 2 if order < 13 else 3):
        powers.append(product(powers[-1], powers[0]))

    def combined(first: int, last: int) -> Any:
        """Odd or even coefficients from `first` to `last`, of the powers from a² on."""
        terms = (numbers[index] * power for index, power in zip(range(first, last, 2), powers, strict=False))
        return sum(terms)

    if order < 13:
        u, v = combined(3, order + 1), combined(2, order + 1)
    else:
        sixth = powers[2]
        u = product(sixth, combined(9, 14)) + combined(3, 8)
        v = product(sixth, combined(8, 13)) + combined(2, 7)
    u, v = product(a, u + numbers[1] * one), v + numbers[0] * one
    factors, pivots, _ = lapack.getrf(v - u, True)
    return lapack.getrs(factors, pivots, v + u, overwrite_b=True)[0]


def _coefficients(order: int) -> list[float]:
    """The coefficients of the Padé approximant, over the last one."""
    found = [1.0]
    for k in range(order, 0, -1):
        found.append(found[-1] * (2 * order - k + 1) * k / (order - k + 1))
    return found[::-1]
