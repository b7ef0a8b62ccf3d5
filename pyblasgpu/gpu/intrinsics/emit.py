"""LLVM of the intrinsics: types and letters of PTX, inline assembly, addresses."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from llvmlite import ir
from numba import cuda
from numba.core import cgutils

__all__ = [
    "I32",
    "LETTER",
    "PTX_TYPE",
    "REALS",
    "SHARED",
    "VOID",
    "architecture",
    "asm",
    "at",
    "element_address",
    "element_addresses",
    "load_volatile",
    "made_once",
    "nbytes",
    "register_kind",
    "statement",
    "types",
]

types: Any = cuda.types

I32 = ir.IntType(32)
VOID = ir.VoidType()
SHARED = 3  # address space
LETTER = {4: "f", 8: "d"}  # inline-asm constraint of a float32, float64 register
PTX_TYPE = {4: "f32", 8: "f64"}
#: Decorator of functions that make intrinsics: one for each set of arguments, so that users of it compare
#: equal.
made_once = lru_cache(maxsize=None, typed=True)
REALS = {"float32": types.float32, "float64": types.float64}


def asm(builder, result, arguments, text, constraints, effect=True, convergent=False):
    """An instruction; a `convergent` one, of several threads together, is moved into no branch and no copy of
    a loop's body that it was not in.
    """
    function = ir.FunctionType(result, [argument.type for argument in arguments])
    attributes = ("convergent",) if convergent else ()
    return builder.call(ir.InlineAsm(function, text, constraints, effect), arguments, attrs=attributes)


def statement(text, constraints=""):
    """The code of an intrinsic that is one instruction, of several threads together, and gives nothing."""
    constraints = ",".join(filter(None, [constraints, "~{memory}"]))

    def codegen(context, builder, signature, arguments):
        asm(builder, VOID, list(arguments), text, constraints, convergent=True)
        return context.get_dummy_value()

    return codegen


def architecture(context, builder):
    """The compute capability that is compiled for, 900 for 9.0: a constant, once the compiler has read it."""
    text = context.insert_const_string(builder.module, "__CUDA_ARCH")
    generic = ir.IntType(8).as_pointer()
    kind = ir.FunctionType(I32, [generic])
    reflect = cgutils.get_or_insert_function(builder.module, kind, "__nvvm_reflect")
    return builder.call(reflect, [builder.addrspacecast(text, generic)])


def at(builder, pointer, index):
    return builder.gep(pointer, [index])


def element_address(context, builder, array_type, array, index, step):
    """Address of element ``index + step`` of a one-dimensional (local) array."""
    position = context.data_model_manager[array_type].get_field_position("data")
    data = builder.extract_value(array, position)
    return builder.gep(data, [builder.add(index, ir.Constant(index.type, step))])


def element_addresses(context, builder, signature, arguments):
    """``slot(which, at)``: the address of a real of one of the arrays that an intrinsic is called with."""
    zero = ir.Constant(I32, 0)

    def slot(which, at):
        return element_address(context, builder, signature.args[which], arguments[which], zero, at)

    return slot


def load_volatile(builder, address, size, width=1):
    """`width` reals from shared memory by an instruction that keeps its place among others of its kind."""
    element = address.type.pointee
    window = builder.addrspacecast(address, element.as_pointer(SHARED))
    where = builder.ptrtoint(window, I32)
    names = ",".join(f"${lane}" for lane in range(width))
    vector, target, result = "", names, element
    if width > 1:
        vector, target, result = f".v{width}", f"{{{names}}}", ir.LiteralStructType([element] * width)
    text = f"ld.shared{vector}.{PTX_TYPE[size]} {target}, [${width}];"
    value = asm(builder, result, [where], text, ",".join([f"={LETTER[size]}"] * width + ["r"]))
    return [builder.extract_value(value, lane) for lane in range(width)] if width > 1 else [value]


def register_kind(element) -> tuple[str, str]:
    """PTX type, and constraint of inline assembly, of a real or an int32."""
    return ("b32", "r") if element == types.int32 else (PTX_TYPE[nbytes(element)], LETTER[nbytes(element)])


def nbytes(real) -> int:
    return real.bitwidth // 8
