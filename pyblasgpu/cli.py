"""The command line: ``pyblasgpu info | demo | explain | build | tune | report | wisdom | bench | run``.

Exit code 0: done. 1: done, and a check failed. 2: wrong use, or it cannot run on this machine. Results go
to stdout, progress and complaints to stderr.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict

from . import terminal
from .command_line import make_parser
from .errors import BackendUnavailable

__all__ = ["main", "parser"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that `argv` (``sys.argv[1:]`` if None) names; returns the exit code."""
    words, programs = ["pyblasgpu"], []

    def run() -> int:
        options = parser().parse_args(argv)
        words.append(options.command)
        if options.command == "run":
            from . import run_command

            run_command.check(options)
            programs.append(options)
            return 0
        return options.run(options)

    code = terminal.guarded(words, run)
    for options in programs:  # whose errors and warnings are its own
        return options.run(options)
    return code


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line; each command's options name the function that runs it."""
    runs = (_info, _demo, _explain, _build, _tune, _report, _wisdom, _bench, _run)
    return make_parser({run.__name__.removeprefix("_"): run for run in runs})


@contextmanager
def _advising(advice: str) -> Iterator[None]:
    """Add `advice` to the error where a device is unavailable."""
    try:
        yield
    except BackendUnavailable as missing:
        raise BackendUnavailable(f"{str(missing).rstrip('.')}; {advice}") from None


def _info(options: argparse.Namespace) -> int:
    from . import info

    facts = info.collect()
    if options.json:
        print(json.dumps(facts, indent=2))
    else:
        info.show(facts, terminal.console(terminal.WIDTH))
    return 0


def _demo(options: argparse.Namespace) -> int:
    from . import demo

    with terminal.console(stderr=True).status("") as status:
        rows = list(demo.collect(options.n, progress=status.update))
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
    else:
        demo.show(rows, terminal.console(terminal.WIDTH), options.verbose)
    return 0 if all(row.passed for row in rows) else 1


def _explain(options: argparse.Namespace) -> int:
    from . import explain_command

    is_named = options.device is not None and not options.device.strip().isdecimal()
    with nullcontext() if is_named else _advising("name a card that need not be here, as in --device h200"):
        return explain_command.main(options)


def _build(options: argparse.Namespace) -> int:
    from . import build

    return build.main(options)


def _tune(options: argparse.Namespace) -> int:
    from .tuning import command as tune_command

    with _advising("--dry-run with --device h200, and --device cpu, need no GPU"):
        return tune_command.main(options)


def _report(options: argparse.Namespace) -> int:
    from .tuning import command as tune_command

    with _advising("name a recorded sweep, which needs no GPU"):
        return tune_command.show_report(options)


def _wisdom(options: argparse.Namespace) -> int:
    from .tuning import wisdom

    return wisdom.main(options)


def _bench(options: argparse.Namespace) -> int:
    from .bench import command

    return command.main(options)


def _run(options: argparse.Namespace) -> int:
    from . import run_command

    return run_command.main(options)
