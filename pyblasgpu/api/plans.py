"""Plans: a call checked, compiled and chosen once, and run many times on arrays of one layout.

A plan of a small product costs the host less than the call itself, whose checks, look-ups and launches it
does not repeat. It runs the same kernels with the same results.
"""

from __future__ import annotations

from ..arguments import Array, Flag, Number, Stream
from ..frontend.calls.plan import Plan, PlannedCall
from ..frontend.engine_options import EngineOptions
from .docstrings import ARGUMENTS, PRODUCT, TRIANGLE, Shared, documenting
from .keyword.level3 import multiply
from .keyword.triangular import triangular

__all__ = ["Plan", "plan_gemm", "plan_trmm", "plan_trsm"]

#: A plan is of launches on one device, whatever is set around it.
WHOLE = EngineOptions()

_PLAN = Shared("""
    Nothing is computed yet. Arrays are CuPy's or PyTorch's on one device, of one dtype: float32, float64,
    complex64 or complex128; their strides are any. Another alpha or beta needs another plan.

    Parameters
    ----------
    stream : int or stream object, optional
        The stream of the plan, on the arrays' device; by default the library's current stream at the time of
        each call.

    Returns
    -------
    Plan
        A callable: ``plan(a, b, out)`` runs it on these arrays, or on any with the same layout.

    Raises
    ------
    ValueError
        When shapes, flags, devices, strides or the stream do not fit.
    TypeError
        When dtypes or libraries do not fit, a number is complex and the arrays are real, or an array
        would have to be cast or copied first.
""")

_IN_PLACE = Shared("""
    Parameters
    ----------
    out : array, shape (..., m, n)
        The array that the plan writes. A plan made with ``out=b`` is one in place, and its calls must be too.
""")


@documenting(_PLAN, PRODUCT, ARGUMENTS)
def plan_gemm(
    a: Array,
    b: Array,
    out: Array,
    *,
    alpha: Number = 1,
    beta: Number = 0,
    trans_a: Flag = "N",
    trans_b: Flag = "N",
    stream: Stream = None,
    method: str | None = None,
) -> Plan:
    """Plan of ``out := alpha op(a) op(b) + beta out``, see `gemm`.

    Parameters
    ----------
    a : array, shape (..., m, k), or (..., k, m) if transposed
        The left factor.
    b : array, shape (..., k, n), or (..., n, k) if transposed
        The right factor.
    out : array, shape (..., m, n)
        The array that the plan writes. It may not share memory with `a` or `b`.

    Returns
    -------
    Plan

    See Also
    --------
    gemm : The product itself, once.

    Examples
    --------
    >>> import cupy, pyblasgpu  # doctest: +SKIP
    >>> a, out = cupy.array([[1.0, 2.0], [3.0, 4.0]]), cupy.empty((2, 2))  # doctest: +SKIP
    >>> plan = pyblasgpu.plan_gemm(a, a, out)  # doctest: +SKIP
    >>> plan(a, a, out).tolist()  # doctest: +SKIP
    [[7.0, 10.0], [15.0, 22.0]]
    """
    call = PlannedCall("plan_gemm", a, b, out, stream)
    plan: Plan = multiply(call, alpha, beta, out, trans_a, trans_b, method=method, options=WHOLE)
    return plan


@documenting(_IN_PLACE, _PLAN, TRIANGLE, ARGUMENTS)
def plan_trmm(
    a: Array,
    b: Array,
    out: Array,
    *,
    alpha: Number = 1,
    side: Flag = "L",
    lower: Flag = False,
    trans: Flag = "N",
    unit_diag: Flag = False,
    stream: Stream = None,
    method: str | None = None,
) -> Plan:
    """Plan of ``out := alpha op(a) b`` or ``alpha b op(a)``, `a` a triangle, see `trmm`.

    Parameters
    ----------
    a : array, shape (..., m, m), or (..., n, n) from the right
    b : array, shape (..., m, n)
        The other factor.
    out : array, shape (..., m, n)

    Returns
    -------
    Plan

    See Also
    --------
    trmm : The product itself, once.

    Examples
    --------
    >>> import cupy, pyblasgpu  # doctest: +SKIP
    >>> a, b = cupy.array([[2.0, 0.0], [1.0, 2.0]]), cupy.array([[4.0, 8.0], [4.0, 8.0]])  # doctest: +SKIP
    >>> plan = pyblasgpu.plan_trmm(a, b, b, lower=True)  # doctest: +SKIP
    >>> plan(a, b, b).tolist()  # doctest: +SKIP
    [[8.0, 16.0], [12.0, 24.0]]
    """
    call = PlannedCall("plan_trmm", a, b, out, stream)
    flags = side, lower, trans, unit_diag
    plan: Plan = triangular(call, "trmm", alpha, out, *flags, options=WHOLE, method=method)
    return plan


@documenting(_IN_PLACE, _PLAN, TRIANGLE, ARGUMENTS)
def plan_trsm(
    a: Array,
    b: Array,
    out: Array,
    *,
    alpha: Number = 1,
    side: Flag = "L",
    lower: Flag = False,
    trans: Flag = "N",
    unit_diag: Flag = False,
    stream: Stream = None,
    method: str | None = None,
) -> Plan:
    """Plan of the solution of ``op(a) out = alpha b`` or ``out op(a) = alpha b``, see `trsm`.

    Parameters
    ----------
    a : array, shape (..., m, m), or (..., n, n) from the right
    b : array, shape (..., m, n)
        The right-hand sides.
    out : array, shape (..., m, n)

    Returns
    -------
    Plan

    See Also
    --------
    trsm : The solution itself, once.

    Examples
    --------
    >>> import cupy, pyblasgpu  # doctest: +SKIP
    >>> a, b = cupy.array([[2.0, 0.0], [1.0, 2.0]]), cupy.array([[4.0, 8.0], [4.0, 8.0]])  # doctest: +SKIP
    >>> plan = pyblasgpu.plan_trsm(a, b, b, lower=True)  # doctest: +SKIP
    >>> plan(a, b, b).tolist()  # doctest: +SKIP
    [[2.0, 4.0], [1.0, 2.0]]
    """
    call = PlannedCall("plan_trsm", a, b, out, stream)
    flags = side, lower, trans, unit_diag
    plan: Plan = triangular(call, "trsm", alpha, out, *flags, options=WHOLE, method=method)
    return plan
