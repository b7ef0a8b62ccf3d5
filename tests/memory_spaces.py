"""Memory spaces for tests of public functions: how arrays get there and back."""

from __future__ import annotations

import fake_device


class Host:
    """NumPy arrays, on SciPy's BLAS."""

    options = {"backend": "cpu"}
    put = staticmethod(lambda array: array)
    get = staticmethod(lambda array: array)


class Staged(Host):
    """NumPy arrays, through the memory of the fake device."""

    options = {"backend": "cuda"}


class Device:
    """Arrays of the fake device."""

    options: dict = {}
    put = staticmethod(fake_device.Array)
    get = staticmethod(lambda array: array.host)
