"""Kernel arguments in memory, as the driver reads them."""

from __future__ import annotations

import ctypes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyblasgpu.gpu.launch import _Arguments, _Block

TYPES = {"p": ctypes.c_uint64, "i": ctypes.c_int32, "q": ctypes.c_int64}
REALS = {"float32": ctypes.c_float, "float64": ctypes.c_double}


@given(
    st.integers(1, 4), st.text("iq", max_size=9), st.integers(0, 4), st.sampled_from(sorted(REALS)), st.data()
)
def test_every_argument_lies_where_its_pointer_says(pointers, integers, reals, real, data):
    parameters = "p" * pointers + integers + "r" * reals
    arguments = _Arguments(parameters, real)
    block = _Block(arguments)
    for _ in range(2):
        addresses = data.draw(st.tuples(*[st.integers(0, 2**64 - 1)] * pointers))
        numbers = data.draw(st.tuples(*[st.integers(-(2**31), 2**31 - 1)] * len(integers)))
        scalars = data.draw(st.tuples(*[st.floats(width=32)] * reals))
        # in any order: no part touches another
        arguments.pack_reals(block.values, arguments.reals_at, *scalars)
        arguments.pack_pointers(block.values, 0, *addresses)
        arguments.pack_integers(block.values, arguments.integers_at, *numbers)
        found = []
        for index, code in enumerate(parameters):
            kind = TYPES.get(code, REALS[real])
            place = ctypes.c_void_p.from_address(block.address + 8 * index).value
            assert place % ctypes.sizeof(kind) == 0
            found.append(kind.from_address(place).value)
        assert list(map(repr, found)) == list(map(repr, (*addresses, *numbers, *scalars)))


def test_other_orders_of_parameters_are_refused():
    with pytest.raises(AssertionError, match="in this order"):
        _Arguments("pipr", "float32")
