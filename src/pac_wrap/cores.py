"""Work spread over the processor's cores by threads: NumPy and the kernels let them run at the same time."""

import os
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def usable_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def together(actions: Sequence[Callable[[], T]]) -> list[T]:
    """Return what the actions return, each run in a thread of its own; the first error is raised.

    >>> together([lambda: 1, lambda: 2])
    [1, 2]
    """
    if len(actions) == 1 or usable_cores() == 1:
        return [action() for action in actions]
    # loaded when it is needed: it is not cheap to import
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(len(actions) - 1) as pool:
        others = [pool.submit(action) for action in actions[1:]]
        return [actions[0](), *(other.result() for other in others)]
