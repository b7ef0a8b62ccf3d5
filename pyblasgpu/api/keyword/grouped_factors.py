"""Cholesky factors of unequal sizes, of lists of matrices on any arrays, in few launches."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from ...arguments import Array, Flag, Stream
from ...frontend.arrays.layouts import is_same
from ...frontend.arrays.streams import contexts
from ...frontend.calls.call_cache import ON_DEVICE
from ...frontend.calls.factor_call import FactorCall
from ...frontend.calls.factor_replay import ONE, plan_numbers
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
    per_entry,
    quick_outputs,
)
from ...ragged.matrices import Matrices
from ...routine_table import ROUTINES
from ...types import Dtype, Uplo
from ..docstrings import ARGUMENTS, documenting

__all__ = ["potrf_grouped"]


@documenting(ARGUMENTS)
def potrf_grouped(
    a: Sequence[Array],
    *,
    lower: Flag | Sequence[Flag] = False,
    out: Sequence[Array] | None = None,
    stream: Stream = None,
    backend: str | None = None,
) -> tuple[list[Array], Any]:
    """Cholesky factors of unequal sizes: of each Hermitian positive definite matrix of a list.

    Parameters
    ----------
    a : list of array, shape (n, n) each
        The matrices. One triangle of each is read, without the imaginary parts of the diagonal.
    lower : bool or list of bool, default False
        Whether the lower triangle is read, and the factor L of ``a = L L^H`` computed; else U of
        ``a = U^H U``.
    out : list of array, shape (n, n) each, optional
        The matrices that are overwritten; an entry may be that of `a`. New ones by default.

    Returns
    -------
    c : list of array, shape (n, n) each
        The entries of `out`, with zeros in the other triangle.
    info : array of int32
        A number for each matrix: 0, or the number, from 1, of the first pivot that is not positive. Then the
        columns of L, rows of U, before it are right, and the rest of the triangle is not.

    See Also
    --------
    pyblasgpu.lapack.potrf : One matrix, or a stack of matrices of one size.
    trsm_grouped : Triangular solutions of unequal sizes.

    Notes
    -----
    On a device the matrices, which have one dtype there, are copied into stacks of few sizes, see
    `trsm_grouped`. Each result is bounded as that of `lapack.potrf`.

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> a = [np.array([[4.0]]), np.array([[4.0, 2.0], [2.0, 5.0]])]
    >>> c, info = pyblasgpu.potrf_grouped(a, lower=True, backend="cpu")
    >>> [x.tolist() for x in c], info.tolist()
    ([[[2.0]], [[2.0, 0.0], [1.0, 2.0]]], [0, 0])
    """
    name = "potrf_grouped"
    count = checked_lists(name, a=a, out=out)
    triangles = per_entry(name, "lower", lower, count)
    if not count:
        return [], np.zeros(0, np.int32)
    results = _quick_factors(name, a, out, triangles, stream) if backend in ON_DEVICE else None
    return _factors(name, a, out, triangles, stream, backend) if results is None else results


def _quick_factors(
    name: str, a: Sequence[Any], out: Sequence[Any] | None, lower: Sequence[Any], stream: Any
) -> tuple[list[Any], Any] | None:
    """Check all arrays of a device at once and run; None, nothing done, where careful checks are needed."""
    facts, count = facts_of((*a, *(out or ()))), len(a)
    key, done = repeated(name, facts, [lower], out, stream)
    if done is not None:
        return done
    found = described(facts)
    if found is None:
        return None
    matrices = found.matrices.take(np.arange(count))
    try:
        is_lower = are(Uplo, Uplo.LOWER, lower, name)
    except (TypeError, ValueError):  # whose entry a careful check names
        return None
    if (matrices.rows != matrices.cols).any():
        return None
    outputs = quick_outputs(name, found, (matrices,), out, matrices.shapes, stream, in_place=True)
    if outputs is None:
        return None
    factors = _Factors((matrices, outputs.matrices), is_lower, found.library, found.dtype, found.device)
    with contexts().current_context(found.device):
        info = factors.run(np.concatenate((matrices.pointers, outputs.matrices.pointers)), outputs.stream)
    if factors.is_movable:
        new = None if out is not None else are_by_columns(matrices)
        whole = Matrices.joined((matrices, outputs.matrices))
        keep(key, KeptLists(factors, whole, found, count, new, in_place=True), 2 * count)
    return outputs.results, info


class _Factors:
    """Launches of factors of one dtype, prepared at the first run.

    Attributes
    ----------
    is_movable : bool
        Whether it may run at other addresses, after the first run.
    """

    def __init__(
        self,
        matrices: tuple[Matrices, Matrices],
        is_lower: np.ndarray,
        library: Any,
        dtype: Dtype,
        device: int,
    ):
        self._matrices = tuple(each.transposed(~is_lower) for each in matrices)
        self._library, self._dtype, self._device = library, dtype, device
        self._plan = plan_numbers((len(is_lower),), (ONE,), dtype)
        self._prepared: Any = None

    @property
    def is_movable(self) -> bool:
        return bool(self._prepared.is_movable)

    def run(self, pointers: np.ndarray, stream: int) -> Any:
        """Enqueue the factors with the arrays of the call at `pointers`; return info of each."""
        library, dtype, device = self._library, self._dtype, self._device
        info = self._plan.new(library, device, stream)
        (layout,) = self._plan.layouts(library, info, device, stream)
        pointers = np.append(pointers, layout.pointer)
        if self._prepared is None:
            a, c = self._matrices
            triangles = import_module("...ragged.triangles", __package__)
            c = c.numbered(len(a.rows))
            self._prepared = triangles.PreparedFactors(a.numbered(0), c, pointers, dtype, device)
        self._prepared.run(pointers, stream)
        library.hold(info, stream)
        return info[0]


def _factors(
    name: str,
    a: Sequence[Any],
    out: Sequence[Any] | None,
    lower: Sequence[Any],
    stream: Any,
    backend: str | None,
) -> tuple[list[Any], Any]:
    """Check each matrix as a call of its own, all before the first one runs."""
    calls, triangles = [], []
    for i, (array, target) in enumerate(zip(a, out or (None,) * len(a), strict=True)):
        call = FactorCall(f"{name}: matrix {i}", {"a": array}, target, stream, backend)
        check_matrices(call)
        rows, cols = call.inputs[0].shape
        if rows != cols:
            raise ValueError(f"{call.name}: a has shape {(rows, cols)}; a square matrix is needed")
        triangles.append(Uplo.parse(lower[i], call.name, "lower"))
        call.set_output(target, (), rows, cols)
        calls.append(call)
    check_calls(name, calls, in_place="a")
    first, dtypes = calls[0], {call.dtype for call in calls}
    if first.library.host:
        return _host_factors(calls, triangles)
    if len(dtypes) > 1:
        names = sorted(dtype.name for dtype in dtypes)
        raise TypeError(f"{name}: a has matrices of {', '.join(names)}; those of one dtype are needed")
    note_writes_of(calls)
    matrices = columns([call.inputs[0] for call in calls]), columns([call.out for call in calls])
    is_lower = np.array([uplo is Uplo.LOWER for uplo in triangles])
    assert first.device is not None
    factors = _Factors(matrices, is_lower, first.library, first.dtype, first.device)
    with contexts().current_context(first.device):
        info = factors.run(np.concatenate([each.pointers for each in matrices]), first.stream)
    return [call.delivered() for call in calls], info


def _host_factors(calls: Sequence[FactorCall], triangles: Sequence[Uplo]) -> tuple[list[Any], np.ndarray]:
    """Compute factors of host arrays, one after another."""
    row, results, infos = ROUTINES["potrf"], [], []
    for call, uplo in zip(calls, triangles, strict=True):
        flags = {"uplo": uplo, "clean": True}
        cpu = partial(row.on_arrays(flags, call.dtype), ())
        (array,) = call.inputs
        source = call.out if is_same(array, call.out) else array
        result, info = call.run_factor(cpu, row.on_operands(flags, call.dtype), (), source)
        results.append(result)
        infos.append(info)
    return results, np.array(infos, np.int32)
