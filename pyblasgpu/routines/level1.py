"""Level 1: vectors element by element (kernel `level1_map`), and reduced to numbers (`level1_reduce`).

A vector is an `Operand` of one column. One launch computes a batch.
"""

from __future__ import annotations

from ..dispatch.choose import select
from ..gpu.device import current
from ..gpu.workspace import FLAGS
from ..kernels.level1 import map as level1_map
from ..kernels.level1 import operations
from ..kernels.level1 import reduce as level1_reduce
from ..operands import Operand
from .copies import emit_copy_to_workspace
from .launch_list import ALPHA, BETA, LaunchList, cached_launch_list

__all__ = ["emit_reduce", "launch_list", "reduce_launch_list"]

_MOST_FLAGS = FLAGS // 8  # vectors of a batch that have a flag each: flags are as far apart as reals


def launch_list(operation: str, alpha: complex, *operands: Operand) -> LaunchList | None:
    """Return the launch list of ``v := ...``, element by element; None for no work.

    Parameters
    ----------
    operation : str
        'copy' or 'scal' of (x, v), or of v in place; 'axpy' of (x, y, v), or of (x, v) in place; 'swap' and
        'rot' of (x, v), both in place. Those of 'rot' become ``a x + b v`` and ``c x + d v``, where a + bi is
        the alpha and c + di the beta of the run.
    alpha : complex
        Factor of 'axpy'; with 0 it does not read x.
    operands : Operand
        Vectors of one length and dtype. `v`, the last one, is no part of another.
    """
    if operands[-1].is_empty:
        return None
    is_zero = operation == "axpy" and alpha == 0
    if is_zero and len(operands) == 2:
        return None
    return cached_launch_list(_emit_map, operands, ("copy" if is_zero else operation, is_zero))


def _forward(operands: tuple[Operand, ...]) -> tuple[Operand, ...]:
    """Return the vectors from their other ends, if all run backwards in memory."""
    if all(operand.row_stride < 0 for operand in operands):
        return tuple(operand.flip(rows=True) for operand in operands)
    return operands


def _emit_map(launches: LaunchList, *arguments) -> None:
    *arguments_of_call, operation, without_first = arguments
    operands = _forward(tuple(arguments_of_call[1:] if without_first else arguments_of_call))
    x, y, v = operands[0], operands[-2 if len(operands) == 3 else -1], operands[-1]
    if operation not in ("swap", "rot"):
        x, y = (emit_copy_to_workspace(launches, each) if each.conj else each for each in (x, y))
    kernel = {"copy": "scal"}.get(operation, operation)
    scalars = {"copy": (1.0, 0.0), "scal": (ALPHA, 0.0), "axpy": (ALPHA, 0.0)}.get(operation, (ALPHA, BETA))
    choice = select(level1_map.STEM, v.dtype, "", (v.rows,), current(launches.device))
    launches.choices.append(choice)

    def integers(x: Operand, y: Operand, v: Operand) -> tuple[int, ...]:
        steps, strides = zip(*((o.row_stride, o.batch_stride) for o in (x, y, v)), strict=True)
        return level1_map.integers(v.dtype, kernel, v.rows, steps, strides)

    source = level1_map.source(choice.config, kernel)
    launches.emit(source, choice.config.grid(v.rows), (x, y, v), integers, scalars)


def reduce_launch_list(operation: str, conj: bool, *operands: Operand) -> LaunchList:
    """Return the launch list that reduces vectors to numbers.

    Parameters
    ----------
    operation : str
        'dot' of (x, y, out), the others of `operations.OPERATIONS` of (x, out).
    conj : bool
        Whether DOT conjugates x.
    operands : Operand
        Vectors, and the numbers: of the dtype of the vectors (DOT), of their real type (NRM2, ASUM), or int64
        (I?AMAX).
    """
    return cached_launch_list(emit_reduce, operands, (operation, conj))


def emit_reduce(launches: LaunchList, *arguments) -> None:
    """Emit the launch; the arguments are those of `reduce_launch_list`, operation and `conj` last."""
    *inputs, out, operation, conj = arguments
    vectors = tuple(inputs) if operation == "iamax" else _forward(tuple(inputs))
    x, y = vectors[0], vectors[-1]
    if operation == "dot":
        conj ^= x.conj
        y = emit_copy_to_workspace(launches, y) if y.conj else y
    facts, n = x.dtype, x.rows
    choice = select(level1_reduce.STEM, facts, "", (n,), current(launches.device))
    launches.choices.append(choice)
    config = choice.config
    blocks = config.grid(n, alone=out.batch > _MOST_FLAGS)
    partials, flags = out, out  # which one block has no use for
    if blocks > 1:
        size = blocks * operations.reals_of(facts, operation) * facts.real_size * out.batch
        partials, flags = launches.scratch(-(-size // launches.dtype.itemsize), 1, 1), launches.flags()

    def integers(x: Operand, y: Operand, partials: Operand, flags: Operand, out: Operand) -> tuple[int, ...]:
        steps, strides = (x.row_stride, y.row_stride), (x.batch_stride, y.batch_stride)
        return level1_reduce.integers(facts, operation, conj, n, steps, strides, out.batch_stride)

    source = level1_reduce.source(config, operation)
    launches.emit(source, blocks, (x, y, partials, flags, out), integers, ())
