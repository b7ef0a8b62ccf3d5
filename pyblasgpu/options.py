"""Types of command-line options, as functions for argparse: each returns a value, or raises with the values
allowed.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

from .database import FAMILIES, sizes_of
from .patching import parsed
from .routine_table import ROUTINES as TABLE
from .routine_table import routines
from .types import DTYPES, dtype_of

__all__ = [
    "Command",
    "OTHERS",
    "ROUTINES",
    "add_help",
    "parse_amount",
    "parse_architectures",
    "parse_batches",
    "parse_benchmarked",
    "parse_call",
    "parse_count",
    "parse_device",
    "parse_dtypes",
    "parse_duration",
    "parse_families",
    "parse_layouts",
    "parse_listed",
    "parse_part",
    "parse_patches",
    "parse_prefixed",
    "parse_seconds",
    "parse_shape",
    "parse_shapes",
    "parse_size_classes",
    "parse_sizes",
    "parse_splits",
    "parse_stages",
    "parse_strategy",
    "parse_tuned",
    "parse_tuned_device",
    "parse_variants",
    "parse_whole",
]

ROUTINES = ("gemm", "trmm", "trsm")
#: Routines that are tuned only on request.
TUNED_TOO = ("gemv", "ger")
#: Routines that are benchmarked only on request.
OTHERS = ("gemm3m", *(each.stem for each in routines("level3") if each.stem not in ROUTINES))
MAX_COUNT = 2**63 - 1  # of a number that is counted with


def add_help(parser: argparse.ArgumentParser) -> None:
    """Add the option that prints a parser's help."""
    parser.add_argument("-h", "--help", action="help", help="Print this help, and exit. Example: --help")


class Command(argparse.ArgumentParser):
    """Parser whose options may be before, between and after its other arguments."""

    _between = False

    def __init__(self, **settings):
        super().__init__(**settings, add_help=False)
        add_help(self)

    def parse_known_args(self, args=None, namespace=None):
        takes_the_rest = any(action.nargs == argparse.REMAINDER for action in self._actions)
        if self._between or takes_the_rest:
            return super().parse_known_args(args, namespace)
        self._between = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._between = False


def parse_listed(text: str, known: Sequence[str]) -> tuple[str, ...]:
    """The names in a list, each once; of letters and routines in any case."""
    items = tuple(dict.fromkeys(item.strip() for item in text.split(",")))
    names = tuple(next((name for name in known if name == item.lower()), item) for item in items)
    for item in names:
        if item not in known:
            raise argparse.ArgumentTypeError(f"{item!r} is none of {', '.join(known)}")
    return names


def parse_device(text: str) -> str:
    """Return a number, or the name of a device that is here or known; the driver is called later."""
    from .gpu import device

    if not text.strip().isdecimal():
        try:
            device.named(text)
        except ValueError as unknown:
            raise argparse.ArgumentTypeError(str(unknown)) from None
    return text


def parse_tuned_device(text: str) -> str:
    """Return the name of a device, or 'cpu' for the processor."""
    return "cpu" if text.lower() == "cpu" else parse_device(text)


def parse_architectures(text: str) -> tuple[str, ...]:
    """Names as 'sm_90', of architectures that kernels run on."""
    from .gpu import device

    rows = (device.known(name) for name in device.names() if name.startswith("sm_"))
    return parse_listed(text, [card.name for card in rows if card.cc >= device.OLDEST])


def parse_benchmarked(text: str) -> tuple[str, ...]:
    return parse_listed(text, (*ROUTINES, *OTHERS))


def parse_call(text: str) -> tuple[str, str]:
    """Letter and routine of a name such as 'dgemm'."""
    stems = [routine.stem for routine in TABLE.values() if routine.is_explained]
    known = {letter + stem: (letter, stem) for letter in DTYPES for stem in stems}
    if text.lower() not in known:
        raise argparse.ArgumentTypeError(f"{text!r} is none of s, d, c, z with one of {', '.join(stems)}")
    return known[text.lower()]


def parse_prefixed(text: str) -> tuple[str, ...]:
    """Return routines, in all dtypes of the options ('gemm') or in their own ('sgemm')."""
    names = (*ROUTINES, *TUNED_TOO)
    return parse_listed(text, (*names, *(dtype + name for dtype in DTYPES for name in names)))


def parse_tuned(text: str) -> tuple[str, ...]:
    """Routines that are tuned."""
    return parse_listed(text, (*ROUTINES, *TUNED_TOO))


def parse_dtypes(text: str) -> tuple[str, ...]:
    return parse_listed(",".join(_letter_of(item.strip()) for item in text.split(",")), tuple(DTYPES))


def _letter_of(dtype: str) -> str:
    """The BLAS's letter of a dtype ('s', 'S', 'float32'); what is none stays as it is."""
    try:
        return dtype if dtype.lower() in DTYPES else dtype_of(dtype).letter
    except TypeError:
        return dtype


def parse_strategy(text: str) -> str:
    from .tuning.strategies import STRATEGIES

    if text not in STRATEGIES:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(STRATEGIES)}")
    return text


def parse_families(text: str) -> tuple[str, ...]:
    return parse_listed(text, tuple(FAMILIES))


def parse_layouts(text: str) -> tuple[str, ...]:
    return parse_listed(
        text, tuple(dict.fromkeys(name for family in FAMILIES.values() for name in family.layouts))
    )


def parse_size_classes(text: str) -> tuple[str, ...]:
    return parse_listed(text, tuple(dict.fromkeys(size for stem in FAMILIES for size in sizes_of(stem))))


def parse_stages(text: str) -> tuple[str, ...]:
    from .tuning.session import STAGES

    return parse_listed(text, STAGES)


def parse_variants(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text.upper().split(",")))


def parse_sizes(text: str) -> tuple[int, ...]:
    return tuple(parse_count(item) for item in text.split(","))


def parse_splits(text: str) -> tuple[int, ...]:
    return tuple(parse_whole(item) for item in text.split(","))


def parse_shapes(text: str) -> tuple[tuple[int, ...], ...] | str:
    """(m, n, k) of each, or the name of a list."""
    if text.isalpha():
        return text
    shapes = tuple(tuple(parse_count(extent) for extent in item.split("x")) for item in text.split(","))
    if any(len(shape) != 3 for shape in shapes):
        raise argparse.ArgumentTypeError(f"{text!r} is no list of MxNxK")
    return shapes


def parse_shape(text: str) -> tuple[int, ...]:
    """The extents of 'M', 'MxN' or 'MxNxK'."""
    extents = tuple(parse_count(extent) for extent in text.lower().split("x"))
    if len(extents) > 3:
        raise argparse.ArgumentTypeError(f"{text!r} is no N, MxN or MxNxK")
    return extents


def parse_batches(text: str) -> tuple[tuple[int, ...], ...]:
    """(m, n, k, batch) of each."""
    shapes = []
    for item in text.split(","):
        count, *extents = (parse_count(extent) for extent in item.split("x"))
        if len(extents) not in (1, 3):
            raise argparse.ArgumentTypeError(f"{item!r} is neither COUNTxN nor COUNTxMxNxK")
        shapes.append((*(extents * 3)[:3], count))
    return tuple(shapes)


def parse_count(text: str) -> int:
    value = _integer(text)
    if not 0 < value <= MAX_COUNT:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive integer")
    return value


def parse_whole(text: str) -> int:
    value = _integer(text)
    if not 0 <= value <= MAX_COUNT:
        raise argparse.ArgumentTypeError(f"{text!r} is no integer from 0 on")
    return value


def _integer(text: str) -> int:
    """Its value; -1 for what is none, or has a sign."""
    text = text.strip()
    return int(text) if text.isdecimal() and len(text) <= len(str(MAX_COUNT)) else -1


def parse_amount(text: str) -> float:
    value = _number(text)
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 0 on")
    return value


def parse_part(text: str) -> float:
    value = _number(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 0 to 1")
    return value


def _number(text: str) -> float:
    """Its value; NaN for what is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def parse_seconds(text: str) -> float:
    value = _number(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number of seconds")
    return value


def parse_duration(text: str) -> float:
    """Seconds of '90', '90s', '10m' or '2h'."""
    unit = {"s": 1, "m": 60, "h": 3600}.get(text[-1:], 0)
    number = text[:-1] if unit else text
    seconds = _number(number) * (unit or 1)
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration such as 90s, 10m, 2h")
    return seconds


def parse_patches(text: str) -> str:
    """Return the names of patches, checked."""
    try:
        parsed(text)
    except ValueError as wrong:
        raise argparse.ArgumentTypeError(str(wrong)) from None
    return text
