"""Gather calls for which two checkouts were timed: ``python tuning/gather_calls.py OUT.calls.gz RESULT ...``

Results are those of `benchmarks.catalogue_loss`. Kept is each call of products for which several Configs were
timed, with a rate of each, relative to the other checkout's; of several results the median.
`database_from_sweeps` keeps Configs for such calls.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from pyblasgpu.terminal import guarded

SUFFIX = ".calls.gz"
SAME = 1.005  # times another rate: as much as readings of one kernel differ
WHAT = ("routine", "dtype", "flags", "extents", "pad", "shift", "batch")


def read_calls(path: Path) -> list[dict[str, Any]]:
    """The calls of a file, each as `tuning.portfolio` takes it, with the architecture as `arch`."""
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def gathered(results: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The calls for which several Configs were timed."""
    rates: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for result in results:
        call = json.dumps({name: result[name] for name in WHAT if result.get(name)})
        for side, rate in (("old", 1.0), ("new", result.get("ratio", 0.0))):
            products = result.get("products", {}).get(side, [])
            if rate and len(products) == 1:
                rates[call][json.dumps(products[0])].append(rate)
    for call, found in rates.items():
        medians = {kernel: median(each) for kernel, each in found.items()}
        if max(medians.values()) > SAME * min(medians.values()):
            kernels = sorted(medians, key=medians.__getitem__, reverse=True)
            of_each = [[*json.loads(kernel), round(medians[kernel], 3)] for kernel in kernels]
            yield {**json.loads(call), "rates": of_each}


def main(out: str, results: list[str]) -> Path:
    """Write the file of calls; returns it."""
    found = [json.loads(Path(path).read_text()) for path in results]
    lines = []
    for arch in sorted({result.get("arch", "sm_90") for result in found}):
        cases = (
            case for result in found if result.get("arch", "sm_90") == arch for case in result["results"]
        )
        lines += [json.dumps({"arch": arch, **call}) + "\n" for call in gathered(cases)]
    path = Path(out)
    path.write_bytes(gzip.compress("".join(lines).encode(), mtime=0))
    return path


def _command() -> int:
    print(main(sys.argv[1], sys.argv[2:]))
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 3 or not sys.argv[1].endswith(SUFFIX):
        sys.exit(__doc__)
    sys.exit(guarded(["tuning/gather_calls.py"], _command))
