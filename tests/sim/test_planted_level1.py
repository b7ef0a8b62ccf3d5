"""Defects planted in the kernels of Level 1, one at a time: the checks of the kernels must catch every one."""

from __future__ import annotations

import numpy as np
import pytest
from strided_vectors import Strided

from . import test_level1_map, test_level1_reduce
from .kernel_checks import Check, one_each
from .planting import assert_caught, parameters


@one_each
def mapped(operation="axpy", letter="s", n=150, incs=(1, 1, 1), **options) -> Check:
    """Vectors element by element."""

    def run(module):
        test_level1_map.check(operation, letter, n, incs, kernels=module, **options)

    return Check("level1_map", run)


@one_each
def reduced(operation="dot", letter="s", n=600, incs=(1, 1), **options) -> Check:
    """A vector reduced to a number."""

    def run(module):
        test_level1_reduce.check(operation, letter, n, incs, kernels=module, **options)

    return Check("level1_reduce", run)


@one_each
def norm(*values: float, dtype: str = "float32") -> Check:
    """The norm of a few numbers of different sizes."""

    def run(module):
        x = Strided(np.array([values], dtype))
        x.view = x.view.reshape(1, -1)
        actual = test_level1_reduce.reduced("nrm2", x, x, kernels=module, dim=32)[0]
        np.testing.assert_allclose(actual, np.linalg.norm(np.array(values, float)), rtol=1e-6)

    return Check("level1_reduce", run)


@one_each
def first_of(*places: int) -> Check:
    """Which of the equal ones at these places is the first."""

    def run(module):
        x = Strided(np.zeros((1, 600)))
        x.view = x.view.reshape(1, -1)
        x.view[0, list(places)] = 1
        index = test_level1_reduce.reduced("iamax", x, x, kernels=module, dim=64)[0]
        assert index == min(places)

    return Check("level1_reduce", run)


@one_each
def largest(*values: float) -> Check:
    """Which of many is the largest."""

    def run(module):
        many = np.resize(np.array(values), 600)
        x = Strided(many[None])
        x.view = x.view.reshape(1, -1)
        index = test_level1_reduce.reduced("iamax", x, x, kernels=module, dim=64)[0]
        assert index == np.argmax(abs(many))

    return Check("level1_reduce", run)


STRIDED, BATCH = mapped("axpy", "c", 70, (2, 3, 1), in_place=False), mapped("rot", batch=2)
SINGLE = mapped("swap", "z", shift=(1, 1, 1))

#: module, text, what is planted in its place, the check that sees it
DEFECTS = [
    # edges
    ("level1.elements", "p, at + part, i + u * STEP < left)", "p, at + part, i + u * STEP <= left)", mapped()),
    ("level1.elements", "FIRST + u * ACCESS + part, i + u * STEP < left)", "FIRST + u * ACCESS + part, True)", STRIDED),
    ("level1.elements", "int32(in_vectors + t), left)\n\n    @device_function\n    def write", "int32(in_vectors + t), in_vectors)\n\n    @device_function\n    def write", mapped(n=131)),
    ("level1.elements", "write_rest(0, values, p, int64(1), int32(0), int32(in_vectors + t), left)", "pass", mapped(n=131)),
    ("level1.elements", "MASK = facts.reals_per_element, ACCESS // facts.real_size, -VEC", "MASK = facts.reals_per_element, ACCESS // facts.real_size, -1", mapped(n=131)),
    ("level1.map", "min(n - first, TILE)", "n", mapped(n=500)),
    ("level1.reduce", "min(n - first, TILE)", "TILE", reduced()),
    ("level1.reduce", "while first < n:", "if first < n:", reduced(n=1500)),
    ("level1.reduce", "int64(blocks) * TILE", "TILE", reduced(n=1500)),
    ("level1.config", "-(-n // self.TILE)", "n // self.TILE", mapped()),
    # places
    ("level1.elements", "(i + u * STEP) * inc * REALS", "(i + u * STEP) * inc", STRIDED),
    ("level1.elements", "(STEP >> pair) * inc", "STEP >> pair", mapped("swap", incs=(2, 2, 2))),
    ("level1.elements", "(i & pair)", "0", mapped("rot", "c", 70, (2, 1, 3))),
    ("level1.elements", "(i >> pair) * inc", "i * inc", mapped("rot", "z", 70, (2, 1, 3))),
    ("level1.config", "return 2 * n,", "return n,", mapped("rot", "c")),
    ("level1.config", "2 * stride for", "stride for", reduced("nrm2", "z", batch=2)),
    ("level1.map", "first >> pair", "first", mapped("rot", "z", 300, (2, 1, 3))),
    ("level1.reduce", "first >> pair", "first", reduced("asum", "z", incs=(2, 2))),
    ("level1.elements", "DIM * VEC, config.UNROLL, 0)", "DIM, config.UNROLL, 0)", mapped()),
    ("level1.elements", "1, DIM, COUNT, 0)", "1, 1, COUNT, 0)", mapped(shift=(1, 1, 1))),
    ("level1.map", "batch * stride_x + begin * incx", "begin * incx", BATCH),
    ("level1.map", "batch * stride_y + begin * incy", "batch * stride_y + begin", mapped(n=300, incs=(1, 2, 1), in_place=False)),
    ("level1.map", "batch * stride_v + begin * incv", "batch * stride_v + begin", mapped(n=300, incs=(1, 1, 3), in_place=False)),
    ("level1.map", "(incx == 1) & (incy == 1)", "(incy == 1)", mapped(incs=(2, 1, 1))),
    ("level1.map", "& is_aligned(y)", "", mapped("axpy", shift=(0, 1, 0), in_place=False)),
    ("level1.map", "& is_aligned(x)", "", mapped("axpy", shift=(1, 0, 0))),
    ("level1.reduce", "& is_aligned(x) & is_aligned(y)", "", reduced(shift=1)),
    ("level1.reduce", "(incx == 1) & (incy == 1)", "(incx == 1)", reduced(incs=(1, 2))),
    ("level1.reduce", "begin * incy * REALS", "begin * incx * REALS", reduced(incs=(1, 2))),
    ("level1.reduce", "batch * stride_out", "batch", reduced(batch=2)),
    ("level1.reduce", "batch * stride_y * REALS", "batch * stride_x", reduced("dot", "c", batch=2)),
    ("level1.reduce", "offset(partials, batch * (blocks * ACC_REALS))", "offset(partials, batch * blocks)", reduced("dot", "c", batch=2)),
    ("level1.reduce", "partials[r * blocks + cuda.blockIdx.x]", "partials[r + cuda.blockIdx.x]", reduced("dot", "z")),
    ("level1.reduce", "sums[r * DIM + t] = acc[r]", "sums[r + t] = acc[r]", reduced("dot", "c")),
    # the order of threads and blocks
    ("level1.reduce", "put(0, acc, sums, t)\n        cuda.syncthreads()", "put(0, acc, sums, t)", reduced(dim=64)),
    ("level1.reduce", "                sync_warp()\n", "", reduced()),
    ("level1.reduce", "ticket == blocks - 1", "ticket == 0", reduced(n=1500)),
    ("level1.reduce", "store_relaxed(flags, batch, int32(0))", "pass", reduced(n=1500)),
    ("level1.reduce", "range(t + WARP, DIM, WARP)", "range(t + WARP, DIM, 2 * WARP)", reduced(dim=128)),
    ("level1.reduce", "half = WARP // 2", "half = WARP // 4", reduced()),
    ("level1.reduce", "range(t, blocks, DIM)", "range(t, blocks - 1, DIM)", reduced(n=1500)),
    ("level1.reduce", "start(acc, where)\n                settle(acc, where)", "pass", reduced(n=1500)),
    # arithmetic
    ("level1.map", "re -= alpha_i", "re += alpha_i", mapped("scal", "c")),
    ("level1.map", "im += alpha_i", "im -= alpha_i", mapped("axpy", "z")),
    ("level1.map", "beta * x + beta_i * y", "beta_i * x + beta * y", mapped("rot")),
    ("level1.map", "select(exchanges, x, ", "select(exchanges, y, ", mapped("swap")),
    ("level1.operations", "im = -im", "pass", reduced("dot", "z", conj=True)),
    ("level1.operations", "+ im * ys[2 * e]", "- im * ys[2 * e]", reduced("dot", "z")),
    ("level1.operations", "acc[0] += abs(xs[r])", "acc[0] += xs[r]", reduced("asum")),
    ("level1.operations", "size > LARGE", "False", norm(3e30, 4e30)),
    ("level1.operations", "size < SMALL", "False", norm(3e-30, 4e-30)),
    ("level1.operations", "total[0] <= LARGEST", "True", norm(3e22, 4e22)),
    ("level1.operations", "total[0] >= SMALLEST", "True", norm(3e-30, 4e-30)),
    ("level1.operations", "total[0] += xs[r] * xs[r]", "total[0] += abs(xs[r])", norm(3.0, 4.0)),
    ("level1.operations", "select(large | small, real(0), square)", "square", norm(3.0, 4e-20)),
    ("level1.operations", "large + middle * SCALE_LARGE * SCALE_LARGE", "large", norm(3e13, *[2e13] * 20, 4e13)),
    ("level1.operations", "middle + small * INVERSE_SMALL * INVERSE_SMALL", "middle", norm(9e-16, *[4e-16] * 40)),
    ("level1.operations", "elif middle == real(0):", "elif small > real(0):", norm(3.0, 4e-20, 4.0)),
    # the largest
    ("level1.operations", "is_larger | (is_equal & is_before)", "is_larger", first_of(80, 384)),
    ("level1.operations", "(high == acc[1]) & (low < acc[2])", "(high == acc[1]) & (low > acc[2])", largest(1.0)),
    ("level1.operations", "takes = (size > acc[0]) |", "takes = (size >= acc[0]) |", first_of(80, 81)),
    ("level1.operations", "size_of(e, xs) <= acc[0], int32(0), int32(1)", "size_of(e, xs) > acc[0], int32(1), int32(0)", largest(*[1.0] * 577, np.nan)),
    ("level1.operations", "larger[0] |= select", "larger[0] = select", largest(*[1.0] * 513, 2.0, *[1.0] * 86)),
    ("level1.operations", "| ((size != size) & (acc[0] == acc[0]))", "", largest(*[1.0] * 77, np.nan)),
    ("level1.operations", "(size != size) & (acc[0] == acc[0])", "size != size", largest(*[1.0] * 127, np.nan)),
    ("level1.operations", "(size > acc[0]) | (is_nan & (not was_nan))\n        is_before", "(size > acc[0])\n        is_before", largest(*[1.0] * 77, np.nan)),
    ("level1.operations", "size += abs(xs[2 * e + 1])", "pass", reduced("iamax", "z")),
]  # fmt: skip


@pytest.mark.parametrize(("module", "before", "after", "check"), parameters(DEFECTS))
def test_a_planted_defect_is_caught(module, before, after, check, monkeypatch):
    assert_caught(module, before, after, check, monkeypatch)
