"""The end of `jacobi_svd`: norms, unit vectors, others in place of columns of zeros, and their order."""

from __future__ import annotations

from collections.abc import Callable

from ....gpu.backend import device_function, ptx
from ....types import Dtype
from ...common.kernel_config import WARP
from ..lane_sums import adder, over_lanes
from .ranking import ranker
from .rotation import barrier, team_max, team_sum
from .svd_columns import negligible, products

__all__ = ["completer", "norms", "sorter"]


def norms(facts: Dtype, team: int) -> Callable:
    """``normalize(values, filled, s, plane, ld, m, n, t, lanes, width)``: norms of the columns to `values`,
    and columns of norm one; negligible ones become zeros, and ``filled`` 0 for them, else 1.
    """
    REALS, real, int32, quotient = (
        facts.reals_per_element,
        ptx.REALS[facts.real],
        ptx.types.int32,
        ptx.quotient,
    )
    TINY, root, divide = negligible(facts), ptx.square_root, ptx.divide
    total, sync = over_lanes(adder()), barrier(team)

    @device_function
    def normalize(values, filled, s, plane, ld, m, n, t, lanes, width):
        groups, group = int32(quotient(lanes, width)), int32(quotient(int32(t & (lanes - 1)), width))
        lane, first = int32(t & (width - 1)), int32(0)
        while first < n:
            j, square = int32(first + group), real(0)
            i = lane if j < n else m
            while i < m:
                for part in range(REALS):
                    y = s[j * ld + i + part * plane]
                    square += y * y
                i = int32(i + width)
            square = total(square, int32(t & 31), width)
            is_there = not square <= real(TINY)
            norm = root(square)
            factor = divide(real(1), norm) if is_there else real(0)
            i = lane if j < n else m
            while i < m:
                for part in range(REALS):
                    s[j * ld + i + part * plane] *= factor
                i = int32(i + width)
            if j < n and lane == 0:
                values[j], filled[j] = norm, real(1) if is_there else real(0)
            first = int32(first + groups)
        sync()

    return normalize


def projector(facts: Dtype, team: int) -> Callable:
    """``project(acc, x, dots, s, plane, ld, j, m, n, t, lanes, width)``: what column `j` has of all
    others, which are orthonormal or zero, taken off it; for m = 0 nothing.
    """
    REALS, COMPLEX, int32, quotient = (
        facts.reals_per_element,
        facts.is_complex,
        ptx.types.int32,
        ptx.quotient,
    )
    multiply, total, sync = products(facts), over_lanes(adder()), barrier(team)

    @device_function
    def project(acc, x, dots, s, plane, ld, j, m, n, t, lanes, width):
        groups, group = int32(quotient(lanes, width)), int32(quotient(int32(t & (lanes - 1)), width))
        lane, first = int32(t & (width - 1)), int32(0)
        while first < n:
            c = int32(first + group)
            multiply(
                acc, x, s, plane, int32(min(c, n - 1) * ld), int32(j * ld), m if c < n else 0, lane, width
            )
            re, im = total(acc[2], int32(t & 31), width), total(acc[3], int32(t & 31), width)
            if c < n and lane == 0:
                dots[c * REALS] = re
                if COMPLEX:
                    dots[c * REALS + 1] = im
            first = int32(first + groups)
        sync()
        i = int32(t & (lanes - 1))
        while i < m:
            for c in range(n):
                if c != j:
                    at, of = int32(j * ld + i), int32(c * ld + i)
                    if COMPLEX:
                        s[at] -= s[of] * dots[c * 2] - s[of + plane] * dots[c * 2 + 1]
                        s[at + plane] -= s[of] * dots[c * 2 + 1] + s[of + plane] * dots[c * 2]
                    else:
                        s[at] -= s[of] * dots[c]
            i = int32(i + lanes)
        sync()

    return project


def completer(facts: Dtype, team: int) -> Callable:
    """``complete(acc, x, filled, dots, s, plane, ld, m, n, partials, t, lanes, width)``: unit vectors
    in place of columns of zeros, orthogonal to all others: that of the first row with least in it, less what
    others have of it, twice. So of a matrix of zeros they are columns of I, whatever its rows.
    """
    REALS, real, int32 = facts.reals_per_element, ptx.REALS[facts.real], ptx.types.int32
    root, divide, first_lane, IS_WARP = ptx.square_root, ptx.divide, ptx.first_lane, team <= WARP
    largest, total, sync, project = team_max(team), team_sum(team), barrier(team), projector(facts, team)

    @device_function
    def least_row(s, plane, ld, m, n, partials, t, lanes):
        best, row, i = real(-2), int32(0), int32(t & (lanes - 1))
        while i < m:
            square = real(0)
            for c in range(n):
                for part in range(REALS):
                    y = s[c * ld + i + part * plane]
                    square += y * y
            if -square > best:
                best, row = -square, i
            i = int32(i + lanes)
        top = largest(best, partials, t, lanes)
        return int32(m - int32(largest(real(m - row) if best == top else real(0), partials, t, lanes)))

    @device_function
    def complete(acc, x, filled, dots, s, plane, ld, m, n, partials, t, lanes, width):
        j, thread = int32(0), int32(t & (lanes - 1))
        while j < n:
            is_empty = filled[j] == real(0)
            if first_lane(is_empty) >= 0 if IS_WARP else is_empty:
                rows = m if is_empty else int32(0)
                row = least_row(s, plane, ld, rows, n, partials, t, lanes)
                if (row & (lanes - 1)) == thread and is_empty:
                    s[j * ld + row] = real(1)
                sync()
                for _ in range(2):
                    project(acc, x, dots, s, plane, ld, j, rows, n, t, lanes, width)
                square, i = real(0), int32(thread)
                while i < rows:
                    for part in range(REALS):
                        y = s[j * ld + i + part * plane]
                        square += y * y
                    i = int32(i + lanes)
                factor = divide(real(1), root(total(square, partials, t, lanes)))
                i = int32(thread)
                while i < rows:
                    for part in range(REALS):
                        s[j * ld + i + part * plane] *= factor
                    i = int32(i + lanes)
                sync()
            j = int32(j + 1)

    return complete


def sorter(facts: Dtype, team: int) -> Callable:
    """``sort(values, order, is_bad, n, thread, lanes)``: places of the values in descending order; as they
    stand where they are no numbers.
    """
    real, int32, sync = ptx.REALS[facts.real], ptx.types.int32, barrier(team)
    rank = ranker(descends=True)

    @device_function
    def sort(values, order, is_bad, n, thread, lanes):
        i = int32(thread)
        while i < n:
            order[i if is_bad else rank(values, i, n)] = real(i)
            i = int32(i + lanes)
        sync()

    return sort
