"""GEMM on any arrays, in keyword style, and what the other routines of Level 3 share.

Each routine takes NumPy, CuPy, PyTorch and Numba arrays, and whatever exports DLPack or the CUDA array
interface; the result is of the same library. Leading dimensions count matrices and broadcast as in NumPy.
Device arrays are computed on the caller's stream without waiting; host arrays block.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...arguments import Array, Flag, Number, Stream
from ...frontend.calls.call import Call
from ...frontend.calls.engine_call import run_routine
from ...frontend.engine_options import EngineOptions, engine_options
from ...routine_table import ROUTINES
from ...types import TENSOR, THREE_M, Side, Trans, product_method
from ..docstrings import KEYWORD, PRODUCT, documenting
from .repeated import replay

__all__ = [
    "CheckedProduct",
    "check_order",
    "checked_product",
    "common_batch_shape",
    "gemm",
    "multiply",
    "parse_beta",
    "real_number",
    "run_product",
    "scaled_by_beta",
]


@documenting(PRODUCT, KEYWORD)
def gemm(
    a: Array,
    b: Array,
    *,
    alpha: Number = 1,
    beta: Number = 0,
    out: Array = None,
    trans_a: Flag = "N",
    trans_b: Flag = "N",
    stream: Stream = None,
    backend: str | None = None,
    method: str | None = None,
    device: int | None = None,
    devices: Any = None,
    max_device_memory: int | None = None,
    blocking: bool = True,
    progress: Any = None,
) -> Array:
    """General matrix product: ``alpha op(a) op(b) + beta out``.

    Parameters
    ----------
    a : array, shape (..., m, k), or (..., k, m) if transposed
        The left factor.
    b : array, shape (..., k, n), or (..., n, k) if transposed
        The right factor.
    out : array, shape (..., m, n), optional

    Returns
    -------
    array, shape (..., m, n)

    See Also
    --------
    plan_gemm : Plan of repeated products, with less of the host's time.
    pyblasgpu.linalg.matmul : NumPy's signature.
    pyblasgpu.dask.gemm : Product of Dask arrays.

    Notes
    -----
    Componentwise error at most ``(k+2) u (|alpha| |a| |b| + |beta| |out|)``, u the unit roundoff; for complex
    numbers sqrt(8) times that. NaN and Inf in what is read reach every entry that depends on it.

    With ``method='3m'`` the error of a product is that of sums of ``(|Re a| + |Im a|) (|Re b| + |Im b|)``. So
    an imaginary part far smaller than the real one may lose all its digits (Higham, *Stability of a method
    for multiplying complex matrices with three real matrix multiplications*, SIAM J. Matrix Anal. Appl. 13,
    1992), and Inf in one part makes both NaN.

    With ``method='tensor'`` each float32 is split into two FP16 numbers. They are scaled by powers of two for
    each row of `a`, each column of `b` and each 32 to 256 of the inner extent. A product of complex64 is
    computed as four of its parts. The device itself finds the tiles of the result whose operands have
    elements that such pairs cannot hold. These are NaN, Inf and what is 2^-28 of its neighbours. Large
    products take three BF16 numbers an element there, others FMAs; the host does not wait for it. The bound
    rests on what is known of the tensor cores' sums, that they keep 24 bits of the largest addend. The
    workspace is as large as `a` and `b`, for a complex `a` twice as large, and in large products half as much
    again.

    Rows of a float64 `a` and columns of `b` are scaled to integers instead. Their product is computed exactly
    from residues modulo 14 numbers (Ozaki, Uchino and Imamura, *Ozaki Scheme II*, arXiv:2504.08009, 2025). A
    product of complex128 is made of three of its parts, whose residues are subtracted exactly. The device
    finds the tiles of the result whose error might exceed the bound, and computes them by FMAs. Rows whose
    elements differ by more than 2^20 make such tiles. The workspace is up to 6 GiB, and at most half of the
    memory that is free.

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> a = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> pyblasgpu.gemm(a, a, trans_b="T", backend="cpu")
    array([[ 5., 11.],
           [11., 25.]])
    """
    key = ("gemm", trans_a, trans_b, method, type(trans_a), type(trans_b))
    options = engine_options("gemm", device, devices, max_device_memory, blocking, progress)
    if options is None:
        done = replay(key, (a, b), out, alpha, beta, stream, backend)
        if done is not None:
            return done
    call = Call("gemm", {"a": a, "b": b}, out, stream, backend)
    return multiply(call, alpha, beta, out, trans_a, trans_b, key=key, method=method, options=options)


# What follows is shared with symmetric, and with blas and linalg, which prepare the Call in their own way.


def multiply(
    call: Call,
    alpha: Number,
    beta: Number,
    out: Array,
    trans_a: Flag,
    trans_b: Flag,
    source: Any = None,
    column_major: bool | None = None,
    key: Any = None,
    method: str | None = None,
    options: EngineOptions | None = None,
) -> Any:
    """Check and run a GEMM whose inputs are those of `call`; see `gemm`.

    `source`, an input of `call`, holds the values that `beta` scales if they are not in `out`.
    """
    method = product_method(method, call.dtype, call.name)
    product = checked_product(call, alpha, beta, out, trans_a, trans_b, source, column_major)
    return run_product(call, product, key, method, options)


class CheckedProduct(NamedTuple):
    """Arguments of a product that were checked: op(a) is m by k, op(b) k by n."""

    trans_a: Trans
    trans_b: Trans
    alpha: Any
    beta: Any
    source: Any
    extents: tuple[int, int, int]


def checked_product(
    call: Call,
    alpha: Number,
    beta: Number,
    out: Array,
    trans_a: Flag,
    trans_b: Flag,
    source: Any = None,
    column_major: bool | None = None,
    is_alone: bool = True,
) -> CheckedProduct:
    """Check the arguments of a product, and set the output of `call`, overlap too where it `is_alone`."""
    name = call.name
    trans_a, trans_b = Trans.parse(trans_a, name, "trans_a"), Trans.parse(trans_b, name, "trans_b")
    alpha, beta = call.scalar("alpha", alpha), parse_beta(call, beta, out, source)
    a, b = call.inputs[:2]
    m, k = a.shape[-2:] if trans_a is Trans.NO else a.shape[:-3:-1]
    inner, n = b.shape[-2:] if trans_b is Trans.NO else b.shape[:-3:-1]
    if k != inner:
        raise ValueError(
            f"{name}: op(a) is {m} by {k} and op(b) {inner} by {n} "
            f"(a has shape {tuple(a.shape)}, b {tuple(b.shape)})"
        )
    call.set_output(out, common_batch_shape(name, a, b), m, n, column_major)
    if is_alone:
        call.check_overlap()
    source = scaled_by_beta(call, beta, source, m, n)
    return CheckedProduct(trans_a, trans_b, alpha, beta, source, (m, n, k))


def run_product(
    call: Call,
    product: CheckedProduct,
    key: Any = None,
    method: str | None = None,
    options: EngineOptions | None = None,
) -> Any:
    """Run a product that was checked."""
    return run_routine(
        call,
        ROUTINES["gemm"],
        tuple(call.inputs[:2]),
        (product.alpha, product.beta),
        {"trans_a": product.trans_a, "trans_b": product.trans_b},
        product.source,
        key,
        extents=product.extents,
        options=options,
        method=TENSOR if method == TENSOR else None,
        streams_small=method != THREE_M,  # of which tiles do not know
        launch_options={"method": method},
    )


def scaled_by_beta(call: Call, beta: complex, source: Any, m: int, n: int) -> Any:
    """Return the start of the output, m by n: `source` or the output itself; None where beta is 0."""
    if source is not None and tuple(source.shape) != (m, n):
        raise ValueError(f"{call.name}: c has shape {source.shape}; {(m, n)} is needed")
    if beta == 0:
        return None
    return call.out if source is None else source


def real_number(call: Call, argument: str, value: Number) -> Any:
    """`value` as a real number of Python's."""
    number = call.scalar(argument, value)
    if isinstance(number, complex):
        if number.imag != 0:
            raise TypeError(f"{call.name}: {argument}={number} is complex; a real number is needed")
        return number.real
    return number


def parse_beta(
    call: Call, beta: Number, out: Array, source: Any, parse: Callable[..., Any] = Call.scalar
) -> Any:
    """`beta` as a Python number; ValueError where it scales a matrix that is not there."""
    value = parse(call, "beta", beta)
    if value != 0 and out is None and source is None:
        raise ValueError(f"{call.name}: beta={beta} needs out, the matrix that it scales")
    return value


def check_order(name: str, a: Any, b: Any, side: Side) -> None:
    """Raise ValueError unless the matrix `a` at this side of `b` is of its order."""
    order = b.shape[-2 if side is Side.LEFT else -1]
    if a.shape[-2:] != (order, order):
        raise ValueError(
            f"{name}: a has shape {a.shape}; ({order}, {order}) is needed for side {side.value} "
            f"of b with shape {b.shape}"
        )


def common_batch_shape(name: str, a: Any, b: Any, *names: str) -> tuple[int, ...]:
    """The leading dimensions of the result; `names` are those of the arguments, by default a and b."""
    one, other = tuple(a.shape[:-2]), tuple(b.shape[:-2])
    if one == other:
        return one
    try:
        return np.broadcast_shapes(one, other)
    except ValueError:
        one_name, other_name = names or ("a", "b")
        raise ValueError(
            f"{name}: the leading dimensions of {one_name}, of shape {a.shape}, and {other_name}, "
            f"of {b.shape}, do not broadcast"
        ) from None
