"""Gather calls for which two checkouts were timed: ``python tuning/gather_calls.py OUT.calls.gz RESULT ...``

Results are those of `benchmarks.catalogue_loss`, all against the same checkout. Kept is each call of products
for which several Configs were timed, with a rate of each, relative to that checkout's; of several results the
median. What `OUT.calls.gz` has already is one of them. Runs on packed operands are left out.
`database_from_sweeps` keeps Configs for such calls, and has `under_load` correct times by them.
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

from pyblasgpu.database import TUNED
from pyblasgpu.terminal import guarded

SUFFIX = ".calls.gz"
SAME = 1.005  # times another rate: as much as readings of one kernel differ
WHAT = ("routine", "dtype", "flags", "extents", "pad", "shift", "batch")


def read_calls(path: Path) -> list[dict[str, Any]]:
    """The calls of a file, each as `tuning.portfolio` takes it, with the architecture as `arch`."""
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def gathered(
    results: Iterable[dict[str, Any]], before: Iterable[dict[str, Any]] = ()
) -> Iterator[dict[str, Any]]:
    """The calls for which several Configs were timed, in `results` or as gathered `before`."""
    rates: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for call in before:
        for *kernel, rate in call["rates"]:
            rates[_what(call)][_kernel(*kernel)].append(rate)
    for result in results:
        for side, rate in (("old", 1.0), ("new", result.get("ratio", 0.0))):
            products = result.get("products", {}).get(side, [])
            if rate and len(products) == 1 and not products[0][-1].get("packed"):
                rates[_what(result)][_kernel(*products[0])].append(rate)
    for what, by_kernel in rates.items():
        medians = {kernel: median(each) for kernel, each in by_kernel.items()}
        if max(medians.values()) > SAME * min(medians.values()):
            kernels = sorted(medians, key=medians.__getitem__, reverse=True)
            of_each = [[*json.loads(kernel), round(medians[kernel], 3)] for kernel in kernels]
            yield {**json.loads(what), "rates": of_each}


def _what(call: dict[str, Any]) -> str:
    return json.dumps({name: call[name] for name in WHAT if call.get(name)})


def _kernel(stem: str, layout: str, parameters: dict[str, Any]) -> str:
    """What distinguishes a Config: the parameters that are tuned, as a benchmark names others too."""
    tuned = {name: value for name, value in parameters.items() if name in TUNED[stem].parameters}
    return json.dumps([stem, layout, tuned], sort_keys=True)


def main(out: str, results: list[str]) -> Path:
    """Write the file of calls; returns it."""
    path = Path(out)
    before = read_calls(path) if path.exists() else []
    documents = [json.loads(Path(result).read_text()) for result in results]
    lines = []
    for arch in sorted({each.get("arch", "sm_90") for each in (*documents, *before)}):
        cases = (
            case for result in documents if result.get("arch", "sm_90") == arch for case in result["results"]
        )
        calls = (call for call in before if call["arch"] == arch)
        lines += [json.dumps({"arch": arch, **call}) + "\n" for call in gathered(cases, calls)]
    path.write_bytes(gzip.compress("".join(lines).encode(), mtime=0))
    return path


def _command() -> int:
    print(main(sys.argv[1], sys.argv[2:]))
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 3 or not sys.argv[1].endswith(SUFFIX):
        sys.exit(__doc__)
    sys.exit(guarded(["tuning/gather_calls.py"], _command))
