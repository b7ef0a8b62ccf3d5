"""Functions in Python as parts of the kernels that call them."""

from __future__ import annotations

import inspect
from functools import lru_cache
from typing import Any

from numba.cuda.compiler import compile_cuda
from numba.cuda.extending import intrinsic

__all__ = ["called", "inlined", "shared"]

_MAX_SHARED = 4096  # functions
_ANY = (8, 0)  # a compute capability, which Numba requires; nothing here depends on it


def inlined(function):
    """`function` as a part of the kernels that call it: compiled once for each types, inlined by LLVM.

    Numba's own ``inline="always"`` copies the text instead, and compiles every copy anew; a device function
    of its own needs a device to compile for.
    """
    return _part(function, forceinline=True)


def called(function):
    """Make a device function without a hint to inline it, for callees so frequent that copies would be too
    many.
    """
    return _part(function, forceinline=False)


def _part(function, forceinline: bool):
    return shared(_Same(function), forceinline)


class _Same:
    """Equal for functions of the same text that see the same values, as closures of one factory may be.

    Kernels share most of their parts, and a process that tunes or tests compiles hundreds of kernels. What
    a function sees must be hashable, and is looked at when it is made.
    """

    def __init__(self, function):
        code = function.__code__
        seen = [cell.cell_contents for cell in function.__closure__ or ()]
        seen += [function.__globals__[name] for name in code.co_names if name in function.__globals__]
        self.function = function
        self.facts = code, tuple((type(value), value) for value in seen)  # True == 1, but not to Numba

    def __eq__(self, other):
        return self.facts == other.facts

    def __hash__(self):
        return hash(self.facts)


@lru_cache(_MAX_SHARED)
def shared(same: _Same, forceinline: bool):
    """Make the intrinsic of a function, one for all that are equal."""
    function = same.function
    names = ", ".join(inspect.signature(function).parameters)
    scope = {"emit": _emit_call(function, forceinline), "intrinsic": intrinsic}
    exec(f"@intrinsic\ndef call(_, {names}):\n    return emit({names})", scope)  # noqa: S102 - names alone
    scope["call"].py_func = function
    return scope["call"]


def _emit_call(function, forceinline: bool):
    compiled: dict[tuple, Any] = {}

    def emit(*arguments):
        if arguments not in compiled:
            compiled[arguments] = compile_cuda(function, None, arguments, cc=_ANY, forceinline=forceinline)
        result = compiled[arguments]

        def codegen(context, builder, signature, values):
            context.active_code_library.add_linking_library(result.library)
            return context.call_internal(builder, result.fndesc, signature, values)

        return result.signature.return_type(*arguments), codegen

    return emit
