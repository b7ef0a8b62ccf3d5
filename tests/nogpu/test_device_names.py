"""One spelling of device names: whatever its case, marks and maker's name, in every option that takes one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_device import described

from pyblasgpu.errors import BackendUnavailable
from pyblasgpu.gpu import device
from pyblasgpu.gpu.device import known, named, stand_ins

SPELLINGS = (
    "h200",
    "H200",
    "NVIDIA H200",
    "nvidia h200",
    "Nvidia-H200",
    "nvidia_h200",
    " H-200 ",
    "NVIDIAH200",
)


@pytest.mark.parametrize("name", SPELLINGS)
def test_all_spellings_are_one_name(name):
    assert known(name) == known("h200") == named(name)


@pytest.mark.parametrize(
    ("name", "driver"),
    [
        ("RTX 4090", "NVIDIA GeForce RTX 4090"),
        ("geforce rtx4090", "NVIDIA GeForce RTX 4090"),
        ("T4", "Tesla T4"),
        ("tesla_t4", "Tesla T4"),
        ("nvidia tesla t4", "Tesla T4"),
        ("FERMI", "Tesla S2050"),
        ("a100-sxm4-80gb", "NVIDIA A100-SXM4-80GB"),
        *((name, "NVIDIA GeForce RTX 5090") for name in ("5090", "rtx 5090", "RTX-5090", " GeForce 5090 ")),
        ("3090", "NVIDIA GeForce RTX 3090"),
        ("6000 ada", "NVIDIA RTX 6000 Ada Generation"),
        ("nvidia rtx 6000 ada generation", "NVIDIA RTX 6000 Ada Generation"),
        ("gh200", "NVIDIA GH200 480GB"),
        ("B300", "NVIDIA B300 SXM6 AC"),
        ("SM90", "sm_90"),
        ("sm-90", "sm_90"),
    ],
)
def test_cards_families_and_architectures(name, driver):
    assert known(name).name == driver


def test_no_two_cards_have_one_name():
    cards = [known(name) for name in device.names() if not name.startswith("sm_")]
    assert len({known(card.name) for card in cards}) == len({card.name for card in cards})


def test_every_driver_name_is_known():
    for name in device.names():
        assert known(known(name).name) == known(name)
        assert known(name.upper()) == known(name)


@pytest.mark.parametrize(
    "name",
    ["", "nvidia", "tesla", "voodoo2", "h21", "h2000", "rtx", "9", "6000", "200", "sm_9", "-1", "h200,h100"],
)
def test_other_names_are_refused_with_those_that_are_known(name):
    with pytest.raises(ValueError, match=r"is none of fermi, .*h200.*sm_120"):
        known(name)


@pytest.fixture
def here(monkeypatch):
    """Two devices: one that is described, and one that nobody knows."""
    devices = [replace(known("h100"), l2_bytes=7), replace(known("h200"), name="NVIDIA Voodoo 5", ordinal=1)]
    described(monkeypatch, *devices)
    return devices


def test_a_device_that_is_here_comes_before_its_description(here):
    assert named("h100") is named("nvidia h100 80gb hbm3") is named("hopper") is named(None) is here[0]
    assert named("voodoo5") is named("1") is here[1]
    assert named("H200") == known("h200")
    with pytest.raises(ValueError, match=r"'voodoo2' is none of .*, NVIDIA Voodoo 5, or a number"):
        named("voodoo2")


def test_a_number_is_a_name_where_there_are_fewer_devices(here, monkeypatch):
    here[1] = replace(here[1], name="NVIDIA GeForce RTX 4070")
    described(monkeypatch, *here)
    assert named("4070") is device.present("4070") is here[1]
    assert named("5090") == known("rtx5090")
    with pytest.raises(ValueError, match="device '5090' is no number or name of a device that is here: 0: "):
        device.present("5090")
    monkeypatch.setattr(device, "count", lambda: 5091)
    for ordinal in (5090, 5091):
        monkeypatch.setitem(stand_ins, ordinal, here[ordinal % 2])
    assert named("5090") is here[0] and named("5091") is here[1]


@pytest.mark.skipif(device.count() > 0, reason="there is a device")
@pytest.mark.parametrize("number", [None, "0", "7"])
def test_a_number_is_that_of_a_device_here(number):
    with pytest.raises(BackendUnavailable):
        named(number)
