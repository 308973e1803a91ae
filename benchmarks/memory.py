"""Peak memory: of a process on its own, and of what NumPy allocates during a call."""

import json
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from benchmarks.record import SkipError

MB = 1e6
_PROCESSES = Path("/proc")
# seconds between two looks at what processes hold
_PAUSE = 0.1
# a small process in between: a child's peak also counts what its parent held when it was started
_LAUNCHER = """
import json, resource, subprocess, sys, time
start = time.perf_counter()
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
print(json.dumps([done.returncode, seconds, peak]))
"""


@dataclass(frozen=True)
class Ran:
    """How a command ran: its seconds, and its peak memory in bytes."""

    seconds: float
    peak: int


def run_alone(command: Sequence[str], stdin: IO[bytes] | None = None) -> Ran:
    """Run a command in a process of its own, whose peak is taken; what it prints is dropped."""
    launcher = [sys.executable, "-S", "-c", _LAUNCHER, *command]
    done = subprocess.run(launcher, stdin=stdin, capture_output=True, check=True, text=True)
    code, seconds, peak = json.loads(done.stdout)
    if code:
        raise RuntimeError(f"{' '.join(command[:4])} ended with code {code}: {done.stderr[-500:]}")
    return Ran(seconds, peak)


def run_together(command: Sequence[str], codes: Sequence[int] = (0,)) -> Ran:
    """Run a command that starts processes; the peak is what all of them hold at once."""
    if not (_PROCESSES / "self" / "smaps_rollup").exists():
        raise SkipError("the memory of several processes is known on Linux only")
    start, peak = time.perf_counter(), 0
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)
        while process.poll() is None:
            peak = max(peak, sum(map(_held, _tree(process.pid))))
            time.sleep(_PAUSE)
        seconds = time.perf_counter() - start
        if process.returncode not in codes:
            said.seek(0)
            reason = said.read().decode(errors="replace")[-500:]
            raise RuntimeError(f"{' '.join(command[:4])} ended with code {process.returncode}: {reason}")
    return Ran(seconds, peak)


def _tree(root: int) -> list[int]:
    """Return the numbers of a process and of all that come from it."""
    children: dict[int, list[int]] = {}
    for folder in _PROCESSES.glob("[0-9]*"):
        # the parent is the second field after the name, which stands in parentheses
        if fields := _read(folder / "stat").rpartition(")")[2].split():
            children.setdefault(int(fields[1]), []).append(int(folder.name))
    found = [root]
    for process in found:
        found += children.get(process, [])
    return found


def _held(process: int) -> int:
    """Return the bytes of a process, its share of what it holds with others; none if it has ended."""
    lines = _read(_PROCESSES / str(process) / "smaps_rollup").splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def temporaries(action: Callable[[], object], output: int) -> int:
    """Return the most bytes that a call holds at once beyond its output."""
    action()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        kept = action()
        _, peak = tracemalloc.get_traced_memory()
        del kept
    finally:
        tracemalloc.stop()
    return max(0, peak - before - output)
