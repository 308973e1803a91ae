"""Commands that are sent a signal at some moment, and everything they leave behind."""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from support.shell import SCRIPT, listing

SCRATCH = ".pac-wrap-"


@dataclass(frozen=True)
class Ended:
    """How a command ended, whether the signal reached it, and what has changed in the folder."""

    code: int
    out: bytes
    err: str
    in_time: bool
    changed: frozenset[str]

    @property
    def visible(self) -> frozenset[str]:
        """What a user's pattern could match of what has changed."""
        return frozenset(
            name for name in self.changed if not any(part.startswith(".") for part in Path(name).parts)
        )


def signalled(
    arguments: Sequence[object],
    number: signal.Signals,
    moment: float | Callable[[], bool],
    folder: Path,
    *,
    stdin: int = subprocess.DEVNULL,
    times: int = 1,
) -> Ended:
    """Run a command, with its scratch in the folder, and send it a signal.

    The moment is a number of seconds after its start, or what becomes true when it has come. Nobody reads
    its output before that.
    """
    before = listing(folder)
    process = subprocess.Popen(
        [str(SCRIPT), *map(str, arguments)],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"TMPDIR": str(folder), "COLUMNS": "80"},
    )
    try:
        if callable(moment):
            _wait_for(moment, process)
        else:
            time.sleep(moment)
        in_time = process.poll() is None
        for _ in range(times):
            process.send_signal(number)
            time.sleep(0.05 * (times > 1))
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    after = listing(folder)
    changed = {str(Path(name).relative_to(folder)) for name, _ in before.items() ^ after.items()}
    return Ended(process.returncode, out, err.decode(), in_time, frozenset(changed))


def moments(seed: int, longest: float, count: int) -> list[float]:
    """Return some moments, the same for the same seed, up to the longest."""
    drawn = random.Random(seed)
    return [drawn.uniform(0.0, longest) for _ in range(count)]


def scratch_in(folder: Path) -> list[Path]:
    """Return the scratch folders below a folder."""
    return sorted(path for path in folder.rglob(f"{SCRATCH}*") if path.is_dir())


def _wait_for(ready: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while not ready() and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.005)
