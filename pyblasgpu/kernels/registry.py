"""The kernel families, each registered once: by ``family.py`` in the folder of its kernel.

Everything else reads a `Family`. Its data is light; kernel, Config and search space are imported when
something needs them.
"""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache, cached_property
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from ..package_files import package_file
from ..types import DTYPES

if TYPE_CHECKING:
    from ..gpu.build.compile import KernelSource
    from ..gpu.device import Device

__all__ = [
    "FAMILIES",
    "FIXED",
    "MATRIX_VECTOR",
    "Axes",
    "Family",
    "families_of",
    "family_of",
    "register",
    "source_of",
]

#: Routines of level 2 whose kernels are tuned.
MATRIX_VECTOR = ("gemv", "ger")


class Axes(NamedTuple):
    """Parameters of a family that the tuner changes together.

    Attributes
    ----------
    tile : tuple of tuple of str
        Parameters of a tile. Configs that differ in nothing else are variants of one tile.
    variant : tuple of tuple of str
        Parameters of a tile's compilation and loads.
    across_layouts : tuple of str
        Parameters that the winners of one layout share with Configs of the others, which are tried first.
    """

    tile: tuple[tuple[str, ...], ...] = ()
    variant: tuple[tuple[str, ...], ...] = ()
    across_layouts: tuple[str, ...] = ()


@cache
def _packaged() -> dict[str, dict[str, dict[str, int]]]:
    """Parameters of families without a space, by stem and dtype: data, over which the database puts files."""
    parameters: dict[str, dict[str, dict[str, int]]]
    parameters = json.loads(package_file("database", "fixed.json").read_bytes())["fixed"]
    return parameters


@dataclass(frozen=True)
class Family:
    """A kernel family.

    Attributes
    ----------
    stem : str
        Its name in every layer.
    module_name : str
        The module of its Config and of ``source``, relative to `kernels` if it begins with a dot.
    class_name : str
        Its Config in that module.
    routine : str
        The routine that runs it; a routine may have several families to choose from.
    layouts : tuple of str
        The layouts that have values of their own.
    layout_fields : tuple of str
        Fields of the Config that a layout encodes, one a letter, 't' meaning true.
    dtypes : tuple of str
        Dtypes that it computes in.
    needs : (int, int)
        Compute capability from which on its kernels run, whatever the Config. What a Config needs by its
        parameters is its own to say.
    successor : str
        A family that serves its calls instead, in the dtypes of that one, where that one runs.
    only : (int, int), optional
        The one compute capability on which its kernels run.
    tensor_cores : bool
        Whether it multiplies on float64's tensor cores.
    space_name : str
        ``module:function`` of its search space, as `kernels.space.space` calls it. Without one the family
        needs no tuning: the defaults of its Config, or the parameters of ``database/fixed.json``, serve on
        every device.
    axes : Axes
        Parameters that the tuner changes together.
    runtime_parameters : tuple of str
        Parameters of a launch: Configs that differ in nothing else are one kernel.
    solved_columns : int
        Columns that a thread solves in registers, which its Config's estimate leaves out.
    cost : callable, optional
        ``cost(config, extents, device)``: estimated cycles of a launch. The cost model knows products and
        leaves without it.
    on_request : bool
        Whether only a name or an override requests it, so that no kernel of it is built ahead.
    is_tuned : bool
        Whether there are values to tune.
    is_product, is_leaf, is_matrix_vector : bool
        Whether it is tuned, and its extents are those of a product, m, n, k; or the order of a triangle and
        right-hand sides; or the rows and columns of a matrix that is read once.
    """

    stem: str
    module_name: str
    class_name: str
    routine: str
    layouts: tuple[str, ...] = ("any",)
    layout_fields: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = tuple(DTYPES)
    needs: tuple[int, int] = (0, 0)
    successor: str = ""
    only: tuple[int, int] | None = None
    tensor_cores: bool = False
    space_name: str = ""
    axes: Axes = field(default_factory=Axes)
    runtime_parameters: tuple[str, ...] = ()
    solved_columns: int = 0
    cost: Callable[[Any, tuple[int, ...], Device], float] | None = None
    on_request: bool = False
    is_tuned: bool = field(init=False)
    is_product: bool = field(init=False)
    is_leaf: bool = field(init=False)
    is_matrix_vector: bool = field(init=False)

    def __post_init__(self) -> None:
        is_tuned = bool(self.space_name)
        object.__setattr__(self, "is_tuned", is_tuned)
        object.__setattr__(self, "is_product", is_tuned and self.routine == "gemm")
        object.__setattr__(self, "is_leaf", is_tuned and self.routine in ("trmm", "trsm"))
        object.__setattr__(self, "is_matrix_vector", is_tuned and self.routine in MATRIX_VECTOR)

    @cached_property
    def module(self) -> ModuleType:
        """The module of its Config and of ``source``."""
        return import_module(self.module_name, __package__)

    @cached_property
    def config_class(self) -> type:
        """The Config."""
        return getattr(self.module, self.class_name)

    @property
    def source(self) -> Callable[..., KernelSource]:
        """``source(config, ...)``: a kernel."""
        return self.module.source

    @cached_property
    def space(self) -> Callable[..., Any]:
        """Its search space."""
        name, _, function = self.space_name.partition(":")
        return getattr(import_module(name, __package__), function)

    @cached_property
    def parameters(self) -> dict[str, type]:
        """The fields that are tuned, int or bool; the choice decides whether operands are packed, the call
        whether complex products are three real ones.
        """
        decided = {"dtype", "packed", "packing_a", "packing_b", "three_m", *self.layout_fields}
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

    def runs_on(self, device: Device) -> bool:
        """Whether `device` is made for it; that it can run a Config at all is seen with the Config."""
        if self.only is not None and device.cc != self.only:
            return False
        return device.cc >= self.needs and (not self.tensor_cores or device.has_double_mma)

    def serves(self, dtype: str, device: Device) -> bool:
        """Whether there are kernels for a dtype on a device."""
        return dtype in self.dtypes and self.runs_on(device)

    def gives_way(self, dtype: str, device: Device) -> bool:
        """Whether its `successor` serves calls of a dtype on a device."""
        return bool(self.successor) and family_of(self.successor).serves(dtype, device)

    def complete(self, parameters: dict[str, int]) -> dict[str, int]:
        """`parameters`, with the defaults of those that were not there when they were written down."""
        return {**self.defaults, **parameters}

    def layout(self, layout: str) -> str:
        """The key of `layout`: itself, or the one key of a family that does not distinguish layouts."""
        return layout if self.layout_fields else self.layouts[0]

    def config(self, dtype: str, layout: str, parameters: Mapping[str, int]) -> Any:
        """The Config of `parameters`; raises `ConfigError` where they break a rule."""
        decided = {name: letter == "t" for name, letter in zip(self.layout_fields, layout, strict=False)}
        return self.config_class(dtype=dtype, **decided, **parameters)

    def fixed_config(self, dtype: str, parameters: Mapping[str, int] | None = None) -> Any:
        """The Config of a family that needs no tuning, by default of the packaged parameters."""
        return self.config(dtype, "", self.packaged.get(dtype, {}) if parameters is None else parameters)

    @property
    def packaged(self) -> Mapping[str, Mapping[str, int]]:
        """Parameters by dtype that serve better than the defaults, of a family without a space."""
        return _packaged().get(self.stem, {})

    def untuned(self, dtype: str, layout: str) -> tuple[Any, ...]:
        """The Configs of a family of level 2 where nothing is tuned."""
        made: Any = self.config_class
        configs: tuple[Any, ...] = made.defaults(dtype, layout == "t")
        return configs

    def parameters_of(self, config: Any) -> dict[str, int]:
        """Return the parameters of `config`, without dtype and layout."""
        return {name: getattr(config, name) for name in self.parameters}

    def plain_sources(self, config: Any) -> Iterator[KernelSource]:
        """All kernels of a Config: those that its module lists, or one of each of its variants."""
        if hasattr(self.module, "plain_sources"):
            return self.module.plain_sources(config)
        return map(self.source, config.variants)


#: The families that are tuned, by stem, and those that need no tuning.
FAMILIES: dict[str, Family] = {}
FIXED: dict[str, Family] = {}


def register(family: Family) -> Family:
    """Add a family; one of the same stem gives way."""
    (FAMILIES if family.is_tuned else FIXED)[family.stem] = family
    return family


def family_of(stem: str) -> Family:
    """The family of this stem, tuned or not."""
    return FAMILIES.get(stem) or FIXED[stem]


def families_of(routine: str, dtype: str | None = None) -> tuple[str, ...]:
    """The stems that `routine` may run, in `dtype` or in any."""
    return tuple(
        family.stem
        for family in FAMILIES.values()
        if family.routine == routine and (dtype is None or dtype in family.dtypes)
    )


def source_of(stem: str, config: Any, flags: tuple[tuple[str, Any], ...]) -> KernelSource:
    """The kernel that `flags` specialise, those of a `KernelSource`."""
    source: KernelSource = family_of(stem).source(config, **dict(flags))
    return source


def _register_all() -> None:
    """Register the families of each folder's ``family.py``."""
    here = import_module(__package__)
    for folder in sorted(entry.name for entry in pkgutil.iter_modules(here.__path__) if entry.ispkg):
        if folder != "common":
            for family in import_module(f".{folder}.family", __package__).FAMILIES:
                register(family)


_register_all()
