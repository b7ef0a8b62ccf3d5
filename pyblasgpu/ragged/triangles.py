"""Triangular systems and Cholesky factors of unequal sizes, by the routines for stacks.

Strides give all one form: a lower triangle at the left of its right-hand sides. A triangle that
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
from ..routines.launch_list import LaunchList
from ..routines.level3 import trsm
from ..types import DTYPES, INT32, Diag, Dtype, Side, Uplo
from .matrices import Matrices
from .stacks import Compute, Copies, Stack, Stage, are_staged, filled, rounds

__all__ = ["PreparedFactors", "PreparedSystems", "Systems"]

WORDS = DTYPES["s"]  # of the kernel that copies int32: a small one is a float that a product with 1 keeps
#: A stage, and the function that enqueues the routine on its stacks.
_Staged = tuple[Stage, Compute]


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

    @classmethod
    def of(cls, t: Matrices, b: Matrices, x: Matrices, *others: np.ndarray) -> Systems:
        """Return the systems of a call whose arrays are those of all T, of all B, and of all X."""
        t, b, x = (each.numbered(place * len(t.rows)) for place, each in enumerate((t, b, x)))
        return cls(t, b, x, *others)

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


class PreparedSystems:
    """Launches of solutions, at any addresses.

    Parameters
    ----------
    systems : Systems
        X may be B.
    pointers : numpy.ndarray
        Addresses of the arrays of the call.
    dtype : Dtype
    device : int

    Attributes
    ----------
    is_movable : bool
        Whether it may run at other addresses: no system is a call of its own.
    """

    def __init__(self, systems: Systems, pointers: np.ndarray, dtype: Dtype, device: int):
        self.dtype, self.device = dtype, device
        systems = systems.lower(dtype.itemsize).take((systems.x.shapes > 0).all(axis=1))
        are_zero = systems.alpha == 0
        if are_zero.any():  # neither T nor B is read
            counts = np.where(are_zero, 0, 1)[:, None]
            t, b = (each._replace(shapes=each.shapes * counts) for each in systems[:2])
            systems = systems._replace(t=t, b=b, alpha=np.where(are_zero, 1, systems.alpha))
        staged = are_staged(systems.x.shapes, dtype.itemsize) | are_zero
        self.is_movable, self._alone = bool(staged.all()), systems.take(~staged)
        systems = systems.take(staged)
        groups = rounds(systems.x.shapes, dtype.itemsize)
        self._stages = [_staged_systems(systems, stacks, Stage(dtype, device, pointers)) for stacks in groups]

    def run(self, pointers: np.ndarray, stream: int) -> None:
        """Enqueue the solutions with the arrays of the call at `pointers`, in the device's context."""
        for i in range(len(self._alone.alpha)):
            _solve_alone(self._alone, i, self.dtype, self.device, stream)
        for stage, compute in self._stages:
            stage.run(compute, pointers, stream)


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


def _staged_systems(systems: Systems, stacks: list[Stack], stage: Stage) -> _Staged:
    """Return a stage with the copies of systems, and the function that enqueues their solutions."""
    t, b, x = systems[:3]
    places = [
        (stage.reserve(each.room, each.rows, each.rows), stage.reserve(each.room, each.rows, each.cols))
        for each in stacks
    ]
    which = np.concatenate([np.resize(each.which, each.room) for each in stacks])
    conj = np.concatenate((t.conj[which], b.conj[which])) & stage.dtype.is_complex
    kinds = np.concatenate((np.where(systems.is_unit[which], TRIANGLE | UNIT, TRIANGLE), 0 * which))
    inward = Copies(
        Matrices.joined([filled(t, each) for each in stacks] + [filled(b, each) for each in stacks]),
        Matrices.joined([left for left, _ in places] + [right for _, right in places]),
        kinds | np.where(conj, CONJUGATE, 0),
        np.concatenate((np.ones(len(which)), systems.alpha[which])),
    )
    stage.add(inward, is_back=False)
    _add_back(stage, [right for _, right in places], x, stacks, 0)

    def compute(address: int, stream: int) -> None:
        for place in places:
            operands = tuple(stage.operand(stack, address) for stack in place)
            launches = trsm.launch_list(1, *operands, side=Side.LEFT, uplo=Uplo.LOWER, diag=Diag.NON_UNIT)
            _run(launches, operands, stream)

    return stage, compute


def _run(launches: LaunchList | None, operands: tuple[Operand, ...], stream: int) -> None:
    """Enqueue launches for operands that are not empty."""
    assert launches is not None
    launches.run([each.pointer for each in operands], 1, stream=stream)


def _add_back(
    stage: Stage,
    places: list[Matrices],
    targets: Matrices,
    stacks: list[Stack],
    options: int,
    dtype: Dtype | None = None,
) -> None:
    """Add copies of the matrices of all stacks to their targets."""
    target = targets.take(np.concatenate([each.which for each in stacks]))
    results = Matrices.joined(
        [place.take(np.arange(len(each.which))) for place, each in zip(places, stacks, strict=True)]
    )
    results, count = results._replace(shapes=target.shapes), len(target.rows)
    stage.add(Copies(results, target, np.full(count, options), np.ones(count)), is_back=True, dtype=dtype)


class PreparedFactors:
    """Launches of Cholesky factors of lower triangles A, with zeros above them, at any addresses.

    Parameters
    ----------
    a, c : Matrices
        C may be A.
    pointers : numpy.ndarray
        Addresses of the arrays of the call; the last one is of an int32 for each matrix, its info.
    dtype : Dtype
    device : int

    Attributes
    ----------
    is_movable : bool
        Whether it may run at other addresses: no matrix is a call of its own.
    """

    def __init__(self, a: Matrices, c: Matrices, pointers: np.ndarray, dtype: Dtype, device: int):
        self.dtype, self.device, self._count = dtype, device, len(a.rows)
        ones = np.ones((self._count, 2), np.int64)
        infos = Matrices.of(
            pointers[-1] + INT32.itemsize * np.arange(self._count, dtype=np.int64), ones, ones
        )
        infos = infos._replace(numbers=0 * infos.numbers + len(pointers) - 1)
        staged = are_staged(c.shapes, dtype.itemsize)
        self.is_movable = bool(staged.all())
        self._alone = [each.take(~staged) for each in (infos, a, c)]
        staged &= c.rows > 0
        infos, a, c = (each.take(staged) for each in (infos, a, c))
        groups = rounds(c.shapes, dtype.itemsize)
        self._stages = [_staged_factors(a, c, infos, each, Stage(dtype, device, pointers)) for each in groups]

    def run(self, pointers: np.ndarray, stream: int) -> None:
        """Enqueue the factors with the arrays of the call at `pointers`, in the device's context."""
        memory = import_module("..gpu.memory", __package__)
        memory.clear(int(pointers[-1]), self._count * INT32.itemsize, stream)
        for i in range(len(self._alone[0].rows)):
            info, matrix, target = (
                each.operand(i, dtype, self.device)
                for each, dtype in zip(self._alone, (INT32, self.dtype, self.dtype), strict=True)
            )
            _copy(matrix, target, stream)
            _run(potrf.launch_list(info, target, uplo=Uplo.LOWER, clean=True), (info, target), stream)
        for stage, compute in self._stages:
            stage.run(compute, pointers, stream)


def _staged_factors(a: Matrices, c: Matrices, infos: Matrices, stacks: list[Stack], stage: Stage) -> _Staged:
    """Return a stage with the copies of matrices, and the function that enqueues their factors."""
    places = [
        (stage.reserve(each.room, 1, 1, WORDS), stage.reserve(each.room, each.rows, each.rows))
        for each in stacks
    ]
    source = Matrices.joined([filled(a, each) for each in stacks])
    options = np.where(source.conj & stage.dtype.is_complex, TRIANGLE | CONJUGATE, TRIANGLE)
    target = Matrices.joined([matrices for _, matrices in places])
    stage.add(Copies(source, target, options, np.ones(len(options))), is_back=False)
    _add_back(stage, [matrices for _, matrices in places], c, stacks, TRIANGLE)
    _add_back(stage, [numbers for numbers, _ in places], infos, stacks, 0, WORDS)

    def compute(address: int, stream: int) -> None:
        for place in places:
            operands = stage.operand(place[0], address, INT32), stage.operand(place[1], address)
            _run(potrf.launch_list(*operands, uplo=Uplo.LOWER), operands, stream)

    return stage, compute
