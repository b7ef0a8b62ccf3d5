"""Functions of `torch.linalg`'s names beside PyTorch's own: values, dtypes, strides, gradients, errors."""

from __future__ import annotations

import inspect

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch_cases import hermitian, random, spd
from torch_linalg_calls import (
    DTYPES,
    NAMES,
    REFUSED,
    calls,
    rectangular_calls,
    spectral_calls,
    theirs,
    without_phases,
)

import pyblasgpu
import pyblasgpu.torch as ours
from pyblasgpu.operators import cholesky
from pyblasgpu.torch import cholesky_rows, qr_rows


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    ("batch", "n", "k"), [((), 5, 3), ((2, 3), 4, 1), ((0,), 3, 2), ((2,), 0, 2), ((), 3, 0)]
)
def test_results_are_pytorchs(dtype, batch, n, k):
    for name, args, flags in (
        each for group in (calls, rectangular_calls, spectral_calls) for each in group(dtype, batch, n, k)
    ):
        found, expected = getattr(ours, name)(*args, **flags), theirs(name)(*args, **flags)
        pairs = [(found, expected)]
        if isinstance(expected, tuple):
            assert type(found) is type(expected)
            pairs = list(zip(found, expected, strict=True))
        for one, other in zip(*(without_phases(name, each) for each in (found, expected)), strict=True):
            torch.testing.assert_close(one, other, msg=f"{name} {flags}: {one} {other}")
        for one, other in pairs:
            # PyTorch's are not of matrices for a stack of vectors, and swapped by lazy conjugates; our lstsq
            # ends in a product
            is_vector = name.startswith("solve") and args[1].shape == args[0].shape[:-1]
            if one.numel() and not one.is_complex() and not is_vector and name != "lstsq":
                assert one.stride() == other.stride(), (name, flags, one.shape)


@pytest.mark.parametrize("name", NAMES)
def test_signatures_are_pytorchs(name):
    """Each parameter of ours is one of PyTorch's, as its documentation begins."""
    documented = theirs(name).__doc__.split(")")[0]
    for parameter in list(inspect.signature(getattr(ours, name)).parameters)[1:]:
        assert parameter in documented or parameter in ("L", "rcond", "tol"), (parameter, documented)


@pytest.mark.parametrize("call", [call for call, (name, *_) in REFUSED.items() if name in NAMES])
def test_errors_are_pytorchs(call):
    name, args, flags = REFUSED[call]
    with pytest.raises(Exception) as expected:
        theirs(name)(*args, **flags)
    with pytest.raises(expected.type) as found:
        getattr(ours, name)(*args, **flags)
    assert str(found.value) == str(expected.value)


def test_outputs_are_pytorchs():
    out, identity = torch.empty(3, 3), torch.eye(3)
    assert ours.cholesky(4 * identity, out=out) is out
    torch.testing.assert_close(out, 2 * identity)


GRADIENTS = {
    "cholesky": (lambda f, p, b: f.cholesky(p) @ b),
    "upper": (lambda f, p, b: f.cholesky(p, upper=True) @ b),
    "solve": (lambda f, p, b: f.solve(p, b)),
    "inv": (lambda f, p, b: f.inv(p) @ b),
    "slogdet": (lambda f, p, b: f.slogdet(p)[1].sum() * b),
    "det": (lambda f, p, b: f.det(p / p.shape[-1]).sum() * b),
    "lu": (lambda f, p, b: f.lu_factor(p)[0] @ b),
    "qr": (lambda f, p, b: f.qr(p[..., :20])[0].mH @ b[:27]),
    "qr of a wide matrix": (lambda f, p, b: f.qr(p[..., :20, :])[1] @ b),
    "lstsq": (lambda f, p, b: f.lstsq(p[..., :20], b.expand(2, 27, 3), driver="gels")[0]),
    "lstsq of a wide matrix": (lambda f, p, b: f.lstsq(p[:, :20], b[:20].expand(2, 20, 3), driver="gels")[0]),
    "eigh": (lambda f, p, b: f.eigh(p)[1].abs() @ b.abs()),
    "eigvalsh": (lambda f, p, b: f.eigvalsh(p, "U")[..., None] * b),
    "svd": (lambda f, p, b: f.svd(p[..., :20])[0][..., :20].abs() @ b[:20].abs()),
    "svd of a wide matrix": (lambda f, p, b: f.svd(p[..., :20, :], False)[2].abs() @ b.abs()),
    "svdvals": (lambda f, p, b: f.svdvals(p[..., :20, :])[..., None] * b[:20]),
    "pinv": (lambda f, p, b: f.pinv(p[..., :20]) @ b),
    "residuals": (lambda f, p, b: f.lstsq(p[..., :20], b.expand(2, 27, 3), driver="gels")[1]),
}


@pytest.mark.parametrize("name", GRADIENTS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
@pytest.mark.parametrize("leaf", [4, 27])
def test_gradients_are_pytorchs(name, dtype, leaf, monkeypatch):
    monkeypatch.setattr(
        cholesky, "leaf_order", lambda batch: leaf
    )  # halves of halves, of odd orders; or no halves
    p, b = spd(dtype, 2, 27, 27), random(dtype, 27, 3)
    grads = []
    for library in (ours, torch.linalg):
        one, other = p.clone().requires_grad_(), b.clone().requires_grad_()
        GRADIENTS[name](library, one, other).abs().sum().backward()
        # of a complex factor PyTorch's may be that of no Hermitian matrix
        grads.append((hermitian(one.grad) if name == "cholesky" else one.grad, other.grad))
    torch.testing.assert_close(*grads)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("fails", [False, True])
def test_tall_matrices_by_cholesky_factors(dtype, fails, monkeypatch):
    """As those of a device; their R has a positive diagonal. Reflectors where the condition is too large."""
    monkeypatch.setattr(qr_rows, "is_tall", lambda arrays, a: True)
    monkeypatch.setattr(qr_rows, "LEAST_ELEMENTS", 0)
    a = random(dtype, 48, 3)
    if fails:
        a[:, 1] = a[:, 0]
    q, r = ours.qr(a)
    torch.testing.assert_close(q @ r, a)
    torch.testing.assert_close(q.mH @ q, torch.eye(3, dtype=dtype))
    assert (r.diagonal().real > 0).all() == (not fails) and q.mT.is_contiguous() and not r.tril(-1).any()


def test_large_factors_are_halved(monkeypatch):
    """Parts are halved down to the order of leaves."""
    halvings, hemm = [], pyblasgpu.hemm
    monkeypatch.setattr(cholesky, "leaf_order", lambda batch: 4)

    def counted(a, *args, **flags):
        halvings.append(len(a))
        return hemm(a, *args, **flags)

    monkeypatch.setattr(pyblasgpu, "hemm", counted)
    p = spd(torch.float64, 64, 64).requires_grad_()
    ours.cholesky(p).sum().backward()
    assert sorted(halvings) == [4] * 8 + [8] * 4 + [16] * 2 + [32]


class Counted(TorchDispatchMode):
    """Names of PyTorch's kernels that ran, but for views and new memory."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if not function.is_view and "empty" not in function.name():
            self.names.append(function.name())
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize(("batch", "order"), [(0, 3072), (1, 3072), (8, 1536), (10**6, 256)])
def test_leaves_of_the_reverse_mode_share_an_amount_of_work(batch, order):
    assert cholesky.leaf_order(batch) == order


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
@pytest.mark.parametrize("upper", [False, True])
def test_the_gradient_of_a_factor_takes_few_calls(dtype, upper, monkeypatch):
    """Up to the order where products cost more: one TRMM, two TRSM, and few kernels of PyTorch."""
    routines = []
    for name in ("trmm", "trsm", "hemm", "gemmtr"):
        monkeypatch.setattr(pyblasgpu, name, recorder(routines, name, getattr(pyblasgpu, name)))
    factor, grad = ours.cholesky(spd(dtype, 600, 600), upper=upper), random(dtype, 600, 600)
    row, out = cholesky_rows.CholeskyBackward, torch.empty_like(factor)
    with Counted() as counted:
        row.compute(out, factor, grad, upper)
    assert routines == ["trmm", "trsm", "trsm"]
    # the routines' own kernels of the processor write through NumPy; conjugates are copies
    assert len(counted.names) + len(routines) < (16 if dtype.is_complex else 10), counted.names


def recorder(names, name, routine):
    """Return a routine whose calls add its name."""

    def called(*args, **flags):
        names.append(name)
        return routine(*args, **flags)

    return called


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


EQUAL = {
    "eigvalsh": lambda f, a: f.eigvalsh(a),
    "eigenvalues": lambda f, a: f.eigh(a)[0],
    "svdvals": lambda f, a: f.svdvals(a),
    "singular values": lambda f, a: f.svd(a)[1],
    "pinv": lambda f, a: f.pinv(a),
    "pinv, hermitian": lambda f, a: f.pinv(a, hermitian=True),
    "eigenvectors": lambda f, a: f.eigh(a)[1],
    "singular vectors": lambda f, a: f.svd(a)[0],
}


@pytest.mark.parametrize("name", EQUAL)
def test_gradients_of_equal_values_are_pytorchs(name):
    """They are finite but for vectors."""
    a, grads = torch.diag(torch.tensor([2.0, 2.0, 1.0, 0.0], dtype=torch.float64)), []
    weights = torch.arange(1.0, 17).reshape(4, 4).double()
    for library in (ours, torch.linalg):
        x = a.clone().requires_grad_()
        result = EQUAL[name](library, x)
        (result * weights[: result.shape[0] if result.ndim > 1 else 0]).sum().backward()
        grads.append(x.grad)
    assert grads[0].isfinite().all() == ("vectors" not in name)
    if "vectors" not in name:
        torch.testing.assert_close(*grads)


PHASES = {
    "eigh": lambda f, x: f.eigh(x)[1].real.sum(),
    "svd": lambda f, x: f.svd(x)[0].real.sum(),
    "svd, right vectors": lambda f, x: f.svd(x)[2].real.sum(),
    "svd, both": lambda f, x: sum((f.svd(x)[i].real ** 2).sum() for i in (0, 2)),
}


@pytest.mark.parametrize("name", PHASES)
def test_losses_that_depend_on_phases_have_no_gradient(name):
    """They have one where they depend on them by less than PyTorch's bound."""
    a = random(torch.complex128, 4, 4)
    for scale in (1, 1e-4):
        errors = []
        for library in (ours, torch.linalg):
            x, error = a.clone().requires_grad_(), ""
            try:
                (PHASES[name](library, x) * scale).backward()
            except RuntimeError as raised:
                error = str(raised)
            errors.append(error)
        assert errors[0] == errors[1] and bool(errors[0]) == (scale == 1)


@pytest.mark.parametrize("name", ["eigh", "eigvalsh", "svd", "svdvals", "pinv", "matrix_rank"])
def test_matrices_that_are_not_finite_are_errors(name):
    a = torch.stack([torch.eye(3), torch.full((3, 3), torch.nan)])
    errors = []
    for library in (ours, torch.linalg):
        with pytest.raises(torch.linalg.LinAlgError) as error:
            getattr(library, name)(a)
        errors.append(str(error.value).partition(" (error code")[0])
    assert errors[0] == errors[1]


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 0, 0)])
@pytest.mark.parametrize("name", ["pinv", "matrix_rank", "svdvals"])
def test_singular_values_of_nothing(name, shape):
    a = torch.zeros(shape)
    torch.testing.assert_close(getattr(ours, name)(a), getattr(torch.linalg, name)(a))


def test_inv_quad_logdet_refuses():
    a = torch.eye(3)
    with pytest.raises(torch.linalg.LinAlgError, match="not positive-definite"):
        ours.inv_quad_logdet(-a, a[0])
    for bad in (a[:2], a.half(), a[0]):
        with pytest.raises(RuntimeError, match="inv_quad_logdet"):
            ours.inv_quad_logdet(bad, a[0])


@pytest.mark.parametrize("name", ["gemm", "gemmtr", "symm", "hemm", "syrk", "herk", "trmm", "trsm"])
def test_factors_that_are_tensors_have_gradients(name):
    a, c = spd(torch.complex128, 4, 4), random(torch.complex128, 4, 4)
    takes_c, arrays = name[:2] != "tr", [a] if name in ("syrk", "herk") else [a, c]
    factors = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (2.5, 0.5)]

    def call(alpha, beta):
        added = {"c": c, "beta": beta} if takes_c else {}
        return getattr(ours, name)(*arrays, alpha=alpha, **added)

    found = call(*factors)
    torch.testing.assert_close(found, call(2.5, 0.5))
    weights = random(torch.complex128, 4, 4)
    grads = torch.autograd.grad((found * weights).real.sum(), factors[: 1 + takes_c])
    changes = [call(3.5, 0.5) - found, call(2.5, 1.5) - found]
    expected = [(change * weights).real.sum() for change in changes[: 1 + takes_c]]
    torch.testing.assert_close(grads, tuple(expected))


@pytest.mark.parametrize("name", ["gemm", "gemmtr", "symm", "hemm", "trmm", "trsm"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int64], ids=str)
def test_level3_names_the_dtype_that_it_does_not_serve(name, dtype):
    a = torch.eye(3, dtype=dtype)
    with pytest.raises(TypeError, match=f"{name}: a is {dtype}; float32, "):
        getattr(ours, name)(a, a)
