"""PyTorch's tensors on a card count writes: of first calls, of those that are known, and of plans."""

from __future__ import annotations

import numpy as np
import pytest
import writing_calls

import pyblasgpu

torch = pytest.importorskip("torch")


def put(array):
    """A tensor on the card with the strides of `array`."""
    made = torch.empty_strided(
        array.shape, [step // array.itemsize for step in array.strides], dtype=torch.from_numpy(array).dtype
    )
    made.copy_(torch.from_numpy(array))
    return made.to("cuda")


@pytest.mark.parametrize("case", writing_calls.CASES)
def test_what_a_call_changes_has_counted_it(case):
    for _ in range(3):
        tensors = {name: put(array) for name, array in writing_calls.arrays().items()}
        writing_calls.check_counts(case, tensors)


def test_plans_count():
    a, b, out = (put(np.eye(64)) for _ in range(3))
    plan = pyblasgpu.plan_gemm(a, b, out)
    before = out._version
    for count in (1, 2):
        plan(a, b, out)
        assert out._version == before + count


def test_a_gradient_of_overwritten_values_is_refused():
    w, o, m = (put(np.eye(64)) for _ in range(3))
    y = (w.requires_grad_() * o).sum()
    pyblasgpu.gemm(m, m, out=o)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()
