"""Waiting for what comes at its own time: as long as a slow and busy machine needs, and no longer."""

import time
from collections.abc import Callable
from typing import Final

# seconds that nothing takes on any machine, unless it never ends
LIMIT: Final = 300.0


def until(ready: Callable[[], bool], what: str, step: float = 0.02) -> None:
    """Return as soon as something is true; fail, and say what it was, if it never becomes true."""
    deadline = time.monotonic() + LIMIT
    while not ready():
        assert time.monotonic() < deadline, f"it never came to pass that {what}"
        time.sleep(step)
