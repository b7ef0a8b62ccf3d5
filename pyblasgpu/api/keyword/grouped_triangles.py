"""Triangular solutions of unequal sizes, of lists of matrices on any arrays, in few launches."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from ...arguments import Array, Flag, Number, Stream
from ...frontend.arrays.streams import contexts
from ...frontend.calls.call import Call
from ...frontend.calls.call_cache import ON_DEVICE
from ...frontend.calls.kept_lists import KeptLists, keep, repeated
from ...frontend.calls.ragged import (
    are,
    are_by_columns,
    check_calls,
    check_matrices,
    checked_lists,
    columns,
    described,
    facts_of,
    note_writes_of,
    numbers_of,
    per_entry,
    quick_outputs,
    with_op,
)
from ...ragged.matrices import Matrices
from ...types import Diag, Dtype, Side, Trans, Uplo
from ..docstrings import ARGUMENTS, documenting
from .triangular import checked_triangular, run_triangular

__all__ = ["trsm_grouped"]


@documenting(ARGUMENTS)
def trsm_grouped(
    a: Sequence[Array],
    b: Sequence[Array],
    *,
    alpha: Number | Sequence[Number] = 1,
    side: Flag | Sequence[Flag] = "L",
    lower: Flag | Sequence[Flag] = False,
    trans: Flag | Sequence[Flag] = "N",
    unit_diag: Flag | Sequence[Flag] = False,
    out: Sequence[Array] | None = None,
    stream: Stream = None,
    backend: str | None = None,
) -> list[Array]:
    """Triangular solutions of unequal sizes: x with ``op(a[i]) x = alpha[i] b[i]`` for each i.

    Parameters
    ----------
    a : list of array, shape (m, m) each, or (n, n) from the right
        Triangles. The other one of each, and a unit diagonal, are never read.
    b : list of array, shape (m, n) each
        The right-hand sides.
    alpha : number or list of number, default 1
        The scalar of all systems, or of each. With 0 neither `a` nor `b` is read.
    side : {'L', 'R'} or list of these, default 'L'
        Whether op(a) is the left factor or the right one.
    lower : bool or list of bool, default False
        Whether `a`, as it is stored, is lower triangular.
    trans : {'N', 'T', 'C'} or list of these, default 'N'
        The op of `a`: the matrix itself, its transpose, its conjugate transpose.
    unit_diag : bool or list of bool, default False
        Take the diagonal of `a` to be 1.
    out : list of array, shape (m, n) each, optional
        The matrices that are overwritten; an entry may be that of `b`. New ones by default.

    Returns
    -------
    list of array, shape (m, n) each
        The entries of `out`.

    See Also
    --------
    trsm : One system, or a stack of systems of one size.
    potrf_grouped : Cholesky factors of unequal sizes.

    Notes
    -----
    On a device the systems are copied into stacks of few sizes by one launch, solved as stacks, and copied
    back by another. Orders are rounded up to multiples of 8, beyond 64 by at most a quarter. Triangles of
    more than 512 rows are solved by calls of their own. Each result is bounded as that of `trsm`. Lists are
    checked as by `gemm_grouped`, and host arrays are computed one after another.

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> a, b = [np.array([[2.0]]), 4 * np.eye(2)], [np.ones((1, 3)), np.ones((2, 1))]
    >>> [x.tolist() for x in pyblasgpu.trsm_grouped(a, b, backend="cpu")]
    [[[0.5, 0.5, 0.5]], [[0.25], [0.25]]]
    """
    name = "trsm_grouped"
    count = checked_lists(name, a=a, b=b, out=out)
    options = {"alpha": alpha, "side": side, "lower": lower, "trans": trans, "unit_diag": unit_diag}
    values = {argument: per_entry(name, argument, value, count) for argument, value in options.items()}
    if not count:
        return []
    results = _quick_solutions(name, a, b, out, values, stream) if backend in ON_DEVICE else None
    return _solutions(name, a, b, out, values, stream, backend) if results is None else results


def _quick_solutions(
    name: str,
    a: Sequence[Any],
    b: Sequence[Any],
    out: Sequence[Any] | None,
    values: dict[str, Sequence[Any]],
    stream: Any,
) -> list[Any] | None:
    """Check all arrays of a device at once and run; None, nothing done, where careful checks are needed."""
    facts = facts_of((*a, *b, *(out or ())))
    key, done = repeated(name, facts, [*values.values()], out, stream)
    if done is not None:
        return done[0]
    found, count = described(facts), len(a)
    if found is None:
        return None
    t, right = (found.matrices.take(np.arange(start, start + count)) for start in (0, count))
    try:
        alpha, flags = numbers_of(values["alpha"], found.dtype, name), _flags(values, name)
        op = with_op(t, values["trans"], name)
    except (TypeError, ValueError):  # whose entry a careful check names
        return None
    if (t.rows != t.cols).any() or (t.rows != np.where(flags[0], right.cols, right.rows)).any():
        return None
    outputs = quick_outputs(name, found, (t, right), out, right.shapes, stream, in_place=True)
    if outputs is None:
        return None
    matrices = op, right, outputs.matrices
    prepared = _solve(matrices, alpha, flags, found.dtype, found.device, outputs.stream)
    if prepared.is_movable:
        new = None if out is not None else are_by_columns(t) & are_by_columns(right)
        whole = Matrices.joined((t, right, outputs.matrices))
        keep(key, KeptLists(prepared, whole, found, count, new, in_place=True), 3 * count)
    return outputs.results


def _flags(values: dict[str, Sequence[Any]], name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Whether each system is from the right, its op(a) is lower, and its diagonal is 1."""
    is_turned = ~are(Trans, Trans.NO, values["trans"], name)
    is_lower = are(Uplo, Uplo.LOWER, values["lower"], name) != is_turned
    return (
        are(Side, Side.RIGHT, values["side"], name),
        is_lower,
        are(Diag, Diag.UNIT, values["unit_diag"], name),
    )


def _solve(
    matrices: tuple[Matrices, Matrices, Matrices],
    alpha: np.ndarray,
    flags: tuple[np.ndarray, np.ndarray, np.ndarray],
    dtype: Dtype,
    device: int,
    stream: int,
) -> Any:
    """Enqueue systems of one dtype; return what was prepared."""
    triangles = import_module("...ragged.triangles", __package__)
    is_right, is_lower, is_unit = flags
    systems = triangles.Systems.of(*matrices, is_lower, is_unit, alpha).from_left(is_right)
    pointers = np.concatenate([each.pointers for each in matrices])
    prepared = triangles.PreparedSystems(systems, pointers, dtype, device)
    with contexts().current_context(device):
        prepared.run(pointers, stream)
    return prepared


def _solutions(
    name: str,
    a: Sequence[Any],
    b: Sequence[Any],
    out: Sequence[Any] | None,
    values: dict[str, Sequence[Any]],
    stream: Any,
    backend: str | None,
) -> list[Any]:
    """Check each system as a call of its own, all before the first one runs."""
    calls, checked = [], []
    for i, (left, right, target) in enumerate(zip(a, b, out or (None,) * len(a), strict=True)):
        call = Call(f"{name}: system {i}", {"a": left, "b": right}, target, stream, backend)
        check_matrices(call)
        options = {argument: value[i] for argument, value in values.items()}
        checked.append(checked_triangular(call, out=target, is_alone=False, **options))
        calls.append(call)
    check_calls(name, calls, in_place="b")
    first = calls[0]
    if first.library.host:
        return [run_triangular(call, "trsm", each) for call, each in zip(calls, checked, strict=True)]
    note_writes_of(calls)
    for dtype in dict.fromkeys(call.dtype for call in calls):
        which = [i for i, call in enumerate(calls) if call.dtype is dtype]
        flags = _flags({argument: [value[i] for i in which] for argument, value in values.items()}, name)
        matrices = (
            columns([calls[i].inputs[0].op(checked[i].flags["trans"]) for i in which]),
            columns([calls[i].inputs[1] for i in which]),
            columns([calls[i].out for i in which]),
        )
        assert first.device is not None
        alpha = np.array([checked[i].alpha for i in which])
        _solve(matrices, alpha, flags, dtype, first.device, first.stream)
    return [call.delivered() for call in calls]
