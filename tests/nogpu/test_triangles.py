"""Parts of tiles of which a call writes a triangle: what comes and goes leaves the rest as it was."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.linalg

import pyblasgpu
from pyblasgpu.engine import triangles
from pyblasgpu.gpu.transfers import Block
from pyblasgpu.testing.reference import integers
from pyblasgpu.types import DTYPES


def drawn(shape, order="C", seed=0) -> np.ndarray:
    return np.asarray(integers(np.random.default_rng(seed), shape, DTYPES["d"]), order=order)


def covered(parts, order, pitch):
    """How often each element is in the parts of a tile at address 0, a line a row."""
    count = np.zeros(order * pitch, int)
    for part in parts:
        for line in range(part.lines):
            first = part.address + line * part.pitch
            count[first : first + part.width] += 1
    count = count.reshape(order, pitch)
    assert not count[:, order:].any(), "beyond the tile"
    return count[:, :order]


@pytest.mark.parametrize("has_tails", [True, False])
@pytest.mark.parametrize("strip", [1, 2, 5, 8, 100])
@pytest.mark.parametrize("order, pitch", [(1, 1), (8, 8), (13, 16)])
def test_the_triangle_goes_home_and_what_goes_with_it_was_brought(
    monkeypatch, has_tails, strip, order, pitch
):
    monkeypatch.setattr(triangles, "STRIP", strip)
    monkeypatch.setattr(triangles, "PARTS", 1000)
    tile = Block(0, order, order, pitch, 0)
    written = covered(triangles.covering(tile, 1, has_tails), order, pitch)
    kept = covered(triangles.diagonal_squares(tile, 1), order, pitch)
    triangle = np.tri(order, dtype=bool).T if has_tails else np.tri(order, dtype=bool)
    assert (written <= 1).all() and (kept <= 1).all()
    assert written[triangle].all() and kept[~triangle & (written > 0)].all()
    assert kept.sum() <= order * strip


@pytest.mark.parametrize("strip", [1, 3, 128])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("name", ["syrk", "herk"])
def test_of_page_locked_tiles_on_the_diagonal_a_triangle_moves(
    fake_cards, small_tiles, monkeypatch, strip, order, lower, name
):
    """What it overwrites is not read; of the other triangle what is beside the diagonal comes and goes."""
    monkeypatch.setattr(triangles, "STRIP", strip)
    monkeypatch.setattr(triangles, "PARTS", 1000)
    driver = fake_cards(seed=strip)
    a = driver.lock_pages(drawn((20, 12), order=order))
    for options in ({"devices": [0, 1]}, {"max_device_memory": 5000}):
        c = driver.lock_pages(drawn((20, 20), order=order, seed=2))
        is_written = np.tri(20, dtype=bool) if lower else np.tri(20, dtype=bool).T
        c[is_written] = np.nan
        before = c.copy()
        getattr(pyblasgpu, name)(a, lower=lower, out=c, **options)
        np.testing.assert_array_equal(c, np.where(is_written, a @ a.T, before))
    assert not driver.pageable


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("name", ["trmm", "trsm", "symm", "syrk"])
def test_of_page_locked_triangles_nothing_else_moves_far(
    fake_cards, small_tiles, decide_by, monkeypatch, order, lower, name
):
    """Few elements of the other triangle are copied, and none is read or changed."""
    monkeypatch.setattr(triangles, "STRIP", 3)
    decide_by(streamed_min_bytes=0)
    driver = fake_cards()
    needed = np.tri(20, dtype=bool) if lower else np.tri(20, dtype=bool).T
    a, b = drawn((20, 20)) + 100 * np.eye(20), drawn((20, 20), order=order, seed=1)
    if name == "symm":
        a = (a + a.T) / 2
    stored = driver.lock_pages(np.asarray(np.where(needed, a, np.nan), order=order))
    b, before = driver.lock_pages(b), stored.copy()
    if name == "syrk":
        expected = np.where(needed, b @ b.T + 2 * a, np.nan)
        actual = pyblasgpu.syrk(b, lower=lower, beta=2, out=stored, device=0).copy()
        stored[needed] = before[needed]
    else:
        full = a if name == "symm" else np.where(needed, a, 0)
        expected = np.linalg.solve(full, b) if name == "trsm" else full @ b
        actual = getattr(pyblasgpu, name)(stored, b, lower=lower, device=0)
    np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(stored, before)
    below, on_diagonal = 8 * 8 + 2 * 4 * 8, 2 * (8 * 3 + 5 * 3 + 2 * 2) + (4 * 3 + 1)
    assert driver.copied[-1, 0] == 8 * (below + on_diagonal + 400)


def test_copies_of_a_triangle_are_no_larger_than_they_need_be(
    fake_cards, small_tiles, decide_by, monkeypatch
):
    """Two of three tiles of 8 by 8 are on the diagonal: of each come 8 elements, and 36 go home."""
    monkeypatch.setattr(triangles, "STRIP", 1)
    monkeypatch.setattr(triangles, "PARTS", 1000)
    decide_by(streamed_min_bytes=0)
    driver = fake_cards()
    a, c = (driver.lock_pages(drawn((16, n), order="F")) for n in (8, 16))
    pyblasgpu.syrk(a, lower=True, out=c, device=0)
    assert driver.copied == {(-1, 0): 8 * (128 + 2 * 8), (0, -1): 8 * (64 + 2 * 36)}


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("name", ["trmm", "trsm"])
def test_every_flag_of_a_page_locked_triangle(
    fake_cards, small_tiles, decide_by, monkeypatch, order, lower, name
):
    """NaN beyond it, and on a unit diagonal, is not read; it is a part of a larger matrix."""
    monkeypatch.setattr(triangles, "STRIP", 3)
    driver = fake_cards()
    needed = np.tri(20, dtype=bool) if lower else np.tri(20, dtype=bool).T
    room = driver.lock_pages(np.full((24, 23), np.nan, order=order))
    for side, trans, unit in product("LR", "NTC", (False, True)):
        full = np.where(needed, drawn((20, 20)), 0) / 100
        np.fill_diagonal(full, 1 if unit else 2)
        stored = room[3:23, 1:21]
        stored[...] = np.where(needed & ~(np.eye(20, dtype=bool) & unit), full, np.nan)
        before, op = room.copy(), full if trans == "N" else full.T
        b = driver.lock_pages(drawn((20, 11) if side == "L" else (11, 20), order=order, seed=1))
        apply = {"trmm": np.matmul, "trsm": np.linalg.solve}[name]
        expected = apply(op, b) if side == "L" else apply(op.T, b.T).T
        flags = {"side": side, "lower": lower, "trans": trans, "unit_diag": unit}
        actual = getattr(pyblasgpu, name)(stored, b, out=b, max_device_memory=4500, **flags)
        np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-10, err_msg=str(flags))
        np.testing.assert_array_equal(room, before)


@pytest.mark.parametrize("is_locked", [True, False])
@pytest.mark.parametrize("lower", [0, 1])
def test_a_factor_in_place_leaves_the_other_triangle(fake_cards, small_tiles, is_locked, lower):
    driver = fake_cards()
    root, needed = drawn((33, 33)), np.tri(33, dtype=bool) if lower else np.tri(33, dtype=bool).T
    a = root @ root.T + 100 * np.eye(33)
    stored = np.asarray(np.where(needed, a, np.nan), order="F")
    stored = driver.lock_pages(stored) if is_locked else stored
    with pyblasgpu.use_devices([0, 1]):
        factor, info = pyblasgpu.lapack.potrf(stored, lower, clean=0, overwrite_a=1)
    assert info == 0 and np.shares_memory(factor, stored)
    expected = scipy.linalg.cholesky(a, lower=bool(lower))
    np.testing.assert_allclose(stored, np.where(needed, expected, np.nan), atol=1e-12)
