"""Long lists of parameters, of which `make test` tries a few."""

from collections.abc import Iterable
from typing import Any

import pytest


def slow_but(quick: int, values: Iterable[Any], *, several: bool = False) -> list[Any]:
    """Return parameters of a test, all but the first few marked slow; `several` says that each is a tuple."""
    values = list(values)
    rest = [value if several else (value,) for value in values[quick:]]
    return [*values[:quick], *(pytest.param(*one, marks=pytest.mark.slow) for one in rest)]
