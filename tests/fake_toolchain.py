"""A compiler that is none: its machine code is the kernel's own description."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict
from itertools import islice, product

from pyblasgpu.gpu.build.compile import Compiled, KernelSource, Resources, kept_here, store_key

#: Seconds that a kernel takes; a file to which each that is compiled adds a line; a dtype that is refused.
SECONDS, LOG, REFUSED = (f"PYBLASGPU_FAKE_{name}" for name in ("SECONDS", "LOG", "REFUSED"))


def compiled(source: KernelSource, cc: tuple[int, int]) -> Compiled:
    """What the compiler makes of a kernel."""
    text = json.dumps([source.name, repr(source.config), repr(source.flags), cc])
    return Compiled(b"\x7fELF" + text.encode() * 20, f"entry_{source.name}", Resources(40, 0, 0, 0, 0))


def compile_job(stem, config, flags, cc) -> Compiled | str:
    """Stand in for `build.compile_job`."""
    from pyblasgpu.gpu.build.kernel_store import CubinStore
    from pyblasgpu.kernels.registry import source_of

    source = source_of(stem, config, flags)
    kernel = kept_here(source, cc)
    if kernel is not None:
        return kernel
    time.sleep(float(os.environ.get(SECONDS, 0)))
    if LOG in os.environ:
        with open(os.environ[LOG], "a", encoding="utf-8") as file:
            file.write(f"{store_key(source, cc)}\n")
    if config.dtype == os.environ.get(REFUSED):
        return "the compiler refuses it"
    kernel = compiled(source, cc)
    facts = {"entry": kernel.entry, "resources": asdict(kernel.resources)}
    CubinStore.default().put(store_key(source, cc), facts, kernel.cubin)
    return kernel


def kernels(count: int) -> list[KernelSource]:
    """So many kernels, at most 64."""
    from pyblasgpu.kernels.copy import copy_scaled

    tiles = product("sdcz", (32, 64), (32, 64), (32,), (32, 16, 8, 4))
    return [copy_scaled.source(copy_scaled.CopyScaled(*each)) for each in islice(tiles, count)]
