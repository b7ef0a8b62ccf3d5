"""JAX's arrays on the device: JAX's out, without a copy, in the order of its streams, and never written."""

from __future__ import annotations

import os

import numpy as np
import pytest
from library_cases import CASES, NumPy, evaluated, fetched, values

import pyblasgpu
from pyblasgpu import blas, linalg
from pyblasgpu.frontend.arrays import libraries
from pyblasgpu.types import DTYPES

from .running import cupy

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # else CuPy has a quarter of the memory
jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")


@pytest.fixture(scope="module", autouse=True)
def begun():
    """JAX has begun, for which it makes the last of its devices current."""
    before = cupy.cuda.runtime.getDevice()
    if not any(device.platform == "gpu" for device in jax.devices()):
        pytest.skip("this JAX has no GPU")
    jax.config.update("jax_enable_x64", True)
    jnp.zeros(1).block_until_ready()
    cupy.cuda.runtime.setDevice(before)


def integers(shape, letter: str, seed: int = 0) -> np.ndarray:
    rng, dtype = np.random.default_rng(seed), DTYPES[letter]
    values = rng.integers(-4, 5, shape) + 1j * rng.integers(-4, 5, shape) * dtype.is_complex
    return (values if dtype.is_complex else values.real).astype(dtype.name)


def same(actual, expected) -> None:
    assert isinstance(actual, jax.Array)
    assert {device.platform for device in actual.devices()} == {"gpu"}
    assert actual.dtype == expected.dtype
    np.testing.assert_array_equal(np.asarray(actual), expected)


@pytest.mark.parametrize("letter", DTYPES)
def test_the_kind_that_came_in_comes_out(letter):
    a, b = integers((65, 31), letter), integers((31, 33), letter, 1)
    t = np.tril(integers((65, 65), letter, 2), -1) + np.eye(65, dtype=a.dtype)
    left, right, triangle = map(jnp.asarray, (a, b, t))
    product = a @ b
    same(pyblasgpu.gemm(left, right), product)
    same(pyblasgpu.gemm(left.T, right, trans_a="T"), product)
    same(pyblasgpu.trmm(triangle, left, lower=True), t @ a)
    same(pyblasgpu.trsm(triangle, pyblasgpu.trmm(triangle, left, lower=True), lower=True), a)
    same(linalg.matmul(left, right), product)
    same(linalg.matmul(left, right[:, 0]), product[:, 0])
    same(linalg.matmul(jnp.stack([left, left]), right), np.stack([product] * 2))
    same(getattr(blas, f"{letter}gemm")(1, left, right), product)
    same(getattr(blas, f"{letter}trsm")(1, triangle, left[:, 0] * 0, lower=1, overwrite_b=1), 0 * a[:, 0])
    same(linalg.solve_triangular(triangle, left * 0, lower=True, overwrite_b=True), 0 * a)


class Jax:
    put, get = staticmethod(jnp.array), staticmethod(np.asarray)


@pytest.mark.parametrize("case", [each for each in CASES.strip().split("\n") if "out=" not in each])
def test_results_are_those_of_numpys_arrays(case):
    """Results are of `linalg`, `lapack`, `blas` and keyword functions; what SciPy would overwrite stays."""
    for letter in "dz":
        before = values(DTYPES[letter])
        results, operands = evaluated(Jax, letter, "C", case)
        expected, _ = evaluated(NumPy, letter, "C", case)
        for one, other in zip(results, expected, strict=True):
            assert isinstance(one, (jax.Array, int))
            np.testing.assert_allclose(fetched(Jax, one), other, 1e-10, 1e-10)
        for name, operand in operands.items():
            np.testing.assert_array_equal(np.asarray(operand), before[name])


@pytest.mark.parametrize("assume_a", ["general", "pos"])
@pytest.mark.parametrize("columns", [1, 2])
def test_solutions_are_refined(decide_by, assume_a, columns):
    """On arrays that nothing writes."""
    decide_by(getrf_refined_min_order=512, potrf_refined_min_order=512)
    a, b = integers((512, 512), "d"), integers((512, columns), "d", 1)
    a = a + a.T + 1e4 * np.eye(512)
    x = linalg.solve(jnp.asarray(a), jnp.asarray(b), assume_a=assume_a, method="tensor")
    np.testing.assert_allclose(a @ np.asarray(x), b, rtol=1e-10, atol=1e-10)


def test_pivots_are_arrays_of_jax():
    """Matrices are single ones and stacks, also in repeated calls; pivots are integers with gaps before."""
    a = jnp.asarray(integers((3, 65, 65), "z"))
    for matrix in (a[0], a):
        for _ in range(3):
            lu, piv = linalg.lu_factor(matrix)
            expected = linalg.lu_factor(np.asarray(matrix))
            assert isinstance(lu, jax.Array)
            same(piv, expected[1])
            np.testing.assert_allclose(np.asarray(lu), expected[0], 1e-10, 1e-10)


def test_other_dtypes_are_cast():
    whole = jnp.arange(12, dtype="int32").reshape(3, 4)
    expected = (np.arange(12.0).reshape(3, 4)) @ np.arange(12.0).reshape(3, 4).T
    same(pyblasgpu.gemm(whole, whole, trans_b="T"), expected)
    same(pyblasgpu.gemm(whole.astype("float32"), whole.astype("float64"), trans_b="T"), expected)
    same(linalg.matmul(whole, whole.T, dtype=jnp.float32), expected.astype("f4"))
    assert blas.get_blas_funcs("gemm", dtype=jnp.complex64) is blas.cgemm


def test_the_result_is_no_copy(monkeypatch):
    made, empty = [], type(libraries.CUPY).empty

    def noted(*arguments):
        made.append(empty(*arguments))
        return made[-1]

    monkeypatch.setattr(type(libraries.CUPY), "empty", noted)
    a = jnp.asarray(integers((129, 129), "d"))
    expected = np.asarray(a) @ np.asarray(a)
    for call in (pyblasgpu.gemm, linalg.matmul, lambda x, y: blas.dgemm(1, x, y)):
        result = call(a, a)
        assert result.unsafe_buffer_pointer() == made[-1].data.ptr
        same(result, expected)
        same(result + 1, expected + 1)  # whatever its strides


def test_without_cupy_too(monkeypatch):
    """Its memory is Numba's then, and pyblasgpu exports it."""

    def absent(*_):
        raise ImportError("no CuPy")

    monkeypatch.setattr(type(libraries.CUPY), "empty", absent)
    a = jnp.asarray(integers((300, 300), "d"))
    for _ in range(5):
        same(pyblasgpu.gemm(a, a), np.asarray(a) @ np.asarray(a))
        same(blas.dgemm(1, a, a), np.asarray(a) @ np.asarray(a))


def pending(size: int = 3000):
    """The identity, after some tenths of a second of JAX's own work."""
    x = jnp.eye(size)
    for _ in range(40):
        x = x @ x
    return x


@pytest.mark.parametrize("stream", ["default", "own"])
def test_what_jax_still_computes_is_waited_for(stream):
    options = {} if stream == "default" else {"stream": cupy.cuda.Stream(non_blocking=True)}
    b = jnp.asarray(integers((3000, 500), "d"))
    pyblasgpu.gemm(jnp.eye(3000), b).block_until_ready()  # kernels are loaded
    for _ in range(3):
        same(pyblasgpu.gemm(pending(), b, **options), np.asarray(b))


def test_what_jax_gets_is_ready_in_its_order():
    a = jnp.asarray(integers((6000, 6000), "s"))
    expected = np.asarray(jnp.matmul(a, a, precision="highest"))
    for _ in range(3):
        result = pyblasgpu.gemm(a, a) + 1  # enqueued by JAX at once
        same(result, expected + np.float32(1))


def busy(stream) -> list:
    """Keep `stream` at work for a while; what is returned must live as long."""
    x = cupy.zeros((8192, 8192), np.float32)
    cupy.cuda.Device().synchronize()
    return [x, *(pyblasgpu.gemm(x, x, stream=stream) for _ in range(4))]


def test_a_call_does_not_wait():
    a = jnp.asarray(integers((129, 129), "d"))
    pyblasgpu.gemm(a, a).block_until_ready()
    stream = cupy.cuda.Stream(non_blocking=True)
    kept = busy(stream)
    result = pyblasgpu.gemm(a, a, stream=stream)
    assert not stream.done, "the call waited"
    same(result, np.asarray(a) @ np.asarray(a))
    del kept


def test_arrays_that_nobody_keeps_are_read_all_the_same():
    """JAX would give their memory to the next ones, on a stream that does not wait for ours."""
    eye, stream = jnp.eye(512), cupy.cuda.Stream(non_blocking=True)
    pyblasgpu.gemm(eye, eye).block_until_ready()
    kept = busy(stream)
    results = [pyblasgpu.gemm(jnp.full((512, 512), float(i)) + 0, eye, stream=stream) for i in range(100)]
    for i, result in enumerate(results):
        same(result, np.full((512, 512), float(i)))
    del kept


def test_jax_arrays_are_never_written():
    a, b = jnp.asarray(np.triu(integers((64, 64), "d")) + 9 * np.eye(64)), jnp.asarray(integers((64, 8), "d"))
    before = np.asarray(b).copy()
    for call in (
        lambda: pyblasgpu.gemm(a, b, out=b),
        lambda: pyblasgpu.trmm(a, b, out=b),
        lambda: linalg.matmul(a, b, out=b),
        lambda: linalg.matmul(a, a, out=a),
        lambda: pyblasgpu.gemm(a, a, beta=1, out=a),
    ):
        with pytest.raises(TypeError, match="out is read-only"):
            call()
    expected = np.linalg.solve(np.asarray(a), before)
    for result in (
        linalg.solve_triangular(a, b, overwrite_b=True),
        blas.dtrsm(1, a, b, overwrite_b=1),
    ):
        np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-12, atol=1e-12)
    same(blas.dgemm(0, a, b, 1, b, overwrite_c=1), before)
    np.testing.assert_array_equal(np.asarray(b), before)


def test_under_jit_there_is_nothing_to_read():
    with pytest.raises(TypeError, match=r"gemm: a cannot be read, a jax.*jit"):
        jax.jit(pyblasgpu.gemm)(jnp.eye(3), jnp.eye(3))
