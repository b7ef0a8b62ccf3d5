"""Public functions run untraced under `torch.compile`: a graph ends before each, and another begins after it.

An attribute of a function keeps Dynamo, the tracer, from inlining it. Dynamo would still trace the call that
it leaves between two graphs, unless the function's code is registered. Dynamo is not imported for that: an
import hook waits for it. By the same hook `pyblasgpu.torch` registers its operators with Dynamo.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import cache
from types import CodeType, FunctionType
from typing import Any, TypeVar

from .after_import import after_import

__all__ = ["break_graphs"]

_T = TypeVar("_T")
_DYNAMO, _FRAMES = "torch._dynamo", "torch._C._dynamo.eval_frame"
_REASON = "pyblasgpu launches its kernels itself"
#: The code of functions that Dynamo, not imported yet, is to skip.
_waiting: list[CodeType] = []
#: Functions to be called once Dynamo is imported, and all that ever were among them.
_calls: list[Callable[[], None]] = []
_known: set[Callable[[], None]] = set()


def break_graphs(value: _T, then: Callable[[], None] | None = None) -> _T:
    """Mark `value`, a function, or the methods and properties of a class, as untraced; anything else stays.

    Parameters
    ----------
    value : object
    then : callable, optional
        Called once in a process, when Dynamo is imported.

    Returns
    -------
    object
        `value` itself, whose calls cost what they did.
    """
    for function in _functions(value):
        function._torchdynamo_disable = True
        function._torchdynamo_disable_msg = _REASON
        # the code of a decorator's wrapper may be the standard library's, which serves others too
        if function.__globals__["__name__"].startswith(f"{__package__}."):
            _waiting.append(function.__code__)
    if then is not None and then not in _known:
        _known.add(then)
        _calls.append(then)
    if _DYNAMO in sys.modules:
        _skip_waiting()
    else:
        _await_dynamo()
    return value


@cache
def _await_dynamo() -> None:
    after_import(_DYNAMO, _skip_waiting)


def _functions(value: Any) -> Iterator[Any]:
    """The functions of which `value` is made."""
    if isinstance(value, FunctionType):
        yield value
    elif isinstance(value, property):
        yield from _functions(value.fget)
    elif isinstance(value, type):
        for attribute in vars(value).values():
            if not isinstance(attribute, type):
                yield from _functions(attribute)


def _skip_waiting() -> None:
    """Have Dynamo skip the frames of functions that wait, and frames that these call; then make the calls."""
    frames: Any = sys.modules.get(_FRAMES)
    skip_code = getattr(frames, "skip_code", None)  # before PyTorch 2.7
    if hasattr(frames, "set_code_exec_strategy"):
        skip = frames._FrameAction.SKIP
        strategy = frames._FrameExecStrategy(skip, skip)

        def skip_code(code: CodeType) -> None:
            frames.set_code_exec_strategy(code, strategy)

    while skip_code is not None and _waiting:
        skip_code(_waiting.pop())
    while _calls:
        _calls.pop()()
