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
    from .api.blas import names as blas
    from .api.explain import explain
    from .api.keyword.gemmtr import gemmtr
    from .api.keyword.level1 import asum, axpy, copy, dot, iamax, nrm2, rot, rotm, scal, swap
    from .api.keyword.level2 import gemv, hemv, symv
    from .api.keyword.level3 import gemm
    from .api.keyword.rank_1 import ger, her, her2, syr, syr2
    from .api.keyword.rank_k import her2k, herk, syr2k, syrk
    from .api.keyword.symmetric import hemm, symm
    from .api.keyword.triangular import trmm, trsm
    from .api.keyword.trmv import trmv, trsv
    from .api.lapack import names as lapack
    from .api.linalg import names as linalg
    from .api.plans import plan_gemm, plan_trmm, plan_trsm
    from .dispatch.overrides import override, set_math_mode
    from .frontend.backend_status import backend_status
    from .frontend.calls.release import release_memory
    from .frontend.engine_options import use_devices
    from .frontend.handle import Handle
    from .info import show_config
    from .scipy_patch.switch import patch_scipy, unpatch_scipy

#: Module of each public name; a module that is named is public itself.
_HOME = {
    "Handle": "frontend.handle",
    "asum": "api.keyword.level1",
    "axpy": "api.keyword.level1",
    "backend_status": "frontend.backend_status",
    "blas": None,
    "copy": "api.keyword.level1",
    "dask": None,  # not in __all__: `import *` must work without it
    "dot": "api.keyword.level1",
    "errors": None,
    "explain": "api.explain",
    "gemm": "api.keyword.level3",
    "gemmtr": "api.keyword.gemmtr",
    "gemv": "api.keyword.level2",
    "ger": "api.keyword.rank_1",
    "hemm": "api.keyword.symmetric",
    "hemv": "api.keyword.level2",
    "her": "api.keyword.rank_1",
    "her2": "api.keyword.rank_1",
    "her2k": "api.keyword.rank_k",
    "herk": "api.keyword.rank_k",
    "lapack": None,
    "iamax": "api.keyword.level1",
    "linalg": None,
    "nrm2": "api.keyword.level1",
    "override": "dispatch.overrides",
    "patch_scipy": "scipy_patch.switch",
    "plan_gemm": "api.plans",
    "plan_trmm": "api.plans",
    "plan_trsm": "api.plans",
    "release_memory": "frontend.calls.release",
    "rot": "api.keyword.level1",
    "rotm": "api.keyword.level1",
    "scal": "api.keyword.level1",
    "set_math_mode": "dispatch.overrides",
    "show_config": "info",
    "swap": "api.keyword.level1",
    "symm": "api.keyword.symmetric",
    "symv": "api.keyword.level2",
    "syr": "api.keyword.rank_1",
    "syr2": "api.keyword.rank_1",
    "syr2k": "api.keyword.rank_k",
    "syrk": "api.keyword.rank_k",
    "trmm": "api.keyword.triangular",
    "trmv": "api.keyword.trmv",
    "trsm": "api.keyword.triangular",
    "trsv": "api.keyword.trmv",
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
