"""patch_torch: PyTorch's kernels are replaced, what is above them is not, and nothing is left behind."""

from __future__ import annotations

import threading
from unittest.mock import Mock

import pytest
import torch
from torch._subclasses import FakeTensorMode
from torch.utils import _pytree as pytree
from torch_cases import BACKENDS, hermitian, random, spd
from torch_linalg_calls import (
    DTYPES,
    REFUSED,
    calls,
    rectangular_calls,
    reflector_calls,
    spectral_calls,
    theirs,
    without_phases,
)
from torch_programs import GPYTORCH, PYTORCH

import pyblasgpu
from pyblasgpu import patch_torch, set_math_mode, unpatch_torch
from pyblasgpu.torch_patch import kernels, qr_targets

SHAPES = [((), 5, 3), ((2, 3), 4, 1), ((0,), 3, 2), ((2,), 0, 2), ((), 3, 0)]


@pytest.fixture(autouse=True)
def nothing_is_left_behind():
    yield
    unpatch_torch()
    registered = torch._C._dispatch_dump("aten::linalg_cholesky_ex")
    assert "torch_patch" not in registered


def taken(**options):
    """A patch that serves calls of all sizes on tensors in host memory."""
    return patch_torch(**{"backend": "cpu", "thresholds": 0, **options})


def tensors(result):
    return [each for each in pytree.tree_leaves(result) if isinstance(each, torch.Tensor)]


def served_calls(*case):
    """Calls; least squares with elements, by the driver that needs full rank."""
    yield from calls(*case)
    for name, args, flags in rectangular_calls(*case):
        if name != "lstsq" or (flags["driver"] == "gels" and args[1].numel()):
            yield name, args, flags
    yield from reflector_calls(*case)
    yield from spectral_calls(*case)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("batch", "n", "k"), SHAPES)
def test_results_are_pytorchs(dtype, batch, n, k):
    """Values, named tuples, and the strides that compilers are promised."""
    for name, args, flags in served_calls(dtype, batch, n, k):
        expected = theirs(name)(*args, **flags)
        with taken() as patch:
            found = theirs(name)(*args, **flags)
        assert type(found) is type(expected) and patch.calls and not patch.kept, (name, patch.kept)
        promised = expected
        if name not in ("geqrf", "lstsq"):  # which have no fakes
            with FakeTensorMode() as mode:
                given, options = pytree.tree_map_only(torch.Tensor, mode.from_tensor, (args, flags))
                promised = theirs(name)(*given, **options)
        for one, other in zip(*(without_phases(name, each) for each in (found, expected)), strict=True):
            torch.testing.assert_close(one, other, msg=f"{name} {flags}: {one} {other}")
        for one, fake in zip(*map(tensors, (found, promised)), strict=True):
            if one.numel() and name != "lstsq":  # whose solution is a part of a longer tensor
                assert one.stride() == fake.stride(), (name, flags, one.shape)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("transpose", [False, True])
def test_triangular_solve_of_old(dtype, transpose):
    a, b = spd(dtype, 2, 4, 4), random(dtype, 4, 3)
    expected = torch.triangular_solve(b, a, transpose=transpose)
    with taken() as patch:
        found = torch.triangular_solve(b, a, transpose=transpose)
    assert patch.calls == {"triangular_solve": 1}
    torch.testing.assert_close(found, expected)
    assert [x.stride() for x in found] == [x.stride() for x in expected]


@pytest.mark.parametrize("call", REFUSED)
def test_errors_are_pytorchs(call):
    name, args, flags = REFUSED[call]
    with pytest.raises(Exception) as expected:
        theirs(name)(*args, **flags)
    with taken(), pytest.raises(expected.type) as found:
        theirs(name)(*args, **flags)
    assert str(found.value) == str(expected.value)


def outputs(expected):
    """Outputs for results: without elements, row-major, column-major, and with gaps."""
    yield [x.new_empty(0) for x in expected]
    yield [torch.full_like(x, 7, memory_format=torch.contiguous_format) for x in expected]
    yield [torch.full_like(x, 7) for x in expected]
    yield [x.new_full((*x.shape, 2), 7)[..., 0] for x in expected]


OUTS = {
    "cholesky": lambda p, b, out: torch.linalg.cholesky(p, out=out[0]),
    "cholesky_ex": lambda p, b, out: torch.linalg.cholesky_ex(p, out=tuple(out)),
    "solve_triangular": lambda p, b, out: torch.linalg.solve_triangular(p, b, upper=True, out=out[0]),
    "cholesky_solve": lambda p, b, out: torch.cholesky_solve(b, p, out=out[0]),
    "cholesky_inverse": lambda p, b, out: torch.cholesky_inverse(p, out=out[0]),
    "lu_factor": lambda p, b, out: torch.linalg.lu_factor(p, out=tuple(out)),
    "solve": lambda p, b, out: torch.linalg.solve(p, b, out=out[0]),
    "inv": lambda p, b, out: torch.linalg.inv(p, out=out[0]),
    "slogdet": lambda p, b, out: torch.linalg.slogdet(p, out=tuple(out)),
    "qr": lambda p, b, out: torch.linalg.qr(p, out=tuple(out)),
    "geqrf": lambda p, b, out: torch.geqrf(p, out=tuple(out)),
    "eigh": lambda p, b, out: torch.linalg.eigh(p, out=tuple(out)),
    "eigvalsh": lambda p, b, out: torch.linalg.eigvalsh(p, out=out[0]),
    "svd": lambda p, b, out: torch.linalg.svd(p, out=tuple(out)),
    "svdvals": lambda p, b, out: torch.linalg.svdvals(p, out=out[0]),
    "pinv": lambda p, b, out: torch.linalg.pinv(p, out=out[0]),
    "householder_product": lambda p, b, out: torch.linalg.householder_product(p, b[..., 0], out=out[0]),
    "ormqr": lambda p, b, out: torch.ormqr(p, b[..., 0], b, out=out[0]),
}
#: Shapes and dtypes of outputs that are not one matrix.
OUT_SHAPES = {
    "slogdet": ([(), ()], torch.float64),
    "lu_factor": ([(4, 4), (4,)], torch.int32),
    "cholesky_ex": ([(4, 4), ()], torch.int32),
    "qr": ([(4, 4), (4, 4)], torch.float64),
    "geqrf": ([(4, 4), (4,)], torch.float64),
    "eigh": ([(4,), (4, 4)], torch.float64),
    "eigvalsh": ([(4,)], torch.float64),
    "svd": ([(4, 4), (4,), (4, 4)], torch.float64),
    "svdvals": ([(4,)], torch.float64),
}


@pytest.mark.parametrize("name", OUTS)
@pytest.mark.parametrize("batch", [(), (2,)])
def test_results_go_where_the_caller_wants_them(name, batch):
    p, b = spd(torch.float64, *batch, 4, 4), random(torch.float64, *batch, 4, 4)
    shapes, second = OUT_SHAPES.get(name, ([(4, 4)], torch.float64))
    kinds = list(zip(shapes, (torch.float64, second, second)))
    results = [[torch.zeros((*batch, *shape), dtype=dtype) for shape, dtype in kinds] for _ in range(2)]
    for out, other in zip(*map(outputs, results), strict=True):
        expected = OUTS[name](p, b, other)
        with taken() as patch:
            found = OUTS[name](p, b, out)
        assert patch.calls and not patch.kept
        torch.testing.assert_close(*(without_phases(name, each) for each in (found, expected)))
        for one, passed, theirs_ in zip(tensors(found), out, other, strict=True):
            assert one.data_ptr() == passed.data_ptr() and passed.stride() == theirs_.stride()


def test_an_output_that_is_an_argument():
    p, b = spd(torch.float64, 4, 4), random(torch.float64, 4, 4)
    expected = torch.linalg.solve_triangular(p, b, upper=False), torch.linalg.cholesky(p)
    with taken() as patch:
        solved, factor = p.clone().mT, p.clone().mT  # laid out as results are, and p is symmetric
        torch.linalg.solve_triangular(solved, b, upper=False, out=solved)
        torch.linalg.cholesky(factor, out=factor)
    torch.testing.assert_close((solved, factor), expected)
    assert patch.calls == {"solve_triangular": 1, "cholesky": 1}


def test_conjugates_and_views():
    a, b = spd(torch.complex128, 5, 5), random(torch.complex128, 5, 3)
    expected = torch.linalg.solve_triangular(a.mH, b.conj(), upper=True)
    with taken():
        torch.testing.assert_close(torch.linalg.solve_triangular(a.mH, b.conj(), upper=True), expected)
        torch.testing.assert_close(
            torch.linalg.inv(a[::2, ::2].conj()) @ a[::2, ::2].conj(), torch.eye(3, dtype=a.dtype)
        )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("sensitive", [False, True])
def test_tall_least_squares_by_products(dtype, sensitive, monkeypatch):
    """As those of a device; by reflectors where A is too sensitive."""
    called = Mock(wraps=qr_targets.lapack.geqrf)
    monkeypatch.setattr(qr_targets, "are_tried", lambda arrays, a, b: True)
    monkeypatch.setattr(qr_targets.lapack, "geqrf", called)
    a, b = random(dtype, 80, 4), random(dtype, 80, 2)
    if sensitive:
        a[:, 1] = a[:, 0] * (1 + torch.finfo(dtype).eps ** 0.5 * torch.arange(80) / 10)
    expected = torch.linalg.lstsq(a, b, driver="gels")
    with taken():
        found = torch.linalg.lstsq(a, b, driver="gels")
    assert called.call_count == sensitive
    if not sensitive:
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other)
    roundoff = torch.finfo(dtype).eps ** 0.5  # of A in half of the digits
    torch.testing.assert_close(found.residuals, expected.residuals, rtol=roundoff, atol=roundoff)


GRADIENTS = {
    "cholesky": lambda p, b: torch.linalg.cholesky(p) @ b,
    "cholesky upper": lambda p, b: torch.linalg.cholesky(p, upper=True) @ b,
    "solve_triangular": lambda p, b: torch.linalg.solve_triangular(p, b, upper=True),
    "solve_triangular right": lambda p, b: torch.linalg.solve_triangular(p, b.mT, upper=False, left=False),
    "cholesky_solve": lambda p, b: torch.cholesky_solve(b, torch.linalg.cholesky(p)),
    "cholesky_inverse": lambda p, b: torch.cholesky_inverse(torch.linalg.cholesky(p)) @ b,
    "solve": torch.linalg.solve,
    "inv": lambda p, b: torch.linalg.inv(p) @ b,
    "det": lambda p, b: torch.linalg.det(p / 3),
    "slogdet": lambda p, b: torch.linalg.slogdet(p)[1],
    "lu_factor": lambda p, b: torch.linalg.lu_factor(p)[0] @ b,
    "qr": lambda p, b: torch.linalg.qr(p)[1].abs() @ b.abs(),
    "eigh": lambda p, b: torch.linalg.eigh(p)[1].abs() @ b.abs(),
    "svdvals": lambda p, b: torch.linalg.svdvals(p)[..., None] * b,
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name, dtype):
    p, b = spd(dtype, 2, 2).requires_grad_(), random(dtype, 2, 1).requires_grad_()

    def function(p, b):
        return GRADIENTS[name](hermitian(p), b)

    with taken() as patch:
        assert torch.autograd.gradcheck(function, (p, b), check_forward_ad=True)
        assert torch.autograd.gradgradcheck(function, (p, b))
    assert patch.calls and not patch.kept


def likelihood(x, y):
    k = torch.exp(-((x - x.mT) ** 2)) + torch.eye(len(x), dtype=x.dtype)
    z = torch.linalg.solve_triangular(torch.linalg.cholesky(k), y, upper=False)
    return (
        (z * z).sum()
        + torch.linalg.slogdet(k)[1]
        + torch.linalg.solve(k, y).sum()
        + torch.linalg.inv(k).sum()
    )


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("backend", BACKENDS)
def test_one_graph_compiles(backend, dynamic):
    with taken(thresholds=3):
        compiled = torch.compile(likelihood, fullgraph=True, backend=backend, dynamic=dynamic)
        for n in (5, 6):
            x, y = (random(torch.float64, n, 1).requires_grad_() for _ in range(2))
            grads = []
            for function in (compiled, likelihood):
                value = function(x, y)
                grads.append((value, *torch.autograd.grad(value, (x, y))))
            torch.testing.assert_close(*grads)


def each_alone(function):
    """A batch of calls, one after another; PyTorch's batches of second derivatives of `solve` are wrong."""
    return lambda x, y: torch.stack([function(one, y) for one in x])


@pytest.mark.parametrize(
    "transform", [lambda f: f, torch.func.grad, torch.func.hessian], ids=["itself", "grad", "hessian"]
)
def test_maps(transform):
    x, y, function = random(torch.float64, 4, 5, 1), random(torch.float64, 5, 1), transform(likelihood)
    expected = each_alone(function)(x, y)
    with taken() as patch:
        torch.testing.assert_close(torch.vmap(function, in_dims=(0, None))(x, y), expected)
        torch.testing.assert_close(each_alone(function)(x, y), expected)
    assert patch.calls and not patch.kept


def test_tangents():
    x, y = random(torch.float64, 5, 1), random(torch.float64, 5, 1)
    expected = torch.func.jvp(likelihood, (x, y), (y, x))
    with taken() as patch:
        torch.testing.assert_close(torch.func.jvp(likelihood, (x, y), (y, x)), expected)
    assert patch.calls and not patch.kept


@pytest.mark.parametrize("program", [*PYTORCH, *GPYTORCH], ids=lambda program: program.__name__)
def test_programs_run_unchanged(program):
    if program in GPYTORCH:
        pytest.importorskip("gpytorch")
        pytest.importorskip("botorch")
    expected = program("cpu")
    with taken() as patch:
        found = program("cpu")
    assert patch.calls and not patch.kept
    # optimizers and jitter end with what the steps left of a rounding error
    limit = 1e-6 if program in GPYTORCH else 1e-9
    torch.testing.assert_close(tuple(found), tuple(expected), rtol=limit, atol=limit)


def test_what_is_not_served_says_why():
    a = torch.eye(3)
    with taken() as patch:
        torch.linalg.inv(a.to(torch.float64), out=torch.empty(3, 3, dtype=torch.float64))
        for wrong in (a.half(), a[:2]):
            with pytest.raises(RuntimeError):
                torch.linalg.inv(wrong)
        torch.linalg.solve_triangular(a, a.double(), upper=True)
        with pytest.warns(UserWarning, match="resized"):
            torch.linalg.inv(a, out=torch.empty(2, 2))
    assert patch.calls["inv"] == 1
    kept = {("inv", "dtype"): 1, ("inv", "shape"): 1, ("solve_triangular", "dtype"): 1, ("inv", "out"): 1}
    assert patch.kept == kept


def test_what_fails_is_pytorchs(monkeypatch):
    def no_memory(*_):
        raise MemoryError("none is left")

    monkeypatch.setattr(kernels, "set_math_mode", no_memory)
    monkeypatch.setattr("pyblasgpu.torch.lu_rows.InvEx.compute", no_memory)
    with taken() as patch:
        torch.testing.assert_close(torch.linalg.inv(2 * torch.eye(3)), torch.eye(3) / 2)
    assert patch.kept["inv", "refused"] == 1


PRODUCTS = {
    "mm": lambda a, b, c: a[0] @ b[0],
    "bmm": lambda a, b, c: a @ b,
    "addmm": lambda a, b, c: torch.addmm(c[0, 0], a[0], b[0], beta=2, alpha=3),
    "addmm ": lambda a, b, c: c[0].clone().addmm_(a[0], b[0], beta=0.5),
    "addmm  ": lambda a, b, c: torch.addmm(torch.full_like(c[0], torch.nan), a[0], b[0], beta=0),
    "baddbmm": lambda a, b, c: torch.baddbmm(c, a, b, alpha=2),
    "baddbmm ": lambda a, b, c: c.clone().baddbmm_(a, b),
    "mm ": lambda a, b, c: torch.mm(a[0].mT.conj(), a[0], out=torch.empty(0, dtype=a.dtype)),
}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_in_tensor_mode(name, dtype):
    a, b, c = random(dtype, 2, 3, 4), random(dtype, 2, 4, 5), random(dtype, 2, 3, 5)
    expected = PRODUCTS[name](a, b, c)
    with taken() as patch:
        PRODUCTS[name](a, b, c)
        assert not patch.calls
    with set_math_mode("tensor"), taken() as patch:
        found = PRODUCTS[name](a, b, c)
        assert patch.calls == {name.strip(): 1}
    torch.testing.assert_close(found, expected)
    assert found.stride() == expected.stride()


def test_products_of_gradients_are_in_the_mode(monkeypatch):
    """On threads of PyTorch's own, which have no mode, too."""
    modes = []
    compute = kernels.PRODUCTS["mm"].call(torch.eye(2), torch.eye(2)).row.compute

    def recording(out, *args):
        modes.append(pyblasgpu.dispatch.overrides.get_override("math_mode"))
        compute(out, *args)

    monkeypatch.setattr("pyblasgpu.torch.product_rows.Gemm.compute", staticmethod(recording))
    a = torch.ones(3, 3, requires_grad=True)
    with set_math_mode("tensor"):
        patch = taken()
    (a @ a).sum().backward()
    other = threading.Thread(target=lambda: torch.mm(a.detach(), a.detach()))
    other.start()
    other.join()
    patch.undo()
    assert modes == ["tensor"] * 4


def test_patches_nest_and_end_in_any_order():
    a = torch.eye(3)
    outer, inner = taken(), taken(thresholds={"cholesky": 100})
    torch.linalg.cholesky(a)
    assert inner.kept == {("cholesky", "small"): 1} and not outer.calls
    outer.undo()
    with outer:
        torch.linalg.cholesky(a)
        inner.undo()
    assert outer.calls == {"cholesky": 1}
    torch.linalg.cholesky(a)
    assert outer.calls == {"cholesky": 1}


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"backend": "sim"}, ValueError, "patch_torch: backend='sim' is none of auto, cuda, cpu"),
        ({"thresholds": {"eig": 1}}, ValueError, "patch_torch: thresholds names eig; known: cholesky"),
        ({"thresholds": -1}, ValueError, "patch_torch: thresholds has -1"),
        ({"thresholds": "big"}, TypeError, "patch_torch: thresholds has 'big'"),
    ],
)
def test_wrong_options(options, error, words):
    with pytest.raises(error, match=words):
        patch_torch(**{"backend": "cpu", **options})


def test_a_backend_of_the_environment_that_serves_no_tensors(monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "numba")
    with pytest.raises(ValueError, match="patch_torch: backend 'numba' serves no tensors"):
        patch_torch()


def test_without_a_gpu_nothing_is_replaced(monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "auto")
    if torch.cuda.is_available():
        pytest.skip("there is one")
    with patch_torch(thresholds=0) as patch:
        torch.linalg.cholesky(torch.eye(3))
    assert not patch.calls and not patch.kept
