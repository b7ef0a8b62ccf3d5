"""JAX, PyTorch and array-api-strict on the host, and tables: where they are installed."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import pyblasgpu
from pyblasgpu import blas, linalg
from pyblasgpu.types import DTYPES, dtype_of


class Jax:
    mutable = False

    def __init__(self):
        self.xp = pytest.importorskip("jax.numpy")
        pytest.importorskip("jax").config.update("jax_enable_x64", True)

    def put(self, values):
        return self.xp.array(values)

    get = staticmethod(np.asarray)


class Strict(Jax):
    mutable = True

    def __init__(self):
        self.xp = pytest.importorskip("array_api_strict")

    def put(self, values):
        return self.xp.asarray(np.array(values))

    def get(self, array):
        return np.from_dlpack(array)


class Torch(Strict):
    def __init__(self):
        self.xp = pytest.importorskip("torch")

    def get(self, array):
        return array.resolve_conj().numpy()


@pytest.fixture(params=[Jax, Strict, Torch], ids=lambda kind: kind.__name__)
def library(request):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield request.param()


A, B = np.triu(np.arange(9.0).reshape(3, 3)) + 9 * np.eye(3), np.arange(6.0).reshape(3, 2) - 2
CALLS = {
    "gemm": (lambda a, b: pyblasgpu.gemm(a, b, backend="cpu"), lambda: A @ B),
    "trsm": (lambda a, b: pyblasgpu.trsm(a, b, backend="cpu"), lambda: np.linalg.solve(A, B)),
    "dgemm": (lambda a, b: blas.dgemm(1, a, b), lambda: A @ B),
    "dgemm with c": (lambda a, b: blas.dgemm(1, a, b, 3, b, overwrite_c=1), lambda: A @ B + 3 * B),
    "zgemm of reals": (lambda a, b: blas.zgemm(1, a, b), lambda: A @ B),
    "matmul": (linalg.matmul, lambda: A @ B),
    "matmul by a vector": (lambda a, b: linalg.matmul(a, b[:, 0]), lambda: A @ B[:, 0]),
    "matmul of vectors": (lambda a, b: linalg.matmul(a[0, :], b[:, 0]), lambda: A[0] @ B[:, 0]),
    "dgemm by a vector": (lambda a, b: blas.dgemm(1, a, b[:, 0]), lambda: A @ B[:, :1]),
    "solve": (lambda a, b: linalg.solve_triangular(a, b, overwrite_b=True), lambda: np.linalg.solve(A, B)),
    "solve a vector": (lambda a, b: linalg.solve_triangular(a, b[:, 0]), lambda: np.linalg.solve(A, B[:, 0])),
    "nothing": (lambda a, b: pyblasgpu.gemm(a[:0, :], b), lambda: A[:0] @ B),
    "stacks": (lambda a, b: pyblasgpu.gemm(a[None, :, :], b), lambda: (A @ B)[None]),
}


@pytest.mark.parametrize("call", CALLS)
def test_the_kind_that_came_in_comes_out(library, call):
    run, expected = CALLS[call]
    a, b = library.put(A), library.put(B)
    result = run(a, b)
    assert type(result) is type(a) or (call == "matmul of vectors" and np.ndim(result) == 0)
    np.testing.assert_allclose(library.get(result), expected(), rtol=1e-14)


def test_integers(library):
    whole = library.put(A.astype("i8"))
    for result in (linalg.matmul(whole, whole), pyblasgpu.gemm(whole, whole), blas.dgemm(1, whole, whole)):
        assert type(result) is type(whole) and dtype_of(result.dtype) is DTYPES["d"]
        np.testing.assert_array_equal(library.get(result), A @ A)


@pytest.mark.parametrize("letter", DTYPES)
def test_dtype_objects_of_the_library(library, letter):
    name = DTYPES[letter].name
    dtype = getattr(library.xp, name)
    assert dtype_of(dtype) is dtype_of(np.dtype(name)) is DTYPES[letter]
    a = library.put(A.astype("f4"))
    result = linalg.matmul(a, a, dtype=dtype)
    assert result.dtype == dtype and type(result) is type(a)
    np.testing.assert_array_equal(library.get(result), A @ A)
    assert blas.get_blas_funcs("gemm", dtype=dtype) is getattr(blas, f"{letter}gemm")
    assert blas.find_best_blas_type([library.put(A.astype(name))])[0] == letter


X, Y = np.arange(3.0), 1 + np.arange(3.0) ** 2
#: Calls of `blas` that write into what SciPy would, and the results.
UPDATES = {
    "daxpy": (lambda a, x, y: blas.daxpy(x, y, a=2), lambda: (2 * X + Y,)),
    "daxpy of parts": (lambda a, x, y: blas.daxpy(x, y, n=1, offy=1), lambda: (Y + [0, X[0], 0],)),
    "dcopy": (lambda a, x, y: blas.dcopy(x, y), lambda: (X,)),
    "dscal": (lambda a, x, y: blas.dscal(2, x), lambda: (2 * X,)),
    "dscal of a matrix": (
        lambda a, x, y: blas.dscal(2, a, n=2),
        lambda: (A * [[2, 1, 1], [2, 1, 1], [1, 1, 1]],),
    ),
    "dswap": (lambda a, x, y: blas.dswap(x, y), lambda: (Y, X)),
    "drot": (lambda a, x, y: blas.drot(x, y, 3, 4), lambda: (3 * X + 4 * Y, 3 * Y - 4 * X)),
    "drotm": (lambda a, x, y: blas.drotm(x, y, [-1, 3, 0, 0, 4]), lambda: (3 * X, 4 * Y)),
    "rot": (lambda a, x, y: pyblasgpu.rot(x, y, 3, 4), lambda: (3 * X + 4 * Y, 3 * Y - 4 * X)),
    "dgemv": (lambda a, x, y: blas.dgemv(2, a, x, 3, y, overwrite_y=1), lambda: (2 * A @ X + 3 * Y,)),
    "dsymv": (lambda a, x, y: blas.dsymv(2, a, x, 3, y), lambda: (2 * SYMMETRIC @ X + 3 * Y,)),
    "dtrmv": (lambda a, x, y: blas.dtrmv(a, x, overwrite_x=1), lambda: (A @ X,)),
    "dtrsv of parts": (lambda a, x, y: blas.dtrsv(a, y, offx=0, incx=1), lambda: (np.linalg.solve(A, Y),)),
    "dger": (lambda a, x, y: blas.dger(1, x, y, a=a, overwrite_a=1), lambda: (A + np.outer(X, Y),)),
    "dsbmv": (
        lambda a, x, y: blas.dsbmv(0, 2, a[:1, :], x, beta=1, y=y, overwrite_y=1),
        lambda: (2 * A[0] * X + Y,),
    ),
    "dtbmv": (lambda a, x, y: blas.dtbmv(0, a[:1, :], x, overwrite_x=1), lambda: (A[0] * X,)),
}
SYMMETRIC = np.triu(A) + np.triu(A, 1).T


@pytest.mark.parametrize("call", UPDATES)
def test_what_scipy_updates_is_new_where_arrays_are_immutable(library, call):
    run, expected = UPDATES[call]
    operands = [library.put(values.copy()) for values in (A, X, Y)]
    results = run(*operands)
    for result, values in zip(results if isinstance(results, tuple) else (results,), expected(), strict=True):
        assert isinstance(result, type(operands[0]))
        np.testing.assert_allclose(library.get(result), values, rtol=1e-14)
    if not library.mutable:
        for operand, values in zip(operands, (A, X, Y), strict=True):
            np.testing.assert_array_equal(library.get(operand), values)


def test_outputs(library):
    a, b, out = library.put(A), library.put(B), library.put(np.zeros_like(B))
    if not library.mutable:
        for call in (
            lambda: pyblasgpu.gemm(a, b, out=out),
            lambda: pyblasgpu.trmm(a, b, out=b),
            lambda: linalg.matmul(a, b, out=out),
            lambda: linalg.matmul(a, a, out=a),
        ):
            with pytest.raises(TypeError, match="out is read-only"):
                call()
        np.testing.assert_array_equal(library.get(out), 0 * B)
        return
    assert pyblasgpu.gemm(a, b, out=out) is out
    np.testing.assert_array_equal(library.get(out), A @ B)
    assert pyblasgpu.trmm(a, b, out=b) is b
    np.testing.assert_array_equal(library.get(b), A @ B)
    assert linalg.matmul(a, a, out=a) is a
    np.testing.assert_array_equal(library.get(a), A @ A)
    single = library.put(np.zeros((3, 2), "f4"))
    assert linalg.matmul(library.put(A), library.put(B), out=single) is single
    np.testing.assert_array_equal(library.get(single), A @ B)


@pytest.mark.parametrize("call", CALLS)
def test_results_are_on_the_device_of_the_arrays(call):
    """The library has several devices in host memory."""
    xp = pytest.importorskip("array_api_strict")
    device = xp.Device("device1")
    run, expected = CALLS[call]
    a, b = (xp.asarray(values.copy(), device=device) for values in (A, B))
    result = run(a, b)
    assert type(result) is type(a) and result.device == device
    np.testing.assert_allclose(np.from_dlpack(result), expected(), rtol=1e-14)


@pytest.mark.parametrize(
    "call",
    [
        lambda here, there: pyblasgpu.gemm(here, there),
        lambda here, there: pyblasgpu.gemm(here, here, out=there),
        lambda here, there: linalg.matmul(here, here, out=there),
        lambda here, there: linalg.matmul(here, here[0, :], out=there[0, :]),
        lambda here, there: linalg.dot(here, here, out=there),
        lambda here, there: linalg.solve(here, there),
        lambda here, there: blas.daxpy(here[0, :], there[0, :]),
    ],
)
def test_two_devices_in_host_memory_are_refused(call):
    xp = pytest.importorskip("array_api_strict")
    here, there = xp.asarray(A.copy()), xp.asarray(A.copy(), device=xp.Device("device1"))
    with pytest.raises(ValueError, match=r"is on device .*CPU_DEVICE.* on device .*device1"):
        call(here, there)
    np.testing.assert_array_equal(np.from_dlpack(there), A)


def test_results_share_memory_with_nothing(library):
    a, b = library.put(A), library.put(B)
    for _ in range(20):  # what is computed later does not appear in what was delivered
        first, second = pyblasgpu.gemm(a, b), pyblasgpu.gemm(a, b, alpha=-1)
        np.testing.assert_array_equal(library.get(first), A @ B)
        np.testing.assert_array_equal(library.get(second), -A @ B)


# ------------------------------------------------------------------------------------------------ PyTorch


def test_parameters_without_gradients():
    torch = pytest.importorskip("torch")
    a, weights = torch.tensor(A), torch.nn.Parameter(torch.tensor(B))
    with pytest.raises(TypeError, match=r"gemm: b requires a gradient.*pyblasgpu\.torch.*detach"):
        pyblasgpu.gemm(a, weights)
    with torch.no_grad():
        for result in (pyblasgpu.gemm(a, weights), linalg.matmul(a, weights), blas.dgemm(1, a, weights)):
            assert type(result) is torch.Tensor and not result.requires_grad
            np.testing.assert_array_equal(result.numpy(), A @ B)
        assert pyblasgpu.trmm(a, weights, out=weights) is weights and weights.requires_grad
    np.testing.assert_array_equal(weights.detach().numpy(), A @ B)
    with torch.inference_mode():
        np.testing.assert_array_equal(pyblasgpu.gemm(a, weights).numpy(), A @ A @ B)


def test_lazy_views_are_read_and_never_overwritten():
    torch = pytest.importorskip("torch")
    a = torch.tensor(A + 1j * A.T)
    b = torch.tensor(B * (1 + 2j))
    for x in (b.conj(), b.mH.mT, torch.view_as_real(b).mT[:, 0], b.conj().imag):
        expected = x.resolve_conj().resolve_neg().clone()
        before = b.clone()
        if x.is_complex():
            actual = blas.ztrsm(1.0, a, x, overwrite_b=1)
            torch.testing.assert_close(torch.triu(a) @ actual, expected)
        actual = linalg.solve_triangular(a, x, overwrite_b=True)
        torch.testing.assert_close(torch.triu(a) @ actual, expected + 0j)
        assert torch.equal(b, before) and torch.equal(x.resolve_conj().resolve_neg(), expected)
    with pytest.raises(TypeError, match=r"gemm: out cannot be read, a torch.Tensor: .*conjugate bit"):
        pyblasgpu.gemm(a, b, out=b.conj())


def test_tensors_that_are_expanded():
    torch = pytest.importorskip("torch")
    row = torch.arange(2.0, dtype=torch.float64)
    b = row.expand(3, 2)
    actual = linalg.solve_triangular(torch.tensor(A), b, overwrite_b=True)
    np.testing.assert_allclose(A @ actual.numpy(), b.numpy(), rtol=1e-14)
    assert torch.equal(row, torch.arange(2.0, dtype=torch.float64))
    with pytest.raises(ValueError, match="elements coincide"):
        pyblasgpu.gemm(torch.tensor(A), b, out=row.expand(3, 2))


def test_tensors_that_are_not_dense():
    torch = pytest.importorskip("torch")
    good = torch.eye(3, dtype=torch.float64)
    for wrong in (good.to_sparse(), good.to_sparse_csr(), good.to("meta")):
        for call in (pyblasgpu.gemm, linalg.matmul):
            with pytest.raises(TypeError, match=r"(gemm: b|matmul: x2) "):
                call(good, wrong)
    with pytest.raises(TypeError, match=r"gemm: b cannot be read, a torch.Tensor"):
        torch.func.vmap(lambda x: pyblasgpu.gemm(good, x))(torch.ones(4, 3, 3, dtype=torch.float64))
    with pytest.raises(TypeError, match=r"gemm: .*b"):
        pyblasgpu.gemm(good, good.to(torch.bfloat16))


# ---------------------------------------------------------------------------------------------------- JAX


def test_jax_gets_the_memory_itself(monkeypatch):
    library = Jax()
    from pyblasgpu.frontend.arrays import protocols

    made, new = [], protocols.DLPackHost.new_numpy
    monkeypatch.setattr(protocols.DLPackHost, "new_numpy", lambda *args: made.append(new(*args)) or made[-1])
    results = pyblasgpu.gemm(library.put(A), library.put(B)), blas.dgemm(1, library.put(A), library.put(B))
    for result, memory in zip(results, made, strict=True):
        assert result.unsafe_buffer_pointer() == memory.ctypes.data
        np.testing.assert_array_equal(np.asarray(result + 0), A @ B)


def test_pending_computations_of_jax():
    library = Jax()
    x = library.put(np.full((400, 400), 1 / 400))
    y = x
    for _ in range(20):
        y = y @ x
    np.testing.assert_allclose(np.asarray(pyblasgpu.gemm(y, x)), np.full((400, 400), 1 / 400), rtol=1e-12)


def test_jax_under_jit():
    jax, library = pytest.importorskip("jax"), Jax()
    for call in (pyblasgpu.gemm, linalg.matmul, lambda a, b: blas.dgemm(1, a, b)):
        with pytest.raises(TypeError, match=r"(gemm: a|matmul: x1) cannot.*pyblasgpu\.jax within jit"):
            jax.jit(call)(library.put(A), library.put(B))
    actual = jax.jit(
        lambda a, b: jax.pure_callback(
            lambda a, b: pyblasgpu.gemm(a, b), jax.ShapeDtypeStruct((3, 2), "float64"), a, b
        )
    )(library.put(A), library.put(B))
    np.testing.assert_array_equal(np.asarray(actual), A @ B)


def test_jax_without_double_precision():
    jax, library = pytest.importorskip("jax"), Jax()
    jax.config.update("jax_enable_x64", False)
    try:
        a = library.put(A)
        assert a.dtype == "float32"
        for result in (
            pyblasgpu.gemm(a, a),
            linalg.matmul(library.put(A.astype(int)), library.put(A.astype(int))),
        ):
            assert type(result) is type(a) and result.dtype == "float32"
            np.testing.assert_array_equal(np.asarray(result), A @ A)
    finally:
        jax.config.update("jax_enable_x64", True)


def test_jax_arrays_that_are_gone():
    library = Jax()
    a = library.put(A)
    a.delete()
    with pytest.raises(TypeError, match="gemm: a cannot be read, a jax"):
        pyblasgpu.gemm(a, a)


# ------------------------------------------------------------------------------------------------- tables


@pytest.mark.parametrize(
    ("module", "name"), [("pandas", "DataFrame"), ("pandas", "Series"), ("polars", "DataFrame")]
)
def test_tables(module, name):
    values = [1.0, 2.0] if name == "Series" else {"a": [1.0, 2.0], "b": [3.0, 4.0]}
    table = getattr(pytest.importorskip(module), name)(values)
    good = np.eye(2)
    for call in (
        lambda: pyblasgpu.gemm(good, table),
        lambda: linalg.matmul(good, table),
        lambda: pyblasgpu.gemm(good, good, out=table),
    ):
        with pytest.raises(
            TypeError, match=rf"(gemm|matmul): (b|x2|out) .*{name} is not an array.*to_numpy\(\)"
        ):
            call()
