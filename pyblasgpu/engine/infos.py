"""The info of the leaves of factors, which record the first pivot that is zero, or not positive."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from ..gpu import memory
from ..gpu.context import current_context
from ..operands import Operand
from ..routine_table import ROUTINES
from ..tasks.task_list import Task, TaskList
from ..types import Dtype
from .cards import Card

__all__ = ["Infos", "has_info", "infos_on"]

_BYTES = 16  # those of the largest element: an info is the first four bytes of one


def has_info(task: Task) -> bool:
    """Whether the leaf of a task leaves an info."""
    return any(each.name == "info" for each in ROUTINES[task.leaf.routine].matrices)


class Infos:
    """The infos of the leaves that a card runs.

    Attributes
    ----------
    numbers : list of int
        The tasks that have one.
    """

    def __init__(self, card: Card, address: int, numbers: list[int], dtype: Dtype | None):
        self._card, self._address, self._dtype = card, address, dtype
        self.numbers = numbers

    def operand(self, number: int) -> Operand:
        """The info of the leaf of a task."""
        assert self._dtype is not None
        address = self._address + self.numbers.index(number) * _BYTES
        return Operand(address, 1, 1, 1, 1, self._dtype, device=self._card.device)

    def first(self, tasks: TaskList) -> int:
        """The number, from 1, of the first pivot that is not positive; 0 where all are."""
        if not self.numbers:
            return 0
        values = np.zeros((len(self.numbers), _BYTES // 4), np.int32)
        with current_context(self._card.device):
            memory.to_host(values, self._address, self._card.compute)
        offsets = tasks.grids["a"].col_offsets
        for number, info in zip(self.numbers, values[:, 0], strict=True):
            if info > 0:
                return offsets[tasks.tasks[number].writes[0].col] + int(info)
        return 0


@contextmanager
def infos_on(card: Card, numbers: list[int], dtype: Dtype) -> Iterator[Infos]:
    """Memory on a card for the infos of the leaves of the tasks `numbers`."""
    if not numbers:
        yield Infos(card, 0, [], None)
        return
    with current_context(card.device):
        address = memory.allocate(len(numbers) * _BYTES, card.device, card.compute)
    try:
        yield Infos(card, address, numbers, dtype)
    finally:
        with current_context(card.device):
            memory.release(address, card.compute)
