"""DGEMM and ZGEMM by residues: moduli and weights, Configs, what it serves, its kernels compiled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from math import gcd, prod

import chosen_kernels
import fake_driver
import fake_residues
import numpy as np
import pytest
from fake_kernels import install, operand

from pyblasgpu.dispatch import tensor
from pyblasgpu.dispatch.overrides import Algorithm, override, set_math_mode
from pyblasgpu.dispatch.tensor import Int8Product, TensorProblem, int8_product
from pyblasgpu.errors import ConfigError
from pyblasgpu.frontend.calls.lazy_routines import keeps_residues
from pyblasgpu.gpu.build.compile import compile_here
from pyblasgpu.gpu.build.translate import to_ptx
from pyblasgpu.gpu.device import known, stand_in, stand_ins
from pyblasgpu.gpu.transfers import MemoryBytes
from pyblasgpu.kernels.gemm.int8.combine_residues import CombineResidues
from pyblasgpu.kernels.gemm.int8.config import GemmInt8
from pyblasgpu.kernels.gemm.int8.guarded import GemmInt8Guarded
from pyblasgpu.kernels.gemm.int8.moduli import MODULI, TABLE, TABLE_SIZE, largest_square, weights
from pyblasgpu.kernels.gemm.int8.pack_residues import PackResidues
from pyblasgpu.kernels.gemm.int8.row_scales import RowScales
from pyblasgpu.kernels.gemm.int8.sample_pairs import SamplePairs
from pyblasgpu.kernels.registry import family_of
from pyblasgpu.routines.lapack import potrf
from pyblasgpu.routines.level3 import trmm
from pyblasgpu.testing.policies import deciding_by
from pyblasgpu.types import DTYPES, Diag, Region, Side, Uplo

CC = (9, 0)
STEMS = "row_scales", "pivot_scales", "pack_residues", "gemm_int8", "combine_residues", "gemm_int8_guarded"


def test_no_two_moduli_have_a_common_factor():
    assert all(gcd(p, q) == 1 for p, q in combinations(MODULI, 2))
    assert all(129 <= p <= 256 for p in MODULI)


def test_the_table_holds_the_moduli():
    actual = [256 - (TABLE[i // TABLE_SIZE] >> 6 * (i % TABLE_SIZE) & 63) for i in range(len(MODULI))]
    assert actual == list(MODULI) and all(part < 2**63 for part in TABLE)


@pytest.mark.parametrize("count", range(1, len(MODULI) + 1))
def test_weights_are_exact_and_their_sums_too(count):
    """Parts of a sum of residues as fractions, and of a multiple of P, are integers of at most 53 bits."""
    of, whole = weights(count), prod(MODULI[:count])
    assert sum(map(Fraction, of.product)) == whole
    every = [sum(map(Fraction, parts)) for parts in of.parts]
    for number, weight in enumerate(every):
        assert [weight / 256 % p for p in MODULI[:count]] == [number == i for i in range(count)]
    assert (sum(every) + sum(map(Fraction, of.first))) % whole == 0
    for part in range(len(of.product)):
        terms = [abs(Fraction(parts[part])) / 256 for parts in of.parts]
        others = [Fraction(of.first[part]), Fraction(of.product[part])]
        unit = min((_unit(x) for x in (*terms, *others) if x), default=1)
        multiple = 512 * count * abs(others[1])
        assert (512 * sum(terms) + abs(others[0]) + multiple) / unit <= 2 * Fraction(2) ** 53


def _unit(x: Fraction) -> Fraction:
    """The power of two that an integer is an odd multiple of."""
    number = abs(int(x))
    return Fraction(number & -number)


def test_norms_leave_room_for_roundings():
    for count in range(1, len(MODULI) + 1):
        assert 0.99 * prod(MODULI[:count]) / 2 < largest_square(count) < prod(MODULI[:count]) / 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"dtype": "s"},
        {"moduli": 0},
        {"moduli": 16},
        {"BLK_M": 96},
        {"BLK_N": 24},
        {"BLK_N": 288},
        {"PANEL": 96},
        {"cluster": 3},
        {"stages": 1},
        {"stages": 5},
    ],
)
def test_products_without_a_kernel(wrong):
    with pytest.raises(ConfigError):
        GemmInt8(**wrong)


@pytest.mark.parametrize(
    ("config", "wrong"),
    [
        (RowScales, {"dtype": "s"}),
        (RowScales, {"moduli": 16}),
        (RowScales, {"threads": 48}),
        (PackResidues, {"dtype": "c"}),
        (PackResidues, {"moduli": 0}),
        (PackResidues, {"rows": 12}),
        (CombineResidues, {"dtype": "c"}),
        (CombineResidues, {"moduli": 16}),
        (CombineResidues, {"BLK_M": 32}),
        (CombineResidues, {"BLK_N": 16}),
        (GemmInt8Guarded, {"dtype": "d", "persistent": True}),
        (GemmInt8Guarded, {"dtype": "d", "FLAG_M": 64}),
    ],
)
def test_others_without_a_kernel(config, wrong):
    with pytest.raises(ConfigError):
        config(**wrong)


@pytest.fixture
def how() -> Iterator:
    """What a product of these extents is made by."""

    def choose(m, n, k, device="h200", copied=False, region=Region.ALL, dtype="d", is_one=False):
        meant = stand_in(known(device))
        return int8_product(TensorProblem(DTYPES[dtype], "nn", (m, n, k, 1), meant, copied, region, is_one))

    yield choose
    fake_driver.forget()  # no device that is described is known to later tests


def test_what_residues_do_not_serve(how):
    n = 8192
    assert isinstance(how(n, n, n), Int8Product)
    for reason, made in {
        "small": how(512, 512, 512),
        "FMAs": how(8192, 8192, 64),
        "capability": how(n, n, n, "a100"),
        "contiguous": how(n, n, n, copied=True),
        "too large": how(n, n, 1 << 17),
    }.items():
        assert reason in made.origin


@pytest.mark.parametrize(
    ("n", "dtype", "is_one"), [(8192, "d", True), (18432, "d", True), (16384, "z", False)]
)
@pytest.mark.parametrize("region", [Region.LOWER, Region.HERMITIAN_UPPER])
def test_workspace_of_a_triangle(how, n, dtype, is_one, region):
    """One operand is packed once where it fits, whatever is left for residues."""
    made = how(n, n, n, dtype=dtype, region=region, is_one=is_one)
    config = made.choice.config
    assert made.rows % config.PANEL == 0 and made.cols % config.PANEL == 0
    if is_one:
        assert made.rows == n and (made.cols == n) == (n == 8192)
        tiles = config.tiles(n, made.cols, Region.LOWER) if made.cols == n else config.tiles(n, made.cols)
        of_tile = config.BLK_M * config.BLK_N * config.images
        assert n * n * (config.images + 1) + tiles * of_tile <= tensor.MOST_WORKSPACE
    else:
        assert workspace_of(made, n) <= tensor.MOST_WORKSPACE


def workspace_of(made: Int8Product, k: int) -> int:
    """Bytes of images and residues."""
    count = made.choice.config.images
    return (made.rows + made.cols) * k * (count + 1) + made.rows * made.cols * count


@pytest.mark.parametrize("dtype", "dz")
@pytest.mark.parametrize(("m", "n", "k"), [(8192, 8192, 8192), (16384, 16384, 16384), (60000, 50000, 30000)])
def test_workspace_is_bounded(how, m, n, k, dtype):
    made = how(m, n, k, dtype=dtype)
    assert workspace_of(made, k) <= tensor.MOST_WORKSPACE
    if m == 8192:
        assert made.rows == m and (made.cols == n or dtype == "z")
    assert made.rows % 256 == 0 and made.cols % 256 == 0
    assert made.rows >= tensor.MIN_BLOCK <= made.cols


@pytest.mark.parametrize("dtype", "dz")
def test_products_of_complex_numbers_gain_earlier(how, dtype):
    """Three products of real matrices stand for four."""
    assert isinstance(how(2000, 2000, 2000, dtype=dtype), Int8Product) == (dtype == "z")


@pytest.mark.parametrize(("free", "blocks"), [(64, 1), (1.5, 2), (0.2, 0)])
def test_workspace_is_at_most_half_of_what_is_free(free, blocks, monkeypatch):
    """In GiB: less of it makes blocks; where they were too small, FMAs serve."""
    here = replace(known("h200"), ordinal=0)
    monkeypatch.setattr(tensor, "memory_bytes", lambda device: MemoryBytes(int(free * 2**30), 141 << 30))
    made = int8_product(TensorProblem(DTYPES["d"], "nn", (8192, 8192, 4096, 1), here))
    if blocks:
        assert workspace_of(made, 4096) <= free * 2**30 / 2
        assert -(-8192 // made.rows) * -(-8192 // made.cols) >= blocks
    else:
        assert isinstance(made, Algorithm) and "no room" in made.origin


@pytest.mark.parametrize(
    ("dtype", "n", "free", "serves"),
    [("d", 32768, 100, True), ("d", 32768, 27, False), ("d", 49152, 100, False), ("z", 16384, 100, True)],
)
def test_memory_of_residues_that_are_kept(dtype, n, free, serves, monkeypatch):
    """Fourteen bytes an element or 80, of half of what is free and of 24 GiB."""
    monkeypatch.setattr(tensor, "memory_bytes", lambda device: MemoryBytes(free << 30, 141 << 30))
    here = replace(known("h200"), ordinal=0)
    made = tensor.kept_residues(DTYPES[dtype], n, 512, here)
    monkeypatch.setitem(stand_ins, 0, here)
    assert made is None or {made.choice.config.moduli, made.pack.moduli, made.scales.moduli} == {13}
    assert (made is not None) == serves == keeps_residues(dtype, n, 0) and not keeps_residues(dtype, 999, 0)


@chosen_kernels.NEEDS_COMPILER
@pytest.mark.parametrize(("stem", "dtype"), [*product(STEMS, "dz"), ("sample_pairs", "d")])
def test_kernels_keep_everything_in_registers(stem, dtype):
    source = next(iter(family_of(stem).plain_sources(family_of(stem).fixed_config(dtype))))
    report = compile_here(source, CC).resources
    # two registers that wait for the end of a run of tiles
    most = 8 if (stem, dtype) == ("gemm_int8_guarded", "d") else 0
    assert max(report.stack_bytes, report.spill_stores) <= most and report.spill_loads <= 2 * most
    assert stem != "gemm_int8" or report.registers == 168


def test_large_real_products_are_sampled(how):
    """All squares that residues serve, by the package's own value; fewer where it is larger."""
    assert how(2560, 2560, 2560).sampler == how(4096, 4096, 4096).sampler == SamplePairs(moduli=14, sample=8)
    assert how(4096, 4096, 4096, dtype="z").sampler is None
    with deciding_by(int8_min_sampled_work=2560**3 + 1):
        assert how(2560, 2560, 2560).sampler is None


@chosen_kernels.NEEDS_COMPILER
def test_integers_are_not_approximated():
    ptx = to_ptx(family_of("pack_residues").source(PackResidues()), CC)
    assert ".approx" not in ptx and ".ftz" not in ptx and "fma.rn.f64" in ptx


@pytest.mark.parametrize("extents", [(9216, 1400, 16384), (9216, 1280, 16384), (1400, 9216, 16384)])
def test_blocks_that_fit_are_not_evened_out_below_the_least(extents, monkeypatch):
    here = replace(known("h200"), ordinal=0)
    monkeypatch.setattr(tensor, "memory_bytes", lambda device: MemoryBytes(64 << 30, 141 << 30))
    made = int8_product(TensorProblem(DTYPES["z"], "nn", (*extents, 1), here))
    assert isinstance(made, Int8Product)


def graded(n: int, letter: str, power: int) -> np.ndarray:
    """A definite matrix whose diagonal is of any size."""
    rng = np.random.default_rng(n)
    a = rng.standard_normal((n, n)) + (1j * rng.standard_normal((n, n)) if letter == "z" else 0)
    sizes = 2.0 ** rng.integers(-power, power + 1, n)
    return (a @ a.conj().T / n + np.eye(n) / 8) * sizes * sizes[:, None]


def factor(a: np.ndarray, uplo: Uplo, launches: list[str]) -> tuple[np.ndarray, int]:
    """A factor in place, and info, with the stand-ins of kernels; names of `launches`."""
    dtype = DTYPES["z" if a.dtype.kind == "c" else "d"]
    info = np.zeros((2, 1), a.dtype)
    operands = operand(info[:1], dtype), operand(a, dtype)
    made = potrf.launch_list(*operands, uplo=uplo)
    made.run([each.pointer for each in operands], 1.0, stream=0)
    launches += [entry.source.name for entry in made.entries]
    return a, int(info.view(np.int32)[0, 0])


@pytest.fixture
def stand_in_kernels(monkeypatch):
    monkeypatch.setattr(tensor, "memory_bytes", lambda device: MemoryBytes(64 << 30, 141 << 30))
    least = {"d": 400, "z": 400}
    with deciding_by(tensor_potrf_min_order=least, tensor_potrf_columns=128), set_math_mode("tensor"):
        yield install(monkeypatch)


@pytest.mark.parametrize(("letter", "uplo", "order"), ["dLF", "dUF", "zLC", "zUC"])
@pytest.mark.usefixtures("stand_in_kernels")
def test_factors_by_residues_that_are_kept(letter, uplo, order):
    """Graded matrices stay within the bound; each block is packed once, the other triangle left alone."""
    n, uplo, names = 700, Uplo.parse(uplo, "", ""), []
    a = graded(n, letter, 40)
    inside = np.tri(n, dtype=bool) if uplo is Uplo.LOWER else np.tri(n, dtype=bool).T
    stored = np.where(inside, a, np.nan)
    stored[np.diag_indices(n)] = a.diagonal().real + (complex(0, np.nan) if letter == "z" else 0)
    made, info = factor(np.array(stored, order=order), uplo, names)
    assert info == 0 and np.isnan(made[~inside]).all()
    lower = np.where(inside, made, 0)
    product = lower @ lower.conj().T if uplo is Uplo.LOWER else lower.conj().T @ lower
    sizes = np.sqrt(a.diagonal().real)
    assert (abs(product - a) / (sizes * sizes[:, None])).max() <= (n + 4) * 2.0**-53
    products, factors = -(-n // 128) - 1, DTYPES[letter].reals_per_element
    assert names.count("combine_residues") == products and names.count("pack_residues") == products * factors
    assert names.count("pivot_scales") == 1 + products and "gemm_int8_guarded" not in names


@pytest.mark.parametrize("at", [300, 650])
@pytest.mark.usefixtures("stand_in_kernels")
def test_a_row_that_leaves_its_scale_has_no_pivot(at):
    """Its elements are larger than the root of a_ii, its integers than any number of residues."""
    a = graded(700, "d", 0)
    a[at, :at] *= 1e9
    _, info = factor(np.asfortranarray(a), Uplo.LOWER, [])
    assert at // 128 * 128 < info <= at + 1  # the stand-ins find the block of the pivot


@pytest.mark.parametrize(("side", "uplo", "order", "flag"), ["LLF0", "LUC1", "RLF1", "RUC0"])
def test_triangles_with_one_packing(side, uplo, order, flag, monkeypatch):
    """T beyond its triangle is not read; FMAs read the factors of tiles with flags in their own order."""
    install(monkeypatch)
    monkeypatch.setattr(fake_residues, "FLAG", int(flag))
    monkeypatch.setattr(tensor, "memory_bytes", lambda device: MemoryBytes(64 << 30, 141 << 30))
    n, rhs, rng = 3100, 20, np.random.default_rng(3)
    side, uplo = Side.parse(side, "", ""), Uplo.parse(uplo, "", "")
    t, b = rng.standard_normal((n, n)), rng.standard_normal((n, rhs) if side is Side.LEFT else (rhs, n))
    inside = np.tri(n, dtype=bool) if uplo is Uplo.LOWER else np.tri(n, dtype=bool).T
    stored, made = np.array(np.where(inside, t, np.nan), order=order), np.array(b, order=order)
    operands = operand(stored, DTYPES["d"]), operand(made, DTYPES["d"])
    ranges = {f"tensor_trmm_min_{size}": {"d": 1} for size in ("order", "rhs", "elements")}
    flags = {"side": side, "uplo": uplo, "diag": Diag.NON_UNIT}
    with (
        deciding_by(**ranges, tensor_stop_of_double=1024),
        set_math_mode("tensor"),
        override("gemm_int8", GemmInt8()),
    ):
        launches = trmm.launch_list(2.0, *operands, **flags)
    launches.run([each.pointer for each in operands], 2.0, stream=0)
    names, t = [entry.source.name for entry in launches.entries], np.where(inside, t, 0)
    assert names.count("combine_residues") == 3 and names.count("pack_residues") == 3 + 2
    np.testing.assert_allclose(made, 2 * (t @ b if side is Side.LEFT else b @ t), rtol=0, atol=1e-11)
