"""Meetings of all blocks of a matrix, which are resident."""

from __future__ import annotations

from collections.abc import Callable

from ....gpu.backend import cuda, device_function, ptx

__all__ = ["WORDS", "meeting"]

WORDS = 2  # of the flags of a matrix
ARRIVED, LEFT = 0, 1  # words of the flags: blocks that have come to a meeting, or are over


def meeting() -> tuple[Callable, Callable]:
    """``meet(flags, number, blocks, t)``: all blocks, for the `number` th time; each then reads what the
    others wrote before. ``part(flags, blocks, t)``: the flags are 0 again when all are over.
    """
    int32, take_ticket, load_acquire = ptx.types.int32, ptx.take_ticket, ptx.load_acquire
    store_relaxed = ptx.store_relaxed

    @device_function
    def meet(flags, number, blocks, t):
        cuda.syncthreads()
        if t == 0:
            take_ticket(flags, ARRIVED)
            while load_acquire(flags, ARRIVED) < number * blocks:
                pass
        cuda.syncthreads()

    @device_function
    def part(flags, blocks, t):
        if t == 0 and take_ticket(flags, LEFT) == blocks - 1:
            store_relaxed(flags, ARRIVED, int32(0))
            store_relaxed(flags, LEFT, int32(0))

    return meet, part
