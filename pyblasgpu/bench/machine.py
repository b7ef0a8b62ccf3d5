"""The conditions of a measurement: device, versions, clocks, commit, and the device's peak."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyblasgpu import __version__, info
from pyblasgpu.gpu.device import Device
from pyblasgpu.testing.cublas import Cublas

ROOT = Path(__file__).resolve().parents[2]

# FMA units of a multiprocessor for float32, float64 (CUDA C++ Programming Guide, arithmetic throughput);
# float64 on tensor cores as a multiple of that
_UNITS = {
    (7, 0): (64, 32, 1),
    (7, 5): (64, 2, 1),
    (8, 0): (64, 32, 2),
    (8, 6): (128, 2, 1),
    (8, 9): (128, 2, 1),
    (9, 0): (128, 64, 2),
    (10, 0): (128, 64, 1),
    (10, 3): (128, 2, 1),
    (12, 0): (128, 2, 1),
}


def describe(device: Device, cublas: Cublas | None) -> dict[str, Any]:
    """Everything to be kept with the results."""
    return {
        "device": device.name,
        "arch": device.arch,
        "multiprocessors": device.sm_count,
        "driver": info.driver(),
        "libraries": {"pyblasgpu": __version__, **info.libraries()},
        "cublas": cublas.version if cublas else None,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "clocks": clocks(),
        "peak_tflops": peak(device),
    }


def commit() -> str | None:
    """Return PYBLASGPU_COMMIT if set; else the commit of the checkout, with '+' when files differ from it."""
    named = os.environ.get("PYBLASGPU_COMMIT")
    if named:
        return named
    top = _output("git", "-C", str(ROOT), "rev-parse", "--show-toplevel")
    if top is None or Path(top).resolve() != ROOT:  # an exported tree, perhaps within another checkout
        return None
    revision = _output("git", "-C", str(ROOT), "rev-parse", "HEAD")
    changed = _output("git", "-C", str(ROOT), "status", "--porcelain", "--untracked-files=no")
    assert revision is not None
    return revision + ("+" if changed else "")


def short_commit(commit: str | None) -> str:
    """Seven digits of a commit, and the sign of a changed tree."""
    return "?" if commit is None else commit[:7] + "+" * commit.endswith("+")


def clocks() -> dict[str, str] | None:
    """Clocks and power as NVML reports them at this moment, with their units."""
    names = ("clocks.sm", "clocks.mem", "clocks.max.sm", "power.draw", "power.limit", "temperature.gpu")
    line = _output("nvidia-smi", "--id=0", f"--query-gpu={','.join(names)}", "--format=csv,noheader")
    return dict(zip(names, line.split(", "), strict=True)) if line else None


def peak(device: Device) -> dict[str, float]:
    """TFLOP/s by type at the highest clock: two operations per FMA unit and cycle."""
    now = clocks()
    if now is None or device.cc not in _UNITS:
        return {}
    single, double, tensor = _UNITS[device.cc]
    rate = 2 * device.sm_count * float(now["clocks.max.sm"].split()[0]) * 1e6 / 1e12
    peaks = {"float32": single * rate, "float64": double * rate}
    if tensor > 1:
        peaks["float64 tensor cores"] = tensor * double * rate
    return peaks


def _output(*command: str) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
