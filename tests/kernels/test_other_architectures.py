"""The largest kernel of each family and dtype, compiled for cards that nothing was tuned on. No array of a
thread is in local memory, and hardly a register is spilled.

What NVVM makes of a loop differs by architecture: it has another LLVM for compute capability 10.0 and later.
"""

from __future__ import annotations

import chosen_kernels
import pytest

from pyblasgpu.dispatch import catalogue
from pyblasgpu.gpu.build.compile import KernelSource, compile_here
from pyblasgpu.gpu.device import Device, known

pytestmark = chosen_kernels.NEEDS_COMPILER

MOST_SPILLED = 44  # bytes, of ten registers and one more
#: Where more are spilled: bytes, of addresses in the tile on the diagonal, and of columns of small QR
#: factors and of panels with pivots, for which NVVM takes more registers below compute capability 9.0.
SPILLED = {
    ("sm_120", "symv", "s"): 184,
    ("sm_120", "geqrf_tall", "c"): 64,
    ("sm_80", "geqrf_small", "s"): 376,
    ("sm_80", "geqrf_small", "d"): 1048,
    ("sm_80", "geqrf_small", "c"): 1084,
    ("sm_80", "geqrf_small", "z"): 772,
    ("sm_80", "geqp3_panel", "s"): 60,
    ("sm_80", "geqp3_panel", "d"): 116,
    ("sm_80", "geqp3_panel", "z"): 132,
}


def largest(device: Device) -> list[KernelSource]:
    """The kernel of each family and dtype with most registers by its estimate, the last of equal ones."""
    kernels: dict[tuple[str, str], KernelSource] = {}
    for source in catalogue.kernels(device):
        other = kernels.setdefault((source.name, source.config.dtype), source)
        if registers(source) >= registers(other):
            kernels[source.name, source.config.dtype] = source
    return list(kernels.values())


def registers(source: KernelSource) -> int:
    """What the Config estimates; 0 where it does not, as for copies."""
    return getattr(source.config, "registers", 0)


@pytest.mark.parametrize(
    ("device", "source"),
    [
        pytest.param(device, source, id=f"{device.name}-{source.name}-{source.config.dtype}")
        for device in map(known, ("sm_80", "sm_120"))
        for source in largest(device)
    ],
)
def test_nothing_lies_in_local_memory(device, source):
    report = compile_here(source, device.cc).resources
    most = SPILLED.get((device.name, source.name, source.config.dtype), MOST_SPILLED)
    assert report.spill_stores <= most
    # an array of a thread takes local memory of which no spill tells
    assert report.stack_bytes <= report.spill_stores + 4
