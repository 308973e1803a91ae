"""The origin of a certificate: its scores, the sampling of a series, and the certificates before it."""

import os
import re
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from fractions import Fraction
from math import isfinite, nextafter
from typing import Any, Final, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import as_float, check_choice, check_count, check_positive, check_rate, is_number
from pac_wrap.base.floats import rounded_up
from pac_wrap.base.text import LONGEST, amount, quoted, visible
from pac_wrap.errors import InputError, PACWrapWarning
from pac_wrap.method.promise import Guarantee
from pac_wrap.method.strategies.interface import Strategy

Engine = Literal["memory", "duckdb", "spark", "dask", "sql"]
Reduce = Literal["max", "mean", "last"]
# how many digests of earlier certificates are stored, the latest ones
MOST_ANCESTORS: Final = 50
_DATE: Final = "%Y-%m-%dT%H:%M:%SZ"
_MOST_TABLES: Final = 10
_CUT: Final = "..."
# a file with many brackets is not read, see `pac_wrap.base.codec`: a name with more of them loses them
_MOST_BRACKETS: Final = 5
# the most new scores that are checked, and the fewest
_LOOKED_AT: Final = 1000
_FEWEST: Final = 20
# of one class of n calibration points, more lie outside with a chance of (n + 1) / 2^n: eq. (136)
_HALF: Final = 0.5
_OPTIONAL: Final = {"optional": True}


@dataclass(frozen=True, slots=True)
class Provenance:
    """The origin of scores; unknown facts are None, texts are shortened, invisible characters spelled out.

    Attributes
    ----------
    score : str, optional
        The column of scores.
    tables : sequence of str
        The names of the tables.
    detector : str, optional
        The class of the detector.
    date : str, optional
        The time in UTC, such as "2027-01-31T12:00:00Z".
    engine : "memory", "duckdb", "spark", "dask" or "sql", optional
        The engine that read the scores.
    lowest, highest : float, optional
        The lowest and the highest calibration score, both or neither.
    trained : pair of int, optional
        The numbers of normal and of anomalous rows that trained the detector.
    notes : sequence of str, optional
        Further observations about the scores, a sentence each.
    """

    score: str | None = field(default=None, metadata=_OPTIONAL)
    tables: tuple[str, ...] = ()
    detector: str | None = field(default=None, metadata=_OPTIONAL)
    date: str | None = field(default=None, metadata=_OPTIONAL)
    engine: Engine | None = field(default=None, metadata=_OPTIONAL)
    lowest: float | None = field(default=None, metadata=_OPTIONAL)
    highest: float | None = field(default=None, metadata=_OPTIONAL)
    trained: tuple[int, ...] | None = field(default=None, metadata=_OPTIONAL)
    notes: tuple[str, ...] | None = field(default=None, metadata=_OPTIONAL)

    def __post_init__(self) -> None:
        for name in ("score", "detector"):
            text = getattr(self, name)
            object.__setattr__(self, name, None if text is None else harmless(text, name))
        tables = _texts(self.tables, "tables")
        if len(tables) > _MOST_TABLES:
            tables = (*tables[: _MOST_TABLES - 1], f"{len(tables) - _MOST_TABLES + 1:,} more")
        object.__setattr__(self, "tables", tables)
        object.__setattr__(self, "notes", None if self.notes is None else _texts(self.notes, "notes") or None)
        if self.engine is not None:
            check_choice("engine", self.engine, get_args(Engine))
        if self.date is not None and not _is_date(self.date):
            raise InputError(
                f"date must be a time in UTC such as 2027-01-31T12:00:00Z, got {quoted(self.date)}"
            )
        if (self.lowest is None) != (self.highest is None):
            raise InputError("lowest and highest go together; give both, or neither")
        if self.lowest is not None and self.highest is not None:
            ends = as_float(self.lowest), as_float(self.highest)
            if not ends[0] <= ends[1]:
                raise InputError(
                    f"lowest must be a number no greater than highest, got {quoted(self.lowest)} and"
                    f" {quoted(self.highest)}"
                )
            # zero has no sign
            object.__setattr__(self, "lowest", ends[0] + 0.0)
            object.__setattr__(self, "highest", ends[1] + 0.0)
        if self.trained is not None:
            if not isinstance(self.trained, (tuple, list)) or len(self.trained) != 2:
                raise InputError(
                    f"trained must be the numbers of normal and anomalous rows, got {quoted(self.trained)}"
                )
            object.__setattr__(self, "trained", tuple(check_count("trained", n) for n in self.trained))

    def __str__(self) -> str:
        tables = ["standard input" if name == "-" else name for name in self.tables]
        of = f" of {', '.join(tables)}" if tables else ""
        column = "scores" if self.score is None else f"column {quoted(self.score)}"
        found = [f"{column}{of}"] if self.score is not None or of else []
        if self.detector is not None:
            found.append(f"detector {self.detector}")
        if self.trained is not None:
            found.append(f"trained on {self.trained[0]:,} normal and {self.trained[1]:,} anomalous rows")
        if self.engine is not None:
            found.append(f"read by {self.engine}" if self.engine != "memory" else "in memory")
        if self.lowest is not None:
            found.append(f"scores from {self.lowest:.6g} to {self.highest:.6g}")
        return ", ".join(found)


class Shown:
    """Base of what is printed as its account in a few lines."""

    __slots__ = ()

    def __str__(self) -> str:
        from pac_wrap.report.render import short

        return short(self)


class Traced(Shown):
    """Base of certificates and curves, which may carry a provenance; it does not affect equality."""

    __slots__ = ()

    version: str
    provenance: Provenance | None

    def with_provenance(self, **facts: Any) -> Self:
        """Return a copy with more facts in its provenance."""
        if not facts:
            return self
        known = [one.name for one in fields(Provenance)]
        for name in facts:
            if name not in known:
                raise InputError(f"provenance knows no {quoted(name)}; it has {', '.join(known)}")
        noted = replace(self.provenance or Provenance(), **facts)
        return replace(self, provenance=noted)  # type: ignore[type-var]  # every subclass is a dataclass

    @property
    def bare(self) -> Self:
        """A copy without its provenance, the same byte for byte wherever the scores were stored."""
        return replace(self, provenance=None)  # type: ignore[type-var]  # as above


class Doubt:
    """A check that warns if the first new scores seem to come from another detector than the old ones."""

    def __init__(self, provenance: Provenance | None, score: str) -> None:
        known = Provenance() if provenance is None else provenance
        self._seen = self._outside = 0
        # the calibration scores, until the check has ended
        self._ends = None if known.lowest is None or known.highest is None else (known.lowest, known.highest)
        made_from = known.score
        if made_from is not None and made_from != harmless(score):
            warnings.warn(
                f"the certificate was made from column {quoted(made_from)}, not {quoted(score)}; check that"
                " both hold scores of the same detector",
                PACWrapWarning,
                stacklevel=2,
            )

    def see(self, scores: NDArray[np.floating[Any]]) -> None:
        """Check some more scores; missing scores do not count."""
        if self._ends is None:
            return
        first = scores[: _LOOKED_AT - self._seen]
        first = first[~np.isnan(first)]
        self._seen += first.size
        self._outside += int(np.count_nonzero((first < self._ends[0]) | (first > self._ends[1])))
        if self._seen >= _LOOKED_AT:
            self.end()

    def end(self) -> None:
        """Warn if it is due, after the last scores."""
        ends, self._ends = self._ends, None
        if ends is not None and self._seen >= _FEWEST and self._outside >= _HALF * self._seen:
            warnings.warn(
                f"{self._outside:,} of the first {self._seen:,} scores lie outside those of the calibration,"
                f" {ends[0]:.6g} to {ends[1]:.6g}; check that they come from the same"
                " detector, and that points were labelled without regard to their scores",
                PACWrapWarning,
                stacklevel=2,
            )


def now() -> str:
    """Return the time as text, or that of SOURCE_DATE_EPOCH, so that files can be reproduced."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    known = re.fullmatch("[0-9]{1,11}", fixed) is not None
    return (datetime.fromtimestamp(int(fixed), UTC) if known else datetime.now(UTC)).strftime(_DATE)


def harmless(text: str, name: str = "score") -> str:
    """Return a text that is safe in a provenance: printable, not too long, and with few brackets."""
    if not isinstance(text, str):
        raise InputError(f"{name} must be a text, got {quoted(text)}")
    for sign in "[{":
        if text.count(sign) > _MOST_BRACKETS:
            text = text.replace(sign, "(")
    return visible(text, LONGEST - len(_CUT))


def _texts(texts: Any, name: str) -> tuple[str, ...]:
    if isinstance(texts, str) or not isinstance(texts, (tuple, list)):
        raise InputError(f"{name} must be a sequence of texts, got {quoted(texts)}; write it in brackets")
    return tuple(harmless(one, name) for one in texts)


def _is_date(text: object) -> bool:
    with suppress(ValueError):
        return isinstance(text, str) and f"{datetime.strptime(text, _DATE).isoformat()}Z" == text
    return False


@dataclass(frozen=True, slots=True)
class Sampling:
    """The windows, their spacing, the split and the effective sample sizes of a time series.

    `split` is "blocks" (of `block` steps, calibration and test at least `gap` steps apart), "random",
    "series" if whole series calibrate, or "none" if every window does. An effective sample size is None if it
    is unknown. The errors are the calibration points that the rule misjudges. Windows in units have neither;
    `unit` is the number of steps of a block that is a unit, 0 if a series is one, and None otherwise.
    """

    length: int
    every: int
    reduce: Reduce
    split: Literal["blocks", "random", "series", "none"]
    gap: int
    block: int | None
    effective_normal: float | None
    effective_anomalous: float | None
    errors_normal: int | None = field(default=None, metadata=_OPTIONAL)
    errors_anomalous: int | None = field(default=None, metadata=_OPTIONAL)
    unit: int | None = field(default=None, metadata=_OPTIONAL)

    def __post_init__(self) -> None:
        needed = ("length", "every", "gap")
        for name in (*needed, "block", "errors_normal", "errors_anomalous", "unit"):
            if (value := getattr(self, name)) is not None or name in needed:
                object.__setattr__(self, name, check_count(name, value))
        check_choice("reduce", self.reduce, ("max", "mean", "last"))
        check_choice("split", self.split, ("blocks", "random", "series", "none"))
        if not 1 <= self.length <= self.every:
            raise InputError(f"length must lie between 1 and every = {self.every:,}, got {self.length:,}")
        if (self.block is not None) != (self.split == "blocks") or self.block == 0:
            raise InputError(
                f"block must be at least 1 for a split in blocks, and None for others, got {self.block!r} and"
                f" {self.split!r}"
            )
        for name in ("effective_normal", "effective_anomalous"):
            if (value := getattr(self, name)) is not None:
                if not is_number(value) or not isfinite(value) or value < 0:
                    raise InputError(f"{name} must be a number, 0 or more, or None, got {value!r}")
                object.__setattr__(self, name, float(value))

    @property
    def worth(self) -> str:
        """The effective sample sizes of the windows, in words."""
        pairs = (("normal", self.effective_normal), ("anomalous", self.effective_anomalous))
        known = [f"about {amount(round(n), f'independent {of} score')}" for of, n in pairs if n is not None]
        unknown = [f"the effective size of the {of} scores is unknown" for of, n in pairs if n is None]
        return "; ".join([f"worth {' and '.join(known)}"] * bool(known) + unknown)

    def __str__(self) -> str:
        split = {
            "random": "split at random",
            "series": "split by whole series",
            "none": "all of them calibrate",
        }.get(self.split, f"split in blocks of {self.block or 0:,} steps with a gap of {self.gap:,}")
        if self.unit is not None:
            split += f"; a unit is {f'a block of {self.unit:,} steps' if self.unit else 'a series'}"
        if self.length == 1:
            return f"{'every step' if self.every == 1 else f'one in every {self.every:,} steps'}, {split}"
        return f"windows of {self.length:,} in every {self.every:,} steps ({self.reduce}), {split}"


@dataclass(frozen=True, slots=True)
class Traffic:
    """The traffic behind a certificate and its reviews; of all points, and of those that raise an alarm.

    Attributes
    ----------
    points, unscored : int
        The number of points, and of those without a score.
    found, cleared : int
        How many points review found anomalous, and how many it found normal.
    alarms, right, wrong : int
        How many points reach the threshold, how many of them review found anomalous, and how many normal.
        A group does not count `unscored`, `cleared` and `wrong`: None.
    audits : int, optional
        How many points were drawn for audit.
    """

    points: int
    unscored: int | None
    found: int
    cleared: int | None
    alarms: int
    right: int
    wrong: int | None
    audits: int | None = field(default=None, metadata=_OPTIONAL)

    @property
    def unreviewed(self) -> int:
        """The number of alarms that nobody reviewed, or of all not found right; they count as wrong."""
        return self.alarms - self.right - (self.wrong or 0)

    def problems(self) -> Iterator[str]:
        """Yield contradictions among the counts."""
        unscored, cleared, wrong = (one or 0 for one in (self.unscored, self.cleared, self.wrong))
        if min(getattr(self, one.name) or 0 for one in fields(self)) < 0:
            yield "a count of traffic is negative"
        elif unscored + max(self.alarms, self.found + cleared, self.audits or 0) > self.points:
            yield f"traffic of {self.points:,} points has fewer points with a score than alarms or reviews"
        elif self.right > self.found or wrong > cleared or self.unreviewed < 0:
            yield "there are more reviewed alarms than reviews"


@dataclass(frozen=True, slots=True)
class Event:
    """What counts for anomalies that are events of many points: whether an event is noticed.

    Parameters
    ----------
    alarms : int
        How many points of an event must raise an alarm, or be left undecided, for it to be noticed.
    first : int, optional
        Among how many of its first points, in the order of the rows; by default among all.

    Examples
    --------
    >>> print(Event(alarms=2, first=30))
    an event is noticed if 2 of its first 30 points are not called normal
    """

    alarms: int = 1
    first: int | None = field(default=None, metadata=_OPTIONAL)

    def __post_init__(self) -> None:
        check_positive("alarms", self.alarms)
        if self.first is not None and check_positive("first", self.first) < self.alarms:
            raise InputError(
                f"first must be at least alarms = {self.alarms:,}, got {self.first:,}; otherwise no event"
                " is noticed"
            )

    def __str__(self) -> str:
        first = "" if self.first is None else f"first {self.first:,} "
        verb = "is" if self.alarms == 1 else "are"
        return f"an event is noticed if {self.alarms:,} of its {first}points {verb} not called normal"


@dataclass(frozen=True, slots=True)
class Day:
    """What counts for normal points that come in days, or shifts or runs: days with too many false alarms.

    Parameters
    ----------
    more_than : int
        A day counts as an error if more of its normal points than this raise an alarm.

    Examples
    --------
    >>> print(Day(more_than=2))
    a day counts if more than 2 of its normal points raise an alarm
    """

    more_than: int = 0

    def __post_init__(self) -> None:
        check_count("more_than", self.more_than)

    def __str__(self) -> str:
        more = f"more than {self.more_than:,}" if self.more_than else "any"
        verb = "raise" if self.more_than else "raises"
        return f"a day counts if {more} of its normal points {verb} an alarm"


@dataclass(frozen=True, slots=True)
class Units:
    """How points in units were counted.

    Attributes
    ----------
    order : str or None
        The seed of the random order in which units were tested; None if each has one score.
    event : Event, optional
        If anomalies are events: when one is noticed.
    day : Day, optional
        If days count instead of normal points: which ones.
    """

    order: str | None
    event: Event | None = field(default=None, metadata=_OPTIONAL)
    day: Day | None = field(default=None, metadata=_OPTIONAL)

    @property
    def counted(self) -> tuple[Event | Day, ...]:
        """What counts instead of points."""
        return tuple(one for one in (self.day, self.event) if one is not None)

    @property
    def mistakes(self) -> dict[str, str]:
        """The errors that are promised to be rare, by class; points are not named."""
        found = {}
        if self.day is not None:
            most = self.day.more_than
            alarms = f"more than {amount(most, 'false alarm')}" if most else "a false alarm"
            found["normal"] = f"days have {alarms}"
        return found | ({} if self.event is None else {"anomalous": "events are missed"})

    def __post_init__(self) -> None:
        if self.order is not None and not re.fullmatch("[0-9a-f]{16}", self.order):
            raise InputError(f"the seed of an order is 16 hexadecimal digits, got {quoted(self.order)}")


@dataclass(frozen=True, slots=True)
class Lineage:
    """The place of a certificate in a sequence of recalibrations; made by `recalibrate`.

    Attributes
    ----------
    number : int
        How many certificates came before.
    ledger : bool
        Whether all certificates share one delta, the chance that any of them ever fails: eq. (92). Otherwise
        each has its own, and the chances add up.
    delta_fpr, delta_fnr : float
        The deltas of the first certificate.
    ancestors : tuple of str
        The digests of the certificates before, the latest last; at most 50.
    """

    number: int
    ledger: bool
    delta_fpr: float
    delta_fnr: float
    ancestors: tuple[str, ...]

    def __post_init__(self) -> None:
        check_positive("number", self.number)
        for name in ("delta_fpr", "delta_fnr"):
            check_rate(name, getattr(self, name))
        if len(self.ancestors) != min(self.number, MOST_ANCESTORS):
            raise InputError(f"{self.number:,} certificates came before, got {len(self.ancestors):,} digests")
        if not all(re.fullmatch("[0-9a-f]{64}", one) for one in self.ancestors):
            raise InputError("an ancestor is a digest of 64 hexadecimal digits")

    def delta(self, first: float) -> float:
        """Return the delta of this certificate: its share, rounded down."""
        if not self.ledger:
            return first
        # the first has half of the total, so that all together have twice its delta
        share = 2 * Fraction(first) / ((self.number + 1) * (self.number + 2))
        nearest = float(share)
        return nearest if Fraction(nearest) <= share else nextafter(nearest, 0.0)

    def problems(self, guarantee: Guarantee, overlap: Strategy) -> Iterator[str]:
        """Yield what a guarantee and a strategy have that this place in the lineage does not allow."""
        if not (overlap.keeps_delta if self.ledger else overlap.proved):
            yield f"the delta of {overlap} is not its share in the lineage"
        for promise in guarantee.promises:
            name = f"delta_{promise.rate.lower()}"
            if promise.of.kind is None and promise.delta != self.delta(getattr(self, name)):
                yield f"{name} is not its share in the lineage"

    def __str__(self) -> str:
        latest = self.ancestors[-1][:12]
        if not self.ledger:
            return f"number {self.number + 1} after {latest}; each has its own delta, and they add up"
        total = max(self.delta_fpr, self.delta_fnr)
        return (
            f"number {self.number + 1} after {latest}; the chance that any certificate of this lineage ever"
            f" fails is at most {rounded_up(2.0 * total)} per rate"
        )
