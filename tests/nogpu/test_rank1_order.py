"""The two orders in which a step of `gemm_simt` multiplies its tile: the same sums, other neighbours."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import pytest

from pyblasgpu.gpu import backend

if backend.why_unavailable() or backend.SIMULATED:
    pytest.skip("made for the compiler", allow_module_level=True)

from pyblasgpu.gpu.build.translate import to_ptx
from pyblasgpu.gpu.intrinsics.register_tile import products_by_elements, products_by_rows
from pyblasgpu.kernels.gemm import simt as gemm_simt
from pyblasgpu.kernels.gemm.simt import GemmSimt


def sums(order) -> dict[tuple, list]:
    """The products of each real of the tile, in the order in which they are added."""
    products: dict[tuple, list] = {}
    for i, part_a, j, part_b in order:
        products.setdefault((i, j, part_a ^ part_b), []).append((part_a, part_b))
    return products


@pytest.mark.parametrize("reals_per_element", [1, 2])
@pytest.mark.parametrize("m, n", [(1, 1), (4, 3), (3, 8)])
def test_both_orders_round_each_sum_alike(m, n, reals_per_element):
    by_elements, by_rows = (
        sums(order(m, n, reals_per_element)) for order in (products_by_elements, products_by_rows)
    )
    assert by_rows == by_elements
    assert len(by_rows) == m * n * reals_per_element


@pytest.mark.parametrize("reals_per_element", [1, 2])
def test_by_rows_neighbours_share_an_operand(reals_per_element):
    m, n = 4, 6
    order = products_by_rows(m, n, reals_per_element)
    changes = sum(one[:2] != other[:2] for one, other in pairwise(order))
    assert changes == m * reals_per_element - 1
    if reals_per_element == 2:  # at the turn to the next real of `a` the one of `b` stays
        assert all(one[:2] == other[:2] or one[2:] == other[2:] for one, other in pairwise(order))


@pytest.mark.parametrize("conj", [False, True])
def test_by_rows_has_the_same_instructions(conj):
    small = GemmSimt(dtype="c", trans_a=False, trans_b=True, BLK_M=16, BLK_N=8, BLK_K=4, DIM_X=8, DIM_Y=4,
                     DIM_XA=16, DIM_YA=2, DIM_XB=8, DIM_YB=4, UNROLL=4)  # fmt: skip
    texts = [
        to_ptx(gemm_simt.source(replace(small, by_rows=which), conj=conj), (9, 0)) for which in (False, True)
    ]
    counts = [[len(re.findall(name, text)) for name in (r"\bfma\.rn\.f32", r"\bneg\.f32")] for text in texts]
    assert counts[0][0] >= 4 * small.THR_M * small.THR_N * small.BLK_K
    assert counts[0] == counts[1]
