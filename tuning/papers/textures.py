"""Two-dimensional textures: their objects in the driver, and reads of them in a kernel.

A texture has an element of a matrix at (x, y), x along the contiguous dimension. Elements of all types are
one to four 32-bit integers, as no texture format has float64. Beyond the matrix there are zeros, so no read
needs a mask. In the simulator a texture is a matrix on the host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import numpy as np

from pyblasgpu.gpu import backend, memory
from pyblasgpu.gpu.driver import check, load
from pyblasgpu.operands import Operand
from pyblasgpu.types import Dtype

__all__ = ["reader", "simulated", "texture_of"]

WORD = 4  # bytes of a channel
WORDS = 4  # registers of a read, however many channels there are
_of_simulator: dict[int, np.ndarray] = {}
_numbers = count(1)


@contextmanager
def texture_of(matrix: Operand) -> Iterator[int]:
    """A block with a texture object of a matrix, which the context of its device owns.

    Raises
    ------
    DeviceError
        Where columns (or rows) do not begin as textures need: the first at a multiple of 512 bytes, the next
        ones of 32.
    """
    driver, size = load(), matrix.dtype.itemsize
    by_rows = matrix.row_stride != 1
    width, height = (matrix.cols, matrix.rows) if by_rows else (matrix.rows, matrix.cols)
    resource, description = driver.CUDA_RESOURCE_DESC(), driver.CUDA_TEXTURE_DESC()
    resource.resType = driver.CUresourcetype.CU_RESOURCE_TYPE_PITCH2D
    pitched = resource.res.pitch2D
    pitched.devPtr = driver.CUdeviceptr(matrix.pointer)
    pitched.format = driver.CUarray_format.CU_AD_FORMAT_SIGNED_INT32
    pitched.numChannels = size // WORD
    pitched.width, pitched.height = width, height
    pitched.pitchInBytes = size * (matrix.row_stride if by_rows else matrix.col_stride)
    description.addressMode = [driver.CUaddress_mode.CU_TR_ADDRESS_MODE_BORDER] * 3
    description.filterMode = driver.CUfilter_mode.CU_TR_FILTER_MODE_POINT
    description.flags = driver.CU_TRSF_READ_AS_INTEGER
    with memory.current_context(matrix.device):
        texture = check(driver.cuTexObjectCreate(resource, description, None), "cuTexObjectCreate")
    try:
        yield int(texture)
    finally:
        with memory.current_context(matrix.device):
            check(driver.cuTexObjectDestroy(texture), "cuTexObjectDestroy")


@contextmanager
def simulated(matrix: np.ndarray) -> Iterator[int]:
    """A block with a texture of a matrix on the host: ``matrix[y, x]``."""
    number = next(_numbers)
    _of_simulator[number] = matrix
    try:
        yield number
    finally:
        del _of_simulator[number]


def reader(dtype: Dtype) -> Callable[..., None]:
    """``read(local, i, texture, x, y)``: the reals of an element into ``local[i]`` and after it."""
    return _simulated_reader(dtype) if backend.SIMULATED else _intrinsic(dtype)


def _simulated_reader(dtype: Dtype) -> Callable[..., None]:
    REALS = dtype.reals_per_element

    def read(local: Any, i: int, texture: int, x: int, y: int) -> None:
        matrix = _of_simulator[texture]
        is_there = 0 <= y < matrix.shape[0] and 0 <= x < matrix.shape[1]
        element = matrix[y, x : x + 1].copy().view(dtype.real) if is_there else 0
        local.write(i, element, REALS)

    return read


def _intrinsic(dtype: Dtype) -> Callable[..., None]:
    from llvmlite import ir
    from numba.cuda.extending import intrinsic

    from pyblasgpu.gpu.intrinsics.emit import I32, asm, element_address, types

    words = dtype.real_size // WORD
    registers = ir.LiteralStructType([I32] * WORDS)
    text = "tex.2d.v4.s32.s32 {$0, $1, $2, $3}, [$4, {$5, $6}];"

    @intrinsic
    def read(_, local, i, texture, x, y):
        def codegen(context, builder, signature, arguments):
            target, at, *place = arguments
            value = asm(builder, registers, place, text, "=r,=r,=r,=r,l,r,r", effect=False)
            element = context.get_data_type(signature.args[0].dtype)
            bits = ir.IntType(32 * words)
            for real in range(dtype.reals_per_element):
                whole = ir.Constant(bits, 0)
                for word in range(words):
                    part = builder.zext(builder.extract_value(value, real * words + word), bits)
                    whole = builder.or_(whole, builder.shl(part, ir.Constant(bits, 32 * word)))
                slot = element_address(context, builder, signature.args[0], target, at, real)
                builder.store(builder.bitcast(whole, element), slot)
            return context.get_dummy_value()

        return types.void(local, i, types.int64, types.int32, types.int32), codegen

    return read
