"""Eigenvalues and singular values as launch lists, by kernels computed with NumPy: all orders and layouts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from eigen_cases import check_eigen, check_singular, hermitian
from fake_kernels import install, operand
from qr_cases import matrix_of

from pyblasgpu.dispatch import tensor
from pyblasgpu.gpu.device import known
from pyblasgpu.gpu.transfers import MemoryBytes
from pyblasgpu.kernels.registry import FIXED
from pyblasgpu.routines import launch_list
from pyblasgpu.routines.lapack import eigh_batched, eigh_divided, eigh_jacobi, svd_batched
from pyblasgpu.types import DTYPES, Uplo


@pytest.fixture
def kernels(monkeypatch):
    return install(monkeypatch)


def eigh(a: np.ndarray, uplo=Uplo.LOWER, vectors=True, order="C", is_real=True):
    """Eigenvalues, vectors and info of a stack."""
    dtype, (batch, n, _) = next(x for x in DTYPES.values() if x.name == a.dtype.name), a.shape
    real = DTYPES["s" if dtype.real_size == 4 else "d"]
    kind = real if is_real else dtype
    w, info = np.zeros((batch, n, 1), kind.name), np.full((batch, 1, 1), 7, dtype.name)
    v = np.full((batch, n, n), 7, dtype.name)
    v = v if order == "C" else v.swapaxes(1, 2)
    operands = [operand(w, kind), *(operand(array, dtype) for array in (info, v, a))]
    launches = eigh_batched.launch_list(*operands, uplo=uplo, vectors=vectors)
    launches.run([each.pointer for each in operands], 1.0, stream=0)
    return w[..., 0], v, info.view(np.int32)[:, 0, 0]


@pytest.mark.parametrize("n", [1, 4, 31, 33, 65, 129, 300])
@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("uplo", Uplo)
def test_eigenvalues_and_vectors(kernels, letter, uplo, n):
    a = hermitian("random", letter, 3, n)
    half = np.tril(a) if uplo is Uplo.LOWER else np.triu(a)
    for order in "CF":
        w, v, info = eigh(half, uplo, order=order)
        check_eigen(a, w, v)
        assert not info.any()
    values, v, _ = eigh(half, uplo, vectors=False, is_real=False)
    check_eigen(a, values.real)
    assert (v == 7).all()
    names = [name for name, *_ in kernels.launches]
    is_divided = n > eigh_jacobi.max_order(DTYPES[letter], known("h200"), len(a))
    is_held = n <= FIXED["sytrd_resident"].fixed_config(letter).ORDER
    assert names.count("sytrd_resident" if is_held else "sytrd") == 3 * is_divided
    assert names.count("jacobi_thread" if n <= 4 else "jacobi_columns") == 3
    assert is_divided or len(names) == 3


@pytest.mark.parametrize(
    "size, pairs, name, expected",
    [
        (128, 132, "h200", (1024, 16, 1)),
        (128, 133, "h200", (256, 4, 2)),
        (256, 64, "h200", (1024, 16, 2)),
        (64, 1, "h200", (256, 4, 1)),
        (512, 1, "h200", (256, 4, 8)),
        (128, 1, "a100", (256, 4, 1)),
        (2048, 1, "h200", (512, 32, 128)),
    ],
)
def test_pairs_have_threads_by_their_number(size, pairs, name, expected):
    device = known(name)
    config = FIXED["tridiagonal_merge"].fixed_config("d").on(device).specialize(size, pairs, device)
    assert (config.DIM, config.TEAM, config.blocks(size, pairs, device)) == expected


@pytest.mark.parametrize("n", [66, 150])
@pytest.mark.parametrize("letter", DTYPES)
def test_one_matrix_by_way_of_a_band(kernels, decide_by, letter, n):
    decide_by(band_eigh_min_order={letter: 66})
    a = hermitian("random", letter, 1, n)
    w, v, info = eigh(np.tril(a), order="CF"[n % 4 == 0])
    check_eigen(a, w, v)
    some, part, _ = eigh(np.tril(a), vectors=(7, 20))
    np.testing.assert_array_equal(some, w)
    check = np.abs(a @ part[..., 7:20] - part[..., 7:20] * w[:, None, 7:20])
    assert check.max() <= 1e3 * np.finfo(a.dtype).eps
    values, untouched, _ = eigh(np.triu(a), Uplo.UPPER, vectors=False, is_real=False)
    check_eigen(a, values.real)
    assert (untouched == 7).all() and not info.any()
    names = [name for name, *_ in kernels.launches]
    assert names.count("band_chase") == 6 and not {"sytrd", "sytrd_resident", "geqrf_panel"} & set(names)


@pytest.mark.parametrize("letter", "sz")
def test_the_largest_order_has_room(kernels, decide_by, monkeypatch, letter):
    """Half of the memory that is free holds what one matrix of that order needs."""
    decide_by(band_eigh_min_order={letter: 66})
    dtype, device, free = DTYPES[letter], replace(known("h200"), ordinal=0), 1 << 26
    monkeypatch.setattr(tensor, "memory_bytes", lambda ordinal: MemoryBytes(free, 141 << 30))
    n = eigh_divided.max_order(dtype, device)
    reals = DTYPES["s" if letter == "s" else "d"]
    a, w, info = (
        np.empty((1, n, n), dtype.name),
        np.empty((1, n, 1), reals.name),
        np.empty((1, 1, 1), dtype.name),
    )
    operands = operand(w, reals), *(operand(each, dtype) for each in (info, np.empty_like(a), a))
    launches = eigh_batched.launch_list(*operands, uplo=Uplo.LOWER, vectors=True)
    assert free // 4 < launches.workspace_bytes <= free // 2


@pytest.mark.parametrize("letter", "sz")
def test_stacks_are_divided_where_memory_is_short(kernels, monkeypatch, letter):
    a = hermitian("random", letter, 20, 100)
    whole = eigh(a)
    monkeypatch.setattr(eigh_divided, "workspace_room", lambda device, most: min(most, 4 << 20))
    launch_list.cache.clear()
    for one, other in zip(eigh(a), whole, strict=True):
        np.testing.assert_array_equal(one, other)
    assert [name for name, *_ in kernels.launches].count("sytrd_resident") > 2


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("order", "CF")
def test_some_vectors_take_less(kernels, letter, order):
    """Vectors outside a range stay what they were, and products are smaller."""
    a = hermitian("random", letter, 2, 200)
    w, *_ = eigh(a, order=order)
    launched, first, end = len(kernels.launches), 30, 41
    some, part, _ = eigh(a, vectors=(first, end), order=order)
    np.testing.assert_array_equal(some, w)
    check = np.abs(a @ part[..., first:end] - part[..., first:end] * w[:, None, first:end])
    assert check.max() <= 1e3 * np.finfo(a.dtype).eps
    assert (part[..., :first] == 7).all() and (part[..., end:] == 7).all()
    blocks = [
        sum(grid[0] for _, grid, *_ in each)
        for each in (kernels.launches[:launched], kernels.launches[launched:])
    ]
    assert blocks[1] < blocks[0]


def test_large_batches_go_in_parts(kernels, monkeypatch):
    """So that they take no more scratch."""
    monkeypatch.setattr(eigh_divided, "SCRATCH", 0)
    a = hermitian("random", "c", 2, 70)[np.arange(300) % 2]
    w, v, _ = eigh(a)
    assert [name for name, *_ in kernels.launches].count("sytrd_resident") == 3
    check_eigen(a[[0, 299]], w[[0, 299]], v[[0, 299]])
    np.testing.assert_array_equal(w, w[np.arange(300) % 2])


def test_large_batches_are_one_launch(kernels):
    w, v, _ = eigh(hermitian("random", "d", 1, 3).repeat(70_000, axis=0))
    assert len(kernels.launches) == 1
    check_eigen(hermitian("random", "d", 1, 3), w[-1:], v[-1:])


@pytest.mark.parametrize("name", ["h200", "a100"])
@pytest.mark.parametrize("letter", DTYPES)
def test_the_largest_order(letter, name):
    device, dtype = replace(known(name), ordinal=-1), DTYPES[letter]
    largest = eigh_batched.max_order(dtype, device)
    few = 16 if dtype.is_complex else 32
    assert [eigh_jacobi.max_order(dtype, device, device.sm_count + i) for i in (0, 1)] == [few, 32]
    assert largest == 16384


def svd(a: np.ndarray, full=False, vectors=True, order="C", is_real=True):
    """U, singular values, the adjoint of V, and info of a stack."""
    dtype, (batch, m, n) = next(x for x in DTYPES.values() if x.name == a.dtype.name), a.shape
    real, k = DTYPES["s" if dtype.real_size == 4 else "d"], min(m, n)
    kind = real if is_real else dtype
    sigma, info = np.zeros((batch, k, 1), kind.name), np.full((batch, 1, 1), 7, dtype.name)
    shapes = [(batch, m, m if full else k), (batch, n if full else k, n)]
    u, vh = (
        np.full(shape, 7, dtype.name)
        if order == "C"
        else np.full((batch, *shape[:0:-1]), 7, dtype.name).swapaxes(1, 2)
        for shape in shapes
    )
    operands = [operand(sigma, kind), *(operand(array, dtype) for array in (info, u, vh, a))]
    launches = svd_batched.launch_list(*operands, vectors=vectors)
    launches.run([each.pointer for each in operands], 1.0, stream=0)
    return u, sigma[..., 0], vh, info.view(np.int32)[:, 0, 0]


@pytest.mark.parametrize("m, n", [(1, 1), (16, 16), (4, 9), (33, 30), (30, 64), (20, 700), (400, 90)])
@pytest.mark.parametrize("letter", "sdcz")
def test_singular_values_and_vectors(kernels, letter, m, n):
    a = matrix_of("random", letter, 3, m, n)
    given = a.copy()
    if not svd_batched.serves(m, n, DTYPES[letter], known("h200"), vectors=True):
        assert letter == "z" and min(m, n) > 80
        return
    for order in "CF":
        for full in (False, True):
            u, sigma, vh, info = svd(a, full, order=order)
            check_singular(a, sigma, u, vh)
            assert not info.any()
    u, sigma, vh, _ = svd(a, vectors=False, is_real=False)
    check_singular(a, sigma.real)
    assert (u == 7).all() and (vh == 7).all()
    np.testing.assert_array_equal(a, given)


@pytest.mark.parametrize(
    ("letter", "m", "n", "kernel"),
    [("s", 100, 100, "jacobi_svd"), ("d", 64, 50, "jacobi_columns"), ("d", 64, 32, "jacobi_svd"),
     ("z", 5, 5, "jacobi_columns")],
)  # fmt: skip
def test_small_matrices_are_one_launch(kernels, letter, m, n, kernel):
    svd(matrix_of("random", letter, 5, m, n))
    assert [name for name, *_ in kernels.launches] == [kernel]


@pytest.mark.parametrize("name", ["h200", "a100"])
@pytest.mark.parametrize("letter", DTYPES)
def test_shapes_with_a_kernel(letter, name):
    device, dtype = known(name), DTYPES[letter]
    assert svd_batched.serves(10_000, 48, dtype, device, vectors=True)
    assert not svd_batched.serves(600, 600, dtype, device, vectors=False)
