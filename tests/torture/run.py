"""Run attacks within a time, each fault with a seed of its own, and say what happened."""

import os
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import chdir
from pathlib import Path

import numpy as np

from torture.record import Attack, Record, Tally, UnavailableError, counted

# a broken promise is found again and again; the first few tell enough
_ENOUGH = 5


def run_attacks(
    attacks: Sequence[Attack], seed: int, minutes: float, progress: Callable[[str], None]
) -> Record:
    """Return what happened; every attack gets its share of the time, and at least one try."""
    whole = sum(attack.share for attack in attacks)
    tallies = []
    for attack in attacks:
        tally = _run(attack, seed, 60.0 * minutes * attack.share / whole)
        state = tally.skipped or f"{tally.tried:,} tried, {len(tally.failures)} not handled"
        progress(f"{tally.name}: {state}")
        for failure in tally.failures:
            progress(failure)
        tallies.append(tally)
    return Record(seed, minutes, tuple(tallies))


def attempt(attack: Attack, seed: int, number: int) -> Counter[str]:
    """Return what one fault led to; the same seed and number make the same fault.

    It happens in a scratch folder: a generated name may be one to write to. The folder this is called from
    must get no new file.
    """
    random = np.random.default_rng([seed, number, *attack.name.encode()])
    before = set(os.listdir())
    with tempfile.TemporaryDirectory(prefix="torture-") as folder, chdir(folder):
        outcomes = counted(attack.attempt(random, Path(folder)))
    added = set(os.listdir()) - before
    assert not added, f"{added} came into {Path.cwd()}"
    return outcomes


def _run(attack: Attack, seed: int, seconds: float) -> Tally:
    outcomes: Counter[str] = Counter()
    failures: list[str] = []
    end, number = time.monotonic() + seconds, 0
    while (number == 0 or time.monotonic() < end) and len(failures) < _ENOUGH:
        try:
            outcomes += attempt(attack, seed, number)
        except UnavailableError as reason:
            return Tally(attack.name, attack.what, {}, (), str(reason))
        except Exception:
            where = f"--only {attack.name!r} --seed {seed} --try {number}"
            failures.append(f"{where}\n{traceback.format_exc(limit=-4)}")
        number += 1
    return Tally(attack.name, attack.what, dict(outcomes), tuple(failures))
