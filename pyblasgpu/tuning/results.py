"""Records of measurements, and the winners that they decide."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import cast

from ..database import (
    FAMILIES,
    METHODS,
    METHODS_AT,
    STOP_ROUTINES,
    Document,
    Entry,
    families_of,
    solved_in,
    switch_at,
    ways_of,
)

__all__ = [
    "FATAL",
    "Record",
    "add_elsewhere",
    "as_of_now",
    "candidate_of",
    "drop_others",
    "sound",
    "winners",
]


#: Outcomes after which a candidate is out, whatever was measured before.
FATAL = frozenset({"wrong", "spoils", "crash", "hang", "error"})


@dataclass(frozen=True)
class Record:
    """One candidate at one size: a kernel's Config, a stop size, or a method.

    Attributes
    ----------
    device, arch : str
        Where it was measured.
    stem : str
        A kernel family; or a routine, for its stop size, its method, or as a whole.
    dtype, layout, size : str
        As in the database; of a method the place, and the layout 'any', or that of another of `SOLVED`.
    extents : tuple of int
        What was run.
    parameters : dict
        Of the Config; of a stop size ``{"stop": size}``, with the Config of the leaf that it was timed with;
        of a method, ``{"one_launch": 1}``, maybe with the Config that it was timed with, of the recursion
        beside it, ``{"one_launch": 0}``, and of one that ends in triangles of 1024 which go by it,
        ``{"one_launch": 1024}``; of batches ``{"small_triangles": 1}``, or 0.
    outcome : str
        'ok'; or why there is no time: the rule that it broke, 'compile', 'wrong', 'spoils' (it wrote where
        it must not), 'crash', 'hang', 'error'; or what was timed beside the candidates: 'vendor',
        'reference', and whole routines 'before' and 'after' the run.
    seconds, tflops : float
        0 without a time.
    detail : str
        The complaint, if any.
    effort, toolchain : str
        Of the run; a later one resumes what was measured with its own.
    caches : {'warm', 'cold'}
        Whether operands lay in the L2 cache.
    when : str
        Date and time, UTC.
    state : dict
        Clock, temperature, power of the device as NVML told it: sm_mhz, celsius, watts.
    numbers : dict
        What the linker reported of a candidate that was dropped for it: registers, bytes of spills, ...
    """

    device: str
    arch: str
    stem: str
    dtype: str
    layout: str
    size: str
    extents: tuple[int, ...] = ()
    parameters: dict[str, int] = field(default_factory=dict)
    outcome: str = "ok"
    seconds: float = 0.0
    tflops: float = 0.0
    detail: str = ""
    effort: str = ""
    toolchain: str = ""
    caches: str = "warm"
    when: str = ""
    state: dict[str, float] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)

    @property
    def candidate(self) -> tuple:
        """Equal for the records of one candidate; a method is another one at every place."""
        found = candidate_of(self.stem, self.dtype, self.layout, self.parameters)
        return (*found, self.size) if self.method or self.solver else found

    @property
    def method(self) -> str | None:
        """Of a record of a method which of `ways_of` the routine it is of."""
        asked = self.parameters.get(switch_at(self.stem, self.size) or "")
        if self.layout != "any":
            return None
        return next((way for way, value in ways_of(self.stem, self.size).items() if value == asked), None)

    @property
    def solver(self) -> tuple[str, str, dict[str, int]] | None:
        """Family, which of `SOLVED`, and parameters of the GEMM Config that solved all in one launch, if the
        record has them.
        """
        switch = METHODS.get(self.stem, "")
        solved = solved_in(self.layout)
        if solved is None or self.size not in METHODS_AT or self.parameters.get(switch) != 1:
            return None
        given = {name: value for name, value in self.parameters.items() if name != switch}
        stems = families_of("gemm", self.dtype)
        stem = next((stem for stem in stems if set(given) == set(FAMILIES[stem].parameters)), None)
        return (stem, solved, given) if stem else None

    @property
    def kernel(self) -> tuple[str, str, str, dict[str, int]] | None:
        """Family, dtype, layout and parameters of the kernel: its own, or the leaf of a whole routine."""
        if self.stem in FAMILIES:
            return self.stem, self.dtype, self.layout, self.parameters
        leaf = {name: value for name, value in self.parameters.items() if name != "stop"}
        stems = families_of(self.stem, self.dtype) if "stop" in self.parameters and leaf else ()
        fitting = [stem for stem in stems if FAMILIES[stem].required <= set(leaf)]
        # another family may have all of these parameters, and more
        stem = min(fitting, key=lambda stem: len(set(leaf) ^ set(FAMILIES[stem].parameters)), default=None)
        return (stem, self.dtype, FAMILIES[stem].layouts[0], leaf) if stem else None


def candidate_of(stem: str, dtype: str, layout: str, parameters: dict[str, int]) -> tuple:
    """The same for one that was written down before its Config had all of its parameters."""
    if stem in FAMILIES:
        parameters = FAMILIES[stem].complete(parameters)
    return stem, dtype, layout, *sorted(parameters.items())


def as_of_now(record: Record) -> Record | None:
    """`record` with no parameter that its Config has lost since; None where such a one was on.

    What a sweep recorded stays in its file. A kernel whose lost parameter was off, or 0, is the same without
    it; the time of another is of no Config that there is.
    """
    if record.kernel is None:
        return record
    stem, _, _, parameters = record.kernel
    lost = parameters.keys() - FAMILIES[stem].parameters.keys()
    if any(parameters[name] for name in lost):
        return None
    kept = {name: value for name, value in record.parameters.items() if name not in lost}
    return replace(record, parameters=kept) if lost else record


def winners(records: Iterable[Record], device: str) -> Document:
    """The fastest of what was measured, class by class, as the tuned values of `device`.

    Of a class with several extents that candidate wins whose times are the smallest multiples of the best
    on average; only candidates with a time at each of them take part, of those that are `sound`. The
    same rule joins devices when `records` are those of several, for the values of an architecture.
    Of methods it takes two that a device tried at a place; one may have failed there.
    """
    records = list(records)
    tried: dict[tuple, set[str]] = defaultdict(set)
    for record in records:
        if method := record.method:
            tried[_method_place(record)].add(method)
    records = sound(records)
    times: dict[tuple, dict[tuple, dict[tuple, Record]]] = defaultdict(lambda: defaultdict(dict))
    for record in records:
        if not record.method or len(tried[_method_place(record)]) > 1:
            key = (record.stem, record.dtype, record.layout, record.size)
            times[key][record.candidate][record.device, record.extents] = record
    document = Document(device)
    # families first: the leaf that was best within its routine takes the place of the one best by itself
    for key, measured in sorted(times.items(), key=lambda item: item[0][0] not in FAMILIES):
        best = _best(measured)
        # the larger of the extents is the one to quote
        quoted = max(best.values(), key=lambda record: record.extents)
        stem, dtype, _, size = key
        if stem in STOP_ROUTINES and "stop" in quoted.parameters:
            document.stop_sizes[stem, dtype, size] = quoted.parameters["stop"]
        if quoted.method:
            document.methods[stem, dtype, size] = quoted.method
        if quoted.kernel is not None:
            stem, dtype, layout, parameters = quoted.kernel
            alone = times[stem, dtype, layout, size].get(candidate_of(*quoted.kernel), {})
            rates = [record.tflops for _, record in sorted(alone.items(), key=lambda item: item[0])]
            document.entries[stem, dtype, layout, size] = Entry(parameters, rates[-1] if rates else None)
            if key[0] in STOP_ROUTINES:
                drop_others(document, stem, dtype, size)
    _add_solvers(document, records)
    add_elsewhere(document, records)
    return document


def _method_place(record: Record) -> tuple[str, ...]:
    return record.device, record.stem, record.dtype, record.size


def _add_solvers(document: Document, records: Iterable[Record]) -> None:
    """The Config of the fastest of `sound` records at each place, of each of `SOLVED`."""
    fastest: dict[tuple, Record] = {}
    for record in records:
        if solver := record.solver:
            key = record.dtype, solver[1], record.size
            if key not in fastest or record.seconds < fastest[key].seconds:
                fastest[key] = record
    for (dtype, which, place), record in fastest.items():
        stem, _, parameters = cast(tuple, record.solver)
        document.solvers[stem, dtype, which, place] = Entry(parameters, record.tflops)


def add_elsewhere(document: Document, records: Iterable[Record]) -> None:
    """Tell of each product's Config what it reached at the extents of other classes, by `sound` records."""
    rates: dict[tuple, dict[str, float]] = defaultdict(dict)
    for record in records:
        if record.stem in FAMILIES and FAMILIES[record.stem].routine == "gemm":
            rates[record.candidate][record.size] = record.tflops
    for (stem, dtype, layout, size), entry in document.entries.items():
        known = rates.get(candidate_of(stem, dtype, layout, entry.parameters), {})
        elsewhere = {other: rate for other, rate in known.items() if other != size}
        document.entries[stem, dtype, layout, size] = replace(entry, elsewhere=elsewhere)


def drop_others(document: Document, stem: str, dtype: str, size: str) -> None:
    """Drop what other families of the routine have at the same place."""
    for other in families_of(FAMILIES[stem].routine, dtype):
        if other != stem:
            document.entries.pop((other, dtype, FAMILIES[other].layouts[0], size), None)


def sound(records: Iterable[Record]) -> list[Record]:
    """The times of candidates at which nothing was ever wrong.

    Where some times of a class are of cold caches, those of warm ones do not count.
    """
    records = list(records)
    out = {record.candidate for record in records if record.outcome in FATAL}
    timed = [r for r in records if r.outcome == "ok" and r.seconds > 0 and not _names(r) & out]
    cold = {_class(record) for record in timed if record.caches == "cold"}
    return [record for record in timed if record.caches == "cold" or _class(record) not in cold]


def _names(record: Record) -> set[tuple]:
    """The candidates on which a record depends: its own, and the kernel that it ran as a leaf."""
    kernel = record.kernel
    return {record.candidate, candidate_of(*kernel)} if kernel else {record.candidate}


def _class(record: Record) -> tuple:
    return record.device, record.stem, record.dtype, record.layout, record.size


def _best(measured: dict[tuple, dict[tuple, Record]]) -> dict[tuple, Record]:
    """The times, by place, of the candidate that wins."""
    places = {place for times in measured.values() for place in times}
    complete = [times for times in measured.values() if len(times) == len(places)] or list(measured.values())
    fastest = {place: min(times[place].seconds for times in complete if place in times) for place in places}
    return min(
        complete,
        key=lambda times: sum(times[place].seconds / fastest[place] for place in times) / len(times),
    )
