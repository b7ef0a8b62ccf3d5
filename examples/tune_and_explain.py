"""
Tune and explain
================

``explain`` names the kernels of a call, their Configs, and the origin of each. An origin is the user's file,
a packaged file or a computed default. ``pyblasgpu tune`` fills the user's file.

Without a GPU a dry run shows how the tuner prunes its search space, for any device that the library knows.
"""

import os
import subprocess
import sys
import tempfile

# %%
# An example leaves nothing behind: its tuned values and its cubins go to a folder of its own.

folder = tempfile.TemporaryDirectory(prefix="pyblasgpu-example-")
os.environ["PYBLASGPU_HOME"] = folder.name

import pyblasgpu as pb  # noqa: E402


def command(*arguments: str) -> str:
    """What ``pyblasgpu ARGUMENTS`` prints."""
    call = [sys.executable, "-m", "pyblasgpu", *arguments]
    return subprocess.run(call, capture_output=True, text=True, check=True).stdout


# %%
# A dry run needs no GPU. It counts what each rule removes from the search space of one size class.

print(command("tune", "--dry-run", "--device", "h200", "--routine", "dtrmm", "--size", "few"))

# %%
# The rest is for a GPU: explain a product, tune its size class for some seconds, and explain it again.

try:
    pb.backend_status("cuda")
except pb.errors.BackendUnavailable as missing:
    print(f"skipped the rest: tuning needs a GPU ({missing})")
    raise SystemExit from None


def show_choice() -> None:
    """Print the launches of a small product."""
    for family, config, origin in pb.explain("gemm", "d", 64, 64, 64):
        print(f"{family:12} {origin:40} {config}")


show_choice()
command(
    "tune", "--routine", "dgemm", "--layout", "nn", "--size", "tiny", "--stage", "kernels", "--budget", "20s"
)
show_choice()
print(command("wisdom", "list"))
