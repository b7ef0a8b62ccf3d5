"""Integers that a routine leaves on a device, as LAPACK's info, until they are read."""

from __future__ import annotations

from importlib import import_module
from math import prod
from sys import modules
from typing import Any

import numpy as np

from ...graph_breaks import break_graphs
from ...types import Dtype
from .layouts import Layout
from .streams import contexts

__all__ = ["DeviceIntegers", "begin_read", "end_read", "read_integers"]

#: Names in `sys.modules`, where a small call finds them sooner than by `import_module`.
_MEMORY, _READBACK = (f"{__name__.split('.')[0]}.gpu.{name}" for name in ("memory", "readback"))


#: Elements that are read, and the event of their transfer.
_Pending = tuple[np.ndarray, Any]


def begin_read(pointer: int, count: int, dtype: Dtype, device: int, stream: int) -> _Pending:
    """Begin to read the numbers of int32 with which `count` elements of `dtype` begin, after what is on the
    stream; work that follows there need not be over when `end_read` returns them.
    """
    memory = modules.get(_MEMORY) or import_module(_MEMORY)
    readback = modules.get(_READBACK) or import_module(_READBACK)
    with contexts().current_context(device):
        elements = readback.room(count * dtype.itemsize).view(dtype.name)
        return elements, memory.begin_to_host(elements, pointer, stream)


def end_read(pending: _Pending) -> np.ndarray:
    """Wait for the numbers and return them, in memory of this thread, which the next read overwrites."""
    elements, event = pending
    event.join()
    return elements.view(np.int32)[:: elements.itemsize // 4]


def read_integers(pointer: int, count: int, dtype: Dtype, device: int, stream: int) -> np.ndarray:
    """Return the numbers after the stream's work, see `end_read`."""
    memory = modules.get(_MEMORY) or import_module(_MEMORY)
    readback = modules.get(_READBACK) or import_module(_READBACK)
    with contexts().current_context(device):
        elements = readback.room(count * dtype.itemsize).view(dtype.name)
        memory.to_host(elements, pointer, stream)
    return elements.view(np.int32)[:: dtype.itemsize // 4]


@break_graphs
class DeviceIntegers:
    """Numbers of int32 in device memory, one or an array of them.

    Only a read of a number synchronizes: ``int(info)``, ``if info``, ``info > 0``, `numpy`, or NumPy's
    functions. CuPy and others take them without a copy by ``__cuda_array_interface__``.

    Parameters
    ----------
    layout : Layout
        Their layout: each is in the first four bytes of an element. The last two dimensions are numbers a
        matrix and one.
    single : bool
        Whether a matrix has one number: then both of them are dropped, else the last one.
    stream : int
        The stream that computes them.

    Attributes
    ----------
    shape : tuple of int
        The shape of the array; () for one number.
    dtype : numpy.dtype
        int32.

    See Also
    --------
    pyblasgpu.lapack.getrf : Returns them as pivots and `info` of device arrays.

    Examples
    --------
    >>> import cupy  # doctest: +SKIP
    >>> from pyblasgpu import lapack
    >>> lu, piv, info = lapack.dgetrf(cupy.eye(2))  # doctest: +SKIP
    >>> int(info), piv.numpy().tolist()  # doctest: +SKIP
    (0, [0, 1])
    """

    __slots__ = ("_layout", "_stream", "shape")

    __hash__ = None  # type: ignore[assignment]  # a number that is not known yet
    dtype = np.dtype(np.int32)

    def __init__(self, layout: Layout, single: bool, stream: int) -> None:
        self._layout, self._stream = layout, stream
        self.shape: tuple[int, ...] = layout.shape[: -2 if single else -1]

    @property
    def ndim(self) -> int:
        """Number of dimensions.

        Returns
        -------
        int
            The length of `shape`.

        See Also
        --------
        size : Number of elements.

        Examples
        --------
        >>> import cupy  # doctest: +SKIP
        >>> from pyblasgpu import lapack
        >>> lapack.dgetrf(cupy.eye(2))[1].ndim  # doctest: +SKIP
        1
        """
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements.

        Returns
        -------
        int
            The product of `shape`.

        See Also
        --------
        ndim : Number of dimensions.

        Examples
        --------
        >>> import cupy  # doctest: +SKIP
        >>> from pyblasgpu import lapack
        >>> lapack.dgetrf(cupy.eye(2))[1].size  # doctest: +SKIP
        2
        """
        return prod(self.shape)

    @property
    def device(self) -> int:
        """Ordinal of the device.

        Returns
        -------
        int
            The number of the device, from 0.

        See Also
        --------
        layout : Address and strides there.

        Examples
        --------
        >>> import cupy  # doctest: +SKIP
        >>> from pyblasgpu import lapack
        >>> lapack.dgetrf(cupy.eye(2))[1].device  # doctest: +SKIP
        0
        """
        return self._layout.device

    @property
    def layout(self) -> Layout:
        """Layout of the numbers in device memory.

        Returns
        -------
        Layout
            Address, shape and strides of the elements that hold them.

        See Also
        --------
        device : Ordinal of the device.

        Examples
        --------
        >>> import cupy  # doctest: +SKIP
        >>> from pyblasgpu import lapack
        >>> lapack.dgetrf(cupy.eye(2))[1].layout.shape  # doctest: +SKIP
        (2, 1)
        """
        return self._layout

    def numpy(self) -> np.ndarray:
        """Return a copy in host memory, after the stream's work.

        Returns
        -------
        numpy.ndarray of int32
            The numbers, of the shape of the array.

        See Also
        --------
        item : The only number as an int.

        Examples
        --------
        >>> import cupy  # doctest: +SKIP
        >>> from pyblasgpu import lapack
        >>> lapack.dgetrf(cupy.eye(2))[1].numpy()  # doctest: +SKIP
        array([0, 1], dtype=int32)
        """
        size, layout = self.size, self._layout
        if not size:
            return np.empty(self.shape, np.int32)
        numbers = read_integers(layout.pointer, size, layout.dtype, layout.device, self._stream)
        return numbers.reshape(self.shape).copy()

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
        """Return the only number, after the stream's work.

        Returns
        -------
        int
            The number.

        Raises
        ------
        ValueError
            When there are several numbers, or none.

        See Also
        --------
        numpy : All numbers.

        Examples
        --------
        >>> import cupy  # doctest: +SKIP
        >>> from pyblasgpu import lapack
        >>> lapack.dgetrf(cupy.eye(2))[2].item()  # doctest: +SKIP
        0
        """
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
        return bool(result) if np.ndim(result) == 0 else result

    def __reduce__(self) -> tuple[Any, ...]:
        # an address means nothing in another process
        return np.asarray, (self.numpy(),)

    def __copy__(self) -> DeviceIntegers:
        return self  # they do not change

    def __deepcopy__(self, memo: dict[int, Any]) -> DeviceIntegers:
        return self

    def __repr__(self) -> str:
        return f"<int32 of shape {self.shape} on device {self.device}>"
