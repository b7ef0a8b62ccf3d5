"""pyblasgpu: a GPU BLAS in Python, tuned to the card that it runs on.

Importing it touches no GPU, compiles nothing and needs no CUDA; what is named here is loaded at first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

__all__ = [
    "Handle",
    "__version__",
    "asum",
    "axpy",
    "backend_status",
    "blas",
    "copy",
    "dot",
    "errors",
    "explain",
    "gemm",
    "gemmtr",
    "gemv",
    "ger",
    "hemm",
    "hemv",
    "her",
    "her2",
    "her2k",
    "herk",
    "lapack",
    "iamax",
    "linalg",
    "nrm2",
    "override",
    "patch_scipy",
    "plan_gemm",
    "plan_trmm",
    "plan_trsm",
    "release_memory",
    "rot",
    "rotm",
    "scal",
    "set_math_mode",
    "show_config",
    "swap",
    "symm",
    "symv",
    "syr",
    "syr2",
    "syr2k",
    "syrk",
    "trmm",
    "trmv",
    "trsm",
    "trsv",
    "unpatch_scipy",
    "use_devices",
]

if TYPE_CHECKING:
    from . import dask as dask
    from . import errors
    from .api import blas, lapack, linalg
    from .api.explain import explain
    from .api.gemmtr import gemmtr
    from .api.level1 import asum, axpy, copy, dot, iamax, nrm2, rot, rotm, scal, swap
    from .api.level2 import gemv, hemv, symv
    from .api.level3 import gemm
    from .api.plans import plan_gemm, plan_trmm, plan_trsm
    from .api.rank_1 import ger, her, her2, syr, syr2
    from .api.rank_k import her2k, herk, syr2k, syrk
    from .api.symmetric import hemm, symm
    from .api.triangular import trmm, trsm
    from .api.trmv import trmv, trsv
    from .dispatch.overrides import override, set_math_mode
    from .frontend.backend_status import backend_status
    from .frontend.engine_options import use_devices
    from .frontend.handle import Handle
    from .frontend.release import release_memory
    from .info import show_config
    from .scipy_patch.switch import patch_scipy, unpatch_scipy

#: Module of each public name; a module that is named is public itself.
_HOME = {
    "Handle": "frontend.handle",
    "asum": "api.level1",
    "axpy": "api.level1",
    "backend_status": "frontend.backend_status",
    "blas": None,
    "copy": "api.level1",
    "dask": None,  # not in __all__: `import *` must work without it
    "dot": "api.level1",
    "errors": None,
    "explain": "api.explain",
    "gemm": "api.level3",
    "gemmtr": "api.gemmtr",
    "gemv": "api.level2",
    "ger": "api.rank_1",
    "hemm": "api.symmetric",
    "hemv": "api.level2",
    "her": "api.rank_1",
    "her2": "api.rank_1",
    "her2k": "api.rank_k",
    "herk": "api.rank_k",
    "lapack": None,
    "iamax": "api.level1",
    "linalg": None,
    "nrm2": "api.level1",
    "override": "dispatch.overrides",
    "patch_scipy": "scipy_patch.switch",
    "plan_gemm": "api.plans",
    "plan_trmm": "api.plans",
    "plan_trsm": "api.plans",
    "release_memory": "frontend.release",
    "rot": "api.level1",
    "rotm": "api.level1",
    "scal": "api.level1",
    "set_math_mode": "dispatch.overrides",
    "show_config": "info",
    "swap": "api.level1",
    "symm": "api.symmetric",
    "symv": "api.level2",
    "syr": "api.rank_1",
    "syr2": "api.rank_1",
    "syr2k": "api.rank_k",
    "syrk": "api.rank_k",
    "trmm": "api.triangular",
    "trmv": "api.trmv",
    "trsm": "api.triangular",
    "trsv": "api.trmv",
    "unpatch_scipy": "scipy_patch.switch",
    "use_devices": "frontend.engine_options",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .graph_breaks import break_graphs  # with modules that numpy imports, not the package

    home = _HOME[name]
    module = import_module(f".{home or name}", __name__)
    value = globals()[name] = break_graphs(getattr(module, name)) if home else module
    return value


def __dir__() -> list[str]:
    from importlib.util import find_spec

    return sorted([*__all__, *(["dask"] if find_spec("dask") else [])])
