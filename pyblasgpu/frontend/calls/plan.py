"""Plans, as `pyblasgpu.api.plans` makes them: launch lists of a checked call, their workspace and graph."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ref

from ...errors import OverlapError
from ...gpu import launch, workspace
from ...graph_breaks import break_graphs
from ..arrays.any_array import common_library
from ..arrays.layouts import are_clear, batches, reach, shares_memory
from ..arrays.streams import stream_of
from .call import Call, on_device
from .lazy_routines import copy_launches

if TYPE_CHECKING:
    from ...typing import Array, ArrayT, Stream

__all__ = ["Plan", "PlannedCall"]

_NAMES = ("a", "b", "out")


@break_graphs
class Plan:
    """A prepared call: ``plan(a, b, out)`` runs it; made by `plan_gemm`, `plan_trmm` and `plan_trsm`.

    A call neither allocates nor waits, so that a plan made beforehand can be captured in a CUDA graph, which
    must not outlive it. It is fastest with the very arrays that it was made with, which it does not keep
    alive. Its Configs are fixed when it is made: values that are tuned later serve new plans.
    Threads may share a plan.

    Attributes
    ----------
    name : str
        The function that made it.
    device : int
        Ordinal of the device.
    enqueue : callable
        The launches of a call that no graph serves: ``enqueue(pointers, stream)``.
    stream : int or None
        Handle of its stream; None is the library's current one.
    workspace : int
        Bytes of device memory that the plan holds: for packed copies, for products of parts of k, for the
        progress of its blocks; 0 for most. The runs of a plan that has a workspace must not overlap: put them
        on one stream, or on streams that wait for each other.

    See Also
    --------
    pyblasgpu.plan_gemm : Makes the plan of a product.

    Examples
    --------
    >>> import cupy, pyblasgpu  # doctest: +SKIP
    >>> a, out = cupy.eye(2), cupy.empty((2, 2))  # doctest: +SKIP
    >>> plan = pyblasgpu.plan_gemm(a, a, out)  # doctest: +SKIP
    >>> plan.name, plan.workspace  # doctest: +SKIP
    ('plan_gemm', 0)
    """

    def __init__(
        self, call: PlannedCall, steps: list[_Step], facts: list[tuple[Any, ...]], pointers: list[int]
    ) -> None:
        arrays = (*call.arrays, call.result)
        self.name, self.stream, self.device = call.name, call.caller_stream, call.out.device
        scratch = max((step.launches.workspace_bytes for step in steps), default=0)
        holds = any(step.launches.uses_workspace for step in steps)
        self.workspace = scratch or (workspace.ALL_FLAGS if holds else 0)
        self._library, self._kind = call.library, type(call.result)
        self._arrays, self._state = tuple(map(ref, arrays)), call.library.state(*arrays)
        self._facts, self._pointers = facts, pointers
        self._last_checked = pointers  # the last that passed the checks
        self._layouts = [layout._replace(owner=None) for layout in (*call.inputs, call.out)]
        self._in_place = call.check_overlap(in_place=1)
        self._disjoint = (0, 2) if self._in_place else (0, 1, 2)
        self._reaches = [reach(self._layouts[index]) for index in self._disjoint]
        self._workspace = workspace.OwnedWorkspace(scratch, self.device) if holds else None
        self._lock = Lock() if holds else None
        enqueue = self.enqueue = _joined(steps, self._workspace.address if self._workspace else 0)
        self._graph = launch.Graph(lambda stream: enqueue(pointers, stream), self.device) if steps else None

    def __call__(self, a: Array, b: Array, out: ArrayT, *, stream: Stream | None = None) -> ArrayT:
        """Compute into `out`, which is returned, without waiting.

        Parameters
        ----------
        a, b, out : array
            Arrays like those that the plan was made with in type, shape, strides, dtype and device. They
            begin as many bytes beyond a multiple of 16.
        stream : int or stream object, optional
            The stream of the call; by default the plan's.

        Returns
        -------
        array
            The argument `out`.

        Raises
        ------
        ValueError
            When shapes, strides, dtypes, devices, alignment or the stream are not those of the plan.
            Nothing is written then.
        TypeError
            When an array is of another type.
        OverlapError
            When `out` shares memory with an input.

        See Also
        --------
        pyblasgpu.plan_gemm : Makes the plan of a product.

        Examples
        --------
        >>> import cupy, pyblasgpu  # doctest: +SKIP
        >>> a, out = cupy.eye(2), cupy.empty((2, 2))  # doctest: +SKIP
        >>> pyblasgpu.plan_gemm(a, a, out)(a, a, out).tolist()  # doctest: +SKIP
        [[1.0, 0.0], [0.0, 1.0]]
        """
        handle: Any = self.stream if stream is None else stream_of(self.device, stream, self.name)
        if handle is None:
            handle = self._library.current_stream(self.device)
        first, second, third = self._arrays
        # of the very same arrays, what cannot change needs no look
        if (
            first() is a is not None
            and second() is b is not None
            and third() is out is not None
            and self._library.state(a, b, out) == self._state
        ):
            pointers, graph = self._pointers, self._graph
        else:
            pointers, graph = self._checked_pointers((a, b, out)), None
        if self._lock is None:
            if graph is None or not graph.launch(handle):
                self.enqueue(pointers, handle)
        else:
            with self._lock:
                if graph is None or not graph.launch(handle):
                    self.enqueue(pointers, handle)
        if self._library.counts_writes:
            self._library.written(out)
        return out

    def _checked_pointers(self, arrays: tuple[Any, ...]) -> list[int]:
        """The addresses of other arrays, after all that must be checked of them."""
        read = self._library.read(arrays) if type(arrays[0]) is self._kind else None
        if read is None:
            common_library(self.name, _NAMES, arrays)  # may know better what is wrong
            raise _mixed(self.name, arrays)
        facts, pointers = read
        if facts != self._facts:
            for name, passed, planned in zip(_NAMES, facts, self._facts, strict=True):
                if passed != planned:
                    raise ValueError(
                        f"{self.name}: {name} has {_in_words(passed)}; "
                        f"the plan was made with {_in_words(planned)}"
                    )
        if pointers != self._last_checked:
            self._check_addresses(pointers)
            self._last_checked = pointers
        return pointers

    def _check_addresses(self, pointers: list[int]) -> None:
        for name, pointer, planned in zip(_NAMES, pointers, self._pointers, strict=True):
            if (pointer ^ planned) & 15:
                raise ValueError(
                    f"{self.name}: {name} begins {pointer % 16} bytes beyond a multiple of 16; "
                    f"the plan was made for {planned % 16}"
                )
        if self._in_place and pointers[1] != pointers[2]:
            raise ValueError(f"{self.name}: the plan was made with out=b, and now out is another array")
        if not are_clear([pointers[index] for index in self._disjoint], self._reaches):
            self._check_overlap(pointers)

    def _check_overlap(self, pointers: list[int]) -> None:
        layouts = [
            layout._replace(pointer=pointer) for layout, pointer in zip(self._layouts, pointers, strict=True)
        ]
        for index in self._disjoint[:-1]:
            if shares_memory(layouts[index], layouts[-1]):
                raise OverlapError(f"{self.name}: out shares memory with {_NAMES[index]}")

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(
            f"{self.name}: a plan serves the process that made it, and is neither copied nor pickled"
        )

    def __repr__(self) -> str:
        shapes = ", ".join(str(tuple(layout.shape)) for layout in self._layouts)
        return f"<Plan by {self.name} for {shapes} of {self._layouts[-1].dtype.name} on device {self.device}>"


class _Step(NamedTuple):
    """A launch list, its scalars, and the places of its operands: an array of a, b, out, and bytes."""

    launches: Any
    scalars: tuple[Any, ...]
    locations: tuple[tuple[int, int], ...]


class PlannedCall(Call):
    """A call whose run makes a plan instead."""

    __slots__ = ("caller_stream",)

    def __init__(self, name: str, a: Any, b: Any, out: Any, stream: Any) -> None:
        if out is None:
            raise TypeError(f"{name}: out is needed, the array that the plan is to write")
        library = common_library(name, _NAMES, (a, b, out))
        if library.host:
            raise TypeError(f"{name}: a plan is for arrays on a device, not for {library.name} arrays")
        super().__init__(name, {"a": a, "b": b}, out, stream, None)
        self.caller_stream = None if stream is None else self.stream

    @on_device
    def run(
        self,
        cpu: Callable[..., Any],
        prepare: Callable[..., Any],
        inputs: tuple[Any, ...],
        scalars: tuple[Any, ...],
        source: Any = None,
        key: Any = None,
        reads_source: bool = False,
    ) -> Plan:
        arrays, layouts = (*self.arrays, self.result), (*self.inputs, self.out)
        read = self.library.read(arrays)
        if read is None:
            raise _mixed(self.name, arrays)
        for argument, array, layout in zip(_NAMES, arrays, layouts, strict=True):
            if layout.owner is not array:
                raise TypeError(
                    f"{self.name}: {argument} has dtype {array.dtype} and the computation "
                    f"{self.dtype.name}, or strides that take a copy; a plan casts nothing and copies nothing"
                )
        steps: list[_Step] = []
        if 0 not in self.out.shape:
            written = (self.out,) if source is None or source is self.out else (source, self.out)
            if len(written) == 2 and not reads_source:
                steps += _steps(copy_launches, (1,), layouts, written, written)
                written = (self.out,)
            origins = (*[layout for layout, _ in inputs], *written)
            views = (*[layout.op(trans) for layout, trans in inputs], *written)
            steps += _steps(prepare, scalars, layouts, origins, views)
        return Plan(self, steps, *read)


def _steps(
    prepare: Callable[..., Any],
    scalars: tuple[Any, ...],
    layouts: tuple[Any, ...],
    origins: tuple[Any, ...],
    views: tuple[Any, ...],
) -> list[_Step]:
    """Return the steps that compute with `views`, which are of `origins`, some of `layouts`."""
    which = [next(i for i, layout in enumerate(layouts) if layout is origin) for origin in origins]
    steps = []
    for operands in batches(views):
        launches = prepare(scalars, operands)
        if launches is not None:
            distances = [
                operand.pointer - origin.pointer for operand, origin in zip(operands, origins, strict=True)
            ]
            steps.append(_Step(launches, scalars, tuple(zip(which, distances, strict=True))))
    return steps


def _joined(steps: list[_Step], workspace: int) -> Callable[[list[int], int], None]:
    """Return a function that runs the steps, given the addresses of a, b and out and a stream."""
    loaded: list[tuple[Callable[[list[int], int], None], tuple[tuple[int, int], ...]]] = [
        (
            launches.bound_at(workspace, *scalars) if launches.uses_workspace else launches.bound(*scalars),
            locations,
        )
        for launches, scalars, locations in steps
    ]
    if [locations for _, locations in loaded] == [((0, 0), (1, 0), (2, 0))]:
        return loaded[0][0]

    def enqueue(pointers: list[int], stream: int) -> None:
        for run, locations in loaded:
            run([pointers[which] + distance for which, distance in locations], stream)

    return enqueue


def _mixed(name: str, arrays: tuple[Any, ...]) -> TypeError:
    kinds = ", ".join(f"{type(array).__module__}.{type(array).__qualname__}" for array in arrays)
    return TypeError(
        f"{name}: a, b and out must be CuPy arrays or PyTorch tensors, all of the type that the plan was "
        f"made with and none negated lazily; they are {kinds}"
    )


def _in_words(facts: tuple[Any, ...]) -> str:
    """Describe in words what `Library.read` has read of an array."""
    shape, strides, dtype, device, *conj = facts
    text = f"shape {tuple(shape)}, strides {tuple(strides)}, dtype {dtype} on device {device}"
    return text + (", conjugated" if any(conj) else "")
