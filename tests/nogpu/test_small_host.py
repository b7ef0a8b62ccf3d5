"""Small host matrices run on the processor, unless a card is asked for."""

from __future__ import annotations

import numpy as np
import pytest

import pyblasgpu


@pytest.fixture(autouse=True)
def from_ten(decide_by, fake):
    """Matrices of order 10 and more are a card's."""
    decide_by(host_min_order=dict.fromkeys("sdcz", 10))


CALLS = {
    "gemm": lambda a, **options: pyblasgpu.gemm(a, a.T, **options),
    "syrk": lambda a, **options: pyblasgpu.syrk(a, lower=True, **options),
    "symm": lambda a, **options: pyblasgpu.symm(a @ a.T, a, **options),
    "trmm": lambda a, **options: pyblasgpu.trmm(a @ a.T, a, **options),
    "trsm": lambda a, **options: pyblasgpu.trsm(a @ a.T + np.eye(len(a)), a, **options),
}


def ran_on_a_card(fake, name, a, **options) -> bool:
    fake[0].calls.clear()
    actual = CALLS[name](a, **options)
    expected = CALLS[name](a, **{**options, "backend": "cpu"})
    np.testing.assert_allclose(actual, expected, rtol=1e-12)
    return bool(fake[0].calls)


@pytest.mark.parametrize("name", CALLS)
def test_the_order_decides(fake, name):
    draw = np.random.default_rng(1).normal
    assert not ran_on_a_card(fake, name, draw(size=(9, 9)))
    assert ran_on_a_card(fake, name, draw(size=(10, 10)))
    assert ran_on_a_card(fake, name, draw(size=(9, 9)), backend="cuda")


@pytest.mark.parametrize("name", ["gemm", "syrk"])
def test_the_work_counts_not_an_extent(fake, name):
    draw = np.random.default_rng(1).normal
    assert not ran_on_a_card(fake, name, draw(size=(6, 27)))
    assert ran_on_a_card(fake, name, draw(size=(6, 28)))


def test_what_is_around_a_call_counts(fake, monkeypatch):
    a = np.random.default_rng(1).normal(size=(5, 5))
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cuda")
    assert ran_on_a_card(fake, "gemm", a)


def test_what_a_card_is_named_for_runs_there(fake):
    a = np.random.default_rng(1).normal(size=(5, 5))
    for options in ({"device": 0}, {"devices": [0]}, {"max_device_memory": 1 << 20}):
        fake[0].calls.clear()
        np.testing.assert_allclose(pyblasgpu.gemm(a, a, **options), a @ a, rtol=1e-12)
        assert fake[0].calls, options


def test_stacks_are_a_cards(fake):
    a = np.random.default_rng(1).normal(size=(3, 4, 4))
    fake[0].calls.clear()
    np.testing.assert_allclose(pyblasgpu.gemm(a, a), a @ a, rtol=1e-12)
    assert fake[0].calls


def test_the_output_of_the_processor_is_the_callers(fake):
    a, out = np.eye(4), np.ones((4, 4))
    assert pyblasgpu.gemm(a, a, beta=2, out=out) is out and not fake[0].calls
    np.testing.assert_array_equal(out, a + 2)
