"""Run several commands at once, one on each card, with cores of their own.

``python -m benchmarks.on_cards --out DIR [--seconds 600] [--cards 4] "benchmarks.spectra --letters d" ...``

Each command is a module and its arguments, run as ``python -m`` on the first card that is free. Its output
is ``DIR/<number>-<module>.txt``, and ``--out DIR`` is added to scripts of ``benchmarks``. When the time is
up, running commands are interrupted and keep the results that they have; no other begins.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from pyblasgpu.gpu import device
from pyblasgpu.options import parse_seconds
from pyblasgpu.terminal import guarded

PATIENCE = 20.0  # seconds that an interrupted command may take to write its results
POLL = 0.1


class Slot(NamedTuple):
    """A card, the cores that serve it, and what runs there."""

    card: int
    cores: frozenset[int]
    number: int
    run: subprocess.Popen[bytes]


def slot_cores(count: int) -> list[frozenset[int]]:
    """Disjoint sets of this process's cores, alike in size; all cores for each where there are too few."""
    cores = sorted(os.sched_getaffinity(0))
    share = len(cores) // count
    return [frozenset(cores[i * share : (i + 1) * share] or cores) for i in range(count)]


def start(number: int, command: str, card: int, cores: frozenset[int], out: Path) -> Slot:
    """Start a command on a card."""
    words = shlex.split(command)
    if words[0].startswith("benchmarks.") and "--out" not in words:
        words += ["--out", str(out)]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    name = visible.split(",")[card] if visible else str(card)
    with (out / f"{number}-{words[0]}.txt").open("wb") as log:
        run = subprocess.Popen(
            [sys.executable, "-m", *words],
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "CUDA_VISIBLE_DEVICES": name, "PYTHONUNBUFFERED": "1"},
        )
    os.sched_setaffinity(run.pid, cores)
    return Slot(card, cores, number, run)


@contextmanager
def interrupts() -> Iterator[None]:
    """Let commands that are started here take SIGINT, which a shell has its background jobs ignore."""
    kept = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, kept)


@interrupts()
def run_all(commands: Sequence[str], cards: int, seconds: float, out: Path) -> list[int | None]:
    """Run commands on cards; their exit codes, None of those that did not begin."""
    out.mkdir(parents=True, exist_ok=True)
    codes: list[int | None] = [None] * len(commands)
    waiting, ends = list(enumerate(commands)), time.monotonic() + seconds
    free, slots = list(enumerate(slot_cores(cards))), list[Slot]()
    while (waiting or slots) and time.monotonic() < ends:
        while waiting and free:
            slots.append(start(*waiting.pop(0), *free.pop(0), out))
        time.sleep(POLL)
        for slot in [each for each in slots if each.run.poll() is not None]:
            slots.remove(slot)
            free.append((slot.card, slot.cores))
            codes[slot.number] = slot.run.returncode
    for slot in slots:
        slot.run.send_signal(signal.SIGINT)
    for slot in slots:
        try:
            codes[slot.number] = slot.run.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            slot.run.kill()
            codes[slot.number] = slot.run.wait()
    return codes


def main(arguments: Sequence[str] | None = None) -> int:
    """Run by a command line; the exit code is 1 where a command failed or did not begin."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.on_cards",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("commands", nargs="+", help="a module and its arguments, in quotes")
    parser.add_argument("--out", type=Path, required=True, help="folder for logs and results")
    parser.add_argument("--seconds", type=parse_seconds, default=600.0, help="of all (%(default)s)")
    parser.add_argument("--cards", type=int, help="cards to use (all)")
    options = parser.parse_args(arguments)
    codes = run_all(options.commands, options.cards or device.count(), options.seconds, options.out)
    for code, command in zip(codes, options.commands, strict=True):
        print("did not begin" if code is None else f"exit code {code}", command)
    return int(any(codes) or None in codes)


if __name__ == "__main__":
    sys.exit(guarded(["benchmarks.on_cards"], main))
