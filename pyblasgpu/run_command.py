"""``pyblasgpu run script.py``: a program under the patches, and what ran where."""

from __future__ import annotations

import json
import os
import runpy
import sys
from typing import Any

from .patching import patch_named, patch_report, rows, unpatch_named

__all__ = ["check", "main"]


def check(options: Any) -> None:
    """Refuse options without a program.

    Raises
    ------
    ValueError
        When neither a script nor a module is named.
    FileNotFoundError
        When the script is no file.
    """
    if not options.script and not options.module:
        raise ValueError("name a script, or a module by -m")
    if options.script and not os.path.exists(options.script):
        raise FileNotFoundError(f"there is no {options.script}")


def main(options: Any) -> int:
    """Run a program as Python runs it; returns 0, and what it raises passes.

    Parameters
    ----------
    options : object
        With the attributes ``patch`` (names), ``backend``, ``script`` and ``arguments``, ``module`` (its
        name, and its arguments) and ``json``.
    """
    module = options.module
    patch_named(options.patch, options.backend)
    try:
        if module:
            sys.argv, sys.path[0] = list(module), os.getcwd()
            runpy.run_module(module[0], run_name="__main__", alter_sys=True)
        else:
            script = options.script
            sys.argv, sys.path[0] = [script, *options.arguments], os.path.dirname(os.path.abspath(script))
            runpy.run_path(script, run_name="__main__")
    finally:
        report = patch_report()
        text = json.dumps(list(rows()), indent=2) if options.json else f"pyblasgpu: what ran where\n{report}"
        print(text, file=sys.stderr, flush=True)
        unpatch_named()
    return 0
