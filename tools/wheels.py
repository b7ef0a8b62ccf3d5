"""Wheels with the kernels built ahead: one with everything where it is small enough, else one each.

``python tools/wheels.py`` builds the archives that are not there yet, in ``build/kernels``, which takes an
hour a core and architecture, and puts wheels into ``dist``. ``--check`` installs each into an environment of
its own and counts the kernels that are found there.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from configparser import ConfigParser
from datetime import date
from pathlib import Path
from typing import Any

from pyblasgpu import __version__
from pyblasgpu.bench.machine import commit
from pyblasgpu.gpu.build.archive import Archive, archive_name
from pyblasgpu.gpu.build.compile import architecture
from pyblasgpu.gpu.build.kernel_digest import digest_of_all
from pyblasgpu.gpu.device import known

__all__ = ["main", "stage_everything", "stage_kernels"]

ROOT = Path(__file__).resolve().parents[1]
ARCHITECTURES = ("sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
LIMIT_MB = 90.0
IN_THE_WHEEL = (
    "pyblasgpu", "pyblasgpu.pth", "setup.cfg", "setup.py", "pyproject.toml", "README.md", "LICENSE",
)  # fmt: skip

SETUP = """\
[metadata]
name = pyblasgpu-kernels-{short}
version = {version}
description = Kernels of pyblasgpu {version} for {name}, built ahead
license = BSD-3-Clause

[options]
packages = {package}
python_requires = >=3.11
install_requires =
    pyblasgpu=={version}

[options.package_data]
{package} = *.kernels
"""
#: Prints how many kernels of an architecture are found built ahead, and how many there are.
COUNT = """\
import sys
from pyblasgpu.dispatch.catalogue import kernels
from pyblasgpu.gpu.build.compile import is_built_ahead
from pyblasgpu.gpu.device import known
device = known(sys.argv[1])
found = [is_built_ahead(source, device.cc) for source in kernels(device)]
print(sum(found), len(found))
"""
PYPROJECT = """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Build archives and wheels; returns the exit code."""
    options = _parser().parse_args(arguments)
    found = {name: options.archives / _file_name(name) for name in options.arch}
    missing = [str(path) for path in found.values() if options.built and not path.exists()]
    if missing:
        print(f"tools/wheels.py: no archive of this version: {', '.join(missing)}", file=sys.stderr)
        return 1
    built = {} if options.built else build_archives(options)
    if built is None or any(each["failed"] for each in built.values()):
        return 1
    together = sum(path.stat().st_size for path in found.values()) / 1e6 <= options.limit
    begun = time.monotonic()
    _build_wheels(found, together, options.out)
    seconds = time.monotonic() - begun
    for name, path in found.items():
        print(f"{name}: {path.stat().st_size / 1e6:.1f} MB")
    counts = check(options.out, options.arch, together) if options.check else {}
    if options.record is not None:
        record(options.record, rows(found, built, counts), options.out, seconds)
    return 0 if all(ready == wanted for ready, wanted in counts.values()) else 1


def build_archives(options: argparse.Namespace) -> dict[str, dict[str, Any]] | None:
    """Build the archives, whose kernels in common take less time together; returns what the command says of
    each architecture.
    """
    command = [sys.executable, "-m", "pyblasgpu", "build", "--json", "--arch", ",".join(options.arch)]
    command += ["--out", str(options.archives)] + (["--jobs", str(options.jobs)] if options.jobs else [])
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    if not done.stdout:
        return None
    built = dict(zip(options.arch, json.loads(done.stdout), strict=True))
    for name, each in built.items():
        for kernel, complaint in each["failed"]:
            print(f"{name}: failed: {kernel}: {complaint}", file=sys.stderr)
    return built


def _build_wheels(found: Mapping[str, Path], together: bool, out: Path) -> None:
    """One wheel with all archives, or one without and one for each of them."""
    with tempfile.TemporaryDirectory() as folder:
        in_it = list(found.values()) if together else []
        stages = [stage_everything(Path(folder) / "pyblasgpu", in_it, list(found))]
        if not together:
            stages += [stage_kernels(Path(folder) / name, name, path) for name, path in found.items()]
        for stage in stages:
            _build_wheel(stage, out)


def check(folder: Path, names: Sequence[str], together: bool) -> dict[str, tuple[int, int]]:
    """Install the wheels of a folder; returns how many kernels of each architecture are found, of how many.

    Kernels apart are installed by the extra that names their architecture, and none may be there before.
    """
    counts = {}
    with tempfile.TemporaryDirectory() as home:
        environment, python = Path(home) / "installed", Path(home) / "installed" / "bin" / "python"
        subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet"]
        (package,) = folder.glob(f"pyblasgpu-{__version__}-*.whl")
        subprocess.run([*pip, str(package)], check=True)
        for name in names:
            before, _ = (0, 0) if together else _found_kernels(python, name)
            extra = f"pyblasgpu[{_short(name)}]=={__version__}"
            subprocess.run([*pip, "--no-index", "--find-links", str(folder), extra], check=True)
            found, count = _found_kernels(python, name)
            print(f"{name}: {found} of {count} kernels are found, {before} before [{_short(name)}]")
            counts[name] = found - before, count
    return counts


def _found_kernels(python: Path, name: str) -> tuple[int, int]:
    """Kernels of an architecture that an installation finds built ahead, and how many there are.

    Away from the checkout, from PYTHONPATH and from archives of this user, so that only the wheels count.
    """
    command, home = [str(python), "-I", "-c", COUNT, name], python.parents[1]
    environment = {**os.environ, "PYBLASGPU_HOME": str(home / "home")}
    done = subprocess.run(command, check=True, cwd=home, env=environment, capture_output=True, text=True)
    found, count = map(int, done.stdout.split())
    return found, count


def rows(
    found: Mapping[str, Path],
    built: Mapping[str, dict[str, Any]],
    counts: Mapping[str, tuple[int, int]],
) -> list[dict[str, Any]]:
    """What the record holds of each architecture."""
    made = []
    for name, path in found.items():
        toolchain = Archive(path, architecture(known(name).cc), None).toolchain
        row: dict[str, Any] = {"architecture": name, "commit": commit(), "toolchain": toolchain}
        row["archive_mb"] = round(path.stat().st_size / 1e6, 1)
        done = built.get(name)
        if done is not None and done["compiled"]:
            row |= {"compiled": done["compiled"], "seconds": round(done["seconds"])}
        if name in counts:
            row["found"], row["kernels"] = counts[name]
        made.append(row)
    return made


def record(path: Path, made: Sequence[dict[str, Any]], wheels: Path, seconds: float) -> None:
    """Write sizes and times; of an architecture that was recorded before, what this run has not measured
    stays.
    """
    before = json.loads(path.read_text()) if path.exists() else {"results": []}
    known = {row["architecture"]: row for row in before["results"]}
    for row in made:
        known[row["architecture"]] = known.get(row["architecture"], {}) | row
    results = sorted(known.values(), key=lambda row: int(row["architecture"].removeprefix("sm_")))
    sizes = before["wheels_mb"] if before.get("version") == __version__ else {}
    sizes |= {file.name: round(file.stat().st_size / 1e6, 1) for file in wheels.glob("*.whl")}
    facts: dict[str, Any] = {"date": date.today().isoformat(), "version": __version__}
    facts |= {"wheels_mb": dict(sorted(sizes.items())), "packing_seconds": round(seconds)}
    path.write_text(json.dumps({**facts, "results": results}, indent=1) + "\n")


def stage_everything(folder: Path, archives: Sequence[Path], names: Sequence[str] = ()) -> Path:
    """The sources of a wheel of this package, `archives` in it.

    Architectures of these `names` are extras. Without archives an extra requires the package of its kernels.
    """
    folder.mkdir(parents=True)
    for name in IN_THE_WHEEL:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "data"))
        else:
            shutil.copy(ROOT / name, folder / name)
    for path in archives:
        (folder / "pyblasgpu" / "data").mkdir(exist_ok=True)
        shutil.copy(path, folder / "pyblasgpu" / "data")
    if names:
        setup = ConfigParser(interpolation=None)
        setup.read(folder / "setup.cfg")
        for short in map(_short, names):
            required = "" if archives else f"\npyblasgpu-kernels-{short}=={__version__}"
            setup["options.extras_require"][short] = required
        with open(folder / "setup.cfg", "w") as file:
            setup.write(file)
    return folder


def _short(name: str) -> str:
    """An architecture as names of packages have it."""
    return name.replace("_", "")


def stage_kernels(folder: Path, name: str, archive: Path) -> Path:
    """The sources of a wheel with the kernels of one architecture, 'sm_90'."""
    short = _short(name)
    package = f"pyblasgpu_kernels_{short}"
    (folder / package).mkdir(parents=True)
    (folder / package / "__init__.py").write_text(f'"""Kernels of pyblasgpu for {name}, built ahead."""\n')
    shutil.copy(archive, folder / package)
    (folder / "setup.cfg").write_text(
        SETUP.format(short=short, version=__version__, name=name, package=package)
    )
    (folder / "pyproject.toml").write_text(PYPROJECT)
    return folder


def _file_name(name: str) -> str:
    return archive_name(architecture(known(name).cc), digest_of_all())


def _build_wheel(stage: Path, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(out)]
    subprocess.run([*command, str(stage)], check=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arch", type=lambda text: text.split(","), default=list(ARCHITECTURES))
    parser.add_argument("--jobs", type=int, help="processes that compile (one a core)")
    parser.add_argument("--limit", type=float, default=LIMIT_MB, help="MB that one wheel may have")
    parser.add_argument("--archives", type=Path, default=ROOT / "build" / "kernels")
    parser.add_argument("--built", action="store_true", help="the archives are there; compile nothing")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--check", action="store_true", help="install the wheels and count their kernels")
    parser.add_argument(
        "--record", type=Path, metavar="FILE", help="JSON of sizes and times, kept up to date"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
