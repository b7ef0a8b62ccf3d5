"""Each operator of the table by PyTorch's own checks: schema, fake tensors, gradients, tangents, batches."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.utils.flop_counter import FlopCounterMode
from torch_cases import CASES, FREE_CASES


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_gradients_and_tangents_are_those_of_differences(case):
    function, tensors = case.function()
    inputs = [tensor.clone().requires_grad_() for tensor in tensors]
    assert gradcheck(function, inputs, check_forward_ad=True)
    assert gradgradcheck(function, inputs)


@pytest.mark.parametrize("case", FREE_CASES.values(), ids=FREE_CASES)
def test_opcheck(case):
    torch.library.opcheck(getattr(torch.ops.pyblasgpu, case.name).default, case.checked_args())


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_map_is_a_loop(case):
    """Over each tensor alone, whose new dimension is the last, and over all of them."""
    function, tensors = case.function()
    places = range(len(tensors))
    for mapped in [*[{place} for place in places], set(places)]:
        stacks = [
            torch.stack([tensor, 2 * tensor, tensor / 3], dim=-1) if place in mapped else tensor
            for place, tensor in enumerate(tensors)
        ]
        dims = tuple(-1 if place in mapped else None for place in places)
        found = torch.vmap(function, in_dims=dims)(*stacks)
        each = [
            function(*[stack[..., i] if place in mapped else stack for place, stack in enumerate(stacks)])
            for i in range(3)
        ]
        if isinstance(found, tuple):
            expected = tuple(torch.stack(list(parts)) for parts in zip(*each))
        else:
            expected = torch.stack(each)
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("is_recorded", [False, True])
def test_plain_tensors_cross_the_dispatcher_once(monkeypatch, is_recorded):
    """What a lazy conjugation or a mode has to see goes through the dispatcher again."""
    op, again = torch.ops.pyblasgpu.gemm.default, []
    redispatch = op.redispatch
    monkeypatch.setattr(op, "redispatch", lambda *args: again.append(1) or redispatch(*args))
    a = torch.randn(3, 3, dtype=torch.complex128, requires_grad=is_recorded)
    torch.testing.assert_close(op(a, a, None, 1, 0, None), a @ a)
    assert not again
    torch.testing.assert_close(op(a.conj(), a, None, 1, 0, None), a.conj() @ a)
    assert len(again) == 1
    with FlopCounterMode(display=False):
        torch.testing.assert_close(op(a, a, None, 1, 0, None), a @ a)
    assert len(again) == 2
