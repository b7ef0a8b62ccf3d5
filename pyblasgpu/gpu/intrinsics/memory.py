"""Intrinsics that address and move memory: vectors and predicated access."""

from __future__ import annotations

from llvmlite import ir
from numba.cuda.extending import intrinsic
from numba.cuda.np import arrayobj

from .emit import (
    I32,
    LETTER,
    PTX_TYPE,
    REALS,
    VOID,
    asm,
    at,
    element_address,
    made_once,
    nbytes,
    register_kind,
    types,
)

__all__ = [
    "is_aligned",
    "load_global",
    "load_shared",
    "offset",
    "pointer_type",
    "prefetch",
    "shared_pointer",
    "store_global",
    "store_global_vector",
    "store_int64",
    "store_shared",
]


def pointer_type(real: str):
    """The kernel parameter type of a pointer to `real`, 'float32' or 'float64', or to 'int32'."""
    return types.CPointer(types.int32 if real == "int32" else REALS[real])


@intrinsic
def offset(_, pointer, count):
    """``pointer + count``."""

    def codegen(context, builder, signature, arguments):
        return at(builder, arguments[0], arguments[1])

    return pointer(pointer, count), codegen


@intrinsic
def shared_pointer(_, array):
    """Pointer to the first element of a shared array: indexing it knows no wrap-around."""

    def codegen(context, builder, signature, arguments):
        return arrayobj.make_array(signature.args[0])(context, builder, arguments[0]).data

    return types.CPointer(array.dtype)(array), codegen


@made_once
def load_shared(width: int, count: int = 1, step: int = 0):
    """``load(local, i, pointer, j)``: `count` vectors of `width` reals, `step` reals apart.

    ``local[i + v*width + lane] = pointer[j + v*step + lane]``.
    """

    @intrinsic
    def load(_, local, i, pointer, j):
        real = local.dtype

        def codegen(context, builder, signature, arguments):
            target, i, source, j = arguments
            element = context.get_data_type(real)
            vector = ir.VectorType(element, width) if width > 1 else element
            for v in range(count):
                index = builder.add(j, ir.Constant(j.type, v * step))
                value = builder.load(builder.bitcast(at(builder, source, index), vector.as_pointer()))
                value.align = width * nbytes(real)
                for lane in range(width):
                    part = builder.extract_element(value, ir.Constant(I32, lane)) if width > 1 else value
                    slot = element_address(context, builder, signature.args[0], target, i, v * width + lane)
                    builder.store(part, slot)
            return context.get_dummy_value()

        return types.void(local, i, pointer, j), codegen

    return load


@made_once
def store_shared(width: int):
    """``store(pointer, i, local, j)``: `width` reals at once, pointer[i:i+width] = local[j:j+width]."""

    @intrinsic
    def store(_, pointer, i, local, j):
        real = local.dtype

        def codegen(context, builder, signature, arguments):
            target, i, source, j = arguments
            element = context.get_data_type(real)
            parts = [
                builder.load(element_address(context, builder, signature.args[2], source, j, lane))
                for lane in range(width)
            ]
            value = parts[0]
            vector = element
            if width > 1:
                vector = ir.VectorType(element, width)
                value = ir.Constant(vector, ir.Undefined)
                for lane, part in enumerate(parts):
                    value = builder.insert_element(value, part, ir.Constant(I32, lane))
            address = builder.bitcast(at(builder, target, i), vector.as_pointer())
            builder.store(value, address).align = width * nbytes(real)
            return context.get_dummy_value()

        return types.void(pointer, i, local, j), codegen

    return store


@made_once
def load_global(width: int, read_only: bool):
    """``load(local, i, pointer, j, ok)``: `width` reals, or int32, at once where `ok`, zeros elsewhere.

    `read_only` takes the read-only data path (the texture switch of the Fermi papers); the memory must
    then not be written during the kernel.
    """

    @intrinsic
    def load(_, local, i, pointer, j, ok):
        real = local.dtype

        def codegen(context, builder, signature, arguments):
            target, i, source, j, ok = arguments
            element = context.get_data_type(real)
            kind, letter = register_kind(real)
            regs = [f"${lane}" for lane in range(width)]
            names = regs[0] if width == 1 else "{" + ",".join(regs) + "}"
            vector = "" if width == 1 else f".v{width}"
            zero = {"f32": "0f00000000", "f64": "0d0000000000000000"}.get(kind, "0")
            zeros = " ".join(f"mov.{kind} {reg}, {zero};" for reg in regs)
            path = ".nc" if read_only else ""
            text = (
                f"{{ .reg .pred p; setp.ne.u32 p, ${width + 1}, 0; {zeros} "
                f"@p ld.global{path}{vector}.{kind} {names}, [${width}]; }}"
            )
            constraints = ",".join([f"=&{letter}"] * width + ["l", "r"])
            result = element if width == 1 else ir.LiteralStructType([element] * width)
            address = at(builder, source, j)
            flag = builder.zext(ok, I32)
            value = asm(builder, result, [address, flag], text, constraints, effect=not read_only)
            for lane in range(width):
                part = value if width == 1 else builder.extract_value(value, lane)
                builder.store(part, element_address(context, builder, signature.args[0], target, i, lane))
            return context.get_dummy_value()

        return types.void(local, i, pointer, j, types.boolean), codegen

    return load


@intrinsic
def store_global(_, pointer, i, value, ok):
    """``pointer[i] = value`` where `ok`."""
    size = nbytes(pointer.dtype)

    def codegen(context, builder, signature, arguments):
        target, i, value, ok = arguments
        text = f"{{ .reg .pred p; setp.ne.u32 p, $2, 0; @p st.global.{PTX_TYPE[size]} [$0], $1; }}"
        flag = builder.zext(ok, I32)
        asm(builder, VOID, [at(builder, target, i), value, flag], text, f"l,{LETTER[size]},r,~{{memory}}")
        return context.get_dummy_value()

    return types.void(pointer, i, pointer.dtype, types.boolean), codegen


@intrinsic
def store_int64(_, pointer, i, value):
    """The integer `value` in the eight bytes from ``pointer[i]`` on."""

    def codegen(context, builder, signature, arguments):
        target, i, value = arguments
        asm(builder, VOID, [at(builder, target, i), value], "st.global.u64 [$0], $1;", "l,l,~{memory}")
        return context.get_dummy_value()

    return types.void(pointer, i, types.int64), codegen


@intrinsic
def prefetch(_, pointer, i, ok):
    """Prefetch the line of memory with ``pointer[i]`` into L2, where `ok`; nothing waits for it."""

    def codegen(context, builder, signature, arguments):
        source, i, ok = arguments
        text = "{ .reg .pred p; setp.ne.u32 p, $1, 0; @p prefetch.global.L2 [$0]; }"
        asm(builder, VOID, [at(builder, source, i), builder.zext(ok, I32)], text, "l,r")
        return context.get_dummy_value()

    return types.void(pointer, i, types.boolean), codegen


@made_once
def store_global_vector(width: int):
    """``store(pointer, i, local, j, ok)``: pointer[i:i+width] = local[j:j+width] at once, where `ok`."""

    @intrinsic
    def store(_, pointer, i, local, j, ok):
        kind, letter = register_kind(pointer.dtype)

        def codegen(context, builder, signature, arguments):
            target, i, source, j, ok = arguments
            parts = [
                builder.load(element_address(context, builder, signature.args[2], source, j, lane))
                for lane in range(width)
            ]
            names = ",".join(f"${lane + 1}" for lane in range(width))
            vector, values = ("", names) if width == 1 else (f".v{width}", f"{{{names}}}")
            text = (
                f"{{ .reg .pred p; setp.ne.u32 p, ${width + 1}, 0; "
                f"@p st.global{vector}.{kind} [$0], {values}; }}"
            )
            constraints = ",".join(["l", *[letter] * width, "r", "~{memory}"])
            asm(builder, VOID, [at(builder, target, i), *parts, builder.zext(ok, I32)], text, constraints)
            return context.get_dummy_value()

        return types.void(pointer, i, local, j, types.boolean), codegen

    return store


@made_once
def is_aligned(width: int):
    """``aligned(pointer)``: whether a vector of `width` reals may be there."""

    @intrinsic
    def aligned(_, pointer):
        def codegen(context, builder, signature, arguments):
            address = builder.ptrtoint(arguments[0], ir.IntType(64))
            rest = builder.and_(address, ir.Constant(address.type, width * nbytes(pointer.dtype) - 1))
            return builder.icmp_unsigned("==", rest, ir.Constant(address.type, 0))

        return types.boolean(pointer), codegen

    return aligned
