"""patch_torch on a card: programs, gradients, compiled graphs, and what waits for the device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")
cases = pytest.importorskip("torch_cases")
linalg_calls = pytest.importorskip("torch_linalg_calls")
programs = pytest.importorskip("torch_programs")

import pyblasgpu  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch has no CUDA device")


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Any:
    yield
    pyblasgpu.unpatch_torch()
    assert "torch_patch" not in torch._C._dispatch_dump("aten::linalg_cholesky_ex")


def on_card(value: Any) -> Any:
    return value.cuda() if isinstance(value, torch.Tensor) else value


def tensors(name: str, result: Any) -> list[Any]:
    """The results of a function; LU factors multiplied, as cuBLAS chooses complex pivots by their modulus.

    Rows of R have either sign.
    """
    if name == "geqrf":
        return [result[0].triu().abs()]
    if name == "qr":
        return [result[1].abs(), *([result[0] @ result[1]] if result[0].numel() else [])]
    if name.startswith("lu_factor"):
        interchanges, lower, upper = torch.lu_unpack(*result[:2])
        return [interchanges @ lower @ upper, *result[2:]]
    return list(linalg_calls.without_phases(name, result))


def served_calls(*case: Any) -> Iterator[tuple[str, Any, Any]]:
    """Calls; least squares with elements, by the driver of CUDA."""
    yield from linalg_calls.calls(*case)
    for name, args, flags in linalg_calls.rectangular_calls(*case):
        if name != "lstsq" or (flags["driver"] != "gelsy" and args[1].numel()):
            yield name, args, flags
    yield from linalg_calls.reflector_calls(*case)
    for name, args, flags in linalg_calls.spectral_calls(*case):
        yield name, args, {key: on_card(value) for key, value in flags.items()}


@pytest.mark.parametrize("dtype", linalg_calls.DTYPES, ids=str)
@pytest.mark.parametrize(("batch", "n", "k"), [((), 5, 3), ((2, 3), 70, 1), ((0,), 3, 2), ((), 3, 0)])
def test_results_are_pytorchs(batch: tuple[int, ...], n: int, k: int, dtype: Any) -> None:
    torch.manual_seed(3)
    for name, args, flags in served_calls(dtype, batch, n, k):
        function, args = linalg_calls.theirs(name), tuple(map(on_card, args))
        expected = tensors(name, function(*args, **flags))
        with pyblasgpu.patch_torch(thresholds=0) as patch:
            found = tensors(name, function(*args, **flags))
        assert patch.calls and not patch.kept, (name, patch.kept)
        limit = 1e3 * torch.finfo(dtype).eps
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other, rtol=limit, atol=limit, msg=f"{name} {flags}")


@pytest.mark.parametrize("full", [False, True])
def test_singular_vectors_have_the_strides_that_compilers_are_promised(full: bool) -> None:
    fakes = pytest.importorskip("torch._subclasses").FakeTensorMode()
    a = cases.random(torch.float64, 300, 6, 4).cuda()
    with fakes:
        promised = torch.linalg.svd(fakes.from_tensor(a), full)
    with pyblasgpu.patch_torch(thresholds=0) as patch:
        found = torch.linalg.svd(a, full)
    assert patch.calls == {"svd": 1}
    assert [x.stride() for x in found] == [x.stride() for x in promised]


@pytest.mark.parametrize("call", linalg_calls.REFUSED)
def test_errors_are_pytorchs(call: str) -> None:
    name, args, flags = linalg_calls.REFUSED[call]
    function, args = linalg_calls.theirs(name), tuple(map(on_card, args))
    try:
        function(*args, **flags)
    except Exception as error:
        expected = error
    else:
        pytest.skip("PyTorch takes it on a card")
    with pyblasgpu.patch_torch(thresholds=0), pytest.raises(type(expected)) as found:
        function(*args, **flags)
    assert str(found.value) == str(expected)


@pytest.mark.parametrize(
    "program", [*programs.PYTORCH, *programs.GPYTORCH], ids=lambda program: program.__name__
)
def test_programs_run_unchanged(program: Any) -> None:
    if program in programs.GPYTORCH:
        pytest.importorskip("gpytorch")
        pytest.importorskip("botorch")
    expected = program("cuda")
    with pyblasgpu.patch_torch(thresholds=0) as patch:
        found = program("cuda")
    assert patch.calls and not patch.kept
    limit = 1e-5 if program in programs.GPYTORCH else 1e-9
    torch.testing.assert_close(tuple(found), tuple(expected), rtol=limit, atol=limit)


def test_lazy_conjugates() -> None:
    a, b = cases.spd(torch.complex128, 70, 70).cuda(), cases.random(torch.complex128, 70, 3).cuda()
    expected = torch.linalg.solve_triangular(a.mH, b.conj(), upper=True)
    with pyblasgpu.patch_torch(thresholds=0) as patch:
        torch.testing.assert_close(torch.linalg.solve_triangular(a.mH, b.conj(), upper=True), expected)
    assert patch.calls == {"solve_triangular": 1}


def likelihood(x: Any, y: Any) -> Any:
    k = torch.exp(-((x - x.mT) ** 2)) + torch.eye(len(x), dtype=x.dtype, device=x.device)
    factor, _ = torch.linalg.cholesky_ex(k)
    z = torch.linalg.solve_triangular(factor, y, upper=False)
    return (z * z).sum() + 2 * factor.diagonal().log().sum()


@pytest.mark.parametrize("n", [100, 300, 1500])
@pytest.mark.parametrize("mode", [None, "default", "reduce-overhead"])
def test_gradients_are_pytorchs(mode: str | None, n: int) -> None:
    """Eager and compiled, of one graph; sizes are the policy's."""
    x, y = (cases.random(torch.float64, n, 1).cuda().requires_grad_() for _ in range(2))
    expected = torch.autograd.grad(likelihood(x, y), (x, y))
    torch._dynamo.reset()
    with pyblasgpu.patch_torch() as patch:
        function = likelihood
        if mode is not None:
            function = torch.compile(likelihood, fullgraph=True, mode=mode)
        for _ in range(4):  # a graph is recorded, then replayed
            torch.testing.assert_close(torch.autograd.grad(function(x, y), (x, y)), expected)
    assert bool(patch.calls) == (n >= patch.thresholds["cholesky"])


def test_what_ends_in_ex_waits_for_nothing() -> None:
    x, y = (cases.random(torch.float64, 300, 1).cuda().requires_grad_() for _ in range(2))
    with pyblasgpu.patch_torch(thresholds=0):
        likelihood(x, y).backward()
        torch.cuda.set_sync_debug_mode("error")
        try:
            likelihood(x, y).backward()
        finally:
            torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_products_on_tensor_cores(dtype: Any) -> None:
    a, b = (cases.random(dtype, 2048, 2048).cuda().requires_grad_() for _ in range(2))
    expected = torch.autograd.grad((a @ b).sum(), (a, b))
    with pyblasgpu.set_math_mode("tensor"):
        patch = pyblasgpu.patch_torch()
    found = torch.autograd.grad((a @ b).sum(), (a, b))
    assert patch.calls["mm"] == 3
    limit = 2048 * torch.finfo(dtype).eps
    torch.testing.assert_close(found, expected, rtol=limit, atol=limit)
