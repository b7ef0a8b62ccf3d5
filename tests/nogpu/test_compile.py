"""Compiled kernels, without a device: nothing spills, single precision stays single, nothing compiles twice."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pyblasgpu import database
from pyblasgpu.database import FAMILIES, FIXED, sizes_of
from pyblasgpu.gpu import backend, compile
from pyblasgpu.gpu.compile import CompileError, Resources, compile_source, to_ptx
from pyblasgpu.gpu.device import known, names
from pyblasgpu.kernels import copy_scaled
from pyblasgpu.tuning import select
from pyblasgpu.tuning.build import complaint, source_of
from pyblasgpu.types import DTYPES

pytestmark = pytest.mark.skipif(bool(backend.UNAVAILABLE), reason=str(backend.UNAVAILABLE))

CC = (9, 0)


def packaged() -> dict:
    """Every Config of the packaged files, with the device that it is for."""
    found: dict = {}
    devices = {device.name: device for device in map(known, names())}
    for path in sorted(Path(database.__file__).parent.glob("*.json")):
        if path.name == "schema.json":
            continue
        document = database.parse(path.read_bytes())
        for (stem, dtype, layout, size), entry in document.entries.items():
            config = FAMILIES[stem].config(dtype, layout, entry.parameters)
            name = f"{path.stem}-{stem}-{dtype}-{layout}-{size}"
            found.setdefault((devices[document.device], stem, config), name)
    return found


def computed(name: str, classes: int) -> dict:
    """The Configs computed for a device, for so many size classes, the last ones."""
    found: dict = {}
    for stem, family in FAMILIES.items():
        for dtype in DTYPES:
            for layout in family.layouts:
                for size in sizes_of(stem)[-classes:]:
                    config = select._computed(stem, dtype, layout, size, known(name))
                    found.setdefault((known(name), stem, config), f"{name}-{stem}-{dtype}-{layout}-{size}")
    return found


JOBS = {**(packaged() or computed("h200", 4)), **computed("a100", 1)}


@pytest.mark.parametrize(("device", "stem", "config"), JOBS, ids=JOBS.values())
def test_a_chosen_config_keeps_everything_in_registers(device, stem, config):
    report = compile_source(source_of(stem, config), device.cc).resources
    assert report.registers > 0
    assert (report.stack_bytes, report.spill_stores, report.spill_loads) == (0, 0, 0)
    assert complaint(config, report, device) == ("ok", "")
