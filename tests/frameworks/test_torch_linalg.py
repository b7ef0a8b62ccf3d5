"""Functions of `torch.linalg`'s names beside PyTorch's own: values, dtypes, strides, gradients, errors."""

from __future__ import annotations

import inspect

import pytest
import torch
from torch_cases import hermitian, random, spd

import pyblasgpu.torch as ours
from pyblasgpu.torch import cholesky_rows

DTYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128]
#: Where PyTorch has a function that `torch.linalg` has not.
OUTSIDE = {"cholesky_solve", "cholesky_inverse", "logdet"}
NAMES = [
    "cholesky", "cholesky_ex", "cholesky_inverse", "cholesky_solve", "det", "inv", "inv_ex", "logdet",
    "lu_factor", "lu_factor_ex", "lu_solve", "slogdet", "solve", "solve_ex", "solve_triangular",
]  # fmt: skip


def theirs(name):
    return getattr(torch if name in OUTSIDE else torch.linalg, name)


def calls(dtype, batch, n, k):
    """Arguments of calls, positional and by name; leading dimensions of right-hand sides broadcast."""
    a, p = random(dtype, *batch, n, n) + n * torch.eye(n, dtype=dtype), spd(dtype, *batch, n, n)
    b, row = random(dtype, n, k), random(dtype, *batch, k, n)
    factor = {upper: torch.linalg.cholesky(p, upper=upper) for upper in (False, True)}
    packed = torch.linalg.lu_factor(a)
    for upper in (False, True):
        yield "cholesky", (p,), {"upper": upper}
        yield "cholesky_ex", (p,), {"upper": upper}
        yield "cholesky_inverse", (factor[upper], upper), {}
        yield "cholesky_solve", (b, factor[upper], upper), {}
        for unit in (False, True):
            flags = {"upper": upper, "unitriangular": unit}
            yield "solve_triangular", (factor[upper], b), flags
            yield "solve_triangular", (factor[upper].contiguous(), row), {**flags, "left": False}
    for shape in ((n, n), (n, n + 2), (n + 1, n)):
        yield "lu_factor", (random(dtype, *batch, *shape),), {}
        yield "lu_factor_ex", (random(dtype, *batch, *shape).mT.contiguous().mT,), {}
    for adjoint in (False, True):
        yield "lu_solve", (*packed, b), {"adjoint": adjoint}
        yield "lu_solve", (*packed, row), {"adjoint": adjoint, "left": False}
    for name in ("solve", "solve_ex"):
        yield name, (a, b), {}
        yield name, (a, row), {"left": False}
        yield name, (a, random(dtype, *batch, n)), {}
        yield name, (a.expand(2, *a.shape), b.conj()), {}
    for name in ("inv", "inv_ex", "det", "slogdet"):
        yield name, (a.mH,), {}
    yield "logdet", (p,), {}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    ("batch", "n", "k"), [((), 5, 3), ((2, 3), 4, 1), ((0,), 3, 2), ((2,), 0, 2), ((), 3, 0)]
)
def test_results_are_pytorchs(dtype, batch, n, k):
    for name, args, flags in calls(dtype, batch, n, k):
        found, expected = getattr(ours, name)(*args, **flags), theirs(name)(*args, **flags)
        pairs = [(found, expected)]
        if isinstance(expected, tuple):
            assert type(found) is type(expected)
            pairs = list(zip(found, expected))
        for one, other in pairs:
            torch.testing.assert_close(one, other, msg=f"{name} {flags}: {one} {other}")
            # PyTorch's are not of matrices for a stack of vectors, and swapped by lazy conjugates
            is_vector = name.startswith("solve") and args[1].shape == args[0].shape[:-1]
            if one.numel() and not one.is_complex() and not is_vector:
                assert one.stride() == other.stride(), (name, flags, one.shape)


@pytest.mark.parametrize("name", NAMES)
def test_signatures_are_pytorchs(name):
    """Each parameter of ours is one of PyTorch's, as its documentation begins."""
    documented = theirs(name).__doc__.split(")")[0]
    for parameter in list(inspect.signature(getattr(ours, name)).parameters)[1:]:
        assert parameter in documented or parameter in ("L",), (parameter, documented)


A = torch.eye(3)
REFUSED = {
    "cholesky of integers": ("cholesky", (torch.eye(3, dtype=torch.int64),), {}),
    "cholesky of a vector": ("cholesky", (A[0],), {}),
    "cholesky of a rectangle": ("cholesky", (A[:2],), {}),
    "cholesky of a bad pivot": ("cholesky", (A - 2 * torch.eye(3),), {}),
    "cholesky of a bad pivot in a stack": ("cholesky", (torch.stack([A, A - 2 * torch.eye(3)]),), {}),
    "cholesky_ex, errors checked": ("cholesky_ex", (-A,), {"check_errors": True}),
    "solve_triangular of other shapes": ("solve_triangular", (A, A[:2]), {"upper": True}),
    "cholesky_solve of a vector": ("cholesky_solve", (A[0], A), {}),
    "cholesky_inverse of a rectangle": ("cholesky_inverse", (A[:2],), {}),
    "lu_factor of a singular matrix": ("lu_factor", (0 * A,), {}),
    "lu_factor without pivots": ("lu_factor", (A,), {"pivot": False}),
    "lu_solve of other pivots": ("lu_solve", (A, torch.ones(2, dtype=torch.int32), A), {}),
    "lu_solve of long pivots": ("lu_solve", (A, torch.ones(3, dtype=torch.int64), A), {}),
    "solve of a singular matrix": ("solve", (0 * A, A), {}),
    "solve of other shapes": ("solve", (A, A[:2]), {}),
    "solve of a vector from the right": ("solve", (A, A[0]), {"left": False}),
    "solve_ex, errors checked": ("solve_ex", (0 * A, A), {"check_errors": True}),
    "inv of a singular matrix": ("inv", (torch.stack([A, 0 * A]),), {}),
    "inv of a rectangle": ("inv", (A[:2],), {}),
    "inv of half": ("inv", (A.half(),), {}),
    "det of a rectangle": ("det", (A[:2],), {}),
    "slogdet of integers": ("slogdet", (torch.eye(3, dtype=torch.int64),), {}),
}


@pytest.mark.parametrize("call", REFUSED)
def test_errors_are_pytorchs(call):
    name, args, flags = REFUSED[call]
    with pytest.raises(Exception) as expected:
        theirs(name)(*args, **flags)
    with pytest.raises(expected.type) as found:
        getattr(ours, name)(*args, **flags)
    assert str(found.value) == str(expected.value)


def test_outputs_are_pytorchs():
    out = torch.empty(3, 3)
    assert ours.cholesky(4 * A, out=out) is out
    torch.testing.assert_close(out, 2 * A)


GRADIENTS = {
    "cholesky": (lambda f, p, b: f.cholesky(p) @ b),
    "upper": (lambda f, p, b: f.cholesky(p, upper=True) @ b),
    "solve": (lambda f, p, b: f.solve(p, b)),
    "inv": (lambda f, p, b: f.inv(p) @ b),
    "slogdet": (lambda f, p, b: f.slogdet(p)[1].sum() * b),
    "det": (lambda f, p, b: f.det(p / p.shape[-1]).sum() * b),
    "lu": (lambda f, p, b: f.lu_factor(p)[0] @ b),
}


@pytest.mark.parametrize("name", GRADIENTS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
def test_gradients_are_pytorchs(name, dtype, monkeypatch):
    monkeypatch.setattr(cholesky_rows, "LEAF", 4)  # halves of halves, of odd orders
    p, b = spd(dtype, 2, 27, 27), random(dtype, 27, 3)
    grads = []
    for library in (ours, torch.linalg):
        one, other = p.clone().requires_grad_(), b.clone().requires_grad_()
        GRADIENTS[name](library, one, other).abs().sum().backward()
        # of a complex factor PyTorch's may be that of no Hermitian matrix
        grads.append((hermitian(one.grad) if name == "cholesky" else one.grad, other.grad))
    torch.testing.assert_close(*grads)


def test_the_gradient_of_a_large_cholesky_factor():
    p = spd(torch.float64, 600, 600)
    weights = random(torch.float64, 600, 600)
    grads = []
    for library in (ours, torch.linalg):
        one = p.clone().requires_grad_()
        (library.cholesky(one) * weights).sum().backward()
        grads.append(one.grad)
    assert torch.equal(grads[0], grads[0].mT)
    torch.testing.assert_close(*grads)


def test_the_determinant_of_a_singular_matrix_has_a_gradient():
    a = torch.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=torch.float64, requires_grad=True)
    ours.det(a).backward()
    torch.testing.assert_close(a.grad, torch.tensor([[4.0, -2.0], [-2.0, 1.0]], dtype=torch.float64))


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
@pytest.mark.parametrize(("batch", "right"), [((), (5,)), ((), (5, 2)), ((3,), (5, 2)), ((3,), (2, 3, 5, 1))])
def test_inv_quad_logdet_is_its_parts(dtype, batch, right):
    k, y = spd(dtype, *batch, 5, 5).requires_grad_(), random(dtype, *right).requires_grad_()
    factor = torch.linalg.cholesky(k)
    column = y if len(right) > 1 else y[:, None]
    x = torch.cholesky_solve(column, factor)
    expected = (
        (column.conj() * x).real.sum((-2, -1)),
        2 * factor.diagonal(dim1=-2, dim2=-1).real.log().sum(-1),
    )
    found = ours.inv_quad_logdet(k, y)
    torch.testing.assert_close(found, expected)
    grads = [
        torch.autograd.grad((q.cos().sum() + (2 * d).sum()), (k, y), retain_graph=True)
        for q, d in (found, expected)
    ]
    torch.testing.assert_close(*grads)


def test_inv_quad_logdet_refuses():
    with pytest.raises(torch.linalg.LinAlgError, match="not positive-definite"):
        ours.inv_quad_logdet(-A, A[0])
    for bad in (A[:2], A.half(), A[0]):
        with pytest.raises(RuntimeError, match="inv_quad_logdet"):
            ours.inv_quad_logdet(bad, A[0])
