"""Wheels with the kernels built ahead: one with everything where it is small enough, else one each.

``python tools/wheels.py`` builds the archives that are not there yet, in ``build/kernels``, which takes an
hour a core and architecture, and puts wheels into ``dist``. ``--check`` installs each into an environment of
its own and counts the kernels that are found there.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from configparser import ConfigParser
from pathlib import Path

from pyblasgpu import __version__
from pyblasgpu.gpu.build.archive import archive_name
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
    command = [sys.executable, "-m", "pyblasgpu", "build", "--arch", ",".join(options.arch)]
    command += ["--out", str(options.archives)] + (["--jobs", str(options.jobs)] if options.jobs else [])
    if subprocess.run(command, check=False).returncode:
        return 1
    found = {name: options.archives / _file_name(name) for name in options.arch}
    megabytes = sum(path.stat().st_size for path in found.values()) / 1e6
    with tempfile.TemporaryDirectory() as folder:
        together = megabytes <= options.limit
        in_it, apart = (list(found.values()), {}) if together else ([], found)
        stages = [stage_everything(Path(folder) / "pyblasgpu", in_it, list(apart))]
        stages += [stage_kernels(Path(folder) / name, name, path) for name, path in apart.items()]
        for stage in stages:
            _build_wheel(stage, options.out)
    for name, path in found.items():
        print(f"{name}: {path.stat().st_size / 1e6:.1f} MB")
    return check(options.out, options.arch) if options.check else 0


def check(folder: Path, names: Sequence[str]) -> int:
    """Install the wheels of a folder, and look for all kernels there; returns the exit code."""
    is_whole = True
    with tempfile.TemporaryDirectory() as home:
        environment, python = Path(home) / "installed", Path(home) / "installed" / "bin" / "python"
        subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
        wheels = [str(path) for path in sorted(folder.glob("*.whl"))]
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *wheels], check=True)
        for name in names:
            # away from the checkout and from PYTHONPATH, so that the wheels are what is imported
            done = subprocess.run(
                [str(python), "-I", "-c", COUNT, name], check=True, cwd=home, capture_output=True, text=True
            )
            found, count = map(int, done.stdout.split())
            print(f"{name}: {found} of {count} kernels are found")
            is_whole = is_whole and found == count
    return 0 if is_whole else 1


def stage_everything(folder: Path, archives: Sequence[Path], apart: Sequence[str] = ()) -> Path:
    """The sources of a wheel of this package, `archives` in it; architectures that are `apart` are extras."""
    folder.mkdir(parents=True)
    for name in IN_THE_WHEEL:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "data"))
        else:
            shutil.copy(ROOT / name, folder / name)
    for path in archives:
        (folder / "pyblasgpu" / "data").mkdir(exist_ok=True)
        shutil.copy(path, folder / "pyblasgpu" / "data")
    if apart:
        setup = ConfigParser(interpolation=None)
        setup.read(folder / "setup.cfg")
        for short in map(_short, apart):
            setup["options.extras_require"][short] = f"\npyblasgpu-kernels-{short}=={__version__}"
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
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--check", action="store_true", help="install the wheels and count their kernels")
    return parser


if __name__ == "__main__":
    sys.exit(main())
