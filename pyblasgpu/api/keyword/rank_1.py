"""Updates of a matrix by vectors on any arrays, in keyword style; see `level3`."""

from __future__ import annotations

from typing import Any

from ...arguments import Array, Flag, Number, Stream, enabled
from ...cpu.scipy import level2 as cpu
from ...frontend.calls.call import Call, launch_list_of
from ...frontend.calls.engine_call import run_routine
from ...routine_table import ROUTINES
from ...types import Trans, Uplo
from ..docstrings import HERMITIAN, KEYWORD, UPDATE, VECTOR, Shared, documenting
from .level3 import common_batch_shape, real_number
from .repeated import replay

__all__ = ["ger", "her", "her2", "run_ger", "run_rank_1", "syr", "syr2"]

_ADDED = Shared(
    """
    Parameters
    ----------
    alpha : number, default 1
        With 0 no vector is read.
    out : array, shape (..., n, n), optional
        The matrix that is added to, in place, whatever its strides; by default a new array of zeros. It may
        not share memory with an input.

    Returns
    -------
    array, shape (..., n, n)
        `out`, or a new row-major array of the inputs' library with zeros in the other triangle.
    """,
    UPDATE,
    VECTOR,
)

documented = documenting(_ADDED, KEYWORD)


@documented
def ger(
    x: Array,
    y: Array,
    *,
    alpha: Number = 1,
    conj: Flag = False,
    out: Array = None,
    stream: Stream = None,
    backend: str | None = None,
) -> Array:
    """Update by the outer product of two vectors: ``alpha x y^T + out``.

    Parameters
    ----------
    x : array, shape (..., m)
        The vector along the rows.
    y : array, shape (..., n)
        The vector along the columns.
    conj : bool, default False
        Whether `y` is conjugated, as GERC does, else as GERU.
    out : array, shape (..., m, n), optional

    Returns
    -------
    array, shape (..., m, n)
        `out`, or a new row-major array of the inputs' library.

    See Also
    --------
    syr : Update of a symmetric matrix.

    Notes
    -----
    Componentwise error at most ``3 u (|alpha| |x| |y|^T + |out|)``, u the unit roundoff; for complex numbers
    sqrt(8) times that.

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> pyblasgpu.ger(np.array([1.0, 2.0]), np.array([3.0, 4.0]), out=np.ones((2, 2)))
    array([[4., 5.],
           [7., 9.]])
    """
    key = ("ger", conj, type(conj))
    done = replay(key, (x, y), out, alpha, 0, stream, backend)
    if done is not None:
        return done
    call = Call("ger", {"x": x, "y": y}, out, stream, backend, vectors={"x": None, "y": None})
    turn = Trans.CONJ if enabled(conj, "ger", "conj") else Trans.TRANS
    rows, cols = call.inputs
    alpha = call.scalar("alpha", alpha)
    batch_shape = common_batch_shape("ger", rows, cols, "x", "y")
    call.set_output(out, batch_shape, rows.shape[-2], cols.shape[-2], column_major=False)
    call.check_overlap()
    return run_ger(call, alpha, rows, cols, turn, None if out is None else call.out, key)


@documented
def syr(
    x: Array,
    *,
    alpha: Number = 1,
    lower: Flag = False,
    out: Array = None,
    stream: Stream = None,
    backend: str | None = None,
) -> Array:
    """Symmetric update of rank 1, of one triangle: ``alpha x x^T + out``.

    Parameters
    ----------
    x : array, shape (..., n)

    Returns
    -------
    array, shape (..., n, n)

    See Also
    --------
    her : Update of a Hermitian matrix, with the conjugate transpose.

    Notes
    -----
    Componentwise error at most ``3 u (|alpha| |x| |x|^T + |out|)``, u the unit roundoff; for complex numbers
    sqrt(8) times that.

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> pyblasgpu.syr(np.array([1.0, 2.0]), lower=True)
    array([[1., 0.],
           [2., 4.]])
    """
    return _rank_1("syr", {"x": x}, alpha, lower, out, stream, backend)


@documenting(HERMITIAN, _ADDED, KEYWORD)
def her(
    x: Array,
    *,
    alpha: Number = 1,
    lower: Flag = False,
    out: Array = None,
    stream: Stream = None,
    backend: str | None = None,
) -> Array:
    """Hermitian update of rank 1, of one triangle: ``alpha x x^H + out``.

    Parameters
    ----------
    x : array, shape (..., n)
    alpha : number, default 1
        Real. With 0 `x` is not read.

    Returns
    -------
    array, shape (..., n, n)

    See Also
    --------
    syr : Update of a symmetric matrix, with the transpose.

    Notes
    -----
    Componentwise error at most ``3 u (|alpha| |x| |x|^H + |out|)``, u the unit roundoff; for complex numbers
    sqrt(8) times that.

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> pyblasgpu.her(np.array([1.0, 2.0j]), lower=True)
    array([[1.+0.j, 0.+0.j],
           [0.+2.j, 4.+0.j]])
    """
    return _rank_1("her", {"x": x}, alpha, lower, out, stream, backend)


@documented
def syr2(
    x: Array,
    y: Array,
    *,
    alpha: Number = 1,
    lower: Flag = False,
    out: Array = None,
    stream: Stream = None,
    backend: str | None = None,
) -> Array:
    """Symmetric update of rank 2, of one triangle: ``alpha x y^T + alpha y x^T + out``.

    Parameters
    ----------
    x, y : array, shape (..., n)

    Returns
    -------
    array, shape (..., n, n)

    See Also
    --------
    her2 : Update of a Hermitian matrix, with the conjugate transpose.

    Notes
    -----
    Componentwise error at most ``4 u (|alpha| (|x| |y|^T + |y| |x|^T) + |out|)``, u the unit roundoff; for
    complex numbers sqrt(8) times that.

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> pyblasgpu.syr2(np.array([1.0, 2.0]), np.array([1.0, 1.0]), lower=True)
    array([[2., 0.],
           [3., 4.]])
    """
    return _rank_1("syr2", {"x": x, "y": y}, alpha, lower, out, stream, backend)


@documenting(HERMITIAN, _ADDED, KEYWORD)
def her2(
    x: Array,
    y: Array,
    *,
    alpha: Number = 1,
    lower: Flag = False,
    out: Array = None,
    stream: Stream = None,
    backend: str | None = None,
) -> Array:
    """Hermitian update of rank 2, of one triangle: ``alpha x y^H + conj(alpha) y x^H + out``.

    Parameters
    ----------
    x, y : array, shape (..., n)

    Returns
    -------
    array, shape (..., n, n)

    See Also
    --------
    syr2 : Update of a symmetric matrix, with the transpose.

    Notes
    -----
    Componentwise error at most ``4 u (|alpha| (|x| |y|^H + |y| |x|^H) + |out|)``, u the unit roundoff; for
    complex numbers sqrt(8) times that.

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> pyblasgpu.her2(np.array([1.0, 2.0j]), np.array([1.0, 1.0]), lower=True)
    array([[2.+0.j, 0.+0.j],
           [1.+2.j, 0.+0.j]])
    """
    return _rank_1("her2", {"x": x, "y": y}, alpha, lower, out, stream, backend)


def _rank_1(
    which: str,
    vectors: dict[str, Array],
    alpha: Number,
    lower: Flag,
    out: Array,
    stream: Stream,
    backend: str | None,
) -> Any:
    key = (which, lower, type(lower))
    done = replay(key, tuple(vectors.values()), out, alpha, 0, stream, backend)
    if done is not None:
        return done
    call = Call(which, vectors, out, stream, backend, vectors=dict.fromkeys(vectors))
    uplo, (first, *others) = Uplo.parse(lower, which, "lower"), call.inputs
    alpha = (real_number if "alpha" in ROUTINES[which].real else Call.scalar)(call, "alpha", alpha)
    n, batch_shape = first.shape[-2], tuple(first.shape[:-2])
    for other in others:
        batch_shape = common_batch_shape(which, first, other, "x", "y")
        if other.shape[-2] != n:
            raise ValueError(f"{which}: x has length {n} and y {other.shape[-2]}")
    call.set_output(out, batch_shape, n, n, column_major=False)
    call.check_overlap()
    source = None if out is None else call.out
    return run_rank_1(call, which, alpha, tuple(call.inputs), uplo, source, key)


# What follows is shared with blas. The output of `call` is set; it holds `source` at first, None: zeros.


def run_ger(call: Call, alpha: Any, x: Any, y: Any, turn: Trans, source: Any, key: Any = None) -> Any:
    """Run GER with checked arguments; `turn` says whether y is conjugated."""
    is_new = source is None

    def on_cpu(scalars: tuple[Any, ...], x: Any, y: Any, a: Any) -> None:
        cpu.ger(scalars[0], x, y, a, turn is Trans.CONJ, is_new)

    def launches(scalars: tuple[Any, ...], operands: tuple[Any, ...]) -> Any:
        x, y, a = operands
        return launch_list_of("ger")(scalars[0], x, y.T, a, is_new)

    return call.run(on_cpu, launches, ((x, Trans.NO), (y, turn)), (alpha,), source, key)


def run_rank_1(
    call: Call, which: str, alpha: Any, vectors: tuple[Any, ...], uplo: Uplo, source: Any, key: Any = None
) -> Any:
    """Run SYR, HER, SYR2 or HER2 (`which`) with checked arguments."""
    is_new = source is None
    flags = {"uplo": uplo, "is_new_output": is_new}
    return run_routine(call, ROUTINES[which], vectors, (alpha,), flags, source, key)
