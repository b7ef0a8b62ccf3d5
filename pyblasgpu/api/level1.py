"""Level 1 on any arrays, in keyword style: vectors lie along the last dimension.

Leading dimensions count vectors and broadcast as in NumPy. Device arrays are computed on the caller's stream
without waiting, numbers among them: those are arrays without dimensions. Host arrays are computed on the CPU,
unless a device is asked for by name, as their copy to it takes longer than what is computed.
"""

from __future__ import annotations

from typing import Any

from ..arguments import Array, Number, Stream
from ..frontend.call_cache import replay
from .docstrings import documented
from .vector_calls import map_vectors, reduce_vectors
from .vector_pairs import pair_vectors

__all__ = ["asum", "axpy", "copy", "dot", "iamax", "nrm2", "rot", "rotm", "scal", "swap"]


@documented
def axpy(
    x: Array,
    y: Array,
    *,
    alpha: Number = 1,
    out: Array = None,
    stream: Stream = None,
    backend: str | None = None,
) -> Array:
    """Sum of vectors: ``alpha x + y``.

    Parameters
    ----------
    x : array, shape (..., n)
        %(dtypes)s
    y : array, shape (..., n)
        What is added to.
    alpha : number, default 1
        The factor of `x`. With 0, `x` is not read.
    out : array, shape (..., n), optional
        Written in place, whatever its strides. ``out=y`` is the sum in place; no other memory may be shared
        with `x` or `y`.
    %(stream_backend)s

    %(returns_vector)s

    Raises
    ------
    %(shape_error)s
    %(type_error)s
    OverlapError
        When `out` shares memory with an input, and is not `y` itself.

    %(see_blas)s

    Notes
    -----
    Componentwise error at most ``2 u (|alpha| |x| + |y|)``, u the unit roundoff; for complex numbers sqrt(8)
    times that.

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> y = np.ones(3)
    >>> pyblasgpu.axpy(np.array([1.0, 2.0, 3.0]), y, alpha=2, out=y)
    array([3., 5., 7.])
    """
    key = ("axpy",)
    if out is y and replay(key, (x, y), alpha, 0, stream, backend):
        return out
    return map_vectors("axpy", {"x": x, "y": y}, alpha, out, stream, backend, key)


@documented
def scal(
    x: Array, *, alpha: Number, out: Array = None, stream: Stream = None, backend: str | None = None
) -> Array:
    """Multiple of a vector: ``alpha x``.

    Parameters
    ----------
    x : array, shape (..., n)
        %(dtypes)s
    alpha : number
        The factor. A real one multiplies real and imaginary parts alike. With 0, NaN and Inf become NaN.
    out : array, shape (..., n), optional
        Written in place, whatever its strides. ``out=x`` scales in place; no other memory may be shared.
    %(stream_backend)s

    %(returns_vector)s

    Raises
    ------
    %(shape_error)s
    %(type_error)s
    OverlapError
        When `out` shares memory with `x`, and is not `x` itself.

    %(see_blas)s

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> x = np.array([1.0, 2.0])
    >>> pyblasgpu.scal(x, alpha=3, out=x)
    array([3., 6.])
    """
    key = ("scal",)
    if out is x and replay(key, (x,), alpha, 0, stream, backend):
        return out
    return map_vectors("scal", {"x": x}, alpha, out, stream, backend, key)


@documented
def copy(x: Array, *, out: Array = None, stream: Stream = None, backend: str | None = None) -> Array:
    """A copy of a vector, bit for bit.

    Parameters
    ----------
    x : array, shape (..., n)
        %(dtypes)s
    out : array, shape (..., n), optional
        Written in place, whatever its strides; no memory may be shared with `x`.
    %(stream_backend)s

    %(returns_vector)s

    Raises
    ------
    %(shape_error)s
    %(type_error)s
    OverlapError
        When `out` shares memory with `x`, and is not `x` itself.

    %(see_blas)s
    """
    key = ("copy",)
    if replay(key, (x, out), 1, 0, stream, backend):
        return out
    return map_vectors("copy", {"x": x}, 1, out, stream, backend, key)


@documented
def swap(x: Array, y: Array, *, stream: Stream = None, backend: str | None = None) -> tuple[Array, Array]:
    """Exchange the elements of two vectors, in place.

    Parameters
    ----------
    x, y : array, shape (..., n)
        Of one shape and dtype, float32, float64, complex64 or complex128. Any strides.
    %(stream_backend)s

    Returns
    -------
    x, y : array, shape (..., n)
        The same arrays.

    Raises
    ------
    %(shape_error)s
    %(type_error)s
    OverlapError
        When they share memory.

    %(see_blas)s

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> x, y = np.zeros(2), np.ones(2)
    >>> pyblasgpu.swap(x, y)
    (array([1., 1.]), array([0., 0.]))
    """
    return pair_vectors("swap", x, y, (), (x, y), stream, backend)


@documented
def rot(
    x: Array,
    y: Array,
    c: Number,
    s: Number,
    *,
    out: tuple[Array, Array] | None = None,
    stream: Stream = None,
    backend: str | None = None,
) -> tuple[Array, Array]:
    """Plane rotation: ``c x + s y`` and ``c y - s x``.

    Parameters
    ----------
    x, y : array, shape (..., n)
        Of one shape. %(dtypes)s
    c, s : number
        Cosine and sine, real.
    out : tuple of two arrays, optional
        Written in place, whatever their strides: ``out=(x, y)`` rotates in place. They may share no memory.
    %(stream_backend)s

    Returns
    -------
    tuple of two arrays, shape (..., n)
        `out`, or new arrays of the inputs' library.

    Raises
    ------
    %(shape_error)s
    %(type_error)s
    OverlapError
        When `x` and `y`, or the outputs, share memory.

    %(see_blas)s

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> pyblasgpu.rot(np.array([1.0, 2.0]), np.array([3.0, 4.0]), 0, 1)
    (array([3., 4.]), array([-1., -2.]))
    """
    return pair_vectors("rot", x, y, (c, s), out, stream, backend)


@documented
def rotm(
    x: Array,
    y: Array,
    param: Array,
    *,
    out: tuple[Array, Array] | None = None,
    stream: Stream = None,
    backend: str | None = None,
) -> tuple[Array, Array]:
    """Modified plane rotation: ``h11 x + h12 y`` and ``h21 x + h22 y``.

    Parameters
    ----------
    x, y : array, shape (..., n)
        Of one shape, real. %(dtypes)s
    param : sequence of five numbers, on the host
        The flag and h11, h21, h12, h22, as `pyblasgpu.blas.drotmg` makes them. The flag is -1: as they
        stand; 0: h11 = h22 = 1; 1: h12 = 1 and h21 = -1; -2: nothing is done.
    out : tuple of two arrays, optional
        Written in place, whatever their strides: ``out=(x, y)`` rotates in place. They may share no memory.
    %(stream_backend)s

    Returns
    -------
    tuple of two arrays, shape (..., n)
        `out`, or new arrays of the inputs' library.

    Raises
    ------
    %(shape_error)s
    %(type_error)s
    OverlapError
        When `x` and `y`, or the outputs, share memory.

    %(see_blas)s
    """
    return pair_vectors("rotm", x, y, (param,), out, stream, backend)


@documented
def dot(
    x: Array,
    y: Array,
    *,
    conj: bool = False,
    out: Array = None,
    stream: Stream = None,
    backend: str | None = None,
) -> Any:
    """Inner product of vectors, ``sum(x y)``.

    Parameters
    ----------
    x, y : array, shape (..., n)
        %(dtypes)s
    conj : bool, default False
        Whether `x` is conjugated.
    %(number_out)s
    %(stream_backend)s

    %(returns_number)s

    %(raises)s

    %(see_blas)s

    Notes
    -----
    Error at most ``(n+2) u sum(|x| |y|)``, u the unit roundoff; in practice far less, as sums are taken in
    parallel. For complex numbers sqrt(8) times that. The order of the sum depends on n alone, so results are
    the same to the last bit on every run and device.

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> float(pyblasgpu.dot(np.array([1.0, 2.0]), np.array([3.0, 4.0])))
    11.0
    """
    return reduce_vectors("dot", {"x": x, "y": y}, conj, out, stream, backend)


@documented
def nrm2(x: Array, *, out: Array = None, stream: Stream = None, backend: str | None = None) -> Any:
    """Euclidean norm of a vector, real.

    Parameters
    ----------
    x : array, shape (..., n)
        %(dtypes)s
    %(number_out)s
    %(stream_backend)s

    %(returns_number)s

    %(raises)s

    %(see_blas)s

    Notes
    -----
    Squares neither overflow nor underflow: large and small numbers are scaled before (Blue, *A portable
    Fortran program to find the Euclidean norm of a vector*, ACM TOMS 4, 1978). Relative error at most
    ``(n/2 + 3) u``, u the unit roundoff; in practice a few u.

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> float(pyblasgpu.nrm2(np.array([3.0, 4.0])))
    5.0
    """
    return reduce_vectors("nrm2", {"x": x}, False, out, stream, backend)


@documented
def asum(x: Array, *, out: Array = None, stream: Stream = None, backend: str | None = None) -> Any:
    """Sum of the sizes of real and imaginary parts, ``sum(|Re x| + |Im x|)``.

    Parameters
    ----------
    x : array, shape (..., n)
        %(dtypes)s
    %(number_out)s
    %(stream_backend)s

    %(returns_number)s

    %(raises)s

    %(see_blas)s

    Notes
    -----
    Relative error at most ``2 n u``, u the unit roundoff; in practice far less.
    """
    return reduce_vectors("asum", {"x": x}, False, out, stream, backend)


@documented
def iamax(x: Array, *, out: Array = None, stream: Stream = None, backend: str | None = None) -> Any:
    """Index of the first element whose ``|Re x| + |Im x|`` is largest, from 0.

    Parameters
    ----------
    x : array, shape (..., n)
        At least one element. %(dtypes)s
    %(number_out)s
    %(stream_backend)s

    Returns
    -------
    array of int64, shape (...)
        %(number_result)s

    %(raises)s

    %(see_blas)s

    Notes
    -----
    On a device NaN counts as larger than any number, as for `numpy.argmax`. On the CPU that is SciPy's BLAS's
    to decide.

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> int(pyblasgpu.iamax(np.array([1.0, -5.0, 3.0])))
    1
    """
    return reduce_vectors("iamax", {"x": x}, False, out, stream, backend)
