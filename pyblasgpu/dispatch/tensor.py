"""Whether a product that asks for tensor cores gets them, and the Configs that make it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from ..gpu.device import Device
from ..kernels.gemm.wgmma.image import block_of, least_element
from ..types import DTYPES, Dtype, Region
from . import overrides
from .choose import select
from .decisions import OVERRIDE, Algorithm, KernelChoice
from .tensor_problem import TensorProblem, obstacle

__all__ = ["MIN_EXTENT", "MIN_MULTIPLICATIONS", "TensorProduct", "tensor_product"]

STEM = "gemm_wgmma"
#: Extent m and n, and m n k, from which on tensor cores are taken: with less, launches are most of the time.
MIN_EXTENT, MIN_MULTIPLICATIONS = 128, 1 << 29
MIN_EQUILIBRATED = 1 << 35  # m n k from which on A and B are equilibrated: with less, the launch costs
MIN_TRIPLES_K = 1024  # the sums of blocks of 256 k take 604 of the bound's k + 2
TILE_OVERHEAD = 16  # columns of a tile that would take as long as its beginning and its end
MOST_TILES = 2**31 - 1  # that are numbered


class TensorProduct(NamedTuple):
    """How a product is made on tensor cores.

    Attributes
    ----------
    choice : KernelChoice
        The Config of the product; its BLK_K is that of the call.
    pack : Config
        Of what splits the operands.
    guarded : Config
        Of what multiplies the tiles that pairs cannot serve.
    least : float
        `image.least_element`.
    equilibrate : Config or None
        Of what finds powers of two for each k, where that is worth a launch.
    triples : (Config, Config) or None
        Of what splits the operands in three, and of what multiplies them, where that is worth two launches.
    """

    choice: KernelChoice
    pack: Any
    guarded: Any
    least: float
    equilibrate: Any
    triples: tuple[Any, Any] | None = None

    @property
    def for_one_launch(self) -> TensorProduct:
        """The same for factors that are packed by one launch as they are."""
        return self._replace(equilibrate=None, triples=None)


def tensor_product(problem: TensorProblem) -> TensorProduct | Algorithm:
    """How a product of float32 or complex64 is made; or the algorithm that serves instead, and why.

    The images of A and B take workspace as large as both, that of a complex A twice as much, in large
    products half as much again, whatever the limit of the routine is.
    """
    dtype, device, reals = problem.dtype, problem.device, problem.dtype.reals_per_element
    m, n, k, batch = problem.extents
    extents = m, n, k, batch = reals * m, n, reals * k, batch
    reason = _obstacle(problem, extents)
    if reason:
        return Algorithm("gemm_simt", reason)
    choice = select(STEM, DTYPES["s"], "", extents, device)
    blk_k = block_of(k)
    assert blk_k is not None, "told by _obstacle"
    config = replace(choice.config, BLK_K=blk_k)
    if choice.origin != OVERRIDE:
        config = _with_fitting_tiles(config, extents, device)
    least = least_element(k, blk_k)
    assert least is not None, "told by block_of"
    if config.grid(m, n) * batch + device.sm_count > MOST_TILES:
        return Algorithm("gemm_simt", "more tiles than are numbered")
    pack = select("pack_halves", dtype, "", (m, k), device).config.specialize(config.PANEL, blk_k)
    guarded = select("gemm_guarded", dtype, problem.layout, problem.extents, device).config
    layout = problem.layout
    guarded_config = guarded.specialize(layout[0] == "t", layout[1] == "t", config.PANEL)
    configs = replace(choice, config=config), pack, guarded_config, least
    if m * n * k < MIN_EQUILIBRATED:
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

    def time(variant: Any) -> int:
        waves: int = -(-variant.grid(m, n) * batch // max(device.sm_count // variant.cluster, 1))
        return waves * int(variant.BLK_N + TILE_OVERHEAD)

    return min((each for each in config.variants if each.BLK_K == config.BLK_K), key=time)


def _obstacle(problem: TensorProblem, extents: tuple[int, int, int, int]) -> str:
    """What speaks against tensor cores; nothing does where the answer is empty. The extents are those of real
    matrices.
    """
    m, n, k, _ = extents
    if problem.dtype.is_complex and problem.region is not Region.ALL:
        return "triangles of complex matrices are not made on tensor cores"
    reason = obstacle(problem, STEM)
    if reason:
        return reason
    if block_of(k) is None:
        return f"k={k} leaves pairs of FP16 no room in the error bound"
    if overrides.get_override(STEM) is not None:
        return ""
    if min(m, n) < MIN_EXTENT or m * n * k < MIN_MULTIPLICATIONS:
        return "small products are faster by FMAs"
    return ""
