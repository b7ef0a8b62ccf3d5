"""Level 1 on a device: exact on integers, the same bits every time, amid memory that must not change."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import pyblasgpu
from pyblasgpu import blas
from pyblasgpu.database import FIXED
from pyblasgpu.testing.error_bounds import gemm_error
from pyblasgpu.testing.reference import integers
from pyblasgpu.testing.reference import reals as random_reals
from pyblasgpu.types import DTYPES

from .running import cupy

#: One block, the last of it, several, more tiles than blocks.
LENGTHS = (1, 3, 255, 4096, 8195, 70_001, 1_048_579, 9_000_001)


@pytest.fixture(scope="module", autouse=True)
def compiled_kernels(compile_once) -> None:
    """The kernels of Level 1, instead of those of all tests."""
    families = FIXED["level1_map"], FIXED["level1_reduce"]
    configs = [(family, family.fixed_config(letter)) for family, letter in product(families, DTYPES)]
    sources = [source for family, config in configs for source in family.plain_sources(config)]
    compile_once("level1", lambda: sources)


class Placed:
    """A vector in device memory with an increment, 99 around it; `shift` elements from an aligned address."""

    def __init__(self, values: np.ndarray, increment: int = 1, shift: int = 0):
        n, step = len(values), abs(increment)
        self.memory = cupy.full((n + 2) * step + shift, 99, values.dtype)
        first = self.memory[shift : shift + (n - 1) * step + 1 : step]
        self.array = first if increment > 0 else first[::-1]
        self.array[...] = cupy.asarray(values)
        self._inside = n

    def unharmed(self) -> bool:
        outside = int((self.memory == 99).sum())
        return outside == self.memory.size - self._inside


def vectors(letter: str, n: int, incs, shift: int = 0) -> list[Placed]:
    rng = np.random.default_rng(n)
    return [Placed(integers(rng, (n,), DTYPES[letter], 1), inc, shift) for inc in incs]


PLACES = [((1, 1), 0), ((1, 1), 1), ((2, 1), 0), ((-1, -1), 0), ((-2, 3), 1)]


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("letter", DTYPES)
def test_element_by_element(letter, n):
    alpha = 2 - 1j if letter in "cz" else 2
    for incs, shift in PLACES:
        if n > 1_000_000 and incs != (1, 1):
            continue
        x, y = vectors(letter, n, incs, shift)
        before = x.array.copy(), y.array.copy()
        assert pyblasgpu.axpy(x.array, y.array, alpha=alpha, out=y.array) is y.array
        assert (y.array == alpha * before[0] + before[1]).all()
        pyblasgpu.swap(x.array, y.array)
        assert (y.array == before[0]).all()
        pyblasgpu.scal(y.array, alpha=alpha, out=y.array)
        assert (y.array == alpha * before[0]).all()
        pyblasgpu.copy(y.array, out=x.array)
        assert (x.array == y.array).all()
        rotated = pyblasgpu.rot(*before, 3, 4)
        assert (rotated[0] == 3 * before[0] + 4 * before[1]).all()
        assert (rotated[1] == 3 * before[1] - 4 * before[0]).all()
        assert x.unharmed() and y.unharmed()


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("letter", DTYPES)
def test_numbers(letter, n):
    for incs, shift in PLACES:
        if n > 1_000_000 and incs != (1, 1):
            continue
        x, y = (place.array for place in vectors(letter, n, incs, shift))
        host, other = x.get().astype(complex), y.get().astype(complex)
        sizes = abs(host.real) + abs(host.imag)
        assert complex(pyblasgpu.dot(x, y)) == (host * other).sum()
        assert complex(pyblasgpu.dot(x, y, conj=True)) == (host.conj() * other).sum()
        assert float(pyblasgpu.asum(x)) == sizes.sum()
        assert int(pyblasgpu.iamax(x)) == sizes.argmax()
        np.testing.assert_allclose(float(pyblasgpu.nrm2(x)), np.linalg.norm(host), rtol=1e-6)


@pytest.mark.parametrize("letter", DTYPES)
def test_the_largest_is_found_anywhere(letter):
    n = 3_000_001
    x = cupy.ones(n, DTYPES[letter].name)
    for at in (0, 1, 77_777, 1_500_002, n - 2, n - 1):
        x[at] = -7
        x[at + 1 :: 3] = 7
        assert int(pyblasgpu.iamax(x)) == at
        x[...] = 1
    x[n - 5] = cupy.nan
    assert int(pyblasgpu.iamax(x)) == n - 5
    none = getattr(blas, f"i{letter}amax")(x, incx=-1)  # as SciPy has it
    assert int(none) == -1 and none.dtype == cupy.int64


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("n", [2000, 5_000_011])
def test_norms_neither_overflow_nor_underflow(letter, n):
    dtype = DTYPES[letter]
    limits = np.finfo(dtype.name)
    for scale in (float(limits.max) / 8, float(limits.tiny), 1.0):
        x = cupy.zeros(n, dtype.name)
        x[0], x[n - 1] = 3 * scale, 4 * scale
        np.testing.assert_allclose(float(pyblasgpu.nrm2(x)), 5 * scale, rtol=4 * float(limits.eps))


@pytest.mark.parametrize("letter", DTYPES)
def test_batches(letter):
    rng = np.random.default_rng(5)
    dtype = DTYPES[letter]
    for batch, n in ((3, 50_000), (70_000, 3), (5000, 40)):
        x, y = (cupy.asarray(integers(rng, (batch, n), dtype)) for _ in range(2))
        assert (pyblasgpu.dot(x, y) == (x * y).sum(-1)).all()
        assert (pyblasgpu.iamax(x) == (abs(x.real) + abs(x.imag)).argmax(-1)).all()
        assert (pyblasgpu.axpy(x, y, alpha=2) == 2 * x + y).all()


@pytest.mark.parametrize("operation", ["dot", "nrm2", "asum"])
@pytest.mark.parametrize("letter", DTYPES)
def test_same_bits(letter, operation):
    """On every run, on several streams at once; and after them all flags are 0, or results would differ."""
    dtype, rng = DTYPES[letter], np.random.default_rng(6)
    x = rng.standard_normal((700_001, dtype.reals_per_element)).astype(dtype.real)
    x = cupy.asarray(x.view(dtype.name)[:, 0])
    arrays = (x, x[::-1].copy()) if operation == "dot" else (x,)
    run = getattr(pyblasgpu, operation)
    results = [run(*arrays) for _ in range(20)]
    cupy.cuda.Device().synchronize()
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(3)]
    for stream in streams * 5:
        with stream:
            results.append(run(*arrays))
    cupy.cuda.Device().synchronize()
    first = results[0].get()
    assert all(result.get().tobytes() == first.tobytes() for result in results)
    exact = x.get().astype("complex128")
    if operation == "nrm2":
        np.testing.assert_allclose(float(first), np.linalg.norm(exact), rtol=1e-5)


@pytest.mark.parametrize("n", [1000, 4_000_003])
@pytest.mark.parametrize("letter", DTYPES)
def test_errors_stay_below_their_bounds(letter, n, record_property):
    dtype, rng = DTYPES[letter], np.random.default_rng(n)
    x, y = random_reals(rng, (n,), dtype), random_reals(rng, (n,), dtype)
    on_device = cupy.asarray(x), cupy.asarray(y)
    actual = pyblasgpu.dot(*on_device).get()
    errors = {"dot": gemm_error(1, x[None], y[:, None], 0, None, actual[None, None])}
    wide = x.astype("clongdouble" if dtype.is_complex else "longdouble")
    exact = {"nrm2": np.sqrt((abs(wide) ** 2).sum()), "asum": abs(wide.real).sum() + abs(wide.imag).sum()}
    for name, terms in (("nrm2", n / 2 + 3), ("asum", n)):
        error = abs(getattr(pyblasgpu, name)(on_device[0]).get() - exact[name]) / exact[name]
        errors[name] = float(error / (terms * dtype.unit_roundoff * dtype.reals_per_element))
        assert error < 64 * dtype.unit_roundoff
    record_property("errors over bounds", errors)
    assert max(errors.values()) <= 1, errors


def test_results_of_devices_stay_there():
    x = cupy.arange(5.0)
    results = (pyblasgpu.dot(x, x), "float64"), (pyblasgpu.iamax(x), "int64"), (blas.dasum(x), "float64")
    for actual, dtype in results:
        assert isinstance(actual, cupy.ndarray) and actual.shape == () and actual.dtype == dtype
    out = cupy.zeros(())
    assert pyblasgpu.dot(x, x, out=out) is out and float(out) == 30
    assert pyblasgpu.dot(x, x, out=out) is out and float(out) == 30


def test_host_arrays_on_the_device():
    x, y = np.arange(1000.0), np.ones(1000)
    assert pyblasgpu.dot(x, y, backend="cuda") == x.sum()
    pyblasgpu.swap(x[::2], y[::2], backend="cuda")
    assert (x[::2] == 1).all() and (y[::2] == np.arange(0, 1000, 2)).all()


def test_scipys_names():
    x, y = cupy.arange(6.0), cupy.ones(6)
    assert blas.daxpy(x, y, a=2) is y and (y == 2 * cupy.arange(6.0) + 1).all()
    assert (blas.dcopy(x, cupy.zeros(6), n=3, incx=-2, incy=2).get() == [4, 0, 2, 0, 0, 0]).all()
    strided = cupy.zeros(12)[::2]
    assert blas.daxpy(x, strided) is not strided and (strided == 0).all()
    assert float(blas.ddot(x, x, n=2, offx=1, incx=2)) == 1 * 0 + 3 * 1
    for order in "FC":  # of several dimensions by columns
        grid = cupy.array(np.arange(6.0).reshape(2, 3), order=order)
        scaled = blas.dscal(10, grid, n=2)
        assert (scaled is grid) == (order == "F") and (scaled.get() == [[0, 1, 2], [30, 4, 5]]).all()
    not_ours = "dgbmv"
    with pytest.raises(NotImplementedError, match=not_ours):
        getattr(blas, not_ours)(3, 3, 1, 1, 1.0, cupy.ones((3, 3)), x)


def test_tensors():
    torch = pytest.importorskip("torch")
    x, y = (torch.arange(6.0, device="cuda") * (1 + 1j) + i for i in range(2))
    for _ in range(3):  # the first call, and known ones
        actual = pyblasgpu.dot(x, y)
        assert isinstance(actual, torch.Tensor) and actual.shape == () and actual.is_cuda
        assert actual.item() == (x * y).sum().item()
        assert pyblasgpu.dot(x.conj(), y).item() == torch.vdot(x, y).item()
        assert pyblasgpu.dot(x, y.conj()).item() == torch.vdot(y, x).item()
        assert pyblasgpu.iamax(x).item() == 5 and pyblasgpu.iamax(x).dtype == torch.int64
        assert pyblasgpu.nrm2(x).dtype == torch.float32
    expected = 2 * x.conj() + y
    assert pyblasgpu.axpy(x.conj(), y, alpha=2, out=y) is y and torch.equal(y, expected)
    before = x.clone()
    assert pyblasgpu.swap(x, y)[0] is x and torch.equal(x, expected) and torch.equal(y, before)
    assert blas.caxpy(x, y, n=3, incx=-1, offy=3) is y
    assert torch.equal(y[3:], before[3:] + expected[:3].flip(0)) and torch.equal(y[:3], before[:3])
    grid = torch.arange(6.0, device="cuda").reshape(2, 3)
    for each, is_written in ((grid, False), (grid.T.contiguous().T, True)):
        scaled = blas.sscal(10, each, n=2)
        assert (scaled is each) == is_written and scaled.tolist() == [[0, 1, 2], [30, 4, 5]]
    assert pyblasgpu.dot(torch.ones(3), torch.ones(3)).item() == 3
