"""Try the listed mutants on the quick suite: make mutants.

python -m mutants [--budget SECONDS] [--processes 2] [--only TEXT] [--left] [--write] [--scratch FOLDER]
"""

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

from mutants.change import mutants_of
from mutants.listed import KILLED, read_list, shares, write_list
from mutants.reached import TREE, reach
from mutants.run import attempt


def main() -> int:
    """Run what is asked for; return 1 if a mutant survives that was killed when the list was last written."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--budget", type=float, default=15.0, help="processor time of tests, for each mutant")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", default="", help="mutants with this in their file or function")
    parser.add_argument("--left", action="store_true", help="only mutants that no test is known to kill")
    parser.add_argument("--write", action="store_true", help="write the outcomes to the list")
    parser.add_argument("--scratch", type=Path, help="keeps the run with coverage for the next call")
    options = parser.parse_args()
    listed = {one.mutant: one for one in read_list()}
    places = {mutant.file: mutants_of(mutant.file, (TREE / mutant.file).read_bytes()) for mutant in listed}
    # what the source no longer has is left as it is
    chosen = [
        one
        for mutant, one in listed.items()
        if mutant in places[mutant.file]
        and options.only in f"{mutant.file} {mutant.function}"
        and not (options.left and (one.now in KILLED or one.equivalent))
    ]
    lost = 0
    with TemporaryDirectory() as folder:
        scratch = (options.scratch or Path(folder)).absolute()
        reach(scratch, options.processes)
        with ProcessPoolExecutor(options.processes, get_context("spawn")) as pool:
            # first those whose test is known
            chosen.sort(key=lambda one: not one.by)
            tried = [pool.submit(attempt, scratch, options.budget, one) for one in chosen]
            for done in as_completed(tried):
                one = done.result()
                lost += one.now not in KILLED and (listed[one.mutant].now or one.before) in KILLED
                listed[one.mutant] = one
                print(one.now, one.by, *one.mutant, sep="\t", flush=True)
                if options.write:
                    write_list(list(listed.values()))
    for folder, when, tried_, killed, idle in shares(list(listed.values())):
        print(
            f"{folder:8} {when:7} {tried_:4} tried, {killed:4} killed, {idle:3} change nothing",
            file=sys.stderr,
        )
    print(f"{lost} killed before survive", file=sys.stderr)
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
