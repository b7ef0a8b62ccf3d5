"""pyblasgpu: a GPU BLAS in Python, tuned to the card that it runs on.

Importing it touches no GPU, compiles nothing and needs no CUDA; what is named here is loaded at first use.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from os import environ
from typing import Any

__version__ = "0.1.0.dev0"

#: Public names by their module.
_NAMES = {
    "api.explain": "explain",
    "api.keyword.gemmtr": "gemmtr",
    "api.keyword.grouped": "gemm_grouped",
    "api.keyword.grouped_factors": "potrf_grouped",
    "api.keyword.grouped_triangles": "trsm_grouped",
    "api.keyword.level1": "asum axpy copy dot iamax nrm2 rot rotm scal swap",
    "api.keyword.level2": "gemv hemv symv",
    "api.keyword.level3": "gemm",
    "api.keyword.rank_1": "ger her her2 syr syr2",
    "api.keyword.rank_k": "her2k herk syr2k syrk",
    "api.keyword.symmetric": "hemm symm",
    "api.keyword.triangular": "trmm trsm",
    "api.keyword.trmv": "trmv trsv",
    "api.plans": "plan_gemm plan_trmm plan_trsm",
    "cupy_patch.switch": "patch_cupy unpatch_cupy",
    "dispatch.overrides": "override set_math_mode",
    "frontend.backend_status": "backend_status",
    "frontend.calls.release": "release_memory",
    "frontend.engine_options": "use_devices",
    "frontend.handle": "Handle",
    "info": "show_config",
    "patching": "patch_report",
    "scipy_patch.switch": "patch_scipy unpatch_scipy",
    "torch_patch.switch": "patch_torch unpatch_torch",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}
#: Functions that are operators in functions that PyTorch compiles.
_OPERATORS = frozenset(["gemm", "gemmtr", "hemm", "herk", "symm", "syrk", "trmm", "trsm"])
#: Modules that are public themselves, and those that need a package of their name, left out by `import *`.
_MODULES, _OPTIONAL = ("blas", "errors", "lapack", "linalg"), ("dask", "jax", "torch")

__all__ = sorted(["__version__", *_MODULES, *_HOME])


def __getattr__(name: str) -> Any:
    if name not in (*_MODULES, *_OPTIONAL, *_HOME):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .graph_breaks import break_graphs  # with modules that numpy imports, not the package

    value = import_module(f".{_HOME.get(name, name)}", __name__)
    if name in _HOME:
        value = break_graphs(getattr(value, name), _take_operators if name in _OPERATORS else None)
    globals()[name] = value
    return value


def _take_operators() -> None:
    """Have PyTorch's tracer take the operators of `pyblasgpu.torch`."""
    with suppress(Exception):  # of a PyTorch that has no place for them: there calls end graphs
        __getattr__("torch").compiled.substitute()


def __dir__() -> list[str]:
    from importlib.util import find_spec

    return sorted([*__all__, *[name for name in _OPTIONAL if find_spec(name)]])


def load_ipython_extension(_: Any) -> None:
    """Patch the libraries that ``PYBLASGPU_PATCH`` names, or all: what ``%load_ext pyblasgpu`` runs."""
    import_module(".patching", __name__).patch_named(environ.get("PYBLASGPU_PATCH"))


def unload_ipython_extension(_: Any) -> None:
    """End these patches."""
    import_module(".patching", __name__).unpatch_named()


if "PYBLASGPU_PATCH" in environ:
    import_module(".patching", __name__).patch_by_environment()
