"""The same work with the passes in NumPy, as where no C compiler was found."""

from contextlib import ExitStack
from unittest.mock import patch

from benchmarks.timing import Action
from pac_wrap.method import rule
from pac_wrap.ranks import kernels, memory
from pac_wrap.ranks.kernels import Plain

# what stands in a table's head
IN_NUMPY = "ours in NumPy"


def in_numpy(action: Action) -> Action:
    """Return an action that runs without C."""
    plain = Plain()

    def run() -> None:
        with ExitStack() as stack:
            for module in (rule, memory, kernels):
                stack.enter_context(patch.object(module, "kernels", lambda: plain))
            action()

    return run
