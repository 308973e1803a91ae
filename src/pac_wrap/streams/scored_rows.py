"""A few rows with their scores, as CSV and JSON lines give them, and the answers they are written with."""

from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol

from pac_wrap.base.arguments import Scores

# the columns that an answer fills
ADDED: Final = ("verdict", "prediction_set")
# 1 for label 0, 2 for label 1, added up
_SETS: Final = ("{}", "{0}", "{1}", "{0,1}")
# every set with every verdict; the code of an answer is its place here
ANSWERS: Final = [(str(verdict), text) for text in _SETS for verdict in (-1, 0, 1)]


class ScoredRows(NamedTuple):
    """A few rows with their scores: each row as cells, or its own text where that can stand as it is."""

    scores: Scores
    rows: list[list[str]]
    texts: list[str]


class ScoredLines(Protocol):
    """A table that comes in batches of lines, and writes each batch before it gives the next one."""

    @property
    def read(self) -> int:
        """How many rows were read."""

    def __iter__(self) -> Iterator[ScoredRows]:
        """Yield all rows up to the first that cannot be decided, then raise what is wrong with that."""

    def head(self) -> str:
        """Return the line that comes before the rows, if any."""

    def text(self, batch: ScoredRows, codes: list[int]) -> str:
        """Return rows with the answers of these codes as text."""
