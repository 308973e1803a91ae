"""What a monitor has seen, as a small JSON file that is checked when it is read; the record of an alarm."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from hashlib import sha256
from math import log
from typing import Final

from pac_wrap.base.codec import decode, encode
from pac_wrap.base.foreign import quoted
from pac_wrap.base.rounding import rounded_up
from pac_wrap.errors import CertificateError
from pac_wrap.method.watch.counted import SCORES, UNDECIDED, Watch, as_wealth
from pac_wrap.method.watch.wealth import confidence_sequence
from pac_wrap.version import __version__

_HEADER: Final = {"format": "pac-wrap monitor", "schema": 1}
# how many parts of the past are kept, and how many ids of batches
MOST_PARTS: Final = 256
MOST_IDS: Final = 1000
_FATES: Final = {
    "FPR": ("normal points", "are false alarms"),
    "FNR": ("anomalous points", "are missed"),
    UNDECIDED: ("points", "are undecided"),
}


@dataclass(frozen=True, slots=True)
class Alarm:
    """The record of an alarm: which watch, since when, how strong, and what had been counted by then.

    Parameters
    ----------
    watch : str
        "FPR", "FNR", "undecided" or "scores".
    row : int
        The row at which the wealth reached 1/alpha, counted from 1 over all batches.
    since : int
        The row at which the bet that won most was placed: about when things changed.
    log_wealth : float
        The logarithm of the wealth at the alarm.
    count, n : int
        How many errors, or undecided points, among how many since then; for "scores" how many lie between the
        two thresholds of that bet.
    limit : float
        What share is allowed.
    alpha, delta : float
        The chance of a false alarm, and that the limit itself is wrong.
    level : float
        The chance that an end of `interval` is wrong.
    id : str, optional
        The batch in which it happened.
    between : tuple of float, optional
        For "scores" those two thresholds.

    Examples
    --------
    >>> alarm = Alarm("FPR", 612, 1, 5.4, count=61, n=580, limit=0.05, alpha=0.005, delta=0.05, level=0.0025)
    >>> round(alarm.e_value, 1), [round(end, 3) for end in alarm.interval]
    (221.4, [0.059, 0.162])
    >>> print(alarm)
    FPR alarm at row 612: 61 of 580 normal points since row 1 are false alarms, 0.05 is allowed (e-value 221)
    """

    watch: str
    row: int
    since: int
    log_wealth: float
    count: int
    n: int
    limit: float
    alpha: float
    delta: float
    level: float
    id: str | None = field(default=None, metadata={"optional": True})
    between: tuple[float, ...] | None = field(default=None, metadata={"optional": True})

    @property
    def e_value(self) -> float:
        """How strong it is: had the limit been kept, so large a wealth were less likely than 1 / e_value."""
        return as_wealth(self.log_wealth)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The confidence sequence of the rate since then; None for scores, whose thresholds were chosen."""
        return None if self.watch == SCORES else confidence_sequence(self.count, self.n, self.level)

    def __str__(self) -> str:
        batch = "" if self.id is None else f" in batch {quoted(self.id)}"
        low, high = self.between or (0.0, 0.0)
        what, fate = _FATES.get(self.watch, ("scores", f"lie from {low:.6g} to {high:.6g}"))
        return (
            f"{self.watch} alarm at row {self.row:,}{batch}: {self.count:,} of {self.n:,} {what} since row"
            f" {self.since:,} {fate}, {rounded_up(self.limit)} is allowed (e-value {self.e_value:.3g})"
        )


@dataclass(frozen=True, slots=True)
class MonitorState:
    """Everything that a monitor has to remember; `certificate` and `curve` are their checksums."""

    certificate: str
    alpha: float
    rows: int
    batches: int
    watches: tuple[Watch, ...]
    alarms: tuple[Alarm, ...] = ()
    ids: tuple[str, ...] = ()
    step: int = 1
    curve: str | None = field(default=None, metadata={"optional": True})
    version: str = __version__

    def with_room(self, rows: int) -> "MonitorState":
        """Return the state with its past in steps so large that so many rows have room."""
        state = self
        while rows // state.step > MOST_PARTS:
            watches = tuple(watch.thinned() for watch in state.watches)
            state = replace(state, step=2 * state.step, watches=watches)
        return state

    def to_json(self) -> str:
        """Return the state as JSON text."""
        return encode(self, _HEADER)


def read_state(text: str | bytes, fresh: MonitorState) -> MonitorState:
    """Return the state in a text, if it is whole, possible, and one of the same monitor as a fresh one."""
    state = decode(MonitorState, text, _HEADER)
    for name in ("certificate", "curve"):
        if getattr(state, name) != getattr(fresh, name):
            raise CertificateError(
                f"the monitor belongs to another {name}; start a new one, or name the {name} that it watches"
            )
    if state.alpha != fresh.alpha:
        raise CertificateError(
            f"the monitor was started with alpha = {state.alpha!r}, not {fresh.alpha!r}; alpha cannot change"
        )
    problem = next(_problems(state, fresh), None)
    if problem is not None:
        raise CertificateError(f"the monitor contradicts itself: {problem}; start a new one")
    for watch, new in zip(state.watches, fresh.watches, strict=True):
        watch.on(new.bets, new.hull)
    return state


def id_digest(name: str) -> str:
    """Return what is kept of the id of a batch: 64 bits.

    >>> id_digest("2026-11-17")
    '749763b3c8999e0b'
    """
    return sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _problems(state: MonitorState, fresh: MonitorState) -> Iterator[str]:
    """Yield what does not fit together."""
    if [_kind(watch) for watch in state.watches] != [_kind(watch) for watch in fresh.watches]:
        yield "it does not watch what the certificate promises"
    if state.rows < 0 or state.batches < 0 or state.step < 1 or state.step & (state.step - 1):
        yield "a count is impossible"
        return
    parts = state.rows // state.step
    if parts > MOST_PARTS or any(len(watch.past) != parts for watch in state.watches):
        yield "its past does not fit its rows"
    if any(max(watch.n, *watch.began[::5]) > state.rows for watch in state.watches):
        yield "more is counted than there were rows"
    if len(state.ids) > min(MOST_IDS, state.batches):
        yield "it has more ids than batches"
    names = {watch.name: watch for watch in state.watches}
    for alarm in state.alarms:
        known = names.pop(alarm.watch, None)
        if known is None or not 0 < alarm.since <= alarm.row <= state.rows or not 0 < alarm.n <= known.n:
            yield "an alarm is of no watch, or of no row"
        elif alarm.log_wealth < -log(known.alpha) or not 0 <= alarm.count <= alarm.n:
            yield "an alarm is weaker than alarms are"


def _kind(watch: Watch) -> tuple[object, ...]:
    """Return what never changes in a watch."""
    sizes = len(watch.cells), len(watch.gains), len(watch.best), len(watch.began)
    return watch.name, watch.alpha, watch.delta, watch.ceiling, sizes
