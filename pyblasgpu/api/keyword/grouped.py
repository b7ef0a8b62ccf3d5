"""Ragged batches on any arrays: lists of matrices of unequal sizes, in few launches."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from ...arguments import Array, Flag, Number, Stream
from ...frontend.arrays.streams import contexts
from ...frontend.calls.call import Call
from ...frontend.calls.call_cache import ON_DEVICE
from ...frontend.calls.kept_lists import KeptLists, keep, repeated
from ...frontend.calls.ragged import (
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
from ...types import Dtype
from ..docstrings import ARGUMENTS, documenting
from .level3 import checked_product, run_product

__all__ = ["gemm_grouped"]


@documenting(ARGUMENTS)
def gemm_grouped(
    a: Sequence[Array],
    b: Sequence[Array],
    *,
    alpha: Number | Sequence[Number] = 1,
    beta: Number | Sequence[Number] = 0,
    out: Sequence[Array] | None = None,
    trans_a: Flag | Sequence[Flag] = "N",
    trans_b: Flag | Sequence[Flag] = "N",
    stream: Stream = None,
    backend: str | None = None,
) -> list[Array]:
    """Matrix products of unequal sizes: ``alpha[i] op(a[i]) op(b[i]) + beta[i] out[i]`` for each i.

    Parameters
    ----------
    a : list of array, shape (m, k) each, or (k, m) if transposed
        The left factors.
    b : list of array, shape (k, n) each, or (n, k) if transposed
        The right factors.
    alpha : number or list of number, default 1
        The scalar of all products, or of each.
    beta : number or list of number, default 0
        The scalar of `out`, which is not read where it is 0.
    out : list of array, shape (m, n) each, optional
        The matrices that are overwritten. New ones by default.
    trans_a, trans_b : {'N', 'T', 'C'} or list of these, default 'N'
        The op of `a`, `b`: the matrix itself, its transpose, its conjugate transpose.

    Returns
    -------
    list of array, shape (m, n) each
        The entries of `out`.

    See Also
    --------
    gemm : One product, or a stack of products of one size.

    Notes
    -----
    Products on a device run in one launch for each layout of their matrices, after one small transfer.
    Entries may differ in size, layout and dtype. All matrices are of one library and on one device; no entry
    of `out` shares memory with another matrix. The first wrong entry raises, and no array is changed.

    Each result is bounded as that of `gemm`. Products by tensor cores of another precision and options of the
    engine do not apply; matrices without a unit stride are computed by calls of their own. Host arrays are
    computed one product after another.

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> a = [np.ones((2, 3)), np.ones((1, 2))]
    >>> b = [np.ones((3, 1)), np.ones((2, 2))]
    >>> [c.tolist() for c in pyblasgpu.gemm_grouped(a, b, alpha=[1, 2], backend="cpu")]
    [[[3.0], [3.0]], [[4.0, 4.0]]]
    """
    name = "gemm_grouped"
    count = checked_lists(name, a=a, b=b, out=out)
    options = {"alpha": alpha, "beta": beta, "trans_a": trans_a, "trans_b": trans_b}
    values = {argument: per_entry(name, argument, value, count) for argument, value in options.items()}
    if not count:
        return []
    lists = _Lists(a, b, out, **values)
    results = _quick(name, lists, stream) if backend in ON_DEVICE else None
    return _careful(name, lists, stream, backend) if results is None else results


class _Lists(NamedTuple):
    """Arguments of each product; `out` may be None."""

    a: Sequence[Any]
    b: Sequence[Any]
    out: Sequence[Any] | None
    alpha: Sequence[Any]
    beta: Sequence[Any]
    trans_a: Sequence[Any]
    trans_b: Sequence[Any]


def _quick(name: str, lists: _Lists, stream: Any) -> list[Any] | None:
    """Check all arrays of a device at once and run; None, nothing done, where careful checks are needed."""
    count, (left, right, out, *values) = len(lists.a), lists
    facts = facts_of((*left, *right, *(out or ())))
    key, done = repeated(name, facts, values, out, stream)
    if done is not None:
        return done[0]
    found = described(facts)
    if found is None:
        return None
    a, b = (found.matrices.take(np.arange(start, start + count)) for start in (0, count))
    try:
        op_a, op_b = with_op(a, lists.trans_a, name), with_op(b, lists.trans_b, name)
        numbers = [numbers_of(each, found.dtype, name) for each in (lists.alpha, lists.beta)]
    except (TypeError, ValueError):  # whose entry a careful check names
        return None
    if (op_a.cols != op_b.rows).any() or (out is None and numbers[1].any()):
        return None
    outputs = quick_outputs(name, found, (a, b), out, np.stack((op_a.rows, op_b.cols), 1), stream)
    if outputs is None:
        return None
    new = None if out is not None else are_by_columns(a) & are_by_columns(b)
    prepared = _enqueue((op_a, op_b, outputs.matrices), numbers, found.dtype, found.device, outputs.stream)
    if prepared.is_movable:
        whole = Matrices.joined((a, b, outputs.matrices))
        keep(key, KeptLists(prepared, whole, found, count, new), 3 * count)
    return outputs.results


def _enqueue(
    matrices: tuple[Matrices, Matrices, Matrices],
    numbers: Sequence[np.ndarray],
    dtype: Dtype,
    device: int,
    stream: int,
) -> Any:
    """Enqueue products of one dtype; return what was prepared."""
    grouped = import_module("...ragged.products", __package__)
    prepared = grouped.Prepared(grouped.Products.of(*matrices, *numbers), dtype, device)
    with contexts().current_context(device):
        prepared.run(np.concatenate([each.pointers for each in matrices]), stream)
    return prepared


def _careful(name: str, lists: _Lists, stream: Any, backend: str | None) -> list[Any]:
    """Check each product as a call of its own, all before the first one runs."""
    calls, products = [], []
    left, right, outputs, *values = lists
    entries = zip(left, right, outputs or (None,) * len(left), *values, strict=True)
    for i, (a, b, out, *options) in enumerate(entries):
        call = Call(f"{name}: product {i}", {"a": a, "b": b}, out, stream, backend)
        check_matrices(call)
        alpha, beta, trans_a, trans_b = options
        products.append(checked_product(call, alpha, beta, out, trans_a, trans_b, is_alone=False))
        calls.append(call)
    check_calls(name, calls)
    first = calls[0]
    if first.library.host:
        return [run_product(call, product) for call, product in zip(calls, products, strict=True)]
    note_writes_of(calls)
    for dtype in dict.fromkeys(call.dtype for call in calls):
        which = [i for i, call in enumerate(calls) if call.dtype is dtype]
        chosen = [(calls[i], products[i]) for i in which]
        matrices = (
            columns([call.inputs[0].op(product.trans_a) for call, product in chosen]),
            columns([call.inputs[1].op(product.trans_b) for call, product in chosen]),
            columns([call.out for call, _ in chosen]),
        )
        numbers = [np.array([getattr(product, x) for _, product in chosen]) for x in ("alpha", "beta")]
        assert first.device is not None
        _enqueue(matrices, numbers, dtype, first.device, first.stream)
    return [call.delivered() for call in calls]
