"""Peak memory: of a process on its own, and of what NumPy allocates during a call."""

import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO

MB = 1e6
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
    """How a command ran: its seconds, and the peak memory in bytes of its largest process."""

    seconds: float
    peak: int


def run_alone(command: Sequence[str], stdin: IO[bytes] | None = None) -> Ran:
    """Run a command in a process of its own; what it prints is dropped."""
    launcher = [sys.executable, "-S", "-c", _LAUNCHER, *command]
    done = subprocess.run(launcher, stdin=stdin, capture_output=True, check=True, text=True)
    code, seconds, peak = json.loads(done.stdout)
    if code:
        raise RuntimeError(f"{' '.join(command[:4])} ended with code {code}: {done.stderr[-500:]}")
    return Ran(seconds, peak)


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
