"""Whether a product in a mode for tensor cores gets them, and the Configs that make it."""

from __future__ import annotations

from dataclasses import replace
from math import lcm
from typing import Any, NamedTuple

from ..gpu import backend
from ..gpu.device import Device
from ..gpu.transfers import memory_bytes
from ..kernels.common.tile_schedule import tile_count
from ..kernels.gemm.int8.image import parts_of
from ..kernels.gemm.int8.moduli import fewest_of_roots
from ..kernels.gemm.wgmma.image import block_of, least_element
from ..types import DTYPES, Dtype, Region
from . import overrides
from .choose import select
from .leaf import runs
from .overrides import OVERRIDE, Algorithm, KernelChoice
from .tuned_files import policy_of, rates_of

__all__ = [
    "Int8Product",
    "TensorProblem",
    "TensorProduct",
    "gains",
    "int8_product",
    "kept_residues",
    "obstacle",
    "tensor_product",
    "workspace_room",
]

FP16 = "gemm_wgmma"
#: Extent m and n, and m n k, from which on tensor cores are taken: with less, launches are most of the time.
MIN_TRIPLES_K = 1024  # the sums of blocks of 256 k take 604 of the bound's k + 2
MOST_TILES = 2**31 - 1  # that are numbered


class TensorProduct(NamedTuple):
    """Configs of a product on tensor cores.

    Attributes
    ----------
    choice : KernelChoice
        The Config of the product; its BLK_K is that of the call.
    pack : Config
        Config of the kernel that splits the operands.
    guarded : Config
        Config of the kernel that multiplies the tiles that pairs cannot serve.
    least : float
        `image.least_element`.
    equilibrate : Config or None
        Config of the kernel that finds powers of two for each k, where that is worth a launch.
    triples : (Config, Config) or None
        Configs of the kernels that split the operands in three and multiply them, where that is worth two
        launches.
    """

    choice: KernelChoice
    pack: Any
    guarded: Any
    least: float
    equilibrate: Any
    triples: tuple[Any, Any] | None = None

    @property
    def for_one_launch(self) -> TensorProduct:
        """Return the product without equilibration and triples, for factors that one launch packs."""
        return self._replace(equilibrate=None, triples=None)


def tensor_product(problem: TensorProblem) -> TensorProduct | Algorithm:
    """Return the Configs of a product of float32 or complex64; or the algorithm that serves instead, and why.

    The images of A and B take workspace as large as both, whatever the limit of the routine is. That of a
    complex A takes twice as much, and large products half as much again.
    """
    dtype, device, reals = problem.dtype, problem.device, problem.dtype.reals_per_element
    m, n, k, batch = problem.extents
    extents = m, n, k, batch = reals * m, n, reals * k, batch
    reason = _fp16_obstacle(problem, extents)
    if reason:
        return Algorithm("gemm_simt", reason)
    choice = select(FP16, DTYPES["s"], "", extents, device)
    blk_k = block_of(k)
    assert blk_k is not None, "as _fp16_obstacle has checked"
    config = replace(choice.config, BLK_K=blk_k)
    if choice.origin != OVERRIDE:
        config = _with_fitting_tiles(config, extents, device)
    least = least_element(k, blk_k)
    assert least is not None, "as block_of has checked"
    if config.grid(m, n) * batch + device.sm_count > MOST_TILES:
        return Algorithm("gemm_simt", "more tiles than are numbered")
    pack = select("pack_halves", dtype, "", (m, k), device).config.specialize(config.PANEL, blk_k)
    guarded = select("gemm_guarded", dtype, problem.layout, problem.extents, device).config
    layout = problem.layout
    guarded_config = guarded.specialize(layout[0] == "t", layout[1] == "t", config.PANEL)
    configs = replace(choice, config=config), pack, guarded_config, least
    if m * n * k < policy_of(device).fp16_min_equilibrated_work:
        return TensorProduct(*configs, None)
    equilibrate = select("equilibrate", dtype, "", (m, k), device).config
    return TensorProduct(*configs, equilibrate, _triples(dtype, extents, device))


def _triples(dtype: Dtype, extents: tuple[int, int, int, int], device: Device) -> tuple[Any, Any] | None:
    """The Configs of `TensorProduct.triples`; None where k leaves them no room in the error bound."""
    m, k = extents[0], extents[2]
    if k < MIN_TRIPLES_K:
        return None
    product = select("gemm_triples", DTYPES["s"], "", extents, device).config
    pack = select("pack_triples", dtype, "", (m, k), device).config.specialize(product.PANEL, product.BLK_K)
    return pack, product


def _with_fitting_tiles(config: Any, extents: tuple[int, int, int, int], device: Device) -> Any:
    """The variant of a Config whose waves of tiles take the least time: narrow tiles, where C is small."""
    m, n, _, batch = extents
    overhead = rates_of(device).fp16_tile_overhead

    def time(variant: Any) -> float:
        waves: int = -(-variant.grid(m, n) * batch // max(device.sm_count // variant.cluster, 1))
        return waves * (int(variant.BLK_N) + overhead)

    return min((each for each in config.variants if each.BLK_K == config.BLK_K), key=time)


def _fp16_obstacle(problem: TensorProblem, extents: tuple[int, int, int, int]) -> str:
    """Return why tensor cores do not serve the problem, or ''. The extents are those of real matrices."""
    m, n, k, _ = extents
    reason = obstacle(problem, FP16)
    if reason:
        return reason
    if block_of(k) is None:
        return f"k={k} leaves pairs of FP16 no room in the error bound"
    if overrides.get_override(FP16) is not None:
        return ""
    policy = policy_of(problem.device)
    if min(m, n) < policy.fp16_min_extent or m * n * k < policy.fp16_min_work:
        return "small products are faster by FMAs"
    return ""


class TensorProblem(NamedTuple):
    """A product in a mode for tensor cores.

    Attributes
    ----------
    dtype : Dtype
    layout : str
        Layout of A and B, as the Configs of products have it.
    extents : (int, int, int, int)
        m, n, k and batch.
    device : Device
    copied : bool
        Whether an operand has neither contiguous columns nor rows.
    region : Region
        Region of C.
    is_one : bool
        Whether A and B transposed are one operand.
    """

    dtype: Dtype
    layout: str
    extents: tuple[int, int, int, int]
    device: Device
    copied: bool = False
    region: Region = Region.ALL
    is_one: bool = False


def obstacle(problem: TensorProblem, stem: str) -> str:
    """Return why the family `stem` does not serve the problem, or ''."""
    device = problem.device
    if not runs(stem, device):
        return f"tensor cores need compute capability 9.0, {device.name} has {device.cc[0]}.{device.cc[1]}"
    return "an operand has neither contiguous columns nor rows" if problem.copied else ""


# ----------------------------------------------------------------------------------------------------- INT8


INT8 = "gemm_int8"
#: Rows and columns of C that are computed, at multiples of which.
UNIT = 256
#: Bytes of images and residues that C is cut in blocks for, where they take more; at most this part of what
#: is free.
MOST_WORKSPACE, PART_OF_FREE = 6 << 30, 2
MOST_KEPT = 24 << 30  # bytes of residues that a Cholesky factor keeps
MIN_BLOCK = 1024  # rows and columns of a block, unless C has fewer: with less, packing costs what is gained


class Int8Product(NamedTuple):
    """Configs of a product by residues.

    Attributes
    ----------
    choice : KernelChoice
        The Config of the product.
    scales, pack, combine, guarded : Config
        Configs of the kernels that find the scales of rows, pack residues, combine them, and multiply the
        tiles that integers cannot serve.
    rows, cols : int
        Extents of the blocks of C that are computed one after the other.
    sampler : Config or None
        Config of the kernel that looks whether integers serve at all, where that is worth a launch.
    """

    choice: KernelChoice
    scales: Any
    pack: Any
    combine: Any
    guarded: Any
    rows: int
    cols: int
    sampler: Any = None


def int8_product(problem: TensorProblem) -> Int8Product | Algorithm:
    """Return the Configs of a product of float64 or complex128; or the algorithm that serves instead, and
    why.

    Memory that is free counts as it is when a layout is first seen.
    """
    reason = _int8_obstacle(problem)
    if not reason and overrides.get_override(INT8) is None and not gains(problem, _moduli(problem)):
        reason = "small products are faster by FMAs"
    if reason:
        return Algorithm("gemm_mma", reason)
    workspace_limit = workspace_room(problem.device, MOST_WORKSPACE)
    choice = select(INT8, problem.dtype, "", problem.extents, problem.device)
    blocks = _blocks(choice.config, problem, workspace_limit)
    if blocks is None:
        return Algorithm("gemm_mma", f"residues of a block of C have no room in {workspace_limit >> 20} MiB")
    made = _int8_configs(problem, choice, blocks)
    m, n, k, _ = problem.extents
    if problem.dtype.is_complex or m * n * k < policy_of(problem.device).int8_min_sampled_work:
        return made
    sampler = select("sample_pairs", problem.dtype, "", (m, n, k), problem.device).config
    config = choice.config
    return made._replace(sampler=replace(sampler, moduli=config.moduli, sample=config.sample))


def _int8_configs(problem: TensorProblem, choice: KernelChoice, blocks: tuple[int, int]) -> Int8Product:
    dtype, device, layout, config = problem.dtype, problem.device, problem.layout, choice.config
    m, n, k, _ = problem.extents
    scales = replace(select("row_scales", dtype, "", (m, k), device).config, moduli=config.moduli)
    pack = select("pack_residues", dtype, "", (m, k), device).config
    rows = min(pack.rows, config.PANEL)
    pack = replace(pack, moduli=config.moduli, BLK=config.PANEL, rows=rows, sample=config.sample)
    combine = select("combine_residues", dtype, "", (m, n), device).config.specialize(config)
    guarded = select("gemm_int8_guarded", dtype, layout, problem.extents, device).config
    guarded = replace(guarded, FLAG_M=config.BLK_M, FLAG_N=config.BLK_N)
    guarded = guarded.specialize(layout[0] == "t", layout[1] == "t")
    return Int8Product(choice, scales, pack, combine, guarded, *blocks)


def kept_residues(dtype: Dtype, n: int, columns: int, device: Device) -> Int8Product | None:
    """Return the Configs of products by which a Cholesky factor of order `n` takes `columns` columns before
    others; None where they do not serve, or the residues of all its columns have no room.
    """
    m, region = n - columns, Region.LOWER
    problem = TensorProblem(dtype, "nn", (m, columns, m, 1), device, region=region, is_one=True)
    if _int8_obstacle(problem):
        return None
    choice = select(INT8, dtype, "", problem.extents, device)
    moduli = min(choice.config.moduli, fewest_of_roots(columns))
    choice = replace(choice, config=replace(choice.config, moduli=moduli))
    config, factors = choice.config, dtype.reals_per_element  # complex ones on the right are conjugated
    images = factors * m * (-(-m // 128) * 128) * (config.images + 1)
    residues = config.BLK_M * config.BLK_N * config.tiles(m, columns, region) * config.images
    if images + residues > workspace_room(device, MOST_KEPT) or columns % config.PANEL:
        return None
    return _int8_configs(problem, choice, (m, columns))


def _moduli(problem: TensorProblem) -> int:
    moduli: int = select(INT8, problem.dtype, "", problem.extents, problem.device).config.moduli
    return moduli


def _int8_obstacle(problem: TensorProblem) -> str:
    """Return why tensor cores do not serve the problem, or ''."""
    k, reason = problem.extents[2], obstacle(problem, INT8)
    if reason:
        return reason
    most = select(INT8, problem.dtype, "", problem.extents, problem.device).config.MAX_K
    return f"k={k} is too large for sums of products of bytes" if k > most else ""


def gains(problem: TensorProblem, moduli: int) -> bool:
    """Whether residues are estimated to take less time than FMAs."""
    policy, dtype, (m, n, k, _) = policy_of(problem.device), problem.dtype, problem.extents
    images, size, of_reals = moduli * parts_of(dtype), dtype.itemsize, dtype.reals_per_element**2
    elements = UNIT**2 * tile_count(UNIT, UNIT, m, n, problem.region)
    rows = sum(-(-extent // UNIT) * UNIT for extent in ((m,) if problem.is_one else (m, n)))
    products = 2 * elements * k * images / policy.int8_rate
    packed, combined = rows * k * (2 * size + images), elements * (2 * size + 2 * images)
    order = min(m, n)
    multiplied = m * n - (order * order // 2 if problem.region is not Region.ALL else 0)
    by_fma = 2 * of_reals * multiplied * k / policy.int8_fma_rate
    return products + (packed + combined) / policy.int8_bytes_per_second + policy.int8_launch_seconds < by_fma


def workspace_room(device: Device, most: int) -> int:
    """Bytes of workspace that may be taken, of `most`."""
    if device.ordinal < 0 or backend.SIMULATED:  # no memory that a driver knows
        return most
    return min(most, memory_bytes(device.ordinal).free // PART_OF_FREE)


def _blocks(config: Any, problem: TensorProblem, workspace_limit: int) -> tuple[int, int] | None:
    """Rows and columns of the blocks of C, so that images and residues fit in `workspace_limit` bytes. There
    are as few blocks of rows as leave `MIN_BLOCK` columns next to them, as B is packed for each, and as many
    columns as fit. None where blocks would be smaller than that.

    Of an upper triangle they are columns and rows. Where all rows of one operand fit there are none of
    another next to them.
    """
    m, n, k, _ = problem.extents
    of_row, images = -(-k // 128) * 128 * (config.images + 1), config.images
    unit, unit_of_columns = config.cluster * config.BLK_M, config.BLK_N
    if problem.region is not Region.ALL:
        unit = unit_of_columns = lcm(unit, unit_of_columns, config.PANEL)
        m, n = (n, m) if problem.region.is_upper else (m, n)
    if problem.region is not Region.ALL and problem.is_one:
        left = workspace_limit - m * of_row
        whole = config.BLK_M * config.BLK_N * config.tiles(m, n, Region.LOWER)
        cols = n if whole * images <= left else _equal_blocks(n, left // (m * images), unit)
        if cols >= min(n, MIN_BLOCK):
            return m, cols
    cols = min(MIN_BLOCK, -(-n // unit_of_columns) * unit_of_columns)
    rows = _equal_blocks(m, (workspace_limit - cols * of_row) // (of_row + cols * images), unit)
    left = workspace_limit - rows * of_row
    cols = _equal_blocks(n, left // (of_row + rows * images), unit_of_columns)
    return None if rows < min(m, MIN_BLOCK) or cols < min(n, MIN_BLOCK) else (rows, cols)


def _equal_blocks(extent: int, most: int, unit: int) -> int:
    """`extent`, or the size of as few blocks of whole units as have at most `most`, but no less than
    `MIN_BLOCK` where that many fit; 0: none is so small.
    """
    if extent <= most:
        return extent
    if most < unit:
        return 0
    fitting = most // unit * unit
    parts = -(-extent // fitting)
    return max(-(-extent // (parts * unit)) * unit, min(fitting, MIN_BLOCK))
