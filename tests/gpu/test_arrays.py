"""CuPy, PyTorch and Numba arrays: the same kind out, on the caller's stream, without waiting."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from threads import at_once

import pyblasgpu
from pyblasgpu import blas, linalg
from pyblasgpu.errors import OverlapError
from pyblasgpu.gpu import launch
from pyblasgpu.routines import launch_list
from pyblasgpu.testing.reference import integers
from pyblasgpu.types import DTYPES

from .running import NAN, CuPy, Numba, Torch, cupy, occupy, reals, same

LIBRARIES = pytest.mark.parametrize("library", [CuPy, Torch, Numba], ids=lambda library: library.__name__)


@LIBRARIES
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("letter", DTYPES)
def test_the_same_kind_out(library, letter, order):
    dtype, rng = DTYPES[letter], np.random.default_rng(1)
    a, b = (np.array(integers(rng, shape, dtype), order=order) for shape in ((65, 31), (31, 33)))
    t = np.array(np.tril(integers(rng, (65, 65), dtype, 1), -1) + np.eye(65), dtype.name, order=order)
    left, right, triangle = library.put(a), library.put(b), library.put(t)
    product = pyblasgpu.gemm(left, right, trans_b="N")
    assert type(product) is type(left)
    same(library.get(product), a @ b, "gemm")
    multiplied = pyblasgpu.trmm(triangle, product, lower=True)
    same(library.get(multiplied), t @ (a @ b), "trmm")
    solved = pyblasgpu.trsm(triangle, multiplied, lower=True, out=multiplied)
    assert solved is multiplied and type(solved) is type(left)
    same(library.get(solved), a @ b, "trsm")


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4)], ids=str)
def test_numbas_arrays_of_several_dimensions_are_vectors_by_columns(shape, order):
    grid = Numba.put(np.array(np.arange(1.0, prod(shape) + 1).reshape(shape), order=order))
    expected = Numba.get(grid).ravel(order="F")
    expected[:2] *= 10
    scaled = blas.dscal(10, grid, n=2)
    assert (scaled is grid) == (order == "F")
    same(Numba.get(scaled), expected.reshape(shape, order="F"), "dscal")


def test_numbas_strided_matrices_are_vectors_by_columns():
    part = Numba.put(np.arange(24.0).reshape(4, 6))[::2, ::3]
    line = Numba.put(np.zeros(4))
    assert blas.dcopy(part, line) is line
    same(Numba.get(line), np.array([0.0, 12, 3, 15]), "dcopy")


def test_numbas_strided_vectors_are_matrices():
    identity, vector = Numba.put(np.eye(3)), Numba.put(np.arange(6.0))[::2]
    expected = np.array([0.0, 2, 4])
    same(Numba.get(linalg.matmul(identity, vector)), expected, "matmul")
    same(Numba.get(linalg.matvec(identity, vector)), expected, "matvec")
    same(Numba.get(linalg.vecdot(vector, vector)), np.array(20.0), "vecdot")
    same(Numba.get(linalg.matmul(vector, vector)), np.array(20.0), "matmul of vectors")
    same(Numba.get(blas.dtrsm(2, identity, vector)).ravel(), 2 * expected, "dtrsm")


def test_results_of_linalg_are_numbas_too():
    """CuPy computes on views of them what is left between kernels."""
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((65, 65)) + 9 * np.eye(65), rng.standard_normal((65, 3))
    matrix, right = Numba.put(a), Numba.put(b)
    factors = linalg.lu_factor(matrix)
    results = [*factors, linalg.lu_solve(factors, right), linalg.solve(matrix, right), linalg.det(matrix)]
    assert all(type(each) is type(matrix) for each in results)
    for solution in results[2:4]:
        np.testing.assert_allclose(a @ Numba.get(solution), b, rtol=0, atol=1e-10)
    out = Numba.put(np.zeros((65, 3)))
    assert linalg.dot(matrix, right, out) is out
    np.testing.assert_allclose(Numba.get(out), a @ b, rtol=0, atol=1e-10)
    line = Numba.put(np.zeros(65))
    assert linalg.matvec(matrix, Numba.put(b[:, 0].copy()), out=line) is line
    np.testing.assert_allclose(Numba.get(line), a @ b[:, 0], rtol=0, atol=1e-10)


def test_lazily_conjugated_tensors():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(2)
    a, b = (integers(rng, shape, DTYPES["z"]) for shape in ((31, 65), (31, 33)))
    left, right = torch.as_tensor(a, device="cuda"), torch.as_tensor(b, device="cuda")
    assert left.mH.is_conj()
    same(Torch.get(pyblasgpu.gemm(left.mH, right)), a.conj().T @ b, "mH")
    same(Torch.get(pyblasgpu.gemm(left.mH, right.conj())), a.conj().T @ b.conj(), "both")
    same(Torch.get(pyblasgpu.gemm(left.conj(), right, trans_a="C")), a.T @ b, "conj undone")
    negated = (
        torch.view_as_complex(torch.as_tensor(np.stack([a.real, a.imag], -1), device="cuda")).conj().imag
    )
    assert negated.is_neg()
    same(Torch.get(pyblasgpu.gemm(negated, right.real.contiguous(), trans_a="T")), -a.imag.T @ b.real, "neg")
    out = torch.empty((65, 33), dtype=left.dtype, device="cuda").conj()
    with pytest.raises(TypeError, match="conjugated"):
        pyblasgpu.gemm(left, right, trans_a="C", out=out)
    with pytest.raises(TypeError, match="gradient"):
        pyblasgpu.gemm(right.real.requires_grad_(), right)


@LIBRARIES
def test_nothing_is_written_when_an_error_is_raised(library):
    put = library.put
    a, out = put(np.eye(33)), put(np.full((33, 33), 5.0))
    cases: list[tuple[type[Exception], dict[str, Any]]] = [
        (ValueError, {"trans_a": "X"}),
        (TypeError, {"alpha": 1j}),
        (OverlapError, {"out": a}),
        (ValueError, {"out": put(np.ones((33, 32)))}),
        (TypeError, {"out": put(np.ones((33, 33), "f4"))}),
        (TypeError, {"out": np.ones((33, 33))}),
        (ValueError, {"backend": "cpu"}),
    ]
    for error, options in cases:
        with pytest.raises(error):
            pyblasgpu.gemm(a, a, **{"out": out, **options})
    same(library.get(out), np.full((33, 33), 5.0), "out")
    same(library.get(a), np.eye(33), "a")


def test_overlapping_views_are_refused_and_others_are_not():
    memory = cupy.arange(100 * 100, dtype=np.float64).reshape(100, 100)
    before = memory.get()
    a, b = memory[:40, :40], cupy.eye(40)
    for out in (memory[20:60, 20:60], memory[:40, :40].T, memory[39:79, :40]):
        with pytest.raises(OverlapError):
            pyblasgpu.gemm(a, b, out=out)
    same(memory.get(), before, "memory")
    pyblasgpu.gemm(a, b, out=memory[40:80, :40])
    same(memory[40:80, :40].get(), before[:40, :40], "a block beside")


# ------------------------------------------------------------------------------------------------ streams


@pytest.mark.parametrize("how", ["argument", "current"])
@pytest.mark.parametrize("routine", ["gemm", "trmm", "trsm"])
def test_work_is_queued_on_the_callers_stream(routine, how):
    """The input is written there only after other work: on any other stream it would be read too early."""
    values = np.eye(129) * 4
    ready = cupy.asarray(values, order="F")
    late, one = cupy.full_like(ready, NAN), cupy.eye(129)
    stream = cupy.cuda.Stream(non_blocking=True)
    arguments = (late, one) if routine == "gemm" else (one, late)
    pyblasgpu.trsm(one, ready.copy(order="F"))  # kernels are loaded
    getattr(pyblasgpu, routine)(*arguments)
    cupy.cuda.Device().synchronize()
    busy = occupy(stream)
    late.data.copy_from_device_async(ready.data, ready.nbytes, stream)
    if how == "argument":
        result = getattr(pyblasgpu, routine)(*arguments, stream=stream)
    else:
        with stream:
            result = getattr(pyblasgpu, routine)(*arguments)
    assert not stream.done, "the call waited"
    stream.synchronize()
    del busy
    same(result.get(), values, routine)


def test_torch_has_a_current_stream_too():
    torch = pytest.importorskip("torch")
    ready = torch.eye(129, dtype=torch.float64, device="cuda") * 4
    late, one = torch.full_like(ready, NAN), torch.eye(129, dtype=torch.float64, device="cuda")
    stream = torch.cuda.Stream()
    pyblasgpu.gemm(late, one)
    torch.cuda.synchronize()
    busy = occupy(stream)
    with torch.cuda.stream(stream):
        late.copy_(ready, non_blocking=True)
        result = pyblasgpu.gemm(late, one)
    assert not stream.query(), "the call waited"
    stream.synchronize()
    del busy
    same(Torch.get(result), np.eye(129) * 4, "torch")


def test_a_tensor_is_cast_after_what_the_default_stream_does():
    torch = pytest.importorskip("torch")
    ready = torch.eye(129, device="cuda") * 4
    late, one = torch.full_like(ready, NAN), torch.eye(129, dtype=torch.float64, device="cuda")
    pyblasgpu.gemm(late, one)
    torch.cuda.synchronize()
    busy = occupy(torch.cuda.default_stream())
    late.copy_(ready, non_blocking=True)
    result = pyblasgpu.gemm(late, one)
    torch.cuda.synchronize()
    del busy
    same(Torch.get(result), np.eye(129) * 4, "torch")


def test_packed_operands_live_as_long_as_the_stream_needs_them():
    stream = cupy.cuda.Stream(non_blocking=True)
    a = reals(DTYPES["d"], 258, 258)
    left = cupy.asarray(a)[::2, ::2]
    cupy.cuda.Device().synchronize()
    busy = occupy(stream)
    results = [pyblasgpu.gemm(left, left, stream=stream) for _ in range(10)]
    stream.synchronize()
    del busy
    assert len({result.get().tobytes() for result in results}) == 1
    np.testing.assert_allclose(results[0].get(), a[::2, ::2] @ a[::2, ::2], atol=1e-10)


def test_threads(monkeypatch):
    """Sixteen threads that begin at once, with nothing loaded, find the same bits as one."""
    a, t = cupy.asarray(reals(DTYPES["d"], 300, 300)), cupy.eye(300) * 2
    pairs = [("gemm", "N"), ("trmm", "T"), ("trsm", "N"), ("gemm", "C")] * 4
    expected = [getattr(pyblasgpu, name)(t, a, **{trans_of(name): trans}).get() for name, trans in pairs]
    monkeypatch.setattr(launch_list, "cache", {})
    monkeypatch.setattr(launch, "loaded_kernels", {})

    def work(name, trans):
        stream = cupy.cuda.Stream(non_blocking=True)
        for _ in range(20):
            result = getattr(pyblasgpu, name)(t, a, stream=stream, **{trans_of(name): trans})
        stream.synchronize()
        return result.get()

    for got, reference, pair in zip(at_once(work, pairs), expected, pairs):
        same(got, reference, pair)


def trans_of(name: str) -> str:
    return "trans_a" if name == "gemm" else "trans"


# ------------------------------------------------------------------------------------------------ PyTorch


def test_parameters_without_gradients():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(3)
    a, b = (integers(rng, shape, DTYPES["d"]) for shape in ((65, 31), (31, 33)))
    left, weights = torch.as_tensor(a, device="cuda"), torch.nn.Parameter(torch.as_tensor(b, device="cuda"))
    out = torch.empty((65, 33), dtype=torch.float64, device="cuda")
    with pytest.raises(TypeError, match="gemm: b requires a gradient"):
        pyblasgpu.gemm(left, weights)
    with torch.no_grad():
        for _ in range(3):  # checked, then repeated
            result = pyblasgpu.gemm(left, weights)
            assert type(result) is torch.Tensor and not result.requires_grad
            same(Torch.get(result), a @ b, "new")
            assert pyblasgpu.gemm(left, weights, out=out) is out
            same(Torch.get(out), a @ b, "out")
        assert (
            pyblasgpu.trmm(torch.eye(31, dtype=torch.float64, device="cuda") * 2, weights, out=weights)
            is weights
        )
    same(Torch.get(weights.detach()), 2 * b, "in place")
    with pytest.raises(TypeError, match="gemm: b requires a gradient"):
        pyblasgpu.gemm(left, weights, out=out)


def test_may_overwrite_copies_lazy_and_expanded_tensors():
    torch = pytest.importorskip("torch")
    a = torch.as_tensor(np.triu(integers(np.random.default_rng(4), (33, 33), DTYPES["z"])) + 40 * np.eye(33))
    b = torch.as_tensor(integers(np.random.default_rng(5), (33, 5), DTYPES["z"]))
    a, b = a.cuda(), b.cuda()
    before = b.clone()
    for x in (b.conj(), b.mH.mT, b[:, :1].expand(33, 5), b.conj().mT.contiguous().mT.conj()):
        expected = x.resolve_conj().clone()
        for result in (blas.ztrsm(1.0, a, x, overwrite_b=1), linalg.solve_triangular(a, x, overwrite_b=True)):
            torch.testing.assert_close(a @ result, expected)
        assert torch.equal(b, before)
    negated = b.conj().imag
    assert negated.is_neg()
    result = linalg.solve_triangular(a.real, negated, overwrite_b=True)
    torch.testing.assert_close(a.real @ result, negated.resolve_neg())
    assert torch.equal(b, before)


def test_tensors_that_are_not_dense():
    torch = pytest.importorskip("torch")
    good = torch.eye(9, device="cuda")
    for wrong in (good.to_sparse(), good.to_sparse_csr()):
        for options in ({}, {"out": good.clone()}):
            with pytest.raises(TypeError, match="gemm: b cannot be read"):
                pyblasgpu.gemm(good, wrong, **options)
