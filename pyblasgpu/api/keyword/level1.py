"""Level 1 on any arrays, in keyword style: vectors are along the last dimension.

Leading dimensions count vectors and broadcast as in NumPy. Device arrays are computed on the caller's stream
without waiting, numbers among them: those are arrays without dimensions. Host arrays are computed on the CPU,
unless the call names a device: their copy to it takes longer than the computation.
"""

from __future__ import annotations

from typing import Any

from ...arguments import Array, Number, Stream
from ..docstrings import ARGUMENTS, KEYWORD, VECTOR, Shared, documenting
from .repeated import replay
from .vector_calls import map_vectors, reduce_vectors
from .vector_pairs import pair_vectors

__all__ = ["asum", "axpy", "copy", "dot", "iamax", "nrm2", "rot", "rotm", "scal", "swap"]

_NUMBER = Shared("""
    Parameters
    ----------
    out : array, shape (...), optional
        Written in place, with the dtype of the result.

    Returns
    -------
    array, shape (...)
        `out`, or a new array of the inputs' library. The result of single vectors has no dimensions: on a
        device it is a 0-d array, and ``float()`` or ``int()`` synchronizes; in host memory it is a number.
""")

_PAIR = Shared("""
    Parameters
    ----------
    out : tuple of two arrays, optional
        Written in place, whatever their strides: ``out=(x, y)`` rotates in place. They may share no memory.

    Returns
    -------
    tuple of two arrays, shape (..., n)
        `out`, or new arrays of the inputs' library.

    Raises
    ------
    OverlapError
        When `x` and `y`, or the outputs, share memory.

    See Also
    --------
    pyblasgpu.blas : SciPy's names and signatures.
""")

documented = documenting(VECTOR, KEYWORD)


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
        The vector that `alpha` multiplies.
    y : array, shape (..., n)
        The other summand.
    alpha : number, default 1
        The factor of `x`. With 0, `x` is not read.
    out : array, shape (..., n), optional
        Written in place, whatever its strides. ``out=y`` is the sum in place; no other memory may be shared
        with `x` or `y`.

    Returns
    -------
    array, shape (..., n)

    Raises
    ------
    OverlapError
        When `out` shares memory with an input, and is not `y` itself.

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
    done = replay(key, (x, y), out, alpha, 0, stream, backend)
    if done is not None:
        return done
    return map_vectors("axpy", {"x": x, "y": y}, alpha, out, stream, backend, key)


@documented
def scal(
    x: Array, *, alpha: Number, out: Array = None, stream: Stream = None, backend: str | None = None
) -> Array:
    """Multiple of a vector: ``alpha x``.

    Parameters
    ----------
    x : array, shape (..., n)
    alpha : number
        The factor. A real one multiplies real and imaginary parts alike. With 0, NaN and Inf become NaN.
    out : array, shape (..., n), optional
        Written in place, whatever its strides. ``out=x`` scales in place; no other memory may be shared.

    Returns
    -------
    array, shape (..., n)

    Raises
    ------
    OverlapError
        When `out` shares memory with `x`, and is not `x` itself.

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> x = np.array([1.0, 2.0])
    >>> pyblasgpu.scal(x, alpha=3, out=x)
    array([3., 6.])
    """
    key = ("scal",)
    done = replay(key, (x,), out, alpha, 0, stream, backend)
    if done is not None:
        return done
    return map_vectors("scal", {"x": x}, alpha, out, stream, backend, key)


@documented
def copy(x: Array, *, out: Array = None, stream: Stream = None, backend: str | None = None) -> Array:
    """Copy of a vector, bit for bit.

    Parameters
    ----------
    x : array, shape (..., n)
    out : array, shape (..., n), optional
        Written in place, whatever its strides; no memory may be shared with `x`.

    Returns
    -------
    array, shape (..., n)

    Raises
    ------
    OverlapError
        When `out` shares memory with `x`, and is not `x` itself.

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> pyblasgpu.copy(np.arange(6.0)[::2])
    array([0., 2., 4.])
    """
    key = ("copy",)
    done = replay(key, (x,), out, 1, 0, stream, backend)
    if done is not None:
        return done
    return map_vectors("copy", {"x": x}, 1, out, stream, backend, key)


@documenting(_PAIR, ARGUMENTS)
def swap(x: Array, y: Array, *, stream: Stream = None, backend: str | None = None) -> tuple[Array, Array]:
    """Exchange the elements of two vectors, in place.

    Parameters
    ----------
    x, y : array, shape (..., n)
        Two vectors of one shape and dtype, float32, float64, complex64 or complex128. Strides are any.

    Returns
    -------
    x, y : array, shape (..., n)
        The arrays that were passed.

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> x, y = np.zeros(2), np.ones(2)
    >>> pyblasgpu.swap(x, y)
    (array([1., 1.]), array([0., 0.]))
    """
    return pair_vectors("swap", x, y, (), (x, y), stream, backend)


@documenting(_PAIR, KEYWORD)
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
        Two vectors of one shape.
    c, s : number
        Cosine and sine, real.

    Returns
    -------
    tuple of two arrays, shape (..., n)

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> pyblasgpu.rot(np.array([1.0, 2.0]), np.array([3.0, 4.0]), 0, 1)
    (array([3., 4.]), array([-1., -2.]))
    """
    return pair_vectors("rot", x, y, (c, s), out, stream, backend)


@documenting(_PAIR, KEYWORD)
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
        Two vectors of one shape, real.
    param : sequence of five numbers, on the host
        The flag and h11, h21, h12, h22, as `pyblasgpu.blas.drotmg` makes them. With the flag -1 all of them
        count; with 0: h11 = h22 = 1; with 1: h12 = 1 and h21 = -1; with -2 nothing is done.

    Returns
    -------
    tuple of two arrays, shape (..., n)

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> pyblasgpu.rotm(np.array([1.0, 2.0]), np.array([3.0, 4.0]), [-1, 0, -1, 1, 0])
    (array([3., 4.]), array([-1., -2.]))
    """
    return pair_vectors("rotm", x, y, (param,), out, stream, backend)


@documenting(_NUMBER, VECTOR, KEYWORD)
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
    conj : bool, default False
        Whether `x` is conjugated.

    Returns
    -------
    array, shape (...)

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


@documenting(_NUMBER, VECTOR, KEYWORD)
def nrm2(x: Array, *, out: Array = None, stream: Stream = None, backend: str | None = None) -> Any:
    """Euclidean norm of a vector, real.

    Parameters
    ----------
    x : array, shape (..., n)

    Returns
    -------
    array, shape (...)

    Notes
    -----
    Squares neither overflow nor underflow, as large and small numbers are scaled before (Blue, *A portable
    Fortran program to find the Euclidean norm of a vector*, ACM TOMS 4, 1978). Relative error at most
    ``(n/2 + 3) u``, u the unit roundoff; in practice a few u.

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> float(pyblasgpu.nrm2(np.array([3.0, 4.0])))
    5.0
    """
    return reduce_vectors("nrm2", {"x": x}, False, out, stream, backend)


@documenting(_NUMBER, VECTOR, KEYWORD)
def asum(x: Array, *, out: Array = None, stream: Stream = None, backend: str | None = None) -> Any:
    """Sum of absolute values of real and imaginary parts, ``sum(|Re x| + |Im x|)``.

    Parameters
    ----------
    x : array, shape (..., n)

    Returns
    -------
    array, shape (...)

    Notes
    -----
    Relative error at most ``2 n u``, u the unit roundoff; in practice far less.

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> float(pyblasgpu.asum(np.array([1.0, -2.0j])))
    3.0
    """
    return reduce_vectors("asum", {"x": x}, False, out, stream, backend)


@documenting(_NUMBER, VECTOR, KEYWORD)
def iamax(x: Array, *, out: Array = None, stream: Stream = None, backend: str | None = None) -> Any:
    """Index of the first element whose ``|Re x| + |Im x|`` is largest, from 0.

    Parameters
    ----------
    x : array, shape (..., n)
        The vector, of at least one element.

    Returns
    -------
    array of int64, shape (...)

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
