"""From which size on calls go to the GPU: as measured on an H200, or here by `pyblasgpu tune --scipy`.

The size of a call is the order of the square problem with as many operations: the cube root of m n k for a
product, n for a factorization.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from math import inf, isfinite
from pathlib import Path

from ..dispatch.tuned_files import file_name
from ..gpu.user_folders import NoFolder, data_folder, replace_file, tell_once

__all__ = ["THRESHOLDS", "save", "thresholds_file", "tuned"]

_log = logging.getLogger("pyblasgpu")

#: Sizes from which on a call goes to the GPU, by the routine's name without the letter of its type: where it
#: is faster by a third or more on an H200 with a host of 16 cores, copies included. `benchmarks.programs`
#: times the main ones; the others have those of their kind.
THRESHOLDS: dict[str, float] = {
    "gemm": 512,
    "symm": 512,
    "hemm": 512,
    "syrk": 512,
    "herk": 512,
    "syr2k": 512,
    "her2k": 512,
    "trmm": 512,
    "trsm": 384,
    "potrf": 512,
    "potrs": 320,
    "potri": 512,
    "posv": 384,
    "trtri": 512,
    "trtrs": 384,
    "lauum": 512,
    "getrf": 512,
    "getrs": 320,
    "getri": 512,
    "gesv": 384,
    "cholesky": 512,
    "cho_factor": 512,
    "cho_solve": 320,
    "solve_triangular": 384,
    "solve": 384,
    "inv": 320,
    "det": 512,
    "slogdet": 512,
    "lu_factor": 512,
    "lu_solve": 320,
    "lu": 768,
}


def thresholds_file(device: str) -> Path:
    """Return the file of the user's own sizes for a device; raises `NoFolder`, see `data_folder`."""
    return data_folder() / "patch_scipy" / file_name(device)


def tuned(device: str) -> dict[str, float]:
    """Return the user's own sizes for a device, by routine; log a file that cannot be read."""
    try:
        path = thresholds_file(device)
        if not path.exists():
            return {}
        values = json.loads(path.read_text(encoding="utf-8"))["thresholds"]
        sizes = {name: inf if size is None else float(size) for name, size in values.items()}
    except NoFolder as problem:
        tell_once(str(problem))
        return {}
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as problem:
        _log.warning("the sizes of patch_scipy are passed over: %s: %s", path, problem)
        return {}
    return {name: size for name, size in sizes.items() if name in THRESHOLDS and size >= 0}


def save(device: str, sizes: Mapping[str, float]) -> Path:
    """Write the user's own sizes for a device; returns the file. Infinite ones are never reached."""
    path = thresholds_file(device)
    kept = {name: size if isfinite(size) else None for name, size in sizes.items()}
    replace_file(path, [json.dumps({"device": device, "thresholds": kept}, indent=1).encode()])
    return path
