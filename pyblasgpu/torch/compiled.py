"""Level 3 of the package within functions that PyTorch compiles: calls are operators, nodes of the graph.

Dynamo, the tracer, takes a function of this module in the place of one of `pyblasgpu`, and traces it. Where
no operator serves a call, the graph ends, and the call runs as it does elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import torch
from torch import Tensor

import pyblasgpu as pb

from ..types import Side, Trans
from . import level3
from .served import refusal

__all__ = ["substitute"]


def substitute() -> None:
    """Have Dynamo take the operators; PyTorch before 2.5 ends graphs."""
    register = getattr(torch.compiler, "substitute_in_graph", None)
    if register is not None:
        for name in level3.__all__:
            function = _of_operator(name, getattr(level3, name))
            register(getattr(pb, name), skip_signature_check=True)(function)


def _of_operator(name: str, operator: Callable[..., Any]) -> Callable[..., Any]:
    """Return what Dynamo traces in the place of a function."""
    known = frozenset(signature(operator).parameters)

    def called(*arrays: Any, **options: Any) -> Any:
        flags = {}
        for key, value in options.items():
            if key in known:
                flags[key] = value
            elif value is not None and not (key == "blocking" and value is True):
                torch._dynamo.graph_break()
        if not _are_served(name, arrays, flags):
            torch._dynamo.graph_break()
        return operator(*arrays, **flags)

    return called


def _are_served(name: str, arrays: tuple[Any, ...], flags: dict[str, Any]) -> bool:
    """Whether operands are tensors of one kind that fit; the function itself has the words for others."""
    a, b = arrays[0], arrays[-1]
    if flags.get("beta", 0) != 0 or refusal(a, square=False) is not None:
        return False
    alpha = flags.get("alpha", 1)
    if not isinstance(alpha, (int, float)) and not (isinstance(alpha, complex) and _takes_complex(name, a)):
        return False
    if name in ("syrk", "herk"):
        return len(arrays) == 1
    if len(arrays) != 2 or refusal(b, square=False) is not None:
        return False
    if name in ("gemm", "gemmtr"):
        one, other = _turned(a, flags, "trans_a"), _turned(b, flags, "trans_b")
        fits = name == "gemm" or one.shape[-2] == other.shape[-1]
        return fits and refusal(one, other, square=False) is None
    left = Side.parse(flags.get("side", "L"), name, "side") is Side.LEFT
    return refusal(a, b, left) is None


def _takes_complex(name: str, a: Tensor) -> bool:
    return a.is_complex() and name != "herk"


def _turned(x: Tensor, flags: dict[str, Any], argument: str) -> Tensor:
    """Return a tensor with the shape of an operand after its op."""
    return x if Trans.parse(flags.get(argument, "N"), "gemm", argument) is Trans.NO else x.mT
