"""Try the listed mutants on the quick suite: make mutants.

python -m mutants [--budget SECONDS] [--processes 2] [--only TEXT] [--survivors] [--write]
"""

import argparse
import random
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from mutants.change import Mutant, mutants_of
from mutants.listed import KILLED, counts, read_list, with_outcome, write_list
from mutants.reached import PACKAGE, reach
from mutants.run import Task, try_all


def main() -> int:
    """Run what is asked for; return 1 if a mutant survives that was killed when the list was last written."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--budget", type=float, default=15.0, help="processor time of tests, for each mutant")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", default="", help="mutants with this in their file or function")
    parser.add_argument("--survivors", action="store_true", help="only mutants that were not killed")
    parser.add_argument("--write", action="store_true", help="write the outcomes to the list")
    parser.add_argument("--tree", type=Path, default=PACKAGE.parent.parent, help="the tree that is tested")
    parser.add_argument("--column", choices=["before", "now"], default="now", help="where to write")
    parser.add_argument("--scratch", type=Path, help="keeps the run with coverage for the next call")
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        scratch = (options.scratch or Path(folder)).absolute()
        scratch.mkdir(exist_ok=True)
        tree = options.tree.absolute()
        reached = reach(tree, scratch, options.processes)
        listed = read_list()
        chosen = [
            one
            for one in listed
            if options.only in f"{one.mutant.file} {one.mutant.function}"
            and not (options.survivors and (getattr(one, options.column) in KILLED or one.equivalent))
        ]
        outcomes: dict[Mutant, str] = {}
        files = {one.mutant.file for one in chosen}
        places = {file: mutants_of(file, (tree / file).read_bytes()) for file in files}
        todo: list[Task] = []
        for one in chosen:
            place = places[one.mutant.file].get(one.mutant)
            todo.append((one.mutant, one.by, reached.of(one.mutant.file, place.line) if place else []))
        # in any order, so that what is known at any time is fair, but first those whose test is known
        random.Random(29).shuffle(todo)
        todo.sort(key=lambda task: not task[1])
        for mutant, outcome in try_all(
            tree, scratch, todo, reached.seconds, options.budget, options.processes
        ):
            outcomes[mutant] = outcome.outcome
            print(*outcome, *mutant, sep="\t", flush=True)
            if options.write:
                listed = with_outcome(listed, mutant, options.column, outcome)
                write_list(listed)
    was = {one.mutant: one.now or one.before for one in chosen}
    lost = [mutant for mutant, now in outcomes.items() if now not in KILLED and was[mutant] in KILLED]
    print(counts(listed)["all"][options.column], f"{len(lost)} killed before survive", file=sys.stderr)
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
