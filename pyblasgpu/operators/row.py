"""A row of the table of operators: what all frameworks share of it."""

from __future__ import annotations

from typing import Any, ClassVar

__all__ = ["CORE", "Row", "conj", "total"]

#: How many last dimensions of an argument are no batch, where they are not two.
CORE = {
    "pivots": 1,
    "gq": 0,
    "gd": 0,
    "quad": 0,
    "logdet": 0,
    "atol": 0,
    "rtol": 0,
    "info": 0,
    "sign": 0,
    "logabsdet": 0,
    "det": 0,
}


class Row:
    """A row of the table; its functions are static.

    A formula takes `f`: the operators of the framework by their names, and its functions of `Arrays`. Leading
    dimensions broadcast in it. The framework sums gradients over dimensions that an argument has not.

    Attributes
    ----------
    schema : str
        Name and arguments, all of them positional and without defaults.
    returns : tuple of str
        Names of the outputs.
    saved : tuple of str
        Names of the inputs and outputs that the formulas read.
    constant : tuple of str
        Outputs without a gradient.
    of_first : tuple of str
        Outputs whose batch is that of the first argument, not the common one.
    """

    schema: ClassVar[str]
    returns: ClassVar[tuple[str, ...]] = ("out",)
    saved: ClassVar[tuple[str, ...]] = ()
    constant: ClassVar[tuple[str, ...]] = ()
    of_first: ClassVar[tuple[str, ...]] = ()

    @staticmethod
    def backward(f: Any, s: Any, *grads: Any) -> Any:
        """Return the gradients of the arrays among the arguments; None and False count as none.

        `s` holds what was saved, what is no array, and `needs`: whether an argument needs its gradient.
        """
        raise NotImplementedError

    @staticmethod
    def jvp(f: Any, s: Any, *tangents: Any) -> Any:
        """Return the tangents of the outputs, from those of the arrays among the arguments, or None."""
        raise NotImplementedError


def total(*terms: Any) -> Any:
    """Return the sum of the terms that are neither None nor False; None where there is none."""
    present = [term for term in terms if term is not None and term is not False]
    return sum(present[1:], present[0]) if present else None


def conj(number: Any) -> Any:
    """Return the conjugate of a Python number."""
    return number.conjugate() if isinstance(number, complex) else number
