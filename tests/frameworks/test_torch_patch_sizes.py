"""patch_torch: which calls are served, which are passed on, and by what way."""

from __future__ import annotations

from math import inf
from types import SimpleNamespace

import pytest
import torch
from torch_cases import random, spd

from pyblasgpu import patch_torch
from pyblasgpu.torch_patch import eigen_targets, kernels
from pyblasgpu.torch_patch.switch import TorchPatch
from pyblasgpu.torch_patch.targets import KINDS


def test_the_size_of_a_call_decides():
    a, stack = spd(torch.float64, 10, 10), spd(torch.float64, 8, 10, 10)
    with patch_torch(backend="cpu", thresholds={"cholesky": 15, "inv": 15}) as patch:
        for _ in range(2):
            torch.linalg.cholesky(a)
        torch.linalg.cholesky(stack)  # as much work as order 20
        torch.linalg.inv(a)
    assert patch.calls == {"cholesky": 1}
    assert patch.kept == {
        ("cholesky", "small"): 2,
        ("inv", "small"): 1,
        ("lu_factor", "small"): 1,
        ("lu_solve", "small"): 1,
    }


def test_solutions_are_as_large_as_their_matrices():
    """A right-hand side takes a device almost the time of many."""
    factor, y = torch.linalg.cholesky(spd(torch.float64, 20, 20)), random(torch.float64, 20, 1)
    with patch_torch(backend="cpu", thresholds=15) as patch:
        torch.linalg.solve_triangular(factor, y, upper=False)
        torch.cholesky_solve(y, factor)
        torch.linalg.solve_triangular(factor[:10, :10], y[:10], upper=False)
        torch.linalg.solve(factor, y)
    assert patch.calls == {"solve_triangular": 1, "cholesky_solve": 1, "lu_factor": 1, "lu_solve": 1}
    assert patch.kept == {("solve_triangular", "small"): 1}


def test_stacks_of_qr_factors_have_a_size_of_their_own():
    stack = random(torch.float64, 8, 10, 10)
    with patch_torch(backend="cpu", thresholds={"qr_stack": 19, "lstsq": 9}) as patch:
        torch.geqrf(stack)  # as much work as order 20
        torch.linalg.qr(stack[:, :9])
        torch.linalg.qr(stack[0])
        torch.linalg.lstsq(stack[0], stack[1], driver="gels")
        torch.linalg.lstsq(stack[0], stack[1])
        torch.linalg.lstsq(stack, stack, driver="gels")
    assert patch.calls == {"geqrf": 1, "lstsq": 2}
    assert patch.kept == {("qr", "small"): 2, ("lstsq", "driver"): 1}


def test_stacks_of_spectra_have_sizes_of_their_own():
    """From eight matrices on; the work is that of orders 20, 18, 16 and 10."""
    stack = random(torch.float64, 2, 4, 10, 10)
    with patch_torch(backend="cpu", thresholds={"eigh_stack": 19, "svd_stack": 19, "svd": 9}) as patch:
        for each in (
            stack,
            stack[..., :9, :9],
            stack[0],
            stack[0, 0],
        ):  # as much work as orders 20, 18, 16, 10
            torch.linalg.eigvalsh(each)
            torch.linalg.svd(each, full_matrices=False)
        torch.linalg.matrix_norm(stack, 2)
    assert patch.calls == {"eigh": 1, "svd": 4}
    assert patch.kept == {("eigh", "small"): 3, ("svd", "small"): 1}


def test_large_matrices_and_drivers_are_pytorchs(monkeypatch):
    monkeypatch.setattr(
        eigen_targets, "have_kernels", lambda stem, a, vectors=True: a.shape[-1] < 6 - vectors
    )
    with patch_torch(backend="cpu", thresholds=0) as patch:
        for n in (4, 5, 6):
            torch.linalg.eigh(torch.eye(n))
            torch.linalg.svdvals(torch.eye(n))
        with pytest.raises(RuntimeError, match="driver"):
            torch.linalg.svd(torch.eye(3), driver="gesvdj")
    assert patch.calls == {"eigh": 1, "svd": 2}
    assert patch.kept == {("eigh", "order"): 2, ("svd", "order"): 1, ("svd", "driver"): 1}


def test_small_calls_are_passed_on_unseen(monkeypatch):
    """By the size of their own function, whatever others have."""
    unseen = kernels.FUNCTIONS["linalg_inv_ex"]._replace(call=None)
    monkeypatch.setitem(kernels.FUNCTIONS, "linalg_inv_ex", unseen)
    with patch_torch(backend="cpu", thresholds={"qr_stack": 2, "inv": 101}) as patch:
        torch.linalg.inv(torch.eye(100))
    assert patch.kept["inv", "small"] == 1


@pytest.mark.parametrize(("records", "keys"), [(False, ["CPU"]), (True, ["AutogradCPU", "CPU"])])
def test_calls_that_record_nothing_are_passed_on_at_once(records, keys, monkeypatch):
    """Calls within backward are such: the dispatcher is not on the way a second time."""
    found, get_kernel = [], torch.library.get_kernel

    def noting(op, key):
        kernel = get_kernel(op, key)

        def call_boxed(*args, **named):
            found.append(key)
            return kernel.call_boxed(*args, **named)

        return SimpleNamespace(call_boxed=call_boxed)

    monkeypatch.setattr(torch.library, "get_kernel", noting)
    a = torch.eye(3).requires_grad_()
    with patch_torch(backend="cpu", thresholds=9), torch.set_grad_enabled(records):
        torch.linalg.solve_triangular(a, torch.ones(3, 1), upper=False)
    assert found == keys


@pytest.mark.parametrize(("devices", "has_threads"), [(1, False), (2, True)])
def test_gradients_of_one_device_are_computed_here(devices, has_threads, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: devices)
    sizes = dict.fromkeys(KINDS, 1.0)
    with TorchPatch("cuda", sizes, None, True):
        assert torch._C._is_multithreading_enabled() is has_threads
        with TorchPatch("cuda", sizes, None, True):
            pass
        assert torch._C._is_multithreading_enabled() is has_threads
    assert torch._C._is_multithreading_enabled()


def test_sizes_are_the_policys():
    with patch_torch(backend="cpu") as patch:
        sizes = dict(patch.thresholds)
        stacks = {name: sizes.pop(f"{name}_stack") for name in ("qr", "eigh", "svd")}
        assert stacks == {"qr": 256, "eigh": 256, "svd": 256}
        never = {"eigh", "svd"}
        assert {name for name, size in sizes.items() if size == inf} == never
        assert {sizes[name] for name in sizes.keys() - never} == {64.0, 128.0, 512.0, 1024.0}
        a = spd(torch.float64, 10, 10).requires_grad_()
        torch.linalg.cholesky(a).sum().backward()
        assert not patch.calls
