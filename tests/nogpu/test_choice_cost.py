"""What the choice for a new shape costs: function calls are counted, as a clock would tell of the machine."""

from __future__ import annotations

import random
from functools import partial
from statistics import median

import pytest
from walk import profile

from pyblasgpu.dispatch.choose import reload, select
from pyblasgpu.dispatch.operand_copies import ALIGNED
from pyblasgpu.gpu.device import known
from pyblasgpu.types import DTYPES

H200 = known("h200")
WARM_UP, SHAPES = 20, 20
BUDGET, MISALIGNED_BUDGET = 4000, 9600  # function calls for a shape; 2 % more after other tests
FIRST_BUDGET = 200_000  # for the first one


def calls(function) -> int:
    """How many functions `function` calls, those of C included."""
    count = 0

    def on_event(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    profile(function, on_event)
    return count


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize(("aligned", "budget"), [(ALIGNED, BUDGET), (16, MISALIGNED_BUDGET)])
def test_a_new_shape(letter, aligned, budget):
    """Once the tuned values are read and the model knows their Configs."""
    rng = random.Random(20)
    shapes = [tuple(rng.randrange(100, 5000) for _ in range(3)) for _ in range(WARM_UP + SHAPES)]
    choose = partial(select, "gemm", DTYPES[letter], "nn", device=H200, aligned=(aligned, aligned))
    counts = [calls(partial(choose, shape)) for shape in shapes]
    assert median(counts[WARM_UP:]) <= budget


@pytest.mark.parametrize("letter", DTYPES)
def test_the_first_shape(letter):
    """The files of tuned values are read and their times turned into seconds per cycle, many at a time."""
    choose = partial(select, "gemm", DTYPES[letter], "nn", (1000, 1000, 1000), H200)
    choose()  # Configs are made once a process
    reload()
    assert calls(choose) <= FIRST_BUDGET


@pytest.mark.parametrize("letter", DTYPES)
def test_a_shape_once_more(letter):
    shape = 1001, 999, 333
    first = select("gemm", DTYPES[letter], "nn", shape, H200)
    assert calls(lambda: select("gemm", DTYPES[letter], "nn", shape, H200)) <= 60
    assert select("gemm", DTYPES[letter], "nn", shape, H200) is first
