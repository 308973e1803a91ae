"""Commands that are sent a signal at some moment, and everything they leave behind."""

import fcntl
import os
import random
import signal
import subprocess
import termios
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from support.patience import LIMIT, until
from support.shell import SCRIPT, listing

SCRATCH = ".pac-wrap-"
# bytes of a pipe that holds 65,536 at most
_MUCH = 32_768


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
    moment: float | Callable[[], bool] | None,
    folder: Path,
    *,
    stdin: int = subprocess.DEVNULL,
    times: int = 1,
) -> Ended:
    """Run a command, with its scratch in the folder, and send it a signal.

    The moment is a number of seconds after it began to listen to signals, or what becomes true when it has
    come, or None: when its output, which nobody reads before, fills a pipe.
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

        def come() -> bool:
            if process.poll() is not None:
                return True
            if moment is None:
                return _unread(process) > _MUCH
            return moment() if callable(moment) else _listens(process)

        until(come, "the moment for a signal came", step=0.005)
        if isinstance(moment, float):
            time.sleep(moment)
        in_time = process.poll() is None
        for _ in range(times):
            process.send_signal(number)
            time.sleep(0.05 * (times > 1))
        out, err = process.communicate(timeout=LIMIT)
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


def _listens(process: subprocess.Popen[bytes]) -> bool:
    """Return whether a process has begun to listen to signals; before, they end it as they end any other."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    caught = int(status.partition("SigCgt:")[2].split()[0], 16)
    return all(caught >> number - 1 & 1 for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))


def _unread(process: subprocess.Popen[bytes]) -> int:
    """Return how many bytes a process has written that nobody has read."""
    assert process.stdout is not None
    number = array("i", [0])
    fcntl.ioctl(process.stdout, termios.FIONREAD, number)
    return number[0]
