"""The routines, imported at their first use, and what enqueues them: host arrays do without."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

__all__ = ["enqueue", "launch_list_of", "routine", "routine_module"]


@cache
def routine_module(name: str) -> Any:
    """The module of `pyblasgpu.routines` with this name, imported at its first use."""
    return import_module(f"..routines.{name}", __package__)


@cache
def routine(name: str) -> Callable[..., Any]:
    """The function of `pyblasgpu.routines` with this name, imported at its first use."""
    module = "copies" if name == "copy" else name
    function: Callable[..., Any] = getattr(import_module(f"..routines.{module}", __package__), name)
    return function


@cache
def launch_list_of(name: str) -> Callable[..., Any]:
    """The function that gives the launch list of a routine, imported at its first use."""
    function: Callable[..., Any] = import_module(f"..routines.{name}", __package__).launch_list
    return function


def enqueue(prepare: Callable[..., Any], scalars: tuple[Any, ...], operands: Any, stream: int) -> None:
    """Enqueue what ``prepare(scalars, operands)`` lists."""
    launches = prepare(scalars, operands)
    if launches is not None:
        launches.run([operand.pointer for operand in operands], *scalars, stream=stream)
