"""Limits of devices, and occupancy against the tables of NVIDIA's occupancy calculator."""

from __future__ import annotations

import json

import pytest

from pyblasgpu.errors import BackendUnavailable
from pyblasgpu.gpu import device
from pyblasgpu.gpu.device import known
from pyblasgpu.package_files import package_file

KiB = 1024


@pytest.mark.parametrize(
    ("name", "threads", "registers", "shared", "blocks"),
    [
        ("h200", 256, 128, 0, 2),  # 65536 registers / (256 * 128)
        ("h200", 256, 129, 0, 1),  # 129 registers are handed out as 136
        ("h200", 256, 96, 0, 2),  # 21 warps of 3072 registers, in whole partitions 20
        ("h200", 256, 32, 0, 8),
        ("h200", 1024, 64, 0, 1),
        ("h200", 1024, 65, 0, 0),
        ("h200", 256, 32, 48 * KiB, 4),  # 49 KiB a block with what the system takes
        ("h200", 128, 32, 227 * KiB, 1),
        ("h200", 128, 32, 227 * KiB + 1, 0),
        ("h200", 32, 16, 0, 32),
        ("h200", 33, 32, 0, 32),  # two warps
        ("h200", 96, 168, 0, 4),  # 12 warps of 5376 registers
        ("a100", 256, 32, 40 * KiB, 4),
        ("rtx4090", 1024, 32, 0, 1),  # 1536 threads
        ("t4", 256, 64, 0, 4),
        ("v100", 256, 32, 96 * KiB, 1),
        ("fermi", 256, 63, 16000, 2),  # 32768 / (63 * 32 * 8)
        ("fermi", 256, 20, 0, 6),
        ("fermi", 256, 64, 0, 0),
        ("fermi", 64, 10, 0, 8),
        ("fermi", 128, 16, 9 * KiB, 5),
    ],
)
def test_occupancy(name, threads, registers, shared, blocks):
    assert known(name).occupancy(threads, registers, shared) == blocks


def test_too_many_threads_do_not_fit():
    assert known("h200").occupancy(1025, 16, 0) == 0


def test_occupancy_never_rises_with_what_a_block_takes():
    h200 = known("h200")
    for threads in range(32, 1025, 32):
        by_registers = [h200.occupancy(threads, registers, 0) for registers in range(257)]
        by_shared = [h200.occupancy(threads, 32, kib * KiB) for kib in range(229)]
        assert by_registers == sorted(by_registers, reverse=True)
        assert by_shared == sorted(by_shared, reverse=True)
        assert by_registers[-1] == 0 and by_shared[-1] == 0


def test_the_h200_is_as_the_driver_describes_it():
    h200 = known("h200")
    assert (h200.name, h200.arch, h200.sm_count) == ("NVIDIA H200", "sm_90", 132)
    assert (h200.shared_per_sm, h200.shared_per_block, h200.shared_reserved) == (228 * KiB, 227 * KiB, KiB)
    assert h200.has_async_copy and not known("t4").has_async_copy


def test_fermi_is_as_the_paper_describes_it():
    fermi = known("fermi")
    assert (fermi.cc, fermi.sm_count) == ((2, 0), 14)
    assert (fermi.max_threads_per_sm, fermi.max_blocks_per_sm) == (1536, 8)
    assert (fermi.registers_per_block, fermi.shared_per_block) == (32768, 49152)
    assert (fermi.max_registers_per_thread, fermi.register_unit) == (63, 64)


#: Published TFLOP/s of single precision, GB/s of memory and MiB of L2.
PUBLISHED = {
    "a100": (19.5, 2039, 40),
    "a10": (31.2, 600, 6),
    "rtx3090": (35.6, 936, 6),
    "rtx4090": (82.6, 1008, 72),
    "rtx6000ada": (91.1, 960, 96),
    "l4": (30.3, 300, 48),
    "l40s": (91.6, 864, 96),
    "h100": (67, 3350, 50),
    "h200": (67, 4900, 60),
    "gh200": (67, 4000, 60),
    "b200": (75, 8000, 126),
    "gb200": (80, 8000, 126),
    "b300": (77, 8000, 126),
    "rtx5080": (56.3, 960, 64),
    "rtx5090": (104.8, 1792, 96),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_descriptions_give_the_published_rates(name):
    tflops, bandwidth, l2 = PUBLISHED[name]
    card, described = known(name), json.loads(package_file("gpu", "devices.json").read_text())["cards"]
    clock = described[name]["clock_mhz"]
    assert 2e-6 * card.sm_count * card.lanes_float32 * clock == pytest.approx(tflops, rel=0.01)
    assert card.dram_bytes * clock / 1000 == pytest.approx(bandwidth, rel=0.01)
    assert card.l2_bytes == l2 * 1024 * KiB


def test_every_name_is_known():
    for name in device.names():
        assert known(name).occupancy(128, 32, 8 * KiB) > 0
    assert known("sm_90").arch == "sm_90"
    with pytest.raises(ValueError, match=r"'voodoo2' is none of fermi, .*sm_120"):
        known("voodoo2")


def test_the_simulator_is_described():
    assert device.simulated().sm_count == 1


@pytest.mark.skipif(device.count() > 0, reason="there is a device")
def test_without_a_device_the_reason_is_given():
    with pytest.raises(BackendUnavailable, match="driver"):
        device.current()


@pytest.mark.skipif(device.count() == 0, reason="there is no device")
def test_the_device_answers():
    current = device.current()
    assert current.sm_count > 0 and current.warp_size == 32 and current.shared_per_block >= 48 * KiB
    with pytest.raises(BackendUnavailable, match="no CUDA device"):
        device.current(device.count())
