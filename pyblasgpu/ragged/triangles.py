"""Triangular systems and Cholesky factors of unequal sizes, by the routines for stacks.

All are brought to one form by strides: a lower triangle at the left of its right-hand sides. A triangle that
is upper is lower with its rows and columns backwards, or, of a factor, transposed.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from ..kernels.common.options import CONJUGATE, TRIANGLE, UNIT
from ..operands import Operand
from ..routines import copies
from ..routines.lapack import potrf
from ..routines.level3 import trsm
from ..types import Diag, Dtype, Side, Uplo
from .matrices import Matrices
from .stacks import Copies, Stack, Stage, are_staged, filled, rounds

__all__ = ["Systems", "factor", "solve"]


class Systems(NamedTuple):
    """Systems T X = alpha B of one dtype, op() applied to T.

    Attributes
    ----------
    t, b, x : Matrices
    is_lower, is_unit : numpy.ndarray of bool
        Whether the triangle of T, op() applied, is lower, and whether its diagonal is one.
    alpha : numpy.ndarray
    """

    t: Matrices
    b: Matrices
    x: Matrices
    is_lower: np.ndarray
    is_unit: np.ndarray
    alpha: np.ndarray

    def from_left(self, is_right: np.ndarray) -> Systems:
        """Return systems X T = alpha B, where the mask says so, as T' X' = alpha B'."""
        t, b, x = (each.transposed(is_right) for each in self[:3])
        return self._replace(t=t, b=b, x=x, is_lower=self.is_lower != is_right)

    def lower(self, itemsize: int) -> Systems:
        """Return the systems with lower triangles."""
        backwards, forwards = ~self.is_lower, np.zeros(len(self.is_lower), bool)
        t = self.t.flipped(backwards, backwards, itemsize)
        b, x = (each.flipped(backwards, forwards, itemsize) for each in (self.b, self.x))
        return self._replace(t=t, b=b, x=x, is_lower=np.ones(len(self.is_lower), bool))

    def take(self, which: Any) -> Systems:
        """Return the systems that an index or a mask selects."""
        t, b, x, *others = self
        return Systems(t.take(which), b.take(which), x.take(which), *(each[which] for each in others))


def solve(systems: Systems, dtype: Dtype, device: int, stream: int) -> None:
    """Enqueue the solutions; the context of their device is current. X may be B."""
    systems = systems.lower(dtype.itemsize).take((systems.x.shapes > 0).all(axis=1))
    are_zero = systems.alpha == 0
    if are_zero.any():  # neither T nor B is read
        counts = np.where(are_zero, 0, 1)[:, None]
        t, b = (each._replace(shapes=each.shapes * counts) for each in systems[:2])
        systems = systems._replace(t=t, b=b, alpha=np.where(are_zero, 1, systems.alpha))
    staged = are_staged(systems.x.shapes, dtype.itemsize) | are_zero
    for i in np.flatnonzero(~staged):
        _solve_alone(systems, int(i), dtype, device, stream)
    systems = systems.take(staged)
    for stacks in rounds(systems.x.shapes, dtype.itemsize):
        _solve_stacks(systems, stacks, dtype, device, stream)


def _solve_alone(systems: Systems, i: int, dtype: Dtype, device: int, stream: int) -> None:
    """Enqueue a solution as a call of its own."""
    t, b, x = (each.operand(i, dtype, device) for each in systems[:3])
    _copy(b, x, stream)
    diag, alpha = Diag.UNIT if systems.is_unit[i] else Diag.NON_UNIT, systems.alpha[i].item()
    launches = trsm.launch_list(alpha, t, x, side=Side.LEFT, uplo=Uplo.LOWER, diag=diag)
    if launches is not None:
        launches.run([t.pointer, x.pointer], alpha, stream=stream)


def _copy(source: Operand, target: Operand, stream: int) -> None:
    """Enqueue target := source, where they are not the same."""
    launches = copies.launch_list(1, source, target) if source != target else None
    if launches is not None:
        launches.run([source.pointer, target.pointer], 1, stream=stream)


def _solve_stacks(systems: Systems, stacks: list[Stack], dtype: Dtype, device: int, stream: int) -> None:
    stage, t, b, x = Stage(dtype, device), *systems[:3]
    places = [
        (stage.reserve(each.room, each.rows, each.rows), stage.reserve(each.room, each.rows, each.cols))
        for each in stacks
    ]
    which = np.concatenate([np.resize(each.which, each.room) for each in stacks])
    conj = np.where(np.concatenate((t.conj[which], b.conj[which])) & dtype.is_complex, CONJUGATE, 0)
    kinds = np.concatenate((np.where(systems.is_unit[which], TRIANGLE | UNIT, TRIANGLE), 0 * which))
    inward = Copies(
        Matrices.joined([filled(t, each) for each in stacks] + [filled(b, each) for each in stacks]),
        Matrices.joined([left for left, _ in places] + [right for _, right in places]),
        kinds | conj,
        np.concatenate((np.ones(len(which)), systems.alpha[which])),
    )
    stage.add(inward, False, int(t.pointers[0]))
    _add_back(stage, [right for _, right in places], x, stacks, 0)

    def compute() -> None:
        for left, right in places:
            operands = stage.operand(left), stage.operand(right)
            launches = trsm.launch_list(1, *operands, side=Side.LEFT, uplo=Uplo.LOWER, diag=Diag.NON_UNIT)
            assert launches is not None  # stacks are not empty
            launches.run([each.pointer for each in operands], 1, stream=stream)

    stage.run(compute, stream)


def _add_back(
    stage: Stage, places: list[Matrices], targets: Matrices, stacks: list[Stack], options: int
) -> None:
    """Add copies of the matrices of all stacks to their targets."""
    which = np.concatenate([each.which for each in stacks])
    results = Matrices.joined(
        [place.take(np.arange(len(each.which))) for place, each in zip(places, stacks, strict=True)]
    )
    target = targets.take(which)
    copied = Copies(
        results._replace(shapes=target.shapes), target, np.full(len(which), options), np.ones(len(which))
    )
    stage.add(copied, True, int(targets.pointers[0]))


def factor(a: Matrices, c: Matrices, info: int, dtype: Dtype, device: int, stream: int) -> None:
    """Enqueue the factors C of lower triangles A, with zeros above; the context of their device is current.

    C may be A. `info` is the address of an element for each, whose first four bytes become its info.
    """
    memory = import_module("..gpu.memory", __package__)
    memory.clear(info, len(a.rows) * dtype.itemsize, stream)
    pointers = info + dtype.itemsize * np.arange(len(a.rows), dtype=np.int64)
    ones = np.ones((len(a.rows), 2), np.int64)
    infos = Matrices(pointers, ones, ones, np.zeros(len(a.rows), bool))
    staged = are_staged(c.shapes, dtype.itemsize)
    for i in np.flatnonzero(~staged):
        matrix, target = (each.operand(int(i), dtype, device) for each in (a, c))
        _copy(matrix, target, stream)
        operands = infos.operand(int(i), dtype, device), target
        launches = potrf.launch_list(*operands, uplo=Uplo.LOWER, clean=True)
        assert launches is not None  # none is empty
        launches.run([each.pointer for each in operands], 1, stream=stream)
    staged &= c.rows > 0
    a, c, infos = (each.take(staged) for each in (a, c, infos))
    for stacks in rounds(c.shapes, dtype.itemsize):
        _factor_stacks(a, c, infos, stacks, dtype, device, stream)


def _factor_stacks(
    a: Matrices, c: Matrices, infos: Matrices, stacks: list[Stack], dtype: Dtype, device: int, stream: int
) -> None:
    stage = Stage(dtype, device)
    places = [
        (stage.reserve(each.room, each.rows, each.rows), stage.reserve(each.room, 1, 1)) for each in stacks
    ]
    source = Matrices.joined([filled(a, each) for each in stacks])
    options = np.where(source.conj & dtype.is_complex, TRIANGLE | CONJUGATE, TRIANGLE)
    target = Matrices.joined([matrices for matrices, _ in places])
    stage.add(Copies(source, target, options, np.ones(len(options))), False, int(a.pointers[0]))
    _add_back(stage, [matrices for matrices, _ in places], c, stacks, TRIANGLE)
    _add_back(stage, [numbers for _, numbers in places], infos, stacks, 0)

    def compute() -> None:
        for matrices, numbers in places:
            operands = stage.operand(numbers), stage.operand(matrices)
            launches = potrf.launch_list(*operands, uplo=Uplo.LOWER)
            assert launches is not None  # stacks are not empty
            launches.run([each.pointer for each in operands], 1, stream=stream)

    stage.run(compute, stream)
