"""Where a certificate or a curve comes from: noted beside what it says, and no part of what is verified."""

import os
import re
import warnings
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Any, Final, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import as_float, check_choice, check_count
from pac_wrap.base.text import LONGEST, quoted, visible
from pac_wrap.errors import InputError, PACWrapWarning

Engine = Literal["memory", "duckdb", "spark", "dask", "sql"]
_DATE: Final = "%Y-%m-%dT%H:%M:%SZ"
_MOST_TABLES: Final = 10
_CUT: Final = "..."
# a file with many brackets is not read, see `pac_wrap.base.codec`: a name with more of them loses them
_MOST_BRACKETS: Final = 5
# so many new scores are looked at, and from so few on
_LOOKED_AT: Final = 1000
_FEWEST: Final = 20
# of one class of n calibration points, more lie outside with a chance of (n + 1) / 2^n: eq. (136)
_HALF: Final = 0.5
_OPTIONAL: Final = {"optional": True}


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where scores came from: what is not known is None. Texts are cut, and what is invisible is written out.

    Attributes
    ----------
    score : str, optional
        The column of scores.
    tables : sequence of str
        The tables, as they were named.
    detector : str, optional
        The class of the detector.
    date : str, optional
        When, in UTC, such as "2027-01-31T12:00:00Z".
    engine : "memory", "duckdb", "spark", "dask" or "sql", optional
        What read the scores.
    lowest, highest : float, optional
        The least and the greatest calibration score, both or neither.
    trained : pair of int, optional
        How many normal and how many anomalous rows trained the detector.
    notes : sequence of str, optional
        What else was noticed when the scores were made, a sentence each.
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
        object.__setattr__(self, "tables", _short(self.tables))
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
        return ", ".join(self._facts())

    def _facts(self) -> list[str]:
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
        return found


class Traced:
    """What may carry its provenance: a certificate, or a curve. Two that differ in it alone are equal."""

    __slots__ = ()

    provenance: Provenance | None

    def with_provenance(self, **facts: Any) -> Self:
        """Return the same with more known of where it comes from."""
        known = [one.name for one in fields(Provenance)]
        for name in facts:
            if name not in known:
                raise InputError(f"provenance knows no {quoted(name)}; it has {', '.join(known)}")
        noted = replace(self.provenance or Provenance(), **facts)
        return replace(self, provenance=noted)  # type: ignore[type-var]  # whoever is traced is a dataclass

    @property
    def bare(self) -> Self:
        """The same without its provenance: one that is the same byte for byte wherever the scores were."""
        return replace(self, provenance=None)  # type: ignore[type-var]  # as above


class Doubt:
    """A look at the first new scores: whether they may be another detector's than a certificate's.

    They may be if their column has another name, or if half of them lie outside the calibration scores, as
    they also do where only alarms were labelled.
    Each is warned of once, the second when a thousand scores were seen, or all.
    """

    def __init__(self, provenance: Provenance | None, score: str) -> None:
        self._known = Provenance() if provenance is None else provenance
        self._seen = self._outside = 0
        self._ended = self._known.lowest is None
        made_from = self._known.score
        if made_from is not None and made_from != harmless(score):
            self._warn(
                f"the certificate was made from column {quoted(made_from)}, not {quoted(score)}; are they the"
                " same detector's scores?"
            )

    def see(self, scores: NDArray[np.floating[Any]]) -> None:
        """Look at some more scores; missing ones do not count."""
        if self._ended or self._known.lowest is None or self._known.highest is None:
            return
        first = scores[: _LOOKED_AT - self._seen]
        first = first[~np.isnan(first)]
        self._seen += first.size
        self._outside += int(np.count_nonzero((first < self._known.lowest) | (first > self._known.highest)))
        if self._seen >= _LOOKED_AT:
            self.end()

    def end(self) -> None:
        """Say what is to be said if no more scores come."""
        if self._ended:
            return
        self._ended = True
        if self._seen >= _FEWEST and self._outside >= _HALF * self._seen:
            self._warn(
                f"{self._outside:,} of the first {self._seen:,} scores lie outside those of the calibration,"
                f" {self._known.lowest:.6g} to {self._known.highest:.6g}; are they the same detector's,"
                " and were points labelled whatever their scores?"
            )

    def _warn(self, text: str) -> None:
        warnings.warn(text, PACWrapWarning, stacklevel=3)


def now() -> str:
    """Return the time as a provenance has it; that of SOURCE_DATE_EPOCH, so that files can be made again."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    known = re.fullmatch("[0-9]{1,11}", fixed) is not None
    return (datetime.fromtimestamp(int(fixed), UTC) if known else datetime.now(UTC)).strftime(_DATE)


def harmless(text: str, name: str = "score") -> str:
    """Return a text as a provenance has it: printable, not too long, and with few brackets."""
    if not isinstance(text, str):
        raise InputError(f"{name} must be a text, got {quoted(text)}")
    for sign in "[{":
        if text.count(sign) > _MOST_BRACKETS:
            text = text.replace(sign, "(")
    return visible(text, LONGEST - len(_CUT))


def _short(tables: Any) -> tuple[str, ...]:
    """Return the names of some tables; of many, the first, and how many more there are."""
    names = _texts(tables, "tables")
    if len(names) <= _MOST_TABLES:
        return names
    return (*names[: _MOST_TABLES - 1], f"{len(names) - _MOST_TABLES + 1:,} more")


def _texts(texts: Any, name: str) -> tuple[str, ...]:
    if isinstance(texts, str) or not isinstance(texts, (tuple, list)):
        raise InputError(f"{name} must be a sequence of texts, got {quoted(texts)}; write it in brackets")
    return tuple(harmless(one, name) for one in texts)


def _is_date(text: object) -> bool:
    if not isinstance(text, str) or not re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z", text):
        return False
    try:
        datetime.strptime(text, _DATE)
    except ValueError:
        return False
    return True
