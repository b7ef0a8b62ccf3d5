"""The walk of a call: the functions of the package that it enters, without those that stand-ins call."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import pyblasgpu

PACKAGE, TESTS = Path(pyblasgpu.__file__).parent, Path(__file__).parent
_PACKAGE, _TESTS = f"{PACKAGE}{os.sep}", f"{TESTS}{os.sep}"


class Walk(NamedTuple):
    """The functions that a call enters, each once, in the order of their first calls.

    Attributes
    ----------
    steps : tuple of (str, str)
        Module, relative to the package, and name of each function.
    """

    steps: tuple[tuple[str, str], ...]

    @property
    def modules(self) -> set[str]:
        """The modules of the functions."""
        return {module for module, _ in self.steps}

    @property
    def changes(self) -> int:
        """How often a function is in another package than the one before it."""
        packages = [module.partition("/")[0] for module, _ in self.steps]
        return sum(one != other for one, other in pairwise(packages))


def profile(function: Callable[[], Any], on_event: Callable[[FrameType, str, Any], object]) -> None:
    """Call `function`; `on_event` sees the calls and returns in it, as `sys.setprofile` describes them."""
    before = sys.getprofile()
    sys.setprofile(on_event)
    try:
        function()
    finally:
        sys.setprofile(before)


def walk(function: Callable[[], Any]) -> Walk:
    """Call `function` and return its walk. What imports run does not count, nor what stand-ins call."""
    entered: dict[CodeType, None] = {}
    inside = 0

    def on_event(frame: FrameType, event: str, _: Any) -> None:
        nonlocal inside
        code = frame.f_code
        is_stand_in = code.co_filename.startswith(_TESTS) and code is not function.__code__
        if is_stand_in or code.co_filename.startswith("<frozen importlib"):
            inside += (event == "call") - (event == "return")
        elif event == "call" and not inside and code.co_filename.startswith(_PACKAGE):
            entered[code] = None

    profile(function, on_event)
    return Walk(tuple((code.co_filename[len(_PACKAGE) : -len(".py")], code.co_qualname) for code in entered))
