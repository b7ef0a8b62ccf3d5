"""What the demo prepares: kernels and data."""

from __future__ import annotations

import fake_driver
import numpy as np
import pytest

from pyblasgpu import demo
from pyblasgpu.gpu.device import known
from pyblasgpu.testing.problems import Problem
from pyblasgpu.types import DTYPES


@pytest.fixture
def forgets():
    yield
    fake_driver.forget()


def test_data_are_drawn_ahead_in_the_order_of_the_problems():
    problems = [Problem.square("trmm", dtype, "LLNN", n) for n in (5, 6, 7) for dtype in DTYPES.values()]
    pairs = list(demo.with_data(problems))
    assert [problem for problem, _ in pairs] == problems
    for problem, data in pairs:
        np.testing.assert_array_equal(data.out, problem.data().out)


def test_kernels_of_all_problems_are_compiled_together(monkeypatch, forgets):
    compiled: list = []
    monkeypatch.setattr(demo, "compile_missing", lambda sources, cc: compiled.append((sources, cc)))
    sources_of = demo.sources_of
    monkeypatch.setattr(demo, "sources_of", lambda *call: sources_of(*call, device="h200"))
    demo.compile_kernels([Problem.square(name, DTYPES["d"], "LLNN", 900) for name in ("trmm", "trsm")])
    ((sources, cc),) = compiled
    assert cc == known("h200").cc
    assert {dict(source.flags).get("solved", False) for source in sources} == {False, True}
