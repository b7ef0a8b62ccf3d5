"""Install builds of PyTorch and JAX for the processor, numpydoc, Polars, and programs that call SciPy.

``python tools/frameworks.py FILE`` writes into FILE, a line each, what cannot be had from the package index,
and why. PyTorch's usual build for Linux has several GB of CUDA libraries: a build for the processor is
taken where the index has one.
"""

from __future__ import annotations

import configparser
import json
import re
import subprocess
import sys
from pathlib import Path

__all__ = ["install", "processor_build", "programs"]

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
CUDA = re.compile(r"(nvidia|cuda)[-_]")


def _output(*arguments: str) -> str:
    """Return what pip prints; CalledProcessError where it fails."""
    return subprocess.run([*PIP, *arguments], check=True, capture_output=True, text=True).stdout


def _last_line(error: subprocess.CalledProcessError) -> str:
    return (error.stderr.strip().splitlines() or ["pip fails"])[-1]


def processor_build(required: list[str], versions: list[str]) -> str | None:
    """Return the requirement of a build of PyTorch for the processor.

    Parameters
    ----------
    required : list of str
        What the newest build on the index requires.
    versions : list of str
        All versions there.

    Returns
    -------
    str or None
        None where the index has builds for CUDA alone.
    """
    on_linux = [line for line in required if sys.platform == "linux" or "Linux" not in line]
    if not any(CUDA.match(line) for line in on_linux):
        return "torch"
    builds = [version for version in versions if version.endswith("+cpu")]
    return f"torch=={builds[0]}" if builds else None


def _torch() -> str | None:
    dry_run = "install", "--quiet", "--dry-run", "--no-deps", "--ignore-installed", "--report", "-", "torch"
    required = json.loads(_output(*dry_run))["install"][0]["metadata"].get("requires_dist", [])
    listed = re.search(r"versions: (.*)", _output("index", "versions", "torch"))
    return processor_build(required, listed[1].split(", ") if listed else [])


def programs() -> list[str]:
    """Return the requirements of the extra of that name: programs that call SciPy."""
    configured = configparser.ConfigParser()
    configured.read(Path(__file__).resolve().parents[1] / "setup.cfg")
    return configured["options.extras_require"]["programs"].split()


def _programs(names: str, *packages: str) -> list[str]:
    """Install libraries that tests need; return a line where they cannot be had."""
    try:
        _output("install", *packages)
    except subprocess.CalledProcessError as error:
        return [f"{names}: {_last_line(error)}"]
    return []


def install() -> list[str]:
    """Install what can be had; return a line for each that cannot."""
    lacking = _programs("numpydoc", "numpydoc") + _programs("Polars", "polars")
    for program in programs():
        lacking += _programs(program, program)
    try:
        torch = _torch()
        if torch is None:
            lacking.append("PyTorch: the package index has builds for CUDA alone, of several GB")
        else:
            _output("install", torch)
            lacking += _programs("GPyTorch and BoTorch", "gpytorch", "botorch")
    except subprocess.CalledProcessError as error:
        lacking.append(f"PyTorch: {_last_line(error)}")
    try:
        _output("install", "jax", "array-api-strict")
        lacking += _programs("tinygp and NumPyro", "tinygp", "numpyro")
    except subprocess.CalledProcessError as error:
        lacking.append(f"JAX: {_last_line(error)}")
    return lacking


if __name__ == "__main__":
    Path(sys.argv[1]).write_text("".join(f"skipped: {line}\n" for line in install()), encoding="utf-8")
