"""Programs of the operators under `torch.compile`, `torch.export`, `torch.func` and fake tensors."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch._subclasses import FakeTensorMode
from torch.autograd import forward_ad
from torch_cases import BACKENDS, random, spd

import pyblasgpu.torch as ours


def likelihood(x, y):
    """The negative logarithm of a Gaussian process's marginal likelihood, by its parts and at once."""
    k = torch.exp(-((x - x.mT) ** 2)) + torch.eye(len(x), dtype=x.dtype)
    factor = ours.cholesky(k)
    z = ours.solve_triangular(factor, y, upper=False)
    quad, logdet = ours.inv_quad_logdet(k, y)
    return (z * z).sum() + 2 * factor.diagonal().log().sum() + quad + logdet


def level3(x, y):
    k = ours.gemm(x, x, trans_b="C", alpha=2) + torch.eye(len(x), dtype=x.dtype)
    product = ours.trmm(k, y, lower=True, trans="T") + ours.symm(k, y, beta=2, c=y)
    return ours.trsm(k, product, lower=True).sum() + ours.syrk(k, lower=True).sum() + ours.gemmtr(k, k).sum()


def lu(x, y):
    a = x + torch.eye(len(x), dtype=x.dtype) * 4 + x.mT
    packed, pivots = ours.lu_factor(a)
    parts = ours.lu_solve(packed, pivots, y), ours.solve(a, y), ours.inv(a), ours.det(a), ours.slogdet(a)[1]
    return sum(part.sum() for part in parts) + ours.cholesky_ex(a @ a.mT).L.sum()


def spectra(x, y):
    k = (x - y.mT).cos() + torch.arange(len(x), dtype=x.dtype).diag()
    w, v = ours.eigh(k + k.mT)
    inverse = ours.pinv(torch.cat([k, y], -1))
    values = ours.svdvals(inverse), ours.eigvalsh(inverse.mT @ inverse), ours.svd(k)[1]
    return (w @ v.square()).cos().sum() + sum(each.sqrt().sum() for each in values)


PROGRAMS = [likelihood, level3, lu, spectra]


def inputs():
    return random(torch.float64, 5, 1).requires_grad_(), random(torch.float64, 5, 1).requires_grad_()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_one_graph_compiles(program, backend):
    x, y = inputs()
    compiled = torch.compile(program, fullgraph=True, backend=backend)
    grads = []
    for function in (compiled, program):
        value = function(x, y)
        grads.append((value, *torch.autograd.grad(value, (x, y))))
    torch.testing.assert_close(*grads)


@pytest.mark.parametrize("program", PROGRAMS)
def test_orders_that_change_compile_once(program):
    counter = torch._dynamo.testing.CompileCounter()
    compiled = torch.compile(program, fullgraph=True, backend=counter, dynamic=True)
    for n in (4, 5, 6):
        x, y = random(torch.float64, n, 1), random(torch.float64, n, 1)
        torch.testing.assert_close(compiled(x, y), program(x, y))
    assert counter.frame_count == 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_one_graph_has_tangents(backend):
    """Dynamo's graph enters a level of tangents, and leaves it."""
    x = spd(torch.float64, 3, 3)
    function = torch.func.hessian(lambda x: ours.logdet(ours.gemm(x, x)))
    compiled = torch.compile(function, fullgraph=True, backend=backend)
    torch.testing.assert_close(compiled(x), torch.func.hessian(lambda x: torch.logdet(x @ x))(x))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_level_of_tangents_in_compiled_code(backend):
    """The graph ends there, as `forward_ad` counts no level that a graph enters."""

    def tangent(x, dx):
        with forward_ad.dual_level():
            product = ours.gemm(forward_ad.make_dual(x, dx), x)
            return forward_ad.unpack_dual(ours.cholesky(product)).tangent

    x, dx = spd(torch.float64, 3, 3), spd(torch.float64, 3, 3)
    expected = torch.func.jvp(lambda each: torch.linalg.cholesky(each @ x), (x,), (dx,))[1]
    torch.testing.assert_close(torch.compile(tangent, backend=backend)(x, dx), expected)


@pytest.mark.parametrize("program", PROGRAMS)
def test_exports(program):
    class Module(torch.nn.Module):
        def forward(self, x, y):
            return program(x, y)

    x, y = (tensor.detach() for tensor in inputs())
    exported = torch.export.export(Module(), (x, y))
    torch.testing.assert_close(exported.module()(x, y), program(x, y))


@pytest.mark.parametrize("program", PROGRAMS)
def test_derivatives_of_torch_func(program):
    """Gradients, tangents, and Hessians in all orders, and a map over all of it."""
    x, y = (tensor.detach() for tensor in inputs())
    expected = torch.autograd.functional.hessian(lambda x: program(x, y), x)
    for outer in (torch.func.jacrev, torch.func.jacfwd):
        for inner in (torch.func.jacrev, torch.func.jacfwd):
            torch.testing.assert_close(outer(inner(program))(x, y), expected)
    tangent = random(torch.float64, 5, 1)
    _, found = torch.func.jvp(lambda x: program(x, y), (x,), (tangent,))
    torch.testing.assert_close(found, (torch.func.grad(program)(x, y) * tangent).sum())
    stack = torch.stack([x, 2 * x])
    found = torch.vmap(torch.func.grad(program), in_dims=(0, None))(stack, y)
    torch.testing.assert_close(found, torch.stack([torch.func.grad(program)(each, y) for each in stack]))


def test_fake_tensors_have_the_strides_of_results():
    def results(a, b):
        infos = (
            ours.cholesky_ex(a),
            ours.lu_factor_ex(a),
            ours.inv_ex(a),
            ours.solve_ex(a, b),
            ours.slogdet(a),
        )
        solved = ours.solve_triangular(a, b, upper=True), ours.cholesky_solve(b, a), ours.cholesky_inverse(a)
        return (
            *sum(map(tuple, infos), ()),
            *solved,
            ours.gemm(a, b),
            ours.trmm(a, b),
            ours.det(a),
            ours.syrk(b),
            *ours.eigh(a),
            *ours.svd(b),
            ours.svdvals(b),
            ours.pinv(b),
        )

    for dtype in (torch.float32, torch.complex128):
        for batch in ((), (2, 3), (0,)):
            a, b = spd(dtype, *batch, 4, 4), random(dtype, 4, 2)
            with FakeTensorMode() as mode:
                fakes = results(mode.from_tensor(a), mode.from_tensor(b))
            for fake, real in zip(fakes, results(a, b)):
                assert (fake.shape, fake.stride(), fake.dtype) == (real.shape, real.stride(), real.dtype)
                assert real.dtype != torch.int32 or real.is_contiguous()


def test_the_package_does_not_import_pytorch():
    program = (
        "import sys, pyblasgpu; assert 'torch' not in sys.modules; pyblasgpu.torch; sys.modules['torch']"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
