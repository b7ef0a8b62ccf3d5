"""Operators on tensors of a device by kept launch lists: results, gradients, and the functions of a call."""

from __future__ import annotations

import cuda_tensors
import fake_device
import fake_libraries
import numpy as np
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import TorchDispatchMode
from torch_cases import AT_ONCE, CASES, random, spd
from walk import walk

import pyblasgpu.torch as ours
from pyblasgpu import lapack
from pyblasgpu.frontend.arrays import keep_alive, libraries
from pyblasgpu.routines.lapack import reverse_potrf
from pyblasgpu.torch import cholesky_rows, lu_rows, operators, product_rows
from pyblasgpu.torch.early_info import early

WITHOUT_LIST = ("qr", "eigh", "eigvalsh", "svd", "svdvals", "pinv")
LISTED = {
    name: case
    for name, case in CASES.items()
    if case.name not in WITHOUT_LIST and not any(type(arg) is complex for arg in case.args)
}
#: One case of each operator, of real matrices.
REAL = {case.name: name for name, case in LISTED.items() if name.startswith("float64")}


@pytest.fixture
def lists(monkeypatch):
    """Names of the operators whose launch lists serve calls, once for each call."""
    served = []
    launched = operators.launched

    def noting(row, args):
        outputs = launched(row, args)
        if outputs is not None:
            served.append(getattr(row, "schema", row.__name__).partition("(")[0])
        return outputs

    for module in (operators, cholesky_rows, lu_rows, product_rows):
        monkeypatch.setattr(module, "launched", noting)
    return served


@pytest.mark.parametrize("name", LISTED)
def test_results_are_those_of_the_processor(name, lists, monkeypatch):
    case = LISTED[name]
    op = getattr(operators.TENSORS, case.name)
    args = [arg.clone() if isinstance(arg, torch.Tensor) else arg for arg in case.args]
    if case.name == "inv_quad_logdet_backward":
        k, y, *weights = args
        factor = torch.linalg.cholesky(k)
        args = [k, y, factor, torch.linalg.solve_triangular(factor, y, upper=False), *weights]
    expected = op(*args)
    cuda_tensors.install(monkeypatch)
    for _ in range(2):
        found = op(*args)
        pairs = zip(found, expected) if isinstance(found, tuple) else [(found, expected)]
        for one, other in pairs:
            torch.testing.assert_close(one, other)
            assert one.stride() == other.stride()
    assert lists == [case.name] * 2


@pytest.mark.parametrize("batch", [(), (3,), (2, 2)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex128], ids=str)
@pytest.mark.parametrize("is_on_device", [False, True])
def test_integers_of_lapack_are_those_of_pytorchs_functions(batch, dtype, is_on_device, monkeypatch):
    """Info and pivots: dtype, shape, strides and values; of stacks with a matrix that fails."""
    a = spd(dtype, *batch, 5, 5)
    a[(0,) * len(batch)].diagonal()[0] = -100
    theirs = torch.linalg.cholesky_ex(a).info, *torch.linalg.lu_factor_ex(a)[1:]
    if is_on_device:
        cuda_tensors.install(monkeypatch)
    for _ in range(2):  # checked, then repeated
        (_, failed), (_, pivots, info) = lapack.potrf(a, 1), lapack.getrf(a)
        for one, other in zip((failed, info, pivots + 1), (theirs[0], theirs[2], theirs[1]), strict=True):
            torch.testing.assert_close(one, other)
            assert one.stride() == other.stride()


@pytest.mark.parametrize(
    "name", ["cholesky_ex", "cholesky_solve", "inv_quad_logdet", "solve_ex", "slogdet", "trsm"]
)
def test_gradients_are_those_of_differences(name, lists, monkeypatch):
    """Gradients are of first and of second order, without the dispatcher."""
    case, op = LISTED[REAL[name]], getattr(operators.TENSORS, name)
    function, tensors = case._replace(wrap=lambda _, *args: case.wrap(op, *args)).function()
    inputs = [tensor.clone().requires_grad_() for tensor in tensors]
    cuda_tensors.install(monkeypatch)
    assert gradcheck(function, inputs)
    assert gradgradcheck(function, inputs)
    assert name in lists


@pytest.mark.parametrize("batch", [(), (2,)], ids=["by inverses", "by solutions"])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
def test_the_reverse_mode_of_large_factors_goes_by_halves(dtype, upper, batch, lists, monkeypatch):
    for name, order in (("LEAST", 8), ("LEAF", 8), ("INVERSE", range(5, 30))):
        monkeypatch.setattr(reverse_potrf, name, order)
    factor = torch.linalg.cholesky(spd(dtype, *batch, 21, 21), upper=upper)
    grad = random(dtype, *batch, 21, 21)
    expected = operators.TENSORS.cholesky_backward(factor, grad, upper)
    cuda_tensors.install(monkeypatch)
    found = operators.TENSORS.cholesky_backward(factor, grad, upper)
    torch.testing.assert_close(found, expected)
    assert torch.equal(found, found.mH) and lists == ["cholesky_backward"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_info_of_a_batch_is_contiguous(dtype, lists, monkeypatch):
    a = spd(dtype, 3, 40, 40)
    a[1, 7, 7] = -1
    cuda_tensors.install(monkeypatch)
    info = operators.TENSORS.cholesky_ex(a, False)[1]
    assert info.dtype is torch.int32 and info.is_contiguous() and (info != 0).tolist() == [False, True, False]
    assert lists == ["cholesky_ex"]


def test_matrices_that_are_not_definite_are_reported(monkeypatch):
    """Info is on its way before the rest is computed, each time anew."""
    good, bad = spd(torch.float64, 2, 6, 6), spd(torch.float64, 2, 6, 6)
    bad[1, 0, 0] = -1
    y = random(torch.float64, 2, 6, 1)
    with pytest.raises(torch.linalg.LinAlgError) as expected:
        ours.inv_quad_logdet(bad, y)
    cuda_tensors.install(monkeypatch)
    for k in (good, bad, good, bad):
        if k is bad:
            with pytest.raises(torch.linalg.LinAlgError) as found:
                ours.inv_quad_logdet(k, y)
            assert str(found.value) == str(expected.value)
        else:
            ours.inv_quad_logdet(k, y)
        assert early.found is None and not early.is_wanted


#: Calls, and the most functions of the package that one enters.
WALKS = {
    "gemm(a, b)": 14,
    "trsm(a, b, lower=True)": 16,
    "cholesky_ex(a)": 14,
    "cholesky_solve(b, a)": 18,
    "lu_solve(a, pivots, b)": 19,
    "solve_ex(a, b)": 20,
    "slogdet(a)": 20,
    "inv_quad_logdet(a, y)": 26,
    "gemm(r, b)": 16,
    "cholesky_ex(r)": 19,
}


@pytest.mark.parametrize("call", WALKS)
def test_a_repeated_call_enters_few_functions(call, monkeypatch):
    monkeypatch.setattr("pyblasgpu.torch.linalg_cholesky.check_info", lambda *_: None)
    names = {"a": spd(torch.float64, 8, 8), "b": random(torch.float64, 8, 8)}
    names |= {
        "r": names["a"].clone().requires_grad_(),
        "y": names["b"][:, :1].clone(),
        "pivots": torch.arange(1, 9, dtype=torch.int32),
    }
    cuda_tensors.install(monkeypatch)
    code = compile(f"ours.{call}", call, "eval")

    def run():
        return eval(code, {"ours": ours}, names)  # noqa: S307 - of the table

    run()
    assert len(steps := walk(run).steps) <= WALKS[call], steps


@pytest.mark.parametrize("name", ["gemm", "trsm"])
def test_operands_are_compared_with_the_last_ones(name, lists, monkeypatch):
    """Each differs from the one before in one fact: repeats, layout, shape, dtype, conjugation, gradient."""
    function = getattr(ours, name)
    a, z = spd(torch.float64, 6, 6), spd(torch.complex128, 6, 6)
    b = random(torch.float64, 6, 6)
    pairs = [(a, b), (a, a), (a, b.mT), (a, b[:, :4]), (a.float(), b[:, :4].float()), (z, z[:, :4].clone())]
    pairs += [(z.conj(), z[:, :4]), (a, b.clone().requires_grad_()), (a.clone().requires_grad_(), b), (a, b)]
    expected = [function(*pair) for pair in pairs]
    cuda_tensors.install(monkeypatch)
    for _ in range(2):
        for pair, result in zip(pairs, expected, strict=True):
            for _ in range(2):
                torch.testing.assert_close(function(*pair), result)
    assert lists == [name] * 4 * len(pairs)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
@pytest.mark.parametrize("batch", [(), (2,)], ids=str)
@pytest.mark.parametrize("name", AT_ONCE)
def test_gradients_of_both_matrices_are_one_list(name, batch, dtype, lists, monkeypatch):
    a, b, g = spd(dtype, *batch, 4, 4), random(dtype, *batch, 4, 2), random(dtype, *batch, 4, 2)
    inputs = [each.requires_grad_() for each in (a, b)]
    g = g.mT if "right" in name else g

    def grads(create_graph):
        out = AT_ONCE[name](*inputs)
        return torch.autograd.grad(out, inputs, g, create_graph=create_graph)

    cuda_tensors.install(monkeypatch)
    expected = grads(True)  # by operators, whose gradients are known
    for _ in range(2):
        lists.clear()
        torch.testing.assert_close(grads(False), expected)
        assert len(lists) == 2, lists


def test_parameters_are_tensors(lists, monkeypatch):
    a, b = torch.nn.Parameter(random(torch.float64, 3, 3)), random(torch.float64, 3, 3)
    expected = a @ b
    cuda_tensors.install(monkeypatch)
    operators.TENSORS.gemm(a, b, None, 1, 0, None).sum().backward()
    torch.testing.assert_close(a.grad, (b.sum(1)).expand(3, 3))
    with torch.no_grad():
        torch.testing.assert_close(operators.TENSORS.gemm(b, a, a, 1, 1, None), b @ a + a)
        torch.testing.assert_close(operators.TENSORS.gemm(a, b, None, 1, 0, None), expected)
    assert lists == ["gemm"] * 4


@pytest.mark.parametrize("is_recorded", [False, True])
def test_operands_that_are_no_batch_go_on_without_a_list(is_recorded, lists, monkeypatch):
    a, b = spd(torch.complex128, 2, 3, 3).conj(), random(torch.complex128, 4, 2, 3, 1)
    expected = torch.linalg.solve(a, b)
    a.requires_grad_(is_recorded)
    cuda_tensors.install(monkeypatch)
    for _ in range(2):
        torch.testing.assert_close(operators.TENSORS.solve_ex(a, b, True)[0], expected)  # a is factored once
    assert not lists


def test_modes_and_tangents_see_operators(lists, monkeypatch):
    """What counts, maps, traces or differentiates forwards is not passed by."""
    a = random(torch.float64, 3, 3)
    cuda_tensors.install(monkeypatch)

    def product(x):
        return operators.TENSORS.gemm(x, x, None, 1, 0, None)

    with Names() as names:
        product(a)
    assert names.found == ["pyblasgpu.gemm.default"]
    _, tangent = torch.func.jvp(product, (a,), (torch.eye(3, dtype=a.dtype),))
    torch.testing.assert_close(tangent, 2 * a)
    torch.testing.assert_close(torch.vmap(product)(a.expand(2, 3, 3))[1], a @ a)
    assert "pyblasgpu.gemm" in make_fx(product)(a).code


def test_pivots_of_another_library(monkeypatch):
    """Tensors with pivots of CuPy's, and the other way round, as often as the call is repeated."""
    a, b = random(torch.float64, 3, 3), random(torch.float64, 3, 2)
    (lu, piv), expected = torch.linalg.lu_factor(a), torch.linalg.solve(a, b).numpy()
    piv -= 1
    cuda_tensors.install(monkeypatch)
    events = fake_libraries.install(monkeypatch)
    on_cupy = [fake_device.Array(each.numpy()) for each in (lu, piv, b)]
    for _ in range(3):
        x, _ = lapack.dgetrs(lu, on_cupy[1], b)
        np.testing.assert_allclose(x.numpy(), expected)
        x, _ = lapack.dgetrs(on_cupy[0], piv, on_cupy[2])
        np.testing.assert_allclose(x.host, expected)
    assert events.held_back == [(7, 0), (0, 7)] * 3  # CuPy's stream, and PyTorch's
    keep_alive.release()
    libraries.module.cache_clear()


class Names(TorchDispatchMode):
    """The names of operators that are called in the block."""

    def __init__(self):
        super().__init__()
        self.found = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.found.append(str(func))
        return func(*args, **(kwargs or {}))
