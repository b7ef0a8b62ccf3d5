"""The kernels of Level 2 computed with NumPy, for the stand-ins of kernels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from pyblasgpu.kernels.common import options
from pyblasgpu.kernels.level2 import gemv as kernel
from pyblasgpu.testing.reference import read_part
from pyblasgpu.types import Diag, Uplo


def gemv(fake: Any, grid: tuple, pointers: tuple, numbers: tuple, alpha: Any, beta: Any) -> None:
    """y := alpha op(A) x + beta y, of a `FakeKernel`; sums and flags are left alone."""
    outputs, terms, slices, per_slice, log_r, which, bits, o_step, k_step, *steps = numbers
    incx, ldw, incy, stride_a, stride_x, stride_y = steps
    batch, conj_a, conj_x = grid[2], bool(bits & options.CONJUGATE), bool(bits & options.CONJUGATE_SECOND)
    config = replace(fake.source.config, DIM_R=1 << log_r)
    assert grid[0] == config.grid(outputs) * slices and slices * per_slice >= terms
    assert slices == 1 or ldw >= outputs
    a = fake.view(pointers[0], outputs, terms, o_step, k_step, batch, stride_a, conj_a)
    x = fake.view(pointers[1], terms, 1, incx, 1, batch, stride_x, conj_x)
    y = fake.view(pointers[4], outputs, 1, incy, 1, batch, stride_y)
    if which != kernel.ALL:
        uplo = Uplo.LOWER if which == kernel.BEFORE else Uplo.UPPER
        a = read_part(a, uplo, Diag.UNIT if bits & options.UNIT else Diag.NON_UNIT)
    y[...] = alpha * (a @ x) + (beta * y if beta != 0 else 0)


def ger(fake: Any, grid: tuple, pointers: tuple, numbers: tuple, alpha: Any, beta: Any) -> None:
    """A := A + alpha x y' of a `FakeKernel`, of a triangle too, or + beta times its transpose."""
    m, n, bits, incx, incy, rs, cs, *steps = numbers
    assert grid[:2] == (fake.source.config.grid(m, n), 1)
    x = fake.view(pointers[0], m, 1, incx, 1, grid[2], steps[0], bool(bits & options.CONJUGATE))
    y = fake.view(pointers[1], n, 1, incy, 1, grid[2], steps[1], bool(bits & options.CONJUGATE_SECOND))
    a = fake.view(pointers[2], m, n, rs, cs, grid[2], steps[2])
    product = x @ y.swapaxes(1, 2)
    value = alpha * product
    if bits & options.RANK_2:
        turned = product.swapaxes(1, 2)
        value = value + beta * (turned.conj() if bits & options.HERMITIAN else turned)
    fake._update(a, value, 0 if bits & options.OVERWRITE else 1, fake._region(bits))


def symv_small(fake: Any, grid: tuple, pointers: tuple, numbers: tuple, alpha: Any, beta: Any) -> None:
    """y := alpha A x + beta y of a `FakeKernel`, A symmetric or Hermitian."""
    n, bits, rs, cs, incx, incy, *steps = numbers
    assert grid[:2] == (fake.source.config.grid(n), 1)
    uplo, conj = Uplo.UPPER if bits & options.UPPER else Uplo.LOWER, bool(bits & options.CONJUGATE)
    part = read_part(fake.view(pointers[0], n, n, rs, cs, grid[2], steps[0], conj), uplo, Diag.NON_UNIT)
    x = fake.view(pointers[1], n, 1, incx, 1, grid[2], steps[1])
    y = fake.view(pointers[2], n, 1, incy, 1, grid[2], steps[2])
    one, other = np.eye(n, dtype=bool), part.swapaxes(1, 2)
    if bits & options.HERMITIAN:
        part, other = np.where(one, part.real, part), other.conj()
    a = np.where(one, part, part + other)
    y[...] = alpha * (a @ x) + (beta * y if beta != 0 else 0)
