"""Operators of PyTorch on a card: results, gradients, compiled graphs, and what waits for the device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

torch = pytest.importorskip("torch")
cases = pytest.importorskip("torch_cases")
ours = pytest.importorskip("pyblasgpu.torch")

operators = pytest.importorskip("pyblasgpu.torch.operators")

import pyblasgpu  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch has no CUDA device")
DTYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128]


def on_card(value: Any) -> Any:
    return value.cuda() if isinstance(value, torch.Tensor) else value


@contextmanager
def without_waiting() -> Iterator[None]:
    """PyTorch raises where a function waits for the device."""
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("name", cases.CASES)
def test_results_are_those_of_the_processor(name: str) -> None:
    case = cases.CASES[name]
    op = getattr(torch.ops.pyblasgpu, case.name).default
    direct = getattr(operators.TENSORS, case.name)
    is_spectrum = case.name in ("eigh", "svd")
    # the last two without the dispatcher, by a launch list that is kept
    for call in (op,) if is_spectrum else (op, direct, direct):
        if is_spectrum or case.name == "inv_quad_logdet_backward":  # vectors have any phases
            function, tensors = case._replace(wrap=lambda _, *args: case.wrap(call, *args)).function()  # noqa: B023
            found, expected = function(*map(on_card, tensors)), function(*tensors)
        else:
            found, expected = call(*map(on_card, case.args)), op(*case.args)
        pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
        for one, other in pairs:
            torch.testing.assert_close(one.cpu(), other)
            assert is_spectrum or one.stride() == other.stride()


@pytest.mark.parametrize("name", [name for name in cases.FREE_CASES if name.startswith("float64")])
def test_opcheck(name: str) -> None:
    case = cases.FREE_CASES[name]
    torch.library.opcheck(getattr(torch.ops.pyblasgpu, case.name).default, case.checked_args(on_card))


PROGRAMS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "cholesky": lambda f, p, b: f.solve_triangular(f.cholesky(p), b, upper=False),
    "upper": lambda f, p, b: f.cholesky(p, upper=True) @ b,
    "solve": lambda f, p, b: f.solve(p, b),
    "inv": lambda f, p, b: f.inv(p) @ b,
    "slogdet": lambda f, p, b: f.slogdet(p)[1].sum() * b,
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
@pytest.mark.parametrize(("batch", "n"), [((), 1500), ((), 3500), ((3,), 300), ((50,), 40)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_are_pytorchs(name: str, batch: tuple[int, ...], n: int, dtype: Any) -> None:
    p, b = cases.spd(dtype, *batch, n, n).cuda(), cases.random(dtype, n, 3).cuda()
    grads = []
    for library in (ours, torch.linalg):
        one, other = p.clone().requires_grad_(), b.clone().requires_grad_()
        PROGRAMS[name](library, one, other).abs().sum().backward()
        grads.append((cases.hermitian(one.grad), other.grad))
    torch.testing.assert_close(*grads)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
@pytest.mark.parametrize(("batch", "n"), [((), 700), ((20,), 40)])
@pytest.mark.parametrize("name", cases.AT_ONCE)
def test_gradients_of_both_matrices_are_those_of_operators(
    name: str, batch: tuple[int, ...], n: int, dtype: Any
) -> None:
    """By one launch list, and by operators where derivatives follow."""
    a, b = cases.spd(dtype, *batch, n, n).cuda() / n, cases.random(dtype, *batch, n, 3).cuda()
    inputs = [each.requires_grad_() for each in (a, b)]
    out = cases.AT_ONCE[name](*inputs)
    g = torch.randn_like(out)
    expected = torch.autograd.grad(out, inputs, g, retain_graph=True, create_graph=True)
    torch.testing.assert_close(torch.autograd.grad(out, inputs, g), expected)


SPECTRA: dict[str, Callable[[Any, Any], Any]] = {
    "eigh": lambda f, p: f.eigh(p)[1].abs(),
    "eigvalsh": lambda f, p: f.eigvalsh(p, "U"),
    "svd": lambda f, p: f.svd(p[..., 2:], False)[0].abs(),
    "svd of wide matrices": lambda f, p: f.svd(p[..., 2:, :])[2][..., :-2, :].abs(),
    "svdvals": lambda f, p: f.svdvals(p[..., 2:]),
    "pinv": lambda f, p: f.pinv(p[..., 2:]),
    "pinv of Hermitian matrices": lambda f, p: f.pinv(p, hermitian=True),
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
@pytest.mark.parametrize(("batch", "n"), [((50,), 8), ((3,), 60), ((2,), 150), ((), 300)])
@pytest.mark.parametrize("name", SPECTRA)
def test_spectra_and_their_gradients_are_pytorchs(
    name: str, batch: tuple[int, ...], n: int, dtype: Any
) -> None:
    """By this library's kernels, and from some order on by PyTorch's."""
    steps = torch.arange(n, dtype=torch.float64).diag()
    p = (cases.spd(dtype, *batch, n, n) / n + steps).cuda()
    results = []
    for library in (ours, torch.linalg):
        x = p.clone().requires_grad_()
        found = SPECTRA[name](library, x)
        found.abs().pow(4).sum().backward()
        results.append((found.detach(), cases.hermitian(x.grad)))
    torch.testing.assert_close(*results, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("batch", "n"), [((), 1000), ((2, 3), 70), ((200,), 8), ((0,), 5), ((2,), 0)])
def test_integers_are_pytorchs(batch: tuple[int, ...], n: int, dtype: Any) -> None:
    a = cases.random(dtype, *batch, n, n).cuda() + 2 * torch.eye(n, dtype=dtype, device="cuda")
    bad = a - 2 * torch.diag_embed(a.diagonal(dim1=-2, dim2=-1))
    with without_waiting():
        lu, info = ours.lu_factor_ex(a), ours.cholesky_ex(bad).info
    for found, shape in ((lu.pivots, (*batch, n)), (lu.info, batch), (info, batch)):
        assert (found.dtype, found.shape, found.is_contiguous()) == (torch.int32, shape, True)
    packed, pivots, _ = lu
    restored = torch.lu_unpack(packed, pivots)
    limit = 8192 * torch.finfo(dtype).eps
    torch.testing.assert_close(restored[0] @ restored[1] @ restored[2], a, rtol=limit, atol=limit)
    assert bool((info > 0).all()) == (n > 0 or info.numel() == 0)


def likelihood(x: Any, y: Any) -> Any:
    k = torch.exp(-((x - x.mT) ** 2)) + torch.eye(len(x), dtype=x.dtype, device=x.device)
    factor, _ = ours.cholesky_ex(k)
    z = ours.solve_triangular(factor, y, upper=False)
    return (z * z).sum() + 2 * factor.diagonal().log().sum() + ours.gemm(k, y, alpha=2).sum()


def test_what_ends_in_ex_waits_for_nothing() -> None:
    x, y = (cases.random(torch.float64, 300, 1).cuda().requires_grad_() for _ in range(2))
    likelihood(x, y).backward()
    with without_waiting():
        likelihood(x, y).backward()


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_one_graph_compiles(mode: str) -> None:
    x, y = (cases.random(torch.float64, 300, 1).cuda().requires_grad_() for _ in range(2))
    compiled = torch.compile(likelihood, fullgraph=True, mode=mode)
    for _ in range(4):  # a graph is recorded, then replayed
        grads = []
        for function in (compiled, likelihood):
            value = function(x, y)
            grads.append((value.detach().clone(), *torch.autograd.grad(value, (x, y))))
        torch.testing.assert_close(*grads)


@pytest.mark.parametrize("how", ["reduce-overhead", "captured"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", ["cholesky_ex", "lu_factor_ex", "inv_quad_logdet"])
def test_what_looks_ahead_is_captured(name: str, dtype: Any, how: str) -> None:
    """Factors of two streams, in a graph of PyTorch's, are those of calls; of other matrices, too."""
    n = 4096

    def drawn() -> Any:
        x = torch.randn(n, n, dtype=dtype, device="cuda")
        return x if name == "lu_factor_ex" else x @ x.mT / n + torch.eye(n, dtype=dtype, device="cuda")

    def results(a: Any, y: Any) -> Any:
        if name == "inv_quad_logdet":  # the function waits
            found = torch.ops.pyblasgpu.inv_quad_logdet(a, y)[:2]
        else:
            found = getattr(ours, name)(a)[:1]
        return tuple(each * 1 for each in found)

    a, y = drawn(), torch.randn(n, 2, dtype=dtype, device="cuda")
    results(a, y)
    if how == "captured":
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            made = results(a, y)
    compiled = torch.compile(results, fullgraph=True, mode="reduce-overhead")
    for _ in range(4):
        a.copy_(drawn())
        if how == "captured":
            graph.replay()
        found = made if how == "captured" else tuple(each.clone() for each in compiled(a, y))
        for one, other in zip(found, results(a, y), strict=True):
            assert bool(one.isfinite().all())
            torch.testing.assert_close(one, other, rtol=0, atol=0)


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_functions_of_the_package_are_operators_of_a_compiled_graph(mode: str) -> None:
    def step(x: Any, t: Any) -> Any:
        return pyblasgpu.trsm(t, pyblasgpu.gemm(x, x, trans_b="T") + 1, lower=True).sum()

    x, t = (cases.random(torch.float64, 300, 300).cuda() for _ in range(2))
    t = t.tril() + 300 * torch.eye(300, dtype=t.dtype, device="cuda")
    expected = torch.linalg.solve_triangular(t, x @ x.mT + 1, upper=False).sum()
    compiled = torch.compile(step, fullgraph=True, mode=mode)
    for _ in range(4):
        torch.testing.assert_close(compiled(x, t).clone(), expected)


def test_info_is_read_before_the_rest_each_time() -> None:
    """Of matrices that take turns in one memory, those that are not definite are reported."""
    k, y = cases.spd(torch.float64, 700, 700).cuda(), cases.random(torch.float64, 700, 1).cuda()
    value = float(k[600, 600])
    for _ in range(6):
        k[600, 600] = value
        assert all(each.isfinite() for each in ours.inv_quad_logdet(k, y))
        k[600, 600] = -1
        with pytest.raises(torch.linalg.LinAlgError, match="order 601"):
            ours.inv_quad_logdet(k, y)


def test_inv_quad_logdet_is_its_parts() -> None:
    k, y = (
        cases.spd(torch.float64, 900, 900).cuda().requires_grad_(),
        cases.random(torch.float64, 900, 2).cuda(),
    )
    factor = torch.linalg.cholesky(k)
    expected = (y * torch.cholesky_solve(y, factor)).sum(), 2 * factor.diagonal().log().sum()
    found = ours.inv_quad_logdet(k, y)
    torch.testing.assert_close(found, expected)
    grads = [torch.autograd.grad(quad + 3 * logdet, k)[0] for quad, logdet in (found, expected)]
    torch.testing.assert_close(*grads)
