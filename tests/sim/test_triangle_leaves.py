"""`trtri_leaf`, `lauum_leaf` and `zero_diagonal`: every dtype and order in memory, singular triangles."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from pyblasgpu.errors import ConfigError
from pyblasgpu.kernels.factor.triangles import lauum_leaf, trtri_leaf, zero_diagonal
from pyblasgpu.kernels.factor.triangles.lauum_leaf import LauumLeaf
from pyblasgpu.kernels.factor.triangles.trtri_leaf import TrtriLeaf
from pyblasgpu.kernels.factor.triangles.zero_diagonal import ZeroDiagonal
from pyblasgpu.testing.reference import fenced
from pyblasgpu.types import DTYPES

from .launching import run, strides
from .test_potrf_leaf import factors, unknown

NAN = float("nan")


def below(n: int, unit: bool = False) -> np.ndarray:
    """Which elements are of a lower triangle, or of a strict one."""
    return np.tri(n, k=-int(unit), dtype=bool)


def invert(a, info, unit=False, writes_info=True, kernels=trtri_leaf, out=None) -> None:
    """Invert a batch in place, or into `out`, zeros above."""
    (batch, n, _), steps = a.shape, strides(a)
    letter = {array: letter for letter, array in zip("sdcz", "fdFD", strict=True)}[a.dtype.char]
    of_out, clean = steps if out is None else strides(out), int(out is not None)
    flags = int(unit), int(writes_info), clean
    integers = n, *flags, *steps[1:], *of_out[1:], 1, steps[0], of_out[0]
    config = kernels.TrtriLeaf(letter, 16, 32)
    run(kernels.source(config), config.grid(n), (info, a, a if out is None else out), integers, (), batch)


def check_inverse(
    letter="d", n=13, order="F", unit=False, batch=1, writes_info=True, kernels=trtri_leaf
) -> None:
    """The inverse of a random triangle, NaN where nothing is read, between fences."""
    dtype, rng = DTYPES[letter], np.random.default_rng(n)
    lower = factors(rng, batch, n, dtype)
    if unit:
        lower[:, range(n), range(n)] = 1
    a, unharmed = fenced(np.where(below(n, unit), lower, NAN).astype(dtype.name), order)
    info = unknown(batch) if writes_info else np.zeros(batch, np.int32)
    invert(a, info, unit, writes_info, kernels)
    assert info.tolist() == [0] * batch
    expected = np.linalg.inv(lower.astype(np.result_type(lower, np.float64)))
    actual, kept = a[:, below(n, unit)], below(n, unit)
    np.testing.assert_allclose(actual, expected[:, kept], rtol=0, atol=100 * dtype.unit_roundoff)
    assert np.isnan(a[:, ~kept]).all()
    assert unharmed()


@pytest.mark.parametrize("letter, order, unit", list(product(DTYPES, "CF", (False, True))))
def test_inverses(letter, order, unit):
    for n in (1, 7, 16):
        check_inverse(letter, n, order, unit)


@pytest.mark.parametrize("letter", DTYPES)
def test_batches_of_inverses(letter):
    check_inverse(letter, 11, batch=3, writes_info=False)


def check_apart(letter="d", n=13, order="F", kernels=trtri_leaf) -> None:
    """The inverse in another matrix of the other order, zeros above it; the triangle stays."""
    lower = factors(np.random.default_rng(n), 2, n, DTYPES[letter])
    a, info = np.array(np.where(below(n), lower, NAN), lower.dtype, order=order), unknown(2)
    before = a.copy()
    out, unharmed = fenced(np.full_like(lower, np.nan), "CF"[order == "C"])
    invert(a, info, kernels=kernels, out=out)
    expected = np.linalg.inv(lower.astype(np.result_type(lower, np.float64)))
    np.testing.assert_allclose(out, expected, rtol=0, atol=100 * DTYPES[letter].unit_roundoff)
    np.testing.assert_array_equal(a, before)
    assert not out[:, ~below(n)].any() and unharmed() and not info.any()


@pytest.mark.parametrize("letter, order", [("s", "C"), ("d", "F"), ("z", "C")])
def test_inverses_in_another_matrix(letter, order):
    check_apart(letter, 13, order)


def check_blocks(letter="d", n=37, order="F", batch=2, kernels=trtri_leaf) -> None:
    """The inverses of the blocks on the diagonals of larger triangles; all beside them stays."""
    lower = factors(np.random.default_rng(n), batch, n, DTYPES[letter])
    a, unharmed = fenced(np.where(below(n, False), lower, NAN).astype(lower.dtype), order)
    expected = a.copy()
    for first in range(0, n, 16):
        block = np.s_[:, first : first + 16, first : first + 16]
        kept = below(len(range(n)[first : first + 16]), False)
        expected[block][:, kept] = np.linalg.inv(lower[block])[:, kept]
    invert(a, np.zeros(batch, np.int32), False, False, kernels)
    np.testing.assert_allclose(a, expected, rtol=0, atol=100 * DTYPES[letter].unit_roundoff)
    assert unharmed()


@pytest.mark.parametrize("letter, order", [("d", "F"), ("z", "C")])
def test_blocks_on_diagonals(letter, order):
    check_blocks(letter, order=order)


def singular(letter="d", writes_info=True, kernels=trtri_leaf) -> None:
    """`info` is the first zero, and such a triangle is left as it is; the others are inverted."""
    a = np.stack([np.eye(9)] * 11).astype(DTYPES[letter].name) * 2
    info = np.zeros(11, np.int32)
    if writes_info:
        a[1::2, 4, 4] = a[1::2, 7, 7] = 0
    else:
        info[1::2] = 5
    before = a.copy()
    invert(a, info, writes_info=writes_info, kernels=kernels)
    assert info.tolist() == [0, 5] * 5 + [0]
    np.testing.assert_array_equal(a[1::2], before[1::2])
    np.testing.assert_array_equal(a[::2], before[::2] / 4)


@pytest.mark.parametrize("writes_info", [False, True])
@pytest.mark.parametrize("letter", "dz")
def test_singular_triangles(letter, writes_info):
    singular(letter, writes_info)


def unsafe_diagonal(kernels=trtri_leaf) -> None:
    """Numbers whose reciprocals are not finite are divided by."""
    a = np.array([[[1, NAN], [1e-310, 1e-310]]])
    invert(a, np.zeros(1), kernels=kernels)
    np.testing.assert_array_equal(a[0][below(2)], [1, -1, np.inf])


def test_what_has_no_safe_reciprocal():
    with np.errstate(all="ignore"):
        unsafe_diagonal()


def check_product(letter="d", n=13, order="F", batch=1, kernels=lauum_leaf, threads=32) -> None:
    """L^H L of a random triangle, NaN where nothing is read, between fences."""
    dtype, rng = DTYPES[letter], np.random.default_rng(n)
    lower = factors(rng, batch, n, dtype)
    a, unharmed = fenced(np.where(below(n), lower, NAN).astype(dtype.name), order)
    steps = strides(a)
    source = kernels.source(kernels.LauumLeaf(letter, 16, threads))
    run(source, 1, (a, a), (n, *steps[1:], steps[0]), (), batch)
    wide = lower.astype(np.result_type(lower, np.float64))
    expected = (wide.swapaxes(1, 2).conj() @ wide)[:, below(n)]
    np.testing.assert_allclose(a[:, below(n)], expected, rtol=0, atol=100 * dtype.unit_roundoff)
    assert np.isnan(a[:, ~below(n)]).all() and not a.imag[:, range(n), range(n)].any()
    assert unharmed()


@pytest.mark.parametrize("letter, order", list(product(DTYPES, "CF")))
def test_products(letter, order):
    for n in (1, 7, 16):
        check_product(letter, n, order)
    check_product(letter, 11, batch=2)


def first_zero(letter="d", zeros=(40, 70), n=90, kernels=zero_diagonal) -> None:
    """The first of some zeros; what is no diagonal is NaN."""
    a = np.full((2, n, n), NAN, DTYPES[letter].name)
    a[:, range(n), range(n)] = 1j if letter in "cz" else 2
    a[1, list(zeros), list(zeros)] = 0
    info, steps = unknown(2), strides(a)
    integers = n, DTYPES[letter].reals_per_element, steps[1] + steps[2], 1, steps[0]
    run(
        kernels.source(kernels.ZeroDiagonal("s" if letter in "sc" else "d", 32)),
        1,
        (info, a),
        integers,
        (),
        2,
    )
    assert info.tolist() == [0, min(zeros) + 1]


@pytest.mark.parametrize("letter", DTYPES)
def test_zeros(letter):
    for zeros in ((0,), (89,), (40, 70), (69, 33)):
        first_zero(letter, zeros)


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda: TrtriLeaf("d", 128, 128), "column"),
        (lambda: TrtriLeaf("d", 64, 32), "thread_a_row"),
        (lambda: LauumLeaf("d", 60, 64), "order"),
        (lambda: ZeroDiagonal("d", 2048), "max_threads"),
        (lambda: ZeroDiagonal("d", 40), "whole_warps"),
    ],
)
def test_rules(make, rule):
    with pytest.raises(ConfigError) as caught:
        make()
    assert caught.value.rule == rule
