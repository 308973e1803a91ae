"""torch, which is optional: import it, choose a device, and bound its threads for a while."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pac_wrap.errors import InputError, MissingExtraError


def import_torch() -> Any:
    """Return the module torch; one sentence says how to get it where it is missing."""
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError(
            'torch is not installed; run pip install "pac-wrap-ad[deep]", or make deep'
        ) from error
    return torch


def as_device(name: str) -> Any:
    """Return the torch device of a name; "auto" is a CUDA device if there is one, else the processor."""
    torch = import_torch()
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, TypeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f'device must be "auto" or a device torch can use here, got {name!r} ({reason}); try device="cpu"'
        ) from error
    return device


@contextmanager
def at_most_threads(count: int) -> Iterator[None]:
    """Let torch use `count` threads inside the block, and as many as before after it."""
    torch = import_torch()
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
