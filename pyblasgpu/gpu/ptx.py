"""Intrinsics of the CUDA target: pointers, vector and predicated memory access, cp.async.

Each name here has a stand-in of the same meaning in `simulator`. A *pointer* is a ``types.CPointer`` to
float32 or float64; complex matrices are passed as pointers to their real parts. Indices count reals.
Predicates are written into the instruction instead of a branch: a branch inside an unrolled loop makes
the compiler index the accumulators at run time, and they fall out of the registers.
"""

from __future__ import annotations

import inspect
from typing import Any

from llvmlite import ir
from numba import cuda
from numba.cuda.compiler import compile_cuda
from numba.cuda.extending import intrinsic
from numba.cuda.np import arrayobj

__all__ = [
    "cuda",
    "types",
    "offset",
    "shared_pointer",
    "load_shared",
    "store_shared",
    "load_global",
    "store_global",
    "copy_async",
    "commit_async",
    "wait_async",
    "pointer_type",
    "REALS",
    "rank1_update",
    "warp_multiply",
    "fill",
    "spread_column",
    "inlined",
    "called",
    "fma",
    "divide",
]

types: Any = cuda.types

_I32 = ir.IntType(32)
_VOID = ir.VoidType()
_SHARED = 3  # address space
_ANY = (8, 0)  # a compute capability, which Numba wants to be told; nothing here depends on it
_LETTER = {4: "f", 8: "d"}  # inline-asm constraint of a float32, float64 register
_PTX_TYPE = {4: "f32", 8: "f64"}
REALS = {"float32": types.float32, "float64": types.float64}


def pointer_type(real: str):
    """The kernel parameter type of a pointer to `real`, 'float32' or 'float64'."""
    return types.CPointer(REALS[real])


def _asm(builder, result, arguments, text, constraints, effect=True):
    function = ir.FunctionType(result, [argument.type for argument in arguments])
    return builder.call(ir.InlineAsm(function, text, constraints, effect), arguments)


def _at(builder, pointer, index):
    return builder.gep(pointer, [index])


def _element(context, builder, array_type, array, index, step):
    """Address of element ``index + step`` of a one-dimensional (local) array."""
    data = arrayobj.make_array(array_type)(context, builder, array).data
    return builder.gep(data, [builder.add(index, ir.Constant(index.type, step))])


def _shared_volatile(builder, address, size):
    """One real from shared memory by an instruction that keeps its place among others of its kind."""
    window = builder.addrspacecast(address, address.type.pointee.as_pointer(_SHARED))
    where = builder.ptrtoint(window, _I32)
    return _asm(
        builder,
        address.type.pointee,
        [where],
        f"ld.shared.{_PTX_TYPE[size]} $0, [$1];",
        f"={_LETTER[size]},r",
    )


def _bytes(real) -> int:
    return real.bitwidth // 8


@intrinsic
def offset(_, pointer, count):
    """``pointer + count``."""

    def codegen(context, builder, signature, arguments):
        return _at(builder, arguments[0], arguments[1])

    return pointer(pointer, count), codegen


@intrinsic
def shared_pointer(_, array):
    """Pointer to the first element of a shared array: indexing it knows no wrap-around."""

    def codegen(context, builder, signature, arguments):
        return arrayobj.make_array(signature.args[0])(context, builder, arguments[0]).data

    return types.CPointer(array.dtype)(array), codegen


def load_shared(width: int, count: int = 1, step: int = 0):
    """``load(local, i, pointer, j)``: `count` vectors of `width` reals that lie `step` reals apart.

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
                value = builder.load(builder.bitcast(_at(builder, source, index), vector.as_pointer()))
                value.align = width * _bytes(real)
                for lane in range(width):
                    part = builder.extract_element(value, ir.Constant(_I32, lane)) if width > 1 else value
                    slot = _element(context, builder, signature.args[0], target, i, v * width + lane)
                    builder.store(part, slot)
            return context.get_dummy_value()

        return types.void(local, i, pointer, j), codegen

    return load


def store_shared(width: int):
    """``store(pointer, i, local, j)``: `width` reals at once, pointer[i:i+width] = local[j:j+width]."""

    @intrinsic
    def store(_, pointer, i, local, j):
        real = local.dtype

        def codegen(context, builder, signature, arguments):
            target, i, source, j = arguments
            element = context.get_data_type(real)
            parts = [
                builder.load(_element(context, builder, signature.args[2], source, j, lane))
                for lane in range(width)
            ]
            value = parts[0]
            vector = element
            if width > 1:
                vector = ir.VectorType(element, width)
                value = ir.Constant(vector, ir.Undefined)
                for lane, part in enumerate(parts):
                    value = builder.insert_element(value, part, ir.Constant(_I32, lane))
            address = builder.bitcast(_at(builder, target, i), vector.as_pointer())
            builder.store(value, address).align = width * _bytes(real)
            return context.get_dummy_value()

        return types.void(pointer, i, local, j), codegen

    return store


def load_global(width: int, read_only: bool):
    """``load(local, i, pointer, j, ok)``: `width` reals at once where `ok`, zeros elsewhere.

    `read_only` takes the read-only data path (the texture switch of the Fermi papers); the memory must
    then not be written during the kernel.
    """

    @intrinsic
    def load(_, local, i, pointer, j, ok):
        real = local.dtype
        size = _bytes(real)

        def codegen(context, builder, signature, arguments):
            target, i, source, j, ok = arguments
            element = context.get_data_type(real)
            kind = _PTX_TYPE[size]
            regs = [f"${lane}" for lane in range(width)]
            names = regs[0] if width == 1 else "{" + ",".join(regs) + "}"
            vector = "" if width == 1 else f".v{width}"
            zeros = " ".join(
                f"mov.{kind} {reg}, {'0f00000000' if size == 4 else '0d0000000000000000'};" for reg in regs
            )
            path = ".nc" if read_only else ""
            text = (
                f"{{ .reg .pred p; setp.ne.u32 p, ${width + 1}, 0; {zeros} "
                f"@p ld.global{path}{vector}.{kind} {names}, [${width}]; }}"
            )
            constraints = ",".join([f"=&{_LETTER[size]}"] * width + ["l", "r"])
            result = element if width == 1 else ir.LiteralStructType([element] * width)
            address = _at(builder, source, j)
            flag = builder.zext(ok, _I32)
            value = _asm(builder, result, [address, flag], text, constraints, effect=not read_only)
            for lane in range(width):
                part = value if width == 1 else builder.extract_value(value, lane)
                builder.store(part, _element(context, builder, signature.args[0], target, i, lane))
            return context.get_dummy_value()

        return types.void(local, i, pointer, j, types.boolean), codegen

    return load


@intrinsic
def store_global(_, pointer, i, value, ok):
    """``pointer[i] = value`` where `ok`."""
    size = _bytes(pointer.dtype)

    def codegen(context, builder, signature, arguments):
        target, i, value, ok = arguments
        text = f"{{ .reg .pred p; setp.ne.u32 p, $2, 0; @p st.global.{_PTX_TYPE[size]} [$0], $1; }}"
        flag = builder.zext(ok, _I32)
        _asm(builder, _VOID, [_at(builder, target, i), value, flag], text, f"l,{_LETTER[size]},r,~{{memory}}")
        return context.get_dummy_value()

    return types.void(pointer, i, pointer.dtype, types.boolean), codegen


def copy_async(size: int):
    """``copy(shared, i, pointer, j, valid)``: `size` bytes by cp.async; those past `valid` become 0."""
    cache = "cg" if size == 16 else "ca"

    @intrinsic
    def copy(_, shared, i, pointer, j, valid):
        def codegen(context, builder, signature, arguments):
            target, i, source, j, valid = arguments
            text = f"cp.async.{cache}.shared.global [$0], [$1], {size}, $2;"
            target = _at(builder, target, i)
            window = builder.addrspacecast(target, target.type.pointee.as_pointer(_SHARED))
            operands = [builder.ptrtoint(window, _I32), _at(builder, source, j), valid]
            _asm(builder, _VOID, operands, text, "r,l,r,~{memory}")
            return context.get_dummy_value()

        return types.void(shared, i, pointer, j, types.int32), codegen

    return copy


@intrinsic
def commit_async(_):
    """Close this thread's current group of asynchronous copies."""

    def codegen(context, builder, signature, arguments):
        _asm(builder, _VOID, [], "cp.async.commit_group;", "~{memory}")
        return context.get_dummy_value()

    return types.void(), codegen


def wait_async(pending: int):
    """``wait()``: until at most `pending` of this thread's groups are still under way."""

    @intrinsic
    def wait(_):
        def codegen(context, builder, signature, arguments):
            _asm(builder, _VOID, [], f"cp.async.wait_group {pending};", "~{memory}")
            return context.get_dummy_value()

        return types.void(), codegen

    return wait


def rank1_update(m: int, n: int, parts: int, conj_a: bool = False, conj_b: bool = False):
    """``update(acc, a, b)``: acc[:, j] += a * b[j] over an m-by-n register tile, straight-line.

    `parts` is 1 for real tiles, 2 for complex ones (real and imaginary part side by side); `acc` is
    column-major. Written as an intrinsic because a Python loop nest of this size is unrolled only by the
    compiler's leave, and one that is not puts the accumulators into local memory.
    """
    sign_a, sign_b = (-1 if conj_a else 1), (-1 if conj_b else 1)

    @intrinsic
    def update(_, acc, a, b):
        def codegen(context, builder, signature, arguments):
            zero = ir.Constant(_I32, 0)

            def read(which, count):
                array_type = signature.args[which]
                return [
                    builder.load(_element(context, builder, array_type, arguments[which], zero, lane))
                    for lane in range(count)
                ]

            def fma(x, y, z, sign):
                product = builder.fmul(x, y, flags=["contract"])
                combine = builder.fadd if sign > 0 else builder.fsub
                return combine(z, product, flags=["contract"])

            row, column = read(1, m * parts), read(2, n * parts)
            for j in range(n):
                for i in range(m):
                    at = (j * m + i) * parts
                    slots = [
                        _element(context, builder, signature.args[0], arguments[0], zero, at + part)
                        for part in range(parts)
                    ]
                    total = [builder.load(slot) for slot in slots]
                    a_part = row[i * parts : (i + 1) * parts]
                    b_part = column[j * parts : (j + 1) * parts]
                    total[0] = fma(a_part[0], b_part[0], total[0], 1)
                    if parts == 2:
                        total[1] = fma(a_part[0], b_part[1], total[1], sign_b)
                        total[0] = fma(a_part[1], b_part[1], total[0], -sign_a * sign_b)
                        total[1] = fma(a_part[1], b_part[0], total[1], sign_a)
                    for slot, value in zip(slots, total, strict=True):
                        builder.store(value, slot)
            return context.get_dummy_value()

        return types.void(acc, a, b), codegen

    return update


def warp_multiply(
    m: int, n: int, shape: tuple[int, int], parts: int, conj_a: bool = False, conj_b: bool = False
):
    """``update(acc, a, b)``: acc += A B by a warp on the tensor cores, in float64; straight-line.

    Parameters
    ----------
    m, n : int
        Instructions along M, N.
    shape : (int, int)
        M and K of an instruction, its N is 8: (8, 4) from sm_80 on, (16, 4), (16, 8), (16, 16) from sm_90 on.
    parts : int
        2 for complex operands: four real products, on real and imaginary parts side by side.
    conj_a, conj_b : bool

    Notes
    -----
    With g = lane // 4 and t = lane % 4 a lane holds, of each group of eight rows of A, row g and columns
    t, t + 4, ... (``a[step, group]``); of each instruction's eight columns of B, column g and rows t, t + 4,
    ... (``b[step, column group]``); of C, column by column, the rows g, g + 8, ... of the columns 8j + 2t
    and 8j + 2t + 1. (PTX ISA, matrix fragments for mma with .f64 operands.)
    """
    rows, steps = shape[0] // 8, shape[1] // 4
    groups = m * rows

    @intrinsic
    def update(_, acc, a, b):
        def codegen(context, builder, signature, arguments):
            def slot(which, at):
                zero = ir.Constant(_I32, 0)
                return _element(context, builder, signature.args[which], arguments[which], zero, at)

            def fragment(which, count):
                """All its values, [part][step][index]."""
                return [
                    [
                        [builder.load(slot(which, (s * count + i) * parts + part)) for i in range(count)]
                        for s in range(steps)
                    ]
                    for part in range(parts)
                ]

            def negated(values):
                return [[_negated(builder, value) for value in step] for step in values]

            def multiply(part, left, right):
                """acc[part] += left right, over the whole tile."""
                for j in range(n):
                    for i in range(m):
                        places = [
                            slot(0, ((2 * j + odd) * groups + i * rows + h) * parts + part)
                            for h in range(rows)
                            for odd in range(2)
                        ]
                        x = [left[s][i * rows + h] for s in range(steps) for h in range(rows)]
                        y = [right[s][j] for s in range(steps)]
                        _mma_f64(builder, shape, places, x, y)

            left, right = fragment(1, groups), fragment(2, n)
            if parts == 1:
                multiply(0, left[0], right[0])
            else:
                # (a + ib)(c + id); a conjugate turns the sign of its imaginary part
                a_re, a_im = left[0], negated(left[1]) if conj_a else left[1]
                b_re, b_im = right[0], right[1]
                minus_im = b_im if conj_b else negated(b_im)
                plus_im = negated(b_im) if conj_b else b_im
                multiply(0, a_re, b_re)
                multiply(1, a_re, plus_im)
                multiply(0, a_im, minus_im)
                multiply(1, a_im, b_re)
            return context.get_dummy_value()

        return types.void(acc, a, b), codegen

    return update


def _negated(builder, value):
    """``-value`` by its sign bit: an instruction of the integer units, not of those for float64."""
    whole = ir.IntType(64)
    bits = builder.xor(builder.bitcast(value, whole), ir.Constant(whole, 1 << 63))
    return builder.bitcast(bits, value.type)


def _mma_f64(builder, shape, places, a, b):
    """One instruction: the values at `places` += a b."""
    m, k = shape
    total = [builder.load(place) for place in places]
    count, element = len(total), total[0].type

    def registers(first, many):
        return "{" + ",".join(f"${i}" for i in range(first, first + many)) + "}"

    groups = [(0, count), (count, len(a)), (count + len(a), len(b)), (0, count)]
    operands = ", ".join(registers(*group) for group in groups)
    text = f"mma.sync.aligned.m{m}n8k{k}.row.col.f64.f64.f64.f64 {operands};"
    tied = [str(i) for i in range(count)]
    constraints = ",".join(["=d"] * count + ["d"] * (len(a) + len(b)) + tied)
    result = ir.LiteralStructType([element] * count)
    value = _asm(builder, result, [*a, *b, *total], text, constraints, effect=False)
    for i, place in enumerate(places):
        builder.store(builder.extract_value(value, i), place)


def fill(count: int):
    """``set(local, value)``: the first `count` elements of a local array."""

    @intrinsic
    def set_all(_, local, value):
        def codegen(context, builder, signature, arguments):
            zero = ir.Constant(_I32, 0)
            for lane in range(count):
                slot = _element(context, builder, signature.args[0], arguments[0], zero, lane)
                builder.store(arguments[1], slot)
            return context.get_dummy_value()

        return types.void(local, local.dtype), codegen

    return set_all


def spread_column(n: int, j: int, parts: int, conj: bool, sign: int):
    """``spread(column, pointer)``: column[i] += sign * T[i, j] * column[j] for all i > j, straight-line.

    `pointer` is the n-by-n matrix T in shared memory, stored by columns. The loads are volatile: their
    order is the program's, which keeps the compiler from holding all of T in registers.
    """

    @intrinsic
    def spread(_, column, pointer):
        real = column.dtype

        def codegen(context, builder, signature, arguments):
            local, matrix = arguments
            zero = ir.Constant(_I32, 0)

            def slot(i, part):
                return _element(context, builder, signature.args[0], local, zero, i * parts + part)

            def entry(i, part):
                address = _at(builder, matrix, ir.Constant(_I32, (j * n + i) * parts + part))
                return _shared_volatile(builder, address, _bytes(real))

            def add(address, x, y, positive):
                product = builder.fmul(x, y, flags=["contract"])
                combine = builder.fadd if positive else builder.fsub
                builder.store(combine(builder.load(address), product, flags=["contract"]), address)

            x = [builder.load(slot(j, part)) for part in range(parts)]
            plus = sign > 0
            for i in range(j + 1, n):
                t = [entry(i, part) for part in range(parts)]
                add(slot(i, 0), t[0], x[0], plus)
                if parts == 2:
                    add(slot(i, 0), t[1], x[1], plus == conj)
                    add(slot(i, 1), t[0], x[1], plus)
                    add(slot(i, 1), t[1], x[0], plus != conj)
            return context.get_dummy_value()

        return types.void(column, pointer), codegen

    return spread


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


@intrinsic
def fma(_, x, y, z):
    """``x*y + z`` with one rounding, whatever the compiler would do."""

    def codegen(context, builder, signature, arguments):
        kind, letter = _PTX_TYPE[_bytes(signature.args[0])], _LETTER[_bytes(signature.args[0])]
        result = context.get_data_type(signature.args[0])
        text = f"fma.rn.{kind} $0, $1, $2, $3;"
        return _asm(builder, result, arguments, text, f"={letter},{letter},{letter},{letter}", effect=False)

    return z(z, z, z), codegen


@intrinsic
def divide(_, x, y):
    """``x / y`` as IEEE 754 has it: by zero it gives inf or NaN."""

    def codegen(context, builder, signature, arguments):
        return builder.fdiv(*arguments)

    return y(y, y), codegen
