"""Which kernels `make check-kernels` passed: a record in the repository, so that it runs when it is due.

``python tests/checked_kernels.py due`` exits with 0 where the kernels' text or the Configs that the package
chooses are others than those recorded, else with 3; ``... record`` records those of now. What a compiler of
another version makes of the same kernels is no reason to check again.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

from chosen_kernels import CHOSEN, of_triangles, packed

from pyblasgpu.gpu.build.compile import toolchain
from pyblasgpu.gpu.build.kernel_digest import digest_of_all

NOT_DUE = 3  # an exit code that no failure has
RECORD = Path(__file__).parent / "kernels" / "checked.json"


def now() -> dict:
    """What is recorded: a digest of text and Configs, and for the reader how many and translated by what."""
    sources = sorted({f"{c.device.cc} {c.source!r}" for c in (*CHOSEN, *packed(), *of_triangles())})
    text = "\n".join([digest_of_all(), *sources])
    return {
        "digest": hashlib.sha256(text.encode()).hexdigest(),
        "configs": len(sources),
        "toolchain": toolchain(),
    }


def is_due() -> bool:
    return not RECORD.exists() or json.loads(RECORD.read_text())["digest"] != now()["digest"]


def main(command: str) -> int:
    if command == "record":
        RECORD.write_text(json.dumps(now(), indent=1) + "\n")
        print(f"{RECORD}: commit it with the kernels")
        return 0
    due = is_due()
    print(
        "kernels, or the Configs that the package chooses,",
        "changed since" if due else "are those of",
        RECORD,
    )
    return 0 if due else NOT_DUE


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
