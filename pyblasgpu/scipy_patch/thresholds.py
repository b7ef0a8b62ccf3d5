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
from ..routine_table import ROUTINES

__all__ = ["THRESHOLDS", "save", "thresholds_file", "tuned"]

_log = logging.getLogger("pyblasgpu")

#: Sizes from which on a call goes to the GPU: where it is faster by a third or more on an H200 with a host of
#: 16 cores, copies included. `benchmarks.programs` times the main ones; the others have those of their kind.
#: First of routines, by `Routine.crossover`, then of functions.
_KINDS = {
    "product": 512,
    "triangle": 384,
    "cholesky": 512,
    "lu": 512,
    "solve": 320,
    "system": 384,
    "inverse": 512,
}
_FUNCTIONS = {
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
#: By the name of the function, or of the routine without the letter of its type.
THRESHOLDS: dict[str, float] = {
    **{routine.stem: _KINDS[routine.crossover] for routine in ROUTINES.values() if routine.crossover},
    **_FUNCTIONS,
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
