"""Functions in Python as parts of the kernels that call them."""

from __future__ import annotations

import inspect
from typing import Any

from numba.cuda.compiler import compile_cuda
from numba.cuda.extending import intrinsic

__all__ = ["called", "inlined"]

_ANY = (8, 0)  # a compute capability, which Numba wants to be told; nothing here depends on it


def inlined(function):
    """`function` as a part of the kernels that call it: compiled once for each types, inlined by LLVM.

    Numba's own ``inline="always"`` copies the text instead, and compiles every copy anew; a device function
    of its own needs a device to compile for.
    """
    return _part(function, forceinline=True)


def called(function):
    """The same without a word to LLVM, for what is called so often that its copies would be too many."""
    return _part(function, forceinline=False)


def _part(function, forceinline: bool):
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
