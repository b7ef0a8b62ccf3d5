"""`show_config` and ``pyblasgpu info``: what was found on this machine, as a dictionary and as a page."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from . import __version__, terminal
from .errors import BackendUnavailable
from .frontend.backend_status import backend_status
from .gpu import device
from .gpu.build.compile import architecture, archives_for
from .gpu.user_folders import NoFolder, home_folder

__all__ = ["collect", "driver", "libraries", "show", "show_config"]

_LIBRARIES = (
    "numpy",
    "scipy",
    "numba",
    "numba-cuda",
    "cuda-core",
    "cuda-bindings",
    "llvmlite",
    "cupy-cuda12x",
    "cupy-cuda13x",
    "torch",
)


def show_config(mode: str = "stdout") -> dict[str, Any] | None:
    """Versions, the backend and why it is that one, devices, and the files of tuned values.

    Parameters
    ----------
    mode : {'stdout', 'dicts'}, default 'stdout'
        Whether to print a page, or to return a dictionary that JSON can hold.

    Returns
    -------
    dict or None
        The facts that the page shows; None where it was printed.

    Raises
    ------
    ValueError
        For another mode.
    BackendUnavailable
        When ``PYBLASGPU_BACKEND`` names a backend that cannot run here.

    See Also
    --------
    backend_status : The backend alone.

    Notes
    -----
    ``pyblasgpu info`` prints the same page. A bug report that includes it saves a question.

    Examples
    --------
    >>> import pyblasgpu
    >>> sorted(pyblasgpu.show_config("dicts"))[:3]
    ['archives', 'backend', 'cache']
    """
    if mode not in ("stdout", "dicts"):
        raise ValueError(f"show_config: mode={mode!r} is neither 'stdout' nor 'dicts'")
    facts = collect()
    if mode == "dicts":
        return facts
    show(facts, terminal.console(terminal.WIDTH))
    return None


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
        "archives": _archives(),
        "cache": _contents("cache"),
        "data": _contents("data"),
        "origins": {kind: _origin(kind) for kind in ("cache", "data")},
        "environment": {name: value for name, value in os.environ.items() if name.startswith("PYBLASGPU_")},
    }


def libraries() -> dict[str, str]:
    """Versions of the libraries that results and timings depend on, of those that are installed."""
    versions = {}
    for name in _LIBRARIES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


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
            properties = device.current(ordinal)
        except BackendUnavailable as reason:
            devices.append({"ordinal": ordinal, "name": f"cannot be used: {reason}"})
            continue
        devices.append(
            {
                "ordinal": ordinal,
                "name": properties.name,
                "arch": properties.arch,
                "multiprocessors": properties.sm_count,
                "shared memory of a block (KiB)": properties.shared_per_block // 1024,
                "L2 (MiB)": round(properties.l2_bytes / 2**20, 1),
            }
        )
    return devices


def _archives() -> list[dict[str, Any]]:
    """The archives of kernels that serve the devices here, first the ones that win. An architecture that has
    none has an entry without a file.
    """
    entries = []
    for cc in dict.fromkeys(card.cc for card in device.here()):
        name, archives = architecture(cc), archives_for(cc)
        entries += [
            {"arch": name, "file": str(each.path), "kernels": len(each), "used": len(each.used)}
            for each in archives
        ] or [{"arch": name, "file": None, "kernels": 0, "used": 0}]
    return entries


def _described_archive(entry: dict[str, Any]) -> str:
    if entry["file"] is None:
        return "none: kernels compile when they are needed; `pyblasgpu build` compiles them ahead"
    return f"{entry['file']}: {entry['kernels']} kernels, {entry['used']} of them used by this process"


def _database() -> list[dict[str, str]]:
    """The files of Configs, in order of precedence."""
    from .dispatch import tuned_files

    levels = [level for here in device.here() for level in tuned_files.levels(here) if level.exists]
    origins = {str(level.path): level.origin for level in levels}
    return [{"level": origin, "file": path} for path, origin in origins.items()]


def _contents(kind: str) -> dict[str, Any]:
    """The folder 'cache' or 'data' of this user, and what is in it; no folder where there is none."""
    try:
        folder, _ = home_folder(kind)
    except NoFolder:
        return {"folder": None, "files": 0, "bytes": 0}
    sizes = []
    for parent, _, names in os.walk(folder):
        for name in (name for name in names if not name.endswith(".lock")):  # which hold nothing
            with suppress(OSError):  # of a file that was removed meanwhile
                sizes.append((Path(parent) / name).stat().st_size)
    return {"folder": str(folder), "files": len(sizes), "bytes": sum(sizes)}


def _origin(kind: str) -> str:
    """Return the origin of a folder of this user, and whether it is writable; or why there is none."""
    try:
        folder, origin = home_folder(kind)
    except NoFolder as problem:
        return str(problem)
    there = next(parent for parent in (folder, *folder.parents) if os.path.lexists(parent))
    effective = os.access in os.supports_effective_ids
    usable = os.path.isdir(there) and os.access(there, os.W_OK | os.X_OK, effective_ids=effective)
    return f"from {origin}" if usable else f"from {origin}, and cannot be written"


def _described(contents: dict[str, Any], origin: str) -> str:
    if contents["folder"] is None:
        return f"none: {origin}"
    files = contents["files"]
    size = f"{files} file{'s' * (files != 1)}, {contents['bytes'] / 2**20:.1f} MiB"
    return f"{contents['folder']}: {size}, {origin}"


def show(facts: dict[str, Any], console: Console) -> None:
    """Print what `collect` returned."""
    page = Table(show_header=False, box=None, pad_edge=False)
    page.add_column(style="bold", no_wrap=True)
    page.add_column(overflow="fold")
    page.add_row("pyblasgpu", f"{facts['pyblasgpu']}, Python {facts['python']}")
    page.add_row("backend", f"{facts['backend']}: {facts['reason']}" if facts["reason"] else facts["backend"])
    for entry in facts["devices"] or [{"name": "none"}]:
        details = [f"{key} {value}" for key, value in entry.items() if key not in ("ordinal", "name")]
        page.add_row(f"device {entry.get('ordinal', '')}".strip(), ", ".join([entry["name"], *details]))
    page.add_row("driver", facts["driver"] or "none")
    page.add_row("libraries", ", ".join(f"{name} {version}" for name, version in facts["libraries"].items()))
    for entry in facts["database"]:
        page.add_row(f"database ({entry['level']})", entry["file"])
    for entry in facts["archives"]:
        page.add_row(f"kernels ({entry['arch']})", _described_archive(entry))
    for kind, origin in facts["origins"].items():
        page.add_row(kind, _described(facts[kind], origin))
    for name, value in facts["environment"].items():
        page.add_row(name, value)
    console.print(page, highlight=False)
