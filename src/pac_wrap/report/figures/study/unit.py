"""In which unit a picture shows its shares."""

import re
from typing import Final

_PERCENT: Final = re.compile(r"\(%|\bin (?:%|percent\b)")


def unit(label: str) -> float:
    """Return what shares are multiplied by: 100 where their label says "(%" or "in percent", else 1.

    >>> unit("violations (%)"), unit("ambiguity in percent"), unit("rate, with 95 % intervals")
    (100.0, 100.0, 1.0)
    """
    return 100.0 if _PERCENT.search(label) else 1.0
