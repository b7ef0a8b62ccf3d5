"""Records of measurements, and the winners that they decide."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..database import (
    FAMILIES,
    FUSED_TRSM,
    RECURSION,
    TRSM_FUSED,
    TRSM_POINTS,
    TRSM_SMALL,
    TUNED,
    Document,
    Entry,
    algorithms_of,
    families_of,
)

__all__ = [
    "FATAL",
    "Record",
    "add_elsewhere",
    "as_of_now",
    "candidate_of",
    "sound",
    "winners",
    "with_current_algorithm",
]


#: Outcomes after which a candidate is out, whatever was measured before.
FATAL = frozenset({"wrong", "spoils", "crash", "hang", "error"})


@dataclass(frozen=True)
class Record:
    """One candidate at one size: a kernel's Config, or an algorithm.

    Attributes
    ----------
    device, arch : str
        Device of the measurement.
    stem : str
        A family that has entries; or a routine, for an algorithm, or as a whole; or a value of the policy, in
        the layout 'policy'.
    dtype, layout, size : str
        Key, as in the database; for an algorithm the point, and the layout 'any'.
    extents : tuple of int
        Extents that were run.
    parameters : dict
        Parameters of the Config; for an algorithm ``{name: 1}``; for a leaf within its routine the Config's,
        and ``{"stop": order}``.
    outcome : str
        'ok'; or why there is no time: the rule that it broke, 'compile', 'wrong', 'spoils' (it wrote where it
        must not), 'crash', 'hang', 'error', 'absent' (the device cannot run it); or what was noted besides
        the candidates: 'vendor', 'reference', whole routines 'before' and 'after' the run, and a value of
        the policy that was 'decided'.
    seconds, tflops : float
        0 without a time.
    detail : str
        The complaint, if any.
    effort, toolchain : str
        Effort and toolchain of the run; a later one resumes measurements with its own.
    caches : {'warm', 'cold'}
        Whether operands were in the L2 cache.
    when : str
        Date and time, UTC.
    state : dict
        Clock, temperature, power of the device as NVML reported it: sm_mhz, celsius, watts.
    numbers : dict
        The linker's report on a candidate that was dropped for it: registers, bytes of spills, ...
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
        """Equal for the records of one candidate; what belongs to a point is another one at each."""
        candidate = candidate_of(self.stem, self.dtype, self.layout, self.parameters)
        return (*candidate, self.size) if self.algorithm or self.stem in FUSED_TRSM else candidate

    @property
    def algorithm(self) -> str | None:
        """Algorithm of TRSM that the record is of; None for others."""
        if self.stem != "trsm" or self.layout != "any" or len(self.parameters) != 1:
            return None
        (name,) = self.parameters
        return name if name in algorithms_of(self.size) else None

    @property
    def kernel(self) -> tuple[str, str, str, dict[str, int]] | None:
        """Family, dtype, layout and parameters of the kernel: its own, or the leaf of a whole routine."""
        if self.stem in TUNED:
            return self.stem, self.dtype, self.layout, self.parameters
        leaf = {name: value for name, value in self.parameters.items() if name != "stop"}
        stems = families_of(self.stem, self.dtype) if "stop" in self.parameters and leaf else ()
        fitting = [stem for stem in stems if FAMILIES[stem].required <= set(leaf)]
        # another family may have all of these parameters, and more
        stem = min(fitting, key=lambda stem: len(set(leaf) ^ set(FAMILIES[stem].parameters)), default=None)
        return (stem, self.dtype, FAMILIES[stem].layouts[0], leaf) if stem else None


def candidate_of(stem: str, dtype: str, layout: str, parameters: dict[str, int]) -> tuple:
    """Return the candidate of parameters that were recorded before its Config had all of them."""
    if stem in TUNED:
        parameters = TUNED[stem].complete(parameters)
    return stem, dtype, layout, *sorted(parameters.items())


def as_of_now(record: Record) -> Record | None:
    """`record` with no parameter that its Config has lost since; None where such a one was on.

    What a sweep recorded stays in its file. A kernel whose lost parameter was off, or 0, is the same without
    it; the time of another is of no Config that there is.
    """
    renamed = with_current_algorithm(record)
    if renamed is None or renamed.kernel is None:
        return renamed
    record = renamed
    stem, _, _, parameters = renamed.kernel
    lost = parameters.keys() - TUNED[stem].parameters.keys()
    if any(parameters[name] for name in lost):
        return None
    kept = {name: value for name, value in record.parameters.items() if name not in lost}
    return replace(record, parameters=kept) if lost else record


#: Names of the algorithms and of the layouts of T in versions before 0.1.0.
_SWITCHES = {"trsm": ("one_launch", "small_triangles"), "trmm": ("in_place",), "syr2k": ("one_product",)}
_T_LAYOUTS = {
    "any": "left_colmajor",
    "left_by_rows": "left_rowmajor",
    "right_by_columns": "right_colmajor",
    "right_by_rows": "right_rowmajor",
}


def with_current_algorithm(record: Record) -> Record | None:
    """`record` of an algorithm, or of a fused TRSM, by the names of today.

    None of an algorithm that is chosen by a rule now.
    """
    algorithm_parameters = [name for name in _SWITCHES.get(record.stem, ()) if name in record.parameters]
    if not algorithm_parameters:
        return record
    if record.stem != "trsm":
        return None
    (algorithm_parameter,) = algorithm_parameters
    value = record.parameters[algorithm_parameter]
    config = {name: number for name, number in record.parameters.items() if name != algorithm_parameter}
    if not config:
        name = TRSM_SMALL if algorithm_parameter == "small_triangles" else TRSM_FUSED
        algorithm = (RECURSION, name)[value] if value < 2 else f"{name}_{value}"
        return replace(record, parameters={algorithm: 1})
    stem = next((stem for stem in FUSED_TRSM if _is_of(stem, config)), None)
    if stem is None or record.layout not in _T_LAYOUTS or record.size not in TRSM_POINTS:
        return None
    return replace(record, stem=stem, layout=_T_LAYOUTS[record.layout], parameters=config)


def _is_of(stem: str, parameters: Mapping[str, Any]) -> bool:
    """Whether a Config of this stem may have been written down so; it may have got parameters since."""
    return TUNED[stem].required <= parameters.keys() <= TUNED[stem].parameters.keys()


def winners(records: Iterable[Record], device: str) -> Document:
    """The fastest of what was measured, class by class, as the tuned values of `device`.

    Of a class with several extents that candidate wins whose times are the smallest multiples of the best
    on average; only candidates with a time at each of them take part, of those that are `sound`. The
    same rule joins devices when `records` are those of several, for the values of an architecture.
    Of algorithms it takes two that a device tried at a point; one may have failed there.
    """
    records = list(records)
    tried: dict[tuple, set[str]] = defaultdict(set)
    for record in records:
        if algorithm := _algorithm(record):
            tried[record.device, record.dtype, record.size].add(algorithm)
    records = sound(records)
    times: dict[tuple, dict[tuple, dict[tuple, Record]]] = defaultdict(lambda: defaultdict(dict))
    for record in records:
        if not record.algorithm and record.stem not in FUSED_TRSM:
            key = (record.stem, record.dtype, record.layout, record.size)
            times[key][record.candidate][record.device, record.extents] = record
    document = Document(device)
    # families first: the leaf that was best within its routine takes the place of the one best by itself
    for key, measured in sorted(times.items(), key=lambda item: item[0][0] not in FAMILIES):
        best = _best(measured)
        # the larger of the extents is the one to quote
        quoted = max(best.values(), key=lambda record: record.extents)
        if quoted.kernel is not None:
            stem, dtype, layout, parameters = quoted.kernel
            size = key[-1]
            alone = times[stem, dtype, layout, size].get(candidate_of(*quoted.kernel), {})
            rates = [record.tflops for _, record in sorted(alone.items(), key=lambda item: item[0])]
            document.entries[stem, dtype, layout, size] = Entry(parameters, rates[-1] if rates else None)
            if key[0] not in FAMILIES:
                _drop_others(document, stem, dtype, size)
    _add_trsm(document, records, tried)
    add_elsewhere(document, records)
    return document


def _algorithm(record: Record) -> str | None:
    """The algorithm of TRSM of the record: with any Config, the fused one."""
    is_fused = record.stem in FUSED_TRSM and record.layout == "left_colmajor"
    return TRSM_FUSED if is_fused else record.algorithm


def _add_trsm(document: Document, records: Iterable[Record], tried: dict[tuple, set[str]]) -> None:
    """The fastest Config of the fused TRSM at each point, and the best rate of each algorithm, by `sound`
    records.
    """
    fastest: dict[tuple, Record] = {}
    rates: dict[tuple, dict[str, float]] = defaultdict(dict)
    for record in records:
        if record.stem in FUSED_TRSM:
            key = record.dtype, record.layout, record.size
            if key not in fastest or record.seconds < fastest[key].seconds:
                fastest[key] = record
        algorithm = _algorithm(record)
        if algorithm and len(tried[record.device, record.dtype, record.size]) > 1:
            at = rates[record.dtype, record.size]
            at[algorithm] = max(record.tflops, at.get(algorithm, 0.0))
    for (dtype, layout, point), record in fastest.items():
        document.entries[record.stem, dtype, layout, point] = Entry(record.parameters, record.tflops)
    document.trsm_rates.update(rates)


def add_elsewhere(document: Document, records: Iterable[Record]) -> None:
    """Add to each product's Config its rates at the extents of other classes, by `sound` records."""
    rates: dict[tuple, dict[str, float]] = defaultdict(dict)
    for record in records:
        if record.stem in FAMILIES and FAMILIES[record.stem].routine == "gemm":
            rates[record.candidate][record.size] = record.tflops
    for (stem, dtype, layout, size), entry in document.entries.items():
        known = rates.get(candidate_of(stem, dtype, layout, entry.parameters), {})
        elsewhere = {other: rate for other, rate in known.items() if other != size}
        document.entries[stem, dtype, layout, size] = replace(entry, elsewhere=elsewhere)


def _drop_others(document: Document, stem: str, dtype: str, size: str) -> None:
    """Drop what other families of the routine have at the same problem."""
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
    """The times, by problem, of the candidate that wins."""
    problems = {problem for times in measured.values() for problem in times}
    complete = [times for times in measured.values() if len(times) == len(problems)] or list(
        measured.values()
    )
    fastest = {
        problem: min(times[problem].seconds for times in complete if problem in times) for problem in problems
    }
    return min(
        complete,
        key=lambda times: sum(times[problem].seconds / fastest[problem] for problem in times) / len(times),
    )
