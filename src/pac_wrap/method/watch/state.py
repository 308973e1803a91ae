"""What a monitor has seen, as a small JSON file that is checked when it is read."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from hashlib import sha256
from math import log
from typing import Final

from pac_wrap.base.codec import decode, encode
from pac_wrap.base.foreign import quoted
from pac_wrap.errors import CertificateError, InputError
from pac_wrap.method.watch.alarm import Alarm
from pac_wrap.method.watch.batch import check_id
from pac_wrap.method.watch.counted import Watch
from pac_wrap.version import __version__

_HEADER: Final = {"format": "pac-wrap monitor", "schema": 2}
# how many parts of the past are kept, and how many ids of batches
MOST_PARTS: Final = 256
MOST_IDS: Final = 1000


@dataclass(frozen=True, slots=True)
class MonitorState:
    """Everything that a monitor has to remember; `certificate` and `curve` are their checksums.

    `unscored` of the rows had no score.
    """

    certificate: str
    alpha: float
    rows: int
    batches: int
    watches: tuple[Watch, ...]
    unscored: int = 0
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
            f"the monitor was started with alpha = {state.alpha!r}, not {fresh.alpha!r}; alpha cannot change:"
            " give the same, or start a new one"
        )
    problem = next(_problems(state, fresh), None)
    if problem is not None:
        raise CertificateError(f"the monitor contradicts itself: {problem}; start a new one")
    for watch, new in zip(state.watches, fresh.watches, strict=True):
        watch.on(new.bets, new.hull, new.noisy)
    return state


def after(ids: tuple[str, ...], name: str | None, late: bool, more: bool, batches: int) -> tuple[str, ...]:
    """Return the ids of batches after one more, or after more of the last; one fed before is refused.

    The late labels of a batch have its name too, once.
    """
    digest = None if name is None else id_digest(check_id(name), late)
    if more:
        if not batches or (digest is not None and ids[-1:] != (digest,)):
            raise InputError(f"more is for the batch that was fed last, which is not {quoted(name)}")
        return ids
    if digest is None:
        return ids
    if digest in ids:
        raise InputError(
            f"the batch {quoted(name)} was fed before; nothing of it is counted again; the rest of one that"
            " was cut short goes under another id"
        )
    return (*ids, digest)[-MOST_IDS:]


def id_digest(name: str, late: bool = False) -> str:
    """Return what is kept of the id of a batch, or of its late labels: 64 bits.

    >>> id_digest("2026-11-17")
    '749763b3c8999e0b'
    """
    return sha256(name.encode("utf-8", "surrogatepass") + b"\xff" * late).hexdigest()[:16]


def _problems(state: MonitorState, fresh: MonitorState) -> Iterator[str]:
    """Yield what does not fit together."""
    if [_kind(watch) for watch in state.watches] != [_kind(watch) for watch in fresh.watches]:
        yield "it does not watch what the certificate promises"
    counted = 0 <= state.unscored <= state.rows and state.batches >= 0
    if not counted or state.step < 1 or state.step & (state.step - 1):
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
