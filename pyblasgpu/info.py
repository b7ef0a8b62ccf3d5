"""``pyblasgpu info``: what was found on this machine, as a dictionary and as a page."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from typing import Any

from rich.console import Console
from rich.table import Table

from . import __version__
from .errors import BackendUnavailable
from .execution import backend_status
from .gpu import device
from .gpu.store import cache_folder

__all__ = ["collect", "driver", "libraries", "show"]

_LIBRARIES = (
    "numpy", "scipy", "numba", "numba-cuda", "cuda-core", "cuda-bindings", "llvmlite",
    "cupy-cuda12x", "cupy-cuda13x", "torch",
)  # fmt: skip


def collect() -> dict[str, Any]:
    """Everything `show` prints, ready for JSON."""
    backend, reason = backend_status()
    return {
        "pyblasgpu": __version__,
        "python": platform.python_version(),
        "backend": backend,
        "reason": reason,
        "devices": _devices(),
        "driver": driver(),
        "libraries": libraries(),
        "database": _database(),
        "cache": _cache(),
        "environment": {name: value for name, value in os.environ.items() if name.startswith("PYBLASGPU_")},
    }


def libraries() -> dict[str, str]:
    """Versions of the libraries that results and timings depend on, of those that are installed."""
    found = {}
    for name in _LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def driver() -> str | None:
    """Version of the NVIDIA driver."""
    try:
        from cuda.core import system

        return ".".join(map(str, system.get_kernel_mode_driver_version()))
    except (ImportError, RuntimeError):  # NVML's errors are RuntimeErrors
        return None


def _devices() -> list[dict[str, Any]]:
    devices = []
    for ordinal in range(device.count()):
        try:
            found = device.current(ordinal)
        except BackendUnavailable as reason:
            devices.append({"ordinal": ordinal, "name": f"cannot be used: {reason}"})
            continue
        devices.append(
            {
                "ordinal": ordinal,
                "name": found.name,
                "arch": found.arch,
                "multiprocessors": found.sm_count,
                "shared memory of a block (KiB)": found.shared_per_block // 1024,
                "L2 (MiB)": round(found.l2_bytes / 2**20, 1),
            }
        )
    return devices


def _database() -> list[dict[str, str]]:
    """The files that Configs come from, first the ones that win."""
    from .gpu import device
    from .tuning import overlay

    found = {
        level.path: level.origin
        for ordinal in range(device.count())
        for level in overlay.levels(device.current(ordinal))
    }
    return [{"level": origin, "file": str(path)} for path, origin in found.items() if path.is_file()]


def _cache() -> dict[str, Any]:
    folder = cache_folder()
    sizes = [file.stat().st_size for file in folder.rglob("*") if file.is_file()]
    return {"folder": str(folder), "files": len(sizes), "bytes": sum(sizes)}


def show(facts: dict[str, Any], console: Console) -> None:
    """Print what `collect` returned."""
    page = Table(show_header=False, box=None, pad_edge=False)
    page.add_column(style="bold", no_wrap=True)
    page.add_column(overflow="fold")
    page.add_row("pyblasgpu", f"{facts['pyblasgpu']}, Python {facts['python']}")
    page.add_row("backend", f"{facts['backend']}: {facts['reason']}" if facts["reason"] else facts["backend"])
    for found in facts["devices"] or [{"name": "none"}]:
        details = [f"{key} {value}" for key, value in found.items() if key not in ("ordinal", "name")]
        page.add_row(f"device {found.get('ordinal', '')}".strip(), ", ".join([found["name"], *details]))
    page.add_row("driver", facts["driver"] or "none")
    page.add_row("libraries", ", ".join(f"{name} {version}" for name, version in facts["libraries"].items()))
    for entry in facts["database"]:
        page.add_row(f"database ({entry['level']})", entry["file"])
    cache = facts["cache"]
    page.add_row("cache", f"{cache['folder']}: {cache['files']} files, {cache['bytes'] / 2**20:.1f} MiB")
    for name, value in facts["environment"].items():
        page.add_row(name, value)
    console.print(page, highlight=False)
