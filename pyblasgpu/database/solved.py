"""The triangles with which the Configs of TRSM in one launch are timed, and which tells of another."""

from __future__ import annotations

from typing import NamedTuple

from ..types import Triangle

__all__ = ["SOLVED", "Solved", "solved_as", "solved_in"]


class Solved(NamedTuple):
    """A triangle T with which the Configs of TRSM in one launch are timed, all else by columns: lower on the
    left, upper on the right, which is solved in the same order.

    Attributes
    ----------
    layout : str
        Of the product.
    triangle : Triangle
    recorded : str
        Layout of the records; the first is that of methods.
    """

    layout: str
    triangle: Triangle
    recorded: str

    @property
    def on_left(self) -> bool:
        """Whether T is the first operand of the product."""
        return self.triangle.on_left

    @property
    def by_columns(self) -> bool:
        """Whether T lies so."""
        return self.layout[not self.on_left] == "n"


SOLVED = {
    "left_by_columns": Solved("nn", Triangle.LOWER_LEFT, "any"),
    "left_by_rows": Solved("tn", Triangle.LOWER_LEFT, "left_by_rows"),
    "right_by_columns": Solved("nn", Triangle.UPPER_RIGHT, "right_by_columns"),
    "right_by_rows": Solved("nt", Triangle.UPPER_RIGHT, "right_by_rows"),
}


def solved_as(layout: str, triangle: Triangle) -> str:
    """Which of `SOLVED` tells of a triangle: that of its side which lies as it does."""
    wanted = Solved(layout, triangle, "")
    facts = wanted.on_left, wanted.by_columns
    return next(name for name, which in SOLVED.items() if (which.on_left, which.by_columns) == facts)


def solved_in(layout: str) -> str | None:
    """Which of `SOLVED` the records of this layout are of, if any."""
    return next((name for name, which in SOLVED.items() if which.recorded == layout), None)
