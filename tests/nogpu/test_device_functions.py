"""Device functions of kernels: what compares equal is made once, what does not is not."""

from __future__ import annotations

import pytest

from pyblasgpu.gpu.backend import in_order, unrolled

ptx = pytest.importorskip("pyblasgpu.gpu.intrinsics.ptx")


def adding(amount):
    @ptx.inlined
    def add(x):
        return x + amount

    return add


def multiplying(amount):
    @ptx.inlined
    def multiply(x):
        return x * amount

    return multiply


def twice(function):
    @ptx.inlined
    def apply(x):
        return function(function(x))

    return apply


def test_the_same_text_with_the_same_values_is_one_part():
    assert adding(3) is adding(3)
    assert twice(adding(3)) is twice(adding(3))
    assert unrolled(4, adding(3)) is unrolled(4, adding(3))
    assert in_order([adding(1), adding(2)]) is in_order([adding(1), adding(2)])


def test_other_texts_values_and_types_are_not():
    assert adding(3) is not multiplying(3)
    assert adding(3) is not adding(4)
    assert adding(1) is not adding(True) and adding(1) is not adding(1.0)
    assert twice(adding(3)) is not twice(adding(4))
    assert unrolled(4, adding(3)) is not unrolled(5, adding(3))
    assert in_order([adding(1), adding(2)]) is not in_order([adding(2), adding(1)])


def test_the_way_of_calling_matters():
    def bare(x):
        return x

    assert ptx.inlined(bare) is ptx.inlined(bare)
    assert ptx.inlined(bare) is not ptx.called(bare)


def test_intrinsics_are_made_once():
    assert ptx.load_global(2, True) is ptx.load_global(2, True)
    assert ptx.load_global(2, True) is not ptx.load_global(2, False)
    assert ptx.load_global(1, True) is not ptx.load_global(True, True)
