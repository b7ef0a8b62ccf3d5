"""The choice at run time: a Config for (family, dtype, layout, extents, device), and its origin.

The levels, first the one that wins: an override, the user's file, the packaged file of the device, that of
its architecture, a computed default. What a device cannot run is passed over with a warning.

A product is chosen for at its own extents (`products`); a leaf takes the Config of its class, or of the
nearest class that has one, and so does a product with a vector (`dispatch.leaf`).
"""

from __future__ import annotations

from typing import Any

from ..database import FAMILIES, FIXED, families_of, size_class
from ..gpu.device import Device
from ..types import Dtype, Region, Triangle
from . import overrides, tuned_files
from .gemm import fastest, from_override
from .leaf import fixed_choice, of_class, of_shape
from .operand_copies import ALIGNED, OperandLayouts, with_layout
from .overrides import OVERRIDE, KernelChoice, token
from .product_kinds import GemmProblem
from .split_k import attainable
from .throughput_model import measured

__all__ = [
    "KernelChoice",
    "generation",
    "reload",
    "select",
    "tuned_configs",
]

MOST_CHOICES = 1 << 14  # kept at a time

#: Choices of `select` since the last `reload`.
choice_cache: dict[tuple[Any, ...], KernelChoice] = {}
_reloads = 0


def select(
    name: str,
    dtype: Dtype,
    layout: str,
    extents: tuple[int, ...],
    device: Device,
    copied: tuple[bool, bool] = (False, False),
    region: Region | Triangle = Region.ALL,
    aligned: tuple[int, int] = (ALIGNED, ALIGNED),
    three_m: bool = False,
    workspace_limit: int | None = None,
    conjs: tuple[bool, bool] = (False, False),
    adds: bool = False,
) -> KernelChoice:
    """The Config for a problem, and its origin; the Config names its family, and says whether it is `packed`.

    Parameters
    ----------
    name : str
        'gemm', which may take any family of GEMM kernels, and such for packed operands; 'trsm' or 'trmm', for
        a leaf of any family; or a family, for operands in their layout: 'trsm_fma', 'gemv', ...
    dtype : Dtype
    layout : str
        Layout, as the family's Config has it ('nn', 'tn', ...); else ignored.
    extents : tuple of int
        (m, n, k) of a GEMM, (order, right-hand sides) of a leaf, (rows, columns) of the matrix of a GEMV or
        GER; then the batch, if any.
    device : Device
    copied : (bool, bool)
        Whether A, B of a product must be copied, unless they are packed. A copy can have either layout.
    region : Region or Triangle
        Region of a product's C, as `kernels.common.region` names it; or the triangle of order k by which it
        is multiplied in place, as `kernels.gemm.trmm_fused` does.
    aligned : (int, int)
        Bytes, up to `ALIGNED`, at multiples of which all columns of A, B begin (rows, if transposed). They
        bound the vectors by which a Config is judged, and say whether its copies are sector-misaligned.
    three_m : bool
        Whether a complex product had better be made of three real ones, if any kernel can.
    workspace_limit : int, optional
        Bytes of workspace that the product may take; by default as much as any.
    conjs : (bool, bool)
        Whether A, B of a product are conjugated.
    adds : bool
        Whether a product adds to C, which is read then.

    Raises
    ------
    BackendUnavailable
        Where no Config can run on `device`, or in place.
    """
    stems = families_of(name, dtype.letter) or (name,)
    is_product = name not in FIXED and FAMILIES[stems[0]].routine == "gemm"
    splits = _override_of_splits(extents, dtype) if is_product else None
    packed = overrides.get_override("packed") if name == "gemm" else False
    if isinstance(region, Triangle):
        splits, packed = 1, False
    elif name == "gemm" and (requested := overrides.get_override("layout")):
        layout, copied, aligned = with_layout(OperandLayouts(layout, copied, aligned), requested)
        packed = bool(packed)
    layouts_and_limits = copied, packed, aligned, conjs, three_m, workspace_limit, adds
    problem = GemmProblem(stems, dtype, layout, extents, region, splits, *layouts_and_limits)
    for stem, config in overrides.active():
        if stem in stems and config.dtype == dtype.letter and _serves(config, layout):
            if is_product:
                return from_override(config, problem, device)
            return KernelChoice(config, OVERRIDE)
    if name in FIXED:
        return fixed_choice(name, dtype.letter, device)
    is_matrix_vector = FAMILIES[stems[0]].is_matrix_vector
    shape: Any = problem
    if is_matrix_vector:
        shape = dtype.letter, layout, extents
    elif not is_product:
        shape = dtype.letter, layout, size_class(stems[0], extents)
    key = (name, shape, device.name, device.ordinal)
    choice = choice_cache.get(key)
    if choice is None:
        if len(choice_cache) >= MOST_CHOICES:
            choice_cache.clear()
        if is_product:
            choice = fastest(problem, device)
        elif is_matrix_vector:
            choice = of_shape(name, dtype.letter, layout, extents, device)
        else:
            choice = of_class(stems, dtype.letter, layout, extents, device)
        choice_cache[key] = choice
    return choice


def _override_of_splits(extents: tuple[int, ...], dtype: Dtype) -> int | None:
    """Return an override's number of splits, as far as it is attainable; None: none is set."""
    splits = overrides.get_override("splits")
    return None if splits is None else attainable(splits, extents, dtype)


def _serves(config: Any, layout: str) -> bool:
    """Whether operands may have the layout; before packing, they may have any."""
    return getattr(config, "packed", False) or getattr(config, "layout", layout) == layout


def tuned_configs(name: str, dtype: Dtype, layout: str, device: Device) -> dict[Any, str]:
    """The Configs between which `select` decides for a single product, and the origin of each.

    Parameters
    ----------
    name : str
        'gemm', or one family of GEMM kernels.
    dtype : Dtype
    layout : str
    device : Device
    """
    origins: dict[Any, str] = {}
    for stem in families_of(name, dtype.letter) or (name,):
        for known in measured(stem, dtype.letter, layout, False, device):
            origins.setdefault(known.config, known.origin())
    return origins


def generation() -> tuple[int, int]:
    """A value that changes whenever a choice might answer differently than before."""
    return _reloads, token.get()


def reload() -> None:
    """Forget the files of tuned values and every choice made from them."""
    global _reloads
    tuned_files.forget()
    choice_cache.clear()
    _reloads += 1
