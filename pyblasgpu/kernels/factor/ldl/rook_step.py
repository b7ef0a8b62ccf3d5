"""Steps by rook pivots: the search that goes from row to row, and interchanges of two rows.

The search ends at an element that is the largest one of its row and of its column. So no element of L exceeds
a constant (Ashcraft, Grimes and Lewis, *Accurate symmetric indefinite linear equation solvers*, 1998). The
pivots are those of LAPACK's sytf2_rook. A pivot of two columns may interchange both of its rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....gpu.backend import device_function, ptx
from .pivot_search import meeter, searcher, sizer
from .pivot_step import number_of, row_exchanger, row_publisher, row_receiver, shifter

__all__ = ["PUBLISHED", "rook_chooser", "rook_mover", "rook_pivot_writer"]

PUBLISHED = 4  # rows of V and W of a block: the two of the pivot's place, and those that come there


def rook_chooser(config: Any, spreads: bool, alpha: float) -> Callable:
    """``choose(choice, x, n, a, rs, cs, v, w, ld, step, rows, labels, ..., k, to, ...)``: the pivot of column
    k: its last row, its columns, the candidate of its first one, whether the column is zero, its first row,
    and the candidate of its second column.
    """
    facts = config.dtype_facts
    REALS, real, int32 = facts.reals_per_element, ptx.REALS[facts.real], ptx.types.int32
    search, size_of = searcher(config, spreads), sizer(facts)

    @device_function
    def choose(
        choice, x, n, a, rs, cs, v, w, ld, step, rows, labels, state, flags, k, to, m, low, high, sign, block,
        blocks, t,
    ):  # fmt: skip
        largest = search(
            x, n, a, rs, cs, v, w, ld, step, labels, state, flags, k, k, to, m, low, high, sign, block,
            blocks, t,
        )  # fmt: skip
        diagonal, most = size_of(w, (k * step + to * ld) * REALS), real(0)
        if largest >= 0:
            most = size_of(w, (largest * step + to * ld) * REALS)
        choice[0], choice[1], choice[2] = int32(k), int32(1), int32(to)
        choice[3] = int32((diagonal == real(0)) & (most == real(0)))
        choice[4], choice[5] = int32(k), int32(to + 1)
        column, other, row = int32(to), int32(to + 1), int32(k)
        goes_on = choice[3] == 0 and diagonal < real(alpha) * most
        while goes_on:
            following, of_row = search(
                x, n, a, rs, cs, v, w, ld, step, labels, state, flags, k, largest, other, m, low, high, sign,
                block, blocks, t,
            ), real(0)  # fmt: skip
            if following >= 0:
                of_row = size_of(w, (following * step + other * ld) * REALS)
            if not size_of(w, (largest * step + other * ld) * REALS) < real(alpha) * of_row:
                choice[0], choice[2], goes_on = largest, other, False
            elif following == row or of_row <= most:
                choice[0], choice[1], choice[2] = largest, int32(2), column
                choice[4], choice[5], goes_on = row, other, False
            else:
                row, most, largest = largest, of_row, following
                column, other = other, column

    return choose


def rook_mover(config: Any, spreads: bool) -> Callable:
    """``move(x, n, a, rs, cs, v, w, ld, step, rows, k, kk, first, kp, low, high, share, sign, flags, block,
    blocks, t)``: rows and columns `k` and `kk` of the rest to those of `first` and `kp`, one after the other,
    and rows of V and W interchanged in columns before `k`.
    """
    REALS, WIDTH, SLOTS = config.dtype_facts.reals_per_element, config.width, PUBLISHED
    int32, offset, quotient, (meet, _) = ptx.types.int32, ptx.offset, ptx.quotient, meeter(spreads)
    publish, receive, exchange = row_publisher(config), row_receiver(config), row_exchanger(config)
    shift = shifter(config)

    @device_function
    def publish_rows(n, rows, v, w, ld, step, k, first, kp, low, high, block, t):
        one = 2 * WIDTH * REALS
        rows = offset(rows, block * (SLOTS * one))
        publish(n, rows, v, w, ld, step, k, k, low, high, t)
        publish(n, offset(rows, one), v, w, ld, step, k, k + 1, low, high, t)
        publish(n, offset(rows, 2 * one), v, w, ld, step, k, first, low, high, t)
        publish(n, offset(rows, 3 * one), v, w, ld, step, k, kp, low, high, t)

    @device_function
    def receive_one(n, rows, v, w, ld, step, k, row, source, slot, low, high, share, t):
        if row != source and low <= row and row < high:
            number = SLOTS * int32(quotient(source, share)) + slot
            receive(n, rows, number, v, w, ld, step, k, row, t)

    @device_function
    def move(
        x, n, a, rs, cs, v, w, ld, step, rows, k, kk, first, kp, low, high, share, sign, flags, block,
        blocks, t,
    ):  # fmt: skip
        if spreads:
            publish_rows(n, rows, v, w, ld, step, k, first, kp, low, high, block, t)
            meet(n, flags, blocks, t)
            back = int32(k if first == kk else kk)
            if kk > k:
                receive_one(n, rows, v, w, ld, step, k, k, first, int32(2), low, high, share, t)
            receive_one(n, rows, v, w, ld, step, k, kk, kp, int32(3), low, high, share, t)
            if kp != kk:
                receive_one(n, rows, v, w, ld, step, k, kp, back, int32(back - k), low, high, share, t)
            if first != kk:
                receive_one(n, rows, v, w, ld, step, k, first, k, int32(0), low, high, share, t)
        else:
            if first != k:
                exchange(n, v, w, ld, step, k, k, first, t)
            if kp != kk:
                exchange(n, v, w, ld, step, k, kk, kp, t)
        if first != k:
            shift(x, a, rs, cs, k, first, low, high, sign, t)
            meet(n, flags, blocks, t)
        if kp != kk:
            shift(x, a, rs, cs, kk, kp, low, high, sign, t)

    return move


def rook_pivot_writer() -> Callable:
    """``write(piv, piv_step, n, upper, first, second, row, other, width)``: LAPACK's numbers of the rows with
    which those of a pivot were interchanged; rows are those of the whole matrix.
    """
    int32, number = ptx.types.int32, number_of()

    @device_function
    def write(piv, piv_step, n, upper, first, second, row, other, width):
        pivot = number(n, upper, other)
        if width == 2:
            piv[(number(n, upper, second) - 1) * piv_step] = int32(-pivot)
            pivot = int32(-number(n, upper, row))
        piv[(number(n, upper, first) - 1) * piv_step] = pivot

    return write
