"""The processor time of a test run, with that of every process that it started."""

import ctypes
import os
import resource
import sys
import time

_PR_SET_CHILD_SUBREAPER = 36
_PATIENCE = 5.0


def adopt_orphans() -> None:
    """Make this process the parent of descendants whose own parent ends, so that their time counts too."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def minutes_spent() -> float:
    """Return the minutes of processor time of this process and of all that have ended below it."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end and _any_left():
        time.sleep(0.05)
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages) / 60.0


def _any_left() -> bool:
    """Return whether a child still runs, after those that have ended were waited for."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True
