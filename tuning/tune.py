"""Tune pyblasgpu for the card in this machine: ``python tuning/tune.py [--effort quick] [--dry-run] ...``

The same as ``pyblasgpu tune``; run it once after installing. ``--help`` lists the options.
"""

import sys

from pyblasgpu.cli import main

if __name__ == "__main__":  # the processes that compile import this file too
    sys.exit(main(["tune", *sys.argv[1:]]))
