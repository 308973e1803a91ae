"""Torture the software for some minutes and write what happened: make torture.

python -m torture [--minutes 10] [--seed N] [--only NAME [--try N]] [--write]
"""

import argparse
import sys

from torture.attacks import ATTACKS
from torture.page import COUNTS, PAGE, build_page, read_soak
from torture.run import attempt, run_attacks


def main() -> int:
    """Run what is asked for; return 1 if a fault was not handled as it should be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", choices=[attack.name for attack in ATTACKS])
    parser.add_argument("--try", dest="number", type=int, help="this one fault again, with its traceback")
    parser.add_argument("--write", action="store_true", help="write docs/reliability.md")
    options = parser.parse_args()
    chosen = [attack for attack in ATTACKS if not options.only or attack.name in options.only]
    if options.number is not None:
        for attack in chosen:
            print(attack.name, dict(attempt(attack, options.seed, options.number)))
        return 0
    record = run_attacks(
        chosen, options.seed, options.minutes, lambda line: print(line, file=sys.stderr, flush=True)
    )
    if options.write:
        COUNTS.write_text(record.to_json(), encoding="utf-8", newline="\n")
        PAGE.write_text(build_page(record, read_soak()), encoding="utf-8", newline="\n")
    print(f"{sum(tally.tried for tally in record.tallies):,} faults tried, {record.failed} not handled")
    return 1 if record.failed else 0


if __name__ == "__main__":
    sys.exit(main())
