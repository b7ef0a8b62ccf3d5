"""Plans: a call checked, compiled and chosen once, to be made again and again on arrays that lie alike.

A plan of a small product costs the host less than the call itself, whose checks, look-ups and launches it
does not repeat. It runs the same kernels with the same results.
"""

from __future__ import annotations

from ..arguments import Array, Flag, Number, Stream
from ..frontend.engine_options import EngineOptions
from ..frontend.plan import Plan, PlannedCall
from .docstrings import documented
from .level3 import multiply
from .triangular import triangular

__all__ = ["Plan", "plan_gemm", "plan_trmm", "plan_trsm"]

#: A plan is of launches on one device, whatever is set around it.
WHOLE = EngineOptions()


@documented
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
    """A plan of ``out := alpha op(a) op(b) + beta out``, see `gemm`.

    Nothing is computed yet: ``plan(a, b, out)`` does that, with these arrays or with others that lie alike.

    Parameters
    ----------
    a : array, shape (..., m, k), or (..., k, m) if transposed
        The left factor.
        %(planned_dtypes)s
    b : array, shape (..., k, n), or (..., n, k) if transposed
        The right factor.
    out : array, shape (..., m, n)
        What the plan writes. It may not share memory with `a` or `b`.
    %(alpha_beta)s
        They are the plan's: another alpha is another plan.
    %(trans_ab)s
    %(plan_stream)s
    %(method)s

    Returns
    -------
    %(plan)s

    Raises
    ------
    %(plan_errors)s

    See Also
    --------
    gemm : The product itself, once.

    Examples
    --------
    >>> plan = pyblasgpu.plan_gemm(a, b, out)  # doctest: +SKIP
    >>> for _ in range(1000):
    ...     plan(a, b, out)  # doctest: +SKIP
    """
    call = PlannedCall("plan_gemm", a, b, out, stream)
    plan: Plan = multiply(call, alpha, beta, out, trans_a, trans_b, method=method, options=WHOLE)
    return plan


@documented
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
    """A plan of ``out := alpha op(a) b`` or ``alpha b op(a)``, `a` a triangle, see `trmm`.

    Nothing is computed yet: ``plan(a, b, out)`` does that, with these arrays or with others that lie alike.

    Parameters
    ----------
    a : array, shape (..., m, m), or (..., n, n) from the right
        %(triangle)s
        %(planned_dtypes)s
    b : array, shape (..., m, n)
        The other factor.
    out : array, shape (..., m, n)
        What the plan writes. A plan made with ``out=b`` is one in place, and its calls must be too.
    %(triangle_flags)s
    %(plan_stream)s
    %(tensor_method)s

    Returns
    -------
    %(plan)s

    Raises
    ------
    %(plan_errors)s

    See Also
    --------
    trmm : The product itself, once.
    """
    call = PlannedCall("plan_trmm", a, b, out, stream)
    flags = side, lower, trans, unit_diag
    plan: Plan = triangular(call, "trmm", alpha, out, *flags, options=WHOLE, method=method)
    return plan


@documented
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
    """A plan of the solution of ``op(a) out = alpha b`` or ``out op(a) = alpha b``, see `trsm`.

    Nothing is computed yet: ``plan(a, b, out)`` does that, with these arrays or with others that lie alike.

    Parameters
    ----------
    a : array, shape (..., m, m), or (..., n, n) from the right
        %(triangle)s
        %(planned_dtypes)s
    b : array, shape (..., m, n)
        The right-hand sides.
    out : array, shape (..., m, n)
        What the plan writes. A plan made with ``out=b`` is one in place, and its calls must be too.
    %(triangle_flags)s
    %(plan_stream)s
    %(tensor_method)s

    Returns
    -------
    %(plan)s

    Raises
    ------
    %(plan_errors)s

    See Also
    --------
    trsm : The solution itself, once.
    """
    call = PlannedCall("plan_trsm", a, b, out, stream)
    flags = side, lower, trans, unit_diag
    plan: Plan = triangular(call, "trsm", alpha, out, *flags, options=WHOLE, method=method)
    return plan
