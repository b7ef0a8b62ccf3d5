"""pyblasgpu: a GPU BLAS in Python, tuned to the card that it runs on.

Importing it touches no GPU, compiles nothing and needs no CUDA; what is named here is loaded at first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

__all__ = [
    "__version__",
    "backend_status",
    "blas",
    "errors",
    "explain",
    "gemm",
    "gemmtr",
    "hemm",
    "her2k",
    "herk",
    "lapack",
    "linalg",
    "override",
    "plan_gemm",
    "plan_trmm",
    "plan_trsm",
    "show_config",
    "symm",
    "syr2k",
    "syrk",
    "trmm",
    "trsm",
]

if TYPE_CHECKING:
    from . import errors
    from .api import blas, lapack, linalg
    from .api.explain import explain
    from .api.level3 import gemm, trmm, trsm
    from .api.plans import plan_gemm, plan_trmm, plan_trsm
    from .api.rank_k import gemmtr, her2k, herk, syr2k, syrk
    from .api.symmetric import hemm, symm
    from .dispatch.overrides import override
    from .frontend.backend_status import backend_status
    from .info import show_config

#: Where each public name lives; a module that is named is public itself.
_HOME = {
    "backend_status": "frontend.backend_status",
    "blas": None,
    "errors": None,
    "explain": "api.explain",
    "gemm": "api.level3",
    "gemmtr": "api.rank_k",
    "hemm": "api.symmetric",
    "her2k": "api.rank_k",
    "herk": "api.rank_k",
    "lapack": None,
    "linalg": None,
    "override": "dispatch.overrides",
    "plan_gemm": "api.plans",
    "plan_trmm": "api.plans",
    "plan_trsm": "api.plans",
    "show_config": "info",
    "symm": "api.symmetric",
    "syr2k": "api.rank_k",
    "syrk": "api.rank_k",
    "trmm": "api.level3",
    "trsm": "api.level3",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _HOME[name]
    module = import_module(f".{home or name}", __name__)
    value = globals()[name] = getattr(module, name) if home else module
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
