"""How the intrinsics write LLVM: types and letters of PTX, inline assembly, addresses."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from llvmlite import ir
from numba import cuda
from numba.cuda.np import arrayobj

__all__ = [
    "I32", "LETTER", "PTX_TYPE", "REALS", "SHARED", "VOID", "architecture", "asm", "at",
    "element_address", "load_volatile", "made_once", "nbytes", "types",
]  # fmt: skip

types: Any = cuda.types

I32 = ir.IntType(32)
VOID = ir.VoidType()
SHARED, CONSTANT = 3, 4  # address spaces
LETTER = {4: "f", 8: "d"}  # inline-asm constraint of a float32, float64 register
PTX_TYPE = {4: "f32", 8: "f64"}
#: What makes intrinsics makes one for each arguments, so that functions that use it compare equal.
made_once = lru_cache(maxsize=None, typed=True)
REALS = {"float32": types.float32, "float64": types.float64}


def asm(builder, result, arguments, text, constraints, effect=True):
    function = ir.FunctionType(result, [argument.type for argument in arguments])
    return builder.call(ir.InlineAsm(function, text, constraints, effect), arguments)


def architecture(builder):
    """The compute capability that is compiled for, 900 for 9.0: a constant, once the compiler has read it."""
    asked, letters = bytearray(b"__CUDA_ARCH\0"), ir.IntType(8)
    name, kind = "asked_of_nvvm", ir.ArrayType(letters, len(asked))
    text = builder.module.globals.get(name)
    if text is None:
        text = ir.GlobalVariable(builder.module, kind, name, addrspace=CONSTANT)
        text.initializer, text.global_constant, text.linkage = ir.Constant(kind, asked), True, "internal"
    reflect = builder.module.globals.get("__nvvm_reflect")
    if reflect is None:
        reflect = ir.Function(builder.module, ir.FunctionType(I32, [letters.as_pointer()]), "__nvvm_reflect")
    first = builder.gep(text, [ir.Constant(I32, 0)] * 2)
    return builder.call(reflect, [builder.addrspacecast(first, letters.as_pointer())])


def at(builder, pointer, index):
    return builder.gep(pointer, [index])


def element_address(context, builder, array_type, array, index, step):
    """Address of element ``index + step`` of a one-dimensional (local) array."""
    data = arrayobj.make_array(array_type)(context, builder, array).data
    return builder.gep(data, [builder.add(index, ir.Constant(index.type, step))])


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


def nbytes(real) -> int:
    return real.bitwidth // 8
