"""SYMM, HEMM, SYRK, HERK, SYR2K, HER2K, GEMMTR: on the CPU and on a fake device."""

from __future__ import annotations

import fake_device
import fake_kernels
import numpy as np
import pytest
from fake_routines import elements
from matrices import same

import pyblasgpu
from pyblasgpu.errors import OverlapError
from pyblasgpu.frontend.calls import call_cache
from pyblasgpu.testing.symmetric_cases import (
    ROUTINES,
    SymmetricCase,
    data,
    exact,
)
from pyblasgpu.types import DTYPES

NAN = float("nan")
D, Z = DTYPES["d"], DTYPES["z"]


# ------------------------------------------------------------------------------------------ public functions


@pytest.mark.parametrize("orders", ["CC", "CF", "FF"])
def test_order_of_a_new_result(memory_space, orders):
    a, b = (memory_space.put(np.ones((3, 3), order=order)) for order in orders)
    for routine in ROUTINES:
        inputs = (a, b) if "rk" not in routine else (b,)
        strides = getattr(pyblasgpu, routine)(*inputs, **memory_space.options).strides
        column_major = orders == "FF" or (len(inputs) == 1 and orders[1] == "F")
        assert strides == ((8, 24) if column_major else (24, 8))


# ------------------------------------------------------------------------------------------------- errors

ONE, WIDE = np.ones((3, 3)), np.ones((3, 4))
COMPLEX = ONE.astype(complex)


@pytest.mark.parametrize(
    ("routine", "arrays", "options", "error", "message"),
    [
        ("syrk", [np.ones(3)], {}, ValueError, r"syrk: a has shape \(3,\)"),
        ("syrk", [ONE], {"beta": 1}, ValueError, "syrk: beta=1 needs out"),
        ("syrk", [COMPLEX], {"trans": "C"}, ValueError, "syrk: trans=C of complex arrays is none of N and T"),
        ("herk", [COMPLEX], {"trans": 1}, ValueError, "herk: trans=T of complex arrays is none of N and C"),
        ("herk", [COMPLEX], {"alpha": 1j}, TypeError, "herk: alpha=1j is complex; a real number"),
        ("herk", [ONE], {"alpha": 1j}, TypeError, "herk: alpha=1j is complex"),
        ("her2k", [COMPLEX] * 2, {"beta": 1j, "out": COMPLEX + 0}, TypeError, "her2k: beta=1j is complex"),
        ("syrk", [WIDE], {"out": np.ones((4, 4))}, ValueError, r"out has shape \(4, 4\); \(3, 3\) is needed"),
        ("syr2k", [WIDE, ONE], {}, ValueError, r"syr2k: a has shape \(3, 4\) and b \(3, 3\)"),
        ("syr2k", [ONE, ONE], {"lower": "x"}, ValueError, "syr2k: lower='x'"),
        ("gemmtr", [WIDE, WIDE], {}, ValueError, r"op\(a\) is 3 by 4 and op\(b\) 3 by 4, not 4 by 3"),
        ("gemmtr", [WIDE, ONE], {"trans_a": "T"}, ValueError, r"op\(b\) 3 by 3, not 3 by 4"),
        ("gemmtr", [ONE, ONE], {"beta": 2}, ValueError, "gemmtr: beta=2 needs out"),
        ("symm", [WIDE, WIDE], {}, ValueError, r"symm: a has shape \(3, 4\); \(3, 3\) is needed for side L"),
        ("hemm", [ONE, WIDE], {"side": "R"}, ValueError, r"\(4, 4\) is needed for side R"),
        ("symm", [ONE, WIDE], {"side": "X"}, ValueError, "symm: side='X'"),
        ("symm", [ONE, WIDE], {"alpha": 1j}, TypeError, "symm: alpha=1j is complex"),
        (
            "symm",
            [
                ONE,
                np.ones((2, 3, 3)),
            ],
            {"out": ONE + 0},
            ValueError,
            "symm: out has shape",
        ),
    ],
)
def test_errors_before_anything_is_written(memory_space, routine, arrays, options, error, message):
    out = options.get("out")
    before = None if out is None else out.copy()
    if out is not None:
        options = {**options, "out": memory_space.put(out)}
    with pytest.raises(error, match=message):
        getattr(pyblasgpu, routine)(*map(memory_space.put, arrays), **options, **memory_space.options)
    if out is not None:
        same(out, before, "out")


@pytest.mark.parametrize("routine", ROUTINES)
def test_overlap_is_refused(memory_space, routine):
    memory = np.arange(36.0).reshape(6, 6)
    a, b = memory[:3, :3], memory[3:, :3]
    inputs = [memory_space.put(x) for x in ((a,) if "rk" in routine else (a, b))]
    for out in (a, memory[2:5, :3]):
        with pytest.raises(OverlapError, match=f"{routine}: out shares memory with a"):
            getattr(pyblasgpu, routine)(*inputs, out=memory_space.put(out), **memory_space.options)
    same(memory, np.arange(36.0).reshape(6, 6), "memory")


def test_repeated_calls_are_quick_ones(fake, monkeypatch):
    call_cache.clear()
    rng = np.random.default_rng(1)
    kept = []
    for again in (False, True):
        if again:
            monkeypatch.setattr("pyblasgpu.api.keyword.symmetric.Call", None)
            monkeypatch.setattr("pyblasgpu.api.keyword.rank_k.Call", None)
        for number, routine in enumerate(ROUTINES):
            case = SymmetricCase(routine, D, 5, m=5, k=5, alpha=2, beta=-1)
            if not again:
                operands = data(rng, case)
                kept.append((operands, [fake_device.Array(x) for x in (*operands.inputs, operands.c)]))
            operands, arrays = kept[number]
            expected = exact(case, operands)
            getattr(pyblasgpu, routine)(
                *arrays[:-1], alpha=2, beta=-1, out=arrays[-1], **case.options, stream=5
            )
            same(operands.c, expected, (routine, again))


# ------------------------------------------------------------------------------- the CPU in any layout


def test_the_oracle_mirrors_and_conjugates():
    """The tests above stand on it."""
    a = np.array([[1 + 5j, NAN], [2 + 3j, 4]])
    b = np.eye(2, dtype=complex)
    nothing = np.full((2, 2), NAN, complex)
    operands = data(np.random.default_rng(0), SymmetricCase("hemm", Z, 2, m=2))._replace(
        inputs=(a, b), c=nothing
    )
    assert exact(SymmetricCase("hemm", Z, 2, m=2), operands).tolist() == [[1, 2 - 3j], [2 + 3j, 4]]
    assert exact(SymmetricCase("symm", Z, 2, m=2), operands).tolist() == [[1 + 5j, 2 + 3j], [2 + 3j, 4]]
    one = operands._replace(inputs=(np.array([[1j], [2.0]]),))
    assert exact(SymmetricCase("herk", Z, 2, k=1), one)[1].tolist() == [-2j, 4]
    assert np.isnan(exact(SymmetricCase("herk", Z, 2, k=1), one)[0, 1])
    two = operands._replace(inputs=(np.array([[1j], [2.0]]), np.array([[1.0], [1j]])))
    actual = exact(SymmetricCase("her2k", Z, 2, k=1, alpha=1j), two)
    # i a b' + conj(i a b')': row 1 is i (2, -2i) and conj of column 1 of i a b'
    assert actual[1, 0] == 1j * 2 * 1 + np.conj(1j * 1j * np.conj(1j))
    assert actual[1, 1] == 2 * (1j * 2 * -1j).real
    assert elements(fake_kernels.operand(a, Z)).shape == (1, 2, 2)
