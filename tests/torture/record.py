"""What the attacks found: how many faults of each class were tried, and what happened."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from typing import Any

import numpy as np

Outcomes = Mapping[str, int]
Try = Callable[[np.random.Generator, Path], "str | Outcomes"]
_PACKAGES = ("pac-wrap-ad", "numpy", "scipy", "duckdb", "scikit-learn", "typer")


class UnavailableError(Exception):
    """An attack that cannot be made here; the message says why."""


@dataclass(frozen=True)
class Attack:
    """One class of fault: what is tried, and its share of the time."""

    name: str
    what: str
    attempt: Try
    share: float = 1.0


@dataclass(frozen=True)
class Tally:
    """What happened to the faults of one class."""

    name: str
    what: str
    outcomes: dict[str, int]
    failures: tuple[str, ...] = ()
    skipped: str = ""

    @property
    def tried(self) -> int:
        """How many faults were tried."""
        return sum(self.outcomes.values()) + len(self.failures)


@dataclass(frozen=True)
class Record:
    """One run: its seed, its date and what it was run with."""

    seed: int
    minutes: float
    tallies: tuple[Tally, ...]
    date: str = field(default_factory=lambda: datetime.now(UTC).date().isoformat())
    versions: dict[str, str] = field(
        default_factory=lambda: {"Python": python_version()} | {name: version(name) for name in _PACKAGES}
    )

    @property
    def failed(self) -> int:
        """How many faults were not handled as they should be."""
        return sum(len(tally.failures) for tally in self.tallies)

    def to_json(self) -> str:
        """Return the record as text."""
        return json.dumps(asdict(self), indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Record":
        """Return the record that a text holds."""
        content: dict[str, Any] = json.loads(text)
        tallies = tuple(Tally(**one | {"failures": tuple(one["failures"])}) for one in content.pop("tallies"))
        return cls(tallies=tallies, **content)


def counted(outcome: "str | Outcomes") -> Counter[str]:
    """Return what an attempt gave as counts."""
    return Counter({outcome: 1} if isinstance(outcome, str) else outcome)
