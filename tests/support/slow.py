"""Long lists of parameters, of which `make test` tries a few."""

from collections.abc import Iterable
from typing import Any

import pytest


def slow_but(quick: int, values: Iterable[Any]) -> list[Any]:
    """Return parameters of a test, all but the first few of them marked slow."""
    values = list(values)
    return [*values[:quick], *(pytest.param(value, marks=pytest.mark.slow) for value in values[quick:])]
