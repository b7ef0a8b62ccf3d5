"""The kernel families that have tuned values. A file can name these and nothing else."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import Any

from ..types import DTYPES

__all__ = [
    "FAMILIES",
    "FIXED",
    "FIXED_BUT",
    "STOP_ROUTINES",
    "Family",
    "current_name",
    "families_of",
    "with_current_names",
]


@dataclass(frozen=True)
class Family:
    """A kernel family, as the database and the tuner see it.

    Attributes
    ----------
    stem : str
        Its name in every layer.
    class_name : str
        Its Config in ``kernels/<stem>.py``.
    routine : str
        The routine that runs it; a routine may have several families to choose from.
    layouts : tuple of str
        The layouts that have values of their own.
    layout_fields : tuple of str
        Fields of the Config that a layout stands for, one a letter, 't' meaning true.
    dtypes : tuple of str
        What it computes in.
    needs : (int, int)
        Compute capability from which on its kernels run, whatever the Config; what a Config needs by its
        parameters is its own to say.
    """

    stem: str
    class_name: str
    routine: str
    layouts: tuple[str, ...]
    layout_fields: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = tuple(DTYPES)
    needs: tuple[int, int] = (0, 0)

    @cached_property
    def module(self) -> ModuleType:
        """The module of its Config and of ``source``; importing it is left until something needs it."""
        return import_module(f"..kernels.{_MODULES[self.stem]}", __package__)

    @cached_property
    def config_class(self) -> type:
        """The Config."""
        return getattr(self.module, self.class_name)

    @cached_property
    def parameters(self) -> dict[str, type]:
        """The fields that are tuned, int or bool; the choice decides whether operands are packed, the call
        whether complex products are three real ones.
        """
        decided = {"dtype", "packed", "three_m", *self.layout_fields}
        kinds = {"int": int, "bool": bool}
        return {f.name: kinds[str(f.type)] for f in fields(self.config_class) if f.name not in decided}

    @cached_property
    def required(self) -> set[str]:
        """The parameters without a default."""
        return {f.name for f in fields(self.config_class) if f.default is MISSING} & set(self.parameters)

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """The values of the others where they are not given."""
        others = set(self.parameters) - self.required
        return {f.name: f.default for f in fields(self.config_class) if f.name in others}

    def complete(self, parameters: dict[str, int]) -> dict[str, int]:
        """`parameters`, with the defaults of those that were not there when they were written down."""
        return {**self.defaults, **parameters}

    def layout(self, layout: str) -> str:
        """The key of `layout`: itself, or the one key of a family that does not tell layouts apart."""
        return layout if self.layout_fields else self.layouts[0]

    def config(self, dtype: str, layout: str, parameters: dict[str, int]) -> Any:
        """The Config of `parameters`; raises `ConfigError` where they break a rule."""
        decided = {name: letter == "t" for name, letter in zip(self.layout_fields, layout, strict=False)}
        return self.config_class(dtype=dtype, **decided, **parameters)

    def parameters_of(self, config: Any) -> dict[str, int]:
        """What `config` would need beside dtype and layout."""
        return {name: getattr(config, name) for name in self.parameters}


# Names in the files of versions before 0.1.0. The readers of tuned values and of sweeps put today's in their
# stead, so that what users have tuned still serves.
_RENAMED = {
    "gemm_tile": "gemm_simt",
    "SLICES": "SLICED_K",
    "LOADERS": "PRODUCER_WARPS",
    "SPLIT": "WARPS_PER_COLUMN_GROUP",
}


def current_name(name: str) -> str:
    """What a family, or a parameter, is called now that a file calls `name`."""
    return _RENAMED.get(name, name)


def with_current_names(values: dict[str, Any]) -> dict[str, Any]:
    """`values` under the names that families or parameters have now."""
    return {current_name(name): value for name, value in values.items()}


#: Where each family's kernel stands.
_MODULES = {
    "gemm_simt": "gemm.simt", "gemm_mma": "gemm.mma", "trsm_leaf": "trsm.leaf", "trsm_mma": "trsm.mma",
    "trsm_fma": "trsm.fma", "trmm_leaf": "trmm.leaf", "copy_scaled": "copy.copy_scaled",
    "split_k_reduce": "copy.split_k_reduce", "pack": "copy.pack", "trsm_small": "trsm.small",
    "diagonal_blocks": "trmm.diagonal_blocks", "symmetrize": "copy.symmetrize", "trsv": "trsv.kernel",
}  # fmt: skip

_GEMM_LAYOUTS = ("nn", "nt", "tn", "tt")

FAMILIES = {
    family.stem: family
    for family in (
        Family("gemm_simt", "GemmSimt", "gemm", _GEMM_LAYOUTS, ("trans_a", "trans_b")),
        Family("gemm_mma", "GemmMma", "gemm", _GEMM_LAYOUTS, ("trans_a", "trans_b"), ("d", "z")),
        Family("trsm_leaf", "TrsmLeaf", "trsm", ("any",)),
        Family("trsm_mma", "TrsmMma", "trsm", ("any",), dtypes=("d", "z")),
        Family("trsm_fma", "TrsmFma", "trsm", ("any",)),
        Family("trmm_leaf", "TrmmLeaf", "trmm", ("any",)),
    )
}

_ASYNC_COPY = (8, 0)  # cp.async

#: Families whose Config needs no tuning: its defaults serve on every device that can run them at all, but for
#: `FIXED_BUT`.
FIXED = {
    "copy_scaled": Family("copy_scaled", "CopyScaled", "copy", ("any",)),
    "split_k_reduce": Family("split_k_reduce", "SplitKReduce", "gemm", ("any",)),
    "pack": Family("pack", "Pack", "gemm", ("any",)),
    "trsm_small": Family("trsm_small", "TrsmSmall", "trsm", ("any",), needs=_ASYNC_COPY),
    "diagonal_blocks": Family("diagonal_blocks", "DiagonalBlocks", "trmm", ("any",)),
    "symmetrize": Family("symmetrize", "Symmetrize", "syr2k", ("any",), needs=_ASYNC_COPY),
    "trsv": Family("trsv", "Trsv", "trsm", ("any",), needs=_ASYNC_COPY),
}

#: What serves better than its defaults there: by stem and dtype.
FIXED_BUT: dict[tuple[str, str], dict[str, int]] = {
    ("copy_scaled", "c"): {"BLK_M": 64}, ("copy_scaled", "s"): {"BLK_M": 64}, ("trsv", "d"): {"DIM_K": 8},
}  # fmt: skip

#: The recursive routines whose stop size is tuned.
STOP_ROUTINES = ("trmm", "trsm")


def families_of(routine: str, dtype: str | None = None) -> tuple[str, ...]:
    """The stems that `routine` may run, in `dtype` or in any."""
    return tuple(
        family.stem
        for family in FAMILIES.values()
        if family.routine == routine and (dtype is None or dtype in family.dtypes)
    )
