"""Virtual addresses and scratch of launch lists."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyblasgpu.operands import SECTOR, Operand
from pyblasgpu.routines.launch_list import LaunchList
from pyblasgpu.types import DTYPES

D, Z = DTYPES["d"], DTYPES["z"]


@given(
    st.integers(0, 2),
    st.integers(0, 1 << 47).map(lambda word: 8 * word),
    st.integers(-(1 << 40), 1 << 40),
    st.integers(-(1 << 30), 1 << 30),
)
def test_virtual_addresses_name_the_slot_and_the_distance(slot, address, row, row_stride):
    launches = LaunchList(D, 0)
    real = Operand(address, 1, 1, row_stride % (1 << 12) - (1 << 11), 1, D)
    virtual = launches.at_virtual_address(real, slot)
    assert virtual.pointer % SECTOR == real.pointer % SECTOR
    moved = virtual.block(row, 0, 1, 1)
    assert launches.address_of(moved.pointer) == (slot, real.block(row, 0, 1, 1).pointer - address)


def test_scratch_is_apart_and_aligned():
    launches = LaunchList(Z, 0)
    operands = [launches.scratch(rows, 3, 2) for rows in (1, 7, 0, 16)]
    assert all(x.pointer % 16 == 0 for x in operands)
    spans = sorted(x.span() for x in operands)
    assert all(high <= low for (_, high), (low, _) in pairwise(spans))
    last = operands[-1]
    assert last.span()[1] <= operands[0].pointer + launches.workspace_bytes


@pytest.mark.parametrize("letter", DTYPES)
def test_columns_of_scratch_allow_vectors(letter):
    scratch = LaunchList(DTYPES[letter], 0).scratch(7, 3, 2)
    assert scratch.col_stride * scratch.dtype.itemsize % 16 == 0
    assert scratch.batch_stride * scratch.dtype.itemsize % 16 == 0


def test_temporary_scratch_is_taken_again():
    launches = LaunchList(D, 0)
    kept = launches.scratch(10, 3, 1)
    with launches.temporary():
        first = launches.scratch(100, 5, 2)
        with launches.temporary():
            inner = launches.scratch(7, 7, 1)
        assert launches.scratch(8, 8, 1).pointer == inner.pointer
    most = launches.workspace_bytes
    assert kept.span()[1] <= first.pointer and first.span()[1] <= inner.pointer
    assert launches.scratch(100, 5, 1).pointer == first.pointer
    assert launches.workspace_bytes == most
