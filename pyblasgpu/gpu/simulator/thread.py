"""A simulated thread: a greenlet that runs from one barrier to the next."""

from __future__ import annotations

import contextvars
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import greenlet
from numba.cuda.simulator.kernelapi import Dim3

if TYPE_CHECKING:
    from .block import Block

__all__ = ["Thread", "current_thread"]


class Thread(greenlet.greenlet):
    """One thread of a block, and the asynchronous copies it has under way."""

    barrier: tuple[str, int] | None = None  # file and line where it waits
    vote = False  # what it passes to that barrier
    meeting: _Meeting | None = None  # where it waits for the other lanes of its warp
    stalled = False  # until another block is further
    static_arrays = 0

    def __init__(self, block: Block, index: int):
        super().__init__()
        self.block, self.index, self.thread_idx = block, index, _thread_idx(index)
        self.gr_context = contextvars.copy_context()  # NumPy keeps its error state there
        self.last_flags: dict[int, float] = {}  # by index, what flags were when it last read them
        self.copies: list = []  # not yet committed
        self.groups: list[list] = []
        self.clock: dict[tuple[str, int, int], int] = {}  # see `async_proxy`

    def run(self):
        self.block.launch.function(*self.block.launch.arguments)

    def resume(self) -> None:
        """Run to the next barrier, or meeting of the warp, or to the end."""
        self.barrier, self.meeting, self.stalled = None, None, False
        try:
            self.switch()
        except Exception as error:
            error.add_note(f"in thread {self.index} of block {self.block.index}")
            raise

    def wait(self, vote: bool = False) -> list[bool]:
        """Give way until the other threads are at the kernel's barrier too; what they all voted."""
        self.barrier, self.vote = self._line(), vote
        self.parent.switch()
        return self.block.votes

    def stall(self) -> None:
        """Give way to other blocks."""
        self.stalled = True
        self.parent.switch()

    def meet(self, brought, together: Callable[[list], None]) -> None:
        """Give way until all lanes of the warp are here; one does `together` with what all passed."""
        self.meeting = _Meeting(self._line(), brought, together)
        self.parent.switch()

    def _line(self) -> tuple[str, int]:
        """The kernel's file and line; a frame computes its line anew each time, which takes long."""
        kernel = sys._getframe(3)
        lines, at = self.block.launch.lines, (id(kernel.f_code), kernel.f_lasti)
        if at not in lines:
            lines[at] = kernel.f_code.co_filename, kernel.f_lineno
        return lines[at]


@cache
def _thread_idx(index: int) -> Dim3:
    return Dim3(index, 0, 0)


@dataclass(slots=True)  # a frozen one takes long to make
class _Meeting:
    line: tuple[str, int]  # and the file before it
    brought: object
    together: Callable[[list], None]


def current_thread() -> Thread:
    """The thread of the kernel that is running."""
    return greenlet.getcurrent()
