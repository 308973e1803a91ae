"""Run lines of the benchmark, print their tables and write benchmarks/results.

python -m benchmarks.run [NAME ...] [--quick | --large] [--out DIR]
"""

import argparse
import os
import sys
import time
from pathlib import Path

from benchmarks.build import HERE, write_page
from benchmarks.lines import NAMES, line
from benchmarks.record import SkipError, save
from benchmarks.table import render
from benchmarks.timing import Scale

RESULTS = HERE / "results"


def main() -> None:
    """Run what is asked for; a line that cannot run here is skipped, with its reason."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    scales = parser.add_mutually_exclusive_group()
    scales.add_argument("--quick", action="store_true", help="tiny sizes, to see that everything runs")
    scales.add_argument("--large", action="store_true", help="also 10^8: needs 8 GB of memory, 10 GB of disk")
    parser.add_argument("--out", type=Path, help="where the results go; nowhere with --quick by default")
    options = parser.parse_args()
    if unknown := sorted(set(options.names) - set(NAMES)):
        parser.error(f"there is no line {', '.join(unknown)}; the lines are {', '.join(NAMES)}")
    scale = Scale("quick" if options.quick else "large" if options.large else "default")
    folder = options.out or (None if options.quick else RESULTS)
    for name in options.names or NAMES:
        started, load = time.monotonic(), os.getloadavg()[0]
        try:
            result = line(name)(scale)
        except SkipError as reason:
            print(f"{name} is skipped: {reason}\n", flush=True)
            continue
        print(render(result), "\n", flush=True)
        sys.stderr.write(f"{name}: {time.monotonic() - started:.0f} s\n")
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            save(result, folder, load)
    if folder == RESULTS:
        write_page()


if __name__ == "__main__":
    main()
