"""Integers that a routine leaves on a device, as LAPACK's info: read when somebody asks."""

from __future__ import annotations

from importlib import import_module
from math import prod
from typing import Any

import numpy as np

from ..graph_breaks import break_graphs
from .layouts import Layout
from .streams import contexts

__all__ = ["DeviceIntegers"]


@break_graphs
class DeviceIntegers:
    """Numbers of int32 in device memory, one or an array of them.

    Nothing waits until a number is asked for: ``int(info)``, ``if info``, ``info > 0``, `numpy`, or NumPy's
    functions. CuPy and others take them without a copy by ``__cuda_array_interface__``.

    Parameters
    ----------
    layout : Layout
        Where they lie: each in the first four bytes of an element. The last two dimensions are numbers a
        matrix and one.
    single : bool
        Whether a matrix has one number: then both of them are dropped, else the last one.
    stream : int
        On which they are computed.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype

    See Also
    --------
    pyblasgpu.lapack.getrf : Returns them as pivots and `info` of device arrays.
    """

    __slots__ = ("_layout", "_stream", "shape")

    __hash__ = None  # type: ignore[assignment]  # a number that is not known yet

    def __init__(self, layout: Layout, single: bool, stream: int) -> None:
        self._layout, self._stream = layout, stream
        self.shape: tuple[int, ...] = layout.shape[: -2 if single else -1]

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.int32)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def device(self) -> int:
        """The ordinal of the device."""
        return self._layout.device

    @property
    def layout(self) -> Layout:
        """Where they lie."""
        return self._layout

    def numpy(self) -> np.ndarray:
        """A copy in host memory; waits for the stream."""
        elements = np.empty(self.size, self._layout.dtype.name)
        if self.size:
            with contexts().current_context(self._layout.device):
                memory = import_module("..gpu.memory", __package__)
                memory.to_host(elements, self._layout.pointer, self._stream)
        return elements.view(np.int32)[:: elements.itemsize // 4].reshape(self.shape).copy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("integers on a device cannot be read without a copy")
        return self.numpy().astype(dtype or np.int32, copy=False)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        size = self._layout.dtype.itemsize
        steps = self._layout.strides[: len(self.shape)]
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self._layout.pointer, False),
            "strides": tuple(step * size for step in steps),
            "stream": self._stream or 1,  # 0 is not allowed there; 1 is the default stream
        }

    def item(self) -> int:
        """The only number; waits for the stream."""
        return int(self.numpy().item())

    __int__ = __index__ = item

    def __bool__(self) -> bool:
        return bool(self.numpy())

    def __len__(self) -> int:
        return len(np.empty(self.shape, bool))

    def __iter__(self) -> Any:
        return iter(self.numpy())

    def __getitem__(self, index: Any) -> Any:
        return self.numpy()[index]

    def __eq__(self, other: object) -> Any:
        return self._compared("__eq__", other)

    def __ne__(self, other: object) -> Any:
        return self._compared("__ne__", other)

    def __lt__(self, other: object) -> Any:
        return self._compared("__lt__", other)

    def __le__(self, other: object) -> Any:
        return self._compared("__le__", other)

    def __gt__(self, other: object) -> Any:
        return self._compared("__gt__", other)

    def __ge__(self, other: object) -> Any:
        return self._compared("__ge__", other)

    def _compared(self, operator: str, other: object) -> Any:
        result = getattr(self.numpy(), operator)(np.asarray(other))
        return bool(result) if not self.shape and np.ndim(result) == 0 else result

    def __reduce__(self) -> tuple[Any, ...]:
        # an address means nothing in another process
        return np.asarray, (self.numpy(),)

    def __copy__(self) -> DeviceIntegers:
        return self  # they do not change

    def __deepcopy__(self, memo: dict[int, Any]) -> DeviceIntegers:
        return self

    def __repr__(self) -> str:
        return f"<int32 of shape {self.shape} on device {self.device}>"
