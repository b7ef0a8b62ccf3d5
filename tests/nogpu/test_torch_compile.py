"""Calls in functions that PyTorch compiles: operators of Level 3, and others, which end a graph."""

from __future__ import annotations

import subprocess
import sys
import warnings
from types import FunctionType

import numpy as np
import pytest

import pyblasgpu
from pyblasgpu import blas, lapack, linalg
from pyblasgpu.frontend.calls.plan import Plan

A = np.array([[4.0, 1.0], [1.0, 3.0]])


def test_every_public_function_ends_a_graph():
    for module in (pyblasgpu, blas, lapack, linalg):
        functions = [getattr(module, name) for name in module.__all__]
        unmarked = [each for each in functions if isinstance(each, FunctionType) and not is_marked(each)]
        assert not unmarked
    methods = Plan.__call__, pyblasgpu.Handle.wait, pyblasgpu.Handle.progress.fget
    assert all(map(is_marked, methods))


def is_marked(function) -> bool:
    return function._torchdynamo_disable and "pyblasgpu" in function._torchdynamo_disable_msg


def in_mode(x):
    with pyblasgpu.set_math_mode("tensor"):
        return pyblasgpu.gemm(x, x) + 1


def in_place(x):
    y = 2 * x
    pyblasgpu.trmm(x, y, out=y)
    return y + x


def with_integers(x):
    factors, piv, info = lapack.dgetrf(x + 1)
    return factors + 1, piv, info


CALLS = {
    "cholesky": lambda x: linalg.cholesky(x) + 1,
    "gemm": lambda x: pyblasgpu.gemm(x + 1, x) + 1,
    "in place": in_place,
    "in a mode": in_mode,
    "in a loop": lambda x: sum(pyblasgpu.syrk(x) for _ in range(3)) + 1,
    "level 1": lambda x: pyblasgpu.axpy(x[0], x[1], alpha=2) + 1,
    "level 2": lambda x: pyblasgpu.gemv(x, x[0]) + 1,
    "blas": lambda x: blas.dgemm(1, x, x) + 1,
    "blas by the dtype": lambda x: blas.get_blas_funcs("gemm", (x,))(1, x, x) + 1,
    "blas of vectors": lambda x: blas.ddot(x[0], x[1]) + x,
    "lapack": with_integers,
    "einsum": lambda x: linalg.einsum("ij,jk->ki", x, x) + 1,
    "solve": lambda x: linalg.solve(x, x[0]) + 1,
    "slogdet": lambda x: linalg.slogdet(x).logabsdet + 1,
    "lu": lambda x: linalg.lu(x)[2] + 1,
}


@pytest.mark.parametrize("call", CALLS)
def test_compiled_functions_return_what_they_do_uncompiled(call):
    torch = pytest.importorskip("torch")
    x, function, graphs = torch.tensor(A), CALLS[call], []

    def backend(graph, _):
        graphs.append(graph)
        return graph.forward

    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled = torch.compile(function, backend=backend)
        for _ in range(2):
            torch.testing.assert_close(compiled(x), function(x), rtol=0, atol=0)
    # the graphs are of what is around the call, an operation or two
    assert sum(len(graph.graph.nodes) for graph in graphs) < 10


@pytest.mark.parametrize("function", [pyblasgpu.gemm, linalg.matmul])
def test_a_function_of_ours_that_is_compiled_itself(function):
    torch = pytest.importorskip("torch")
    torch._dynamo.reset()
    x, graphs = torch.tensor(A), []
    compiled = torch.compile(function, backend=lambda graph, _: graphs.append(graph) or graph.forward)
    torch.testing.assert_close(compiled(x, x), x @ x, rtol=0, atol=0)
    called = [str(each.target) for graph in graphs for each in graph.graph.nodes if "call" in each.op]
    assert called == (["pyblasgpu.gemm.default"] if function is pyblasgpu.gemm else [])


def test_what_a_call_raises_is_raised():
    torch = pytest.importorskip("torch")
    torch._dynamo.reset()
    x = torch.tensor(A)
    for function, error in {
        lambda x: linalg.cholesky(-x) + 1: np.linalg.LinAlgError,
        lambda x: pyblasgpu.gemm(x, x[:1]) + 1: ValueError,
        lambda x: object.__new__(Plan)(x, x, x): AttributeError,
    }.items():
        with pytest.raises(error):
            torch.compile(function, backend="eager")(x)


OPERATORS = {
    "gemm": lambda x: pyblasgpu.gemm(x + 1, x, alpha=2, trans_b="T", method="tensor") + 1,
    "gemmtr": lambda x: pyblasgpu.gemmtr(x[:1], x[:, :1], trans_a="T", trans_b="C", lower=True).tril() + 1,
    "syrk": lambda x: pyblasgpu.syrk(x, lower="L").tril() + 1,
    "herk": lambda x: pyblasgpu.herk(x, trans="T", lower=True).tril() + 1,
    "symm": lambda x: pyblasgpu.symm(x, x[:1] + 0, side="R") + 1,
    "hemm": lambda x: pyblasgpu.hemm(x, x, lower=True) + 1,
    "trmm": lambda x: pyblasgpu.trmm(x, x, unit_diag=True) + 1,
    "trsm": lambda x: pyblasgpu.trsm(x, x, lower=True, alpha=2, blocking=True, stream=None) + 1,
}


@pytest.mark.parametrize("call", OPERATORS)
def test_level_3_is_an_operator_of_one_graph(call):
    """It is differentiated, too."""
    torch = pytest.importorskip("torch")
    torch._dynamo.reset()
    x, function, graphs = torch.tensor(A), OPERATORS[call], []

    def backend(graph, _):
        graphs.append(graph)
        return graph.forward

    compiled = torch.compile(function, backend=backend, fullgraph=True)
    torch.testing.assert_close(compiled(x), function(x))
    names = {str(node.target) for graph in graphs for node in graph.graph.nodes}
    operator = "rank_k" if call in ("syrk", "herk") else {"hemm": "symm"}.get(call, call)
    assert f"pyblasgpu.{operator}.default" in names
    compiled(x.clone().requires_grad_()).sum().backward()


ENDING = {
    "an output": lambda x: pyblasgpu.gemm(x, x, out=x + 1) + 1,
    "what beta scales": lambda x: pyblasgpu.gemm(x, x, out=x + 1, beta=2) + 1,
    "a backend": lambda x: pyblasgpu.gemm(x, x, backend="cpu") + 1,
    "a method of syrk": lambda x: pyblasgpu.syrk(x, method="tensor") + 1,
    "integers": lambda x: pyblasgpu.gemm(x.int(), x.int()) + 1,
    "a scalar that is a tensor": lambda x: pyblasgpu.gemm(x, x, alpha=x[0, 0]) + 1,
}


@pytest.mark.parametrize("call", ENDING)
def test_other_calls_end_a_graph(call):
    torch = pytest.importorskip("torch")
    torch._dynamo.reset()
    x, graphs = torch.tensor(A), []
    compiled = torch.compile(ENDING[call], backend=lambda graph, _: graphs.append(graph) or graph.forward)
    torch.testing.assert_close(compiled(x), ENDING[call](x), rtol=0, atol=0)
    assert not any("pyblasgpu" in str(node.target) for graph in graphs for node in graph.graph.nodes)


ORDERS = {
    "pyblasgpu, then Dynamo": "from pyblasgpu import gemm; import torch._dynamo",
    "Dynamo, then pyblasgpu": "import torch._dynamo; from pyblasgpu import gemm",
    "a name when it is traced": "import torch._dynamo",
}


@pytest.mark.parametrize("order", ORDERS)
def test_whatever_is_imported_first(order):
    pytest.importorskip("torch")
    program = f"""
import sys, pyblasgpu
assert "torch" not in sys.modules
{ORDERS[order]}
import torch
x, graphs = torch.ones(2, 2), []
backend = lambda graph, _: graphs.append(graph) or graph.forward
compiled = torch.compile(lambda x: pyblasgpu.gemm(x, x) + 1, backend=backend)
assert torch.equal(compiled(x), x @ x + 1)
assert [str(node.target) for graph in graphs for node in graph.graph.nodes][1] == "pyblasgpu.gemm.default"
compiled = torch.compile(lambda x: pyblasgpu.linalg.matmul(x, x) + 1, backend=backend)
assert torch.equal(compiled(x), x @ x + 1)
assert [len(graph.graph.nodes) for graph in graphs] == [4, 3]
assert not [finder for finder in sys.meta_path if "pyblasgpu" in type(finder).__module__]
"""
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)
