"""Level 1 end to end on the simulator: staged host arrays, batches, offsets, flags that come back to 0."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest
from strided_vectors import Strided

import pyblasgpu
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.gpu.simulator import intrinsics as simulator
from pyblasgpu.kernels.level1.map import Map
from pyblasgpu.kernels.level1.reduce import Reduce
from pyblasgpu.operands import Operand
from pyblasgpu.routines.level1 import launch_list, reduce_launch_list
from pyblasgpu.testing.reference import integers
from pyblasgpu.types import DTYPES, INDEX


@contextmanager
def small_kernels(letter: str):
    """Tiles of 32 accesses, at most three blocks of them."""
    with (
        override("level1_map", Map(dtype=letter, DIM=32, UNROLL=1)),
        override("level1_reduce", Reduce(dtype=letter, DIM=32, UNROLL=1, ALONE=1, BLOCKS=3)),
    ):
        yield


@pytest.fixture(autouse=True)
def backend(monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "sim")


@pytest.mark.parametrize("batch", [None, 2])
@pytest.mark.parametrize("letter", DTYPES)
def test_public_functions(letter, batch):
    dtype, rng = DTYPES[letter], np.random.default_rng(1)
    shape = (300,) if batch is None else (batch, 300)
    x, y = (Strided(integers(rng, shape, dtype), inc).view for inc in (1, -2))
    alpha = 2 - 1j if dtype.is_complex else 2.0
    sizes = abs(x.real) + abs(x.imag)
    with small_kernels(letter):
        assert (pyblasgpu.axpy(x, y, alpha=alpha) == alpha * x + y).all()
        assert (pyblasgpu.scal(x, alpha=alpha) == alpha * x).all()
        assert (pyblasgpu.dot(x, y, conj=True) == (x.conj() * y).sum(-1)).all()
        assert (pyblasgpu.asum(x) == sizes.sum(-1)).all()
        assert (pyblasgpu.iamax(x) == sizes.argmax(-1)).all()
        np.testing.assert_allclose(pyblasgpu.nrm2(x), np.linalg.norm(x, axis=-1), rtol=1e-6)
        rotated = pyblasgpu.rot(x, y, 3, 4)
        assert (rotated[0] == 3 * x + 4 * y).all() and (rotated[1] == 3 * y - 4 * x).all()
        before = x.copy(), y.copy()
        assert pyblasgpu.swap(x, y)[1] is y
        assert (x == before[1]).all() and (y == before[0]).all()
        expected = alpha * x + y
        assert pyblasgpu.axpy(x, y, alpha=alpha, out=y) is y and (y == expected).all()


def operand(array: np.ndarray, increment: int, dtype, conj: bool = False) -> Operand:
    *_, n = array.shape
    return Operand(simulator.adopt(array), n, 1, increment, 1, dtype, conj)


@pytest.mark.parametrize("operation", ["axpy", "scal", "dot"])
def test_conjugated_vectors(operation):
    """PyTorch's lazily conjugated tensors are such vectors."""
    dtype, rng = DTYPES["c"], np.random.default_rng(2)
    x, y = (integers(rng, (50,), dtype) for _ in range(2))
    out = np.zeros(50 if operation != "dot" else 1, dtype.name)
    operands = operand(x, 1, dtype, True), operand(y, 1, dtype, True), operand(out, 1, dtype)
    with small_kernels("c"):
        if operation == "dot":
            launches, expected = reduce_launch_list("dot", True, *operands), (x * y.conj()).sum()
        elif operation == "scal":
            operands = operands[::2]
            launches, expected = launch_list("scal", 2, *operands), 2 * x.conj()
        else:
            launches, expected = launch_list("axpy", 2, *operands), 2 * x.conj() + y.conj()
        launches.run([each.pointer for each in operands], 2, stream=0)
    assert (out == expected).all()


@pytest.mark.parametrize("letter", DTYPES)
def test_vectors_that_all_run_backwards(letter):
    dtype, rng = DTYPES[letter], np.random.default_rng(3)
    x, y, out = integers(rng, (90,), dtype), integers(rng, (90,), dtype), np.zeros(90, dtype.name)
    index, number = np.zeros(1, np.int64), np.zeros(1, dtype.name)
    backwards = [operand(each, 1, dtype).flip(rows=True) for each in (x, y, out)]
    with small_kernels(letter):
        launch_list("axpy", 2, *backwards).run([each.pointer for each in backwards], 2, stream=0)
        vectors = *backwards[:2], operand(number, 1, dtype)
        reduce_launch_list("dot", False, *vectors).run([each.pointer for each in vectors], 1, stream=0)
        vectors = backwards[0], operand(index, 1, INDEX)
        reduce_launch_list("iamax", False, *vectors).run([each.pointer for each in vectors], 1, stream=0)
    assert (out == 2 * x + y).all() and number[0] == (x * y).sum()
    assert index[0] == (abs(x.real) + abs(x.imag))[::-1].argmax()


def test_alpha_zero_copies_what_is_added_to():
    x, y, out = np.full(20, np.nan), np.arange(20.0), np.zeros(20)
    dtype = DTYPES["d"]
    operands = [operand(each, 1, dtype) for each in (x, y, out)]
    with small_kernels("d"):
        launch_list("axpy", 0, *operands).run([each.pointer for each in operands], 0, stream=0)
        assert launch_list("axpy", 0, *operands[::2]) is None
    assert (out == y).all()
