"""Timing side by side: methods take turns, so that a busy moment hits all of them alike."""

import gc
import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np

from benchmarks.record import Aim, Comparison, Growth, Role, Timing

T = TypeVar("T")
Action = Callable[[], object]
# a run shorter than this is repeated within the clock's two readings
SHORTEST = 2e-3
LINEAR = Aim("<=", 1.1)
# where the constant part of a call no longer shows
GROWTH_FROM = 10**5


@dataclass(frozen=True)
class Scale:
    """How much to measure: `quick` is for a test, `large` adds the largest sizes."""

    name: Literal["quick", "default", "large"] = "default"

    def pick(self, quick: T, default: T, large: T) -> T:
        """Return the sizes of this scale."""
        return {"quick": quick, "default": default, "large": large}[self.name]

    @property
    def rounds(self) -> int:
        """Rounds after the warm-up, at most."""
        return self.pick(2, 15, 15)

    @property
    def patience(self) -> float:
        """Seconds after which three rounds are enough, and beyond which a peer is not run."""
        return self.pick(0.05, 4.0, 4.0)


def compare(
    case: str,
    size: int | None,
    methods: Mapping[str, tuple[Role, Action]],
    scale: Scale,
    *,
    reference: Role = "limit",
    judged: Role = "ours",
    aim: Aim | None = None,
    scaled: Mapping[str, float] | None = None,
    longer: float = 1.0,
) -> Comparison:
    """Return the timings of methods that take turns; `scaled` multiplies the seconds of a short run.

    `longer` multiplies the patience, where a fine ratio needs more rounds.
    """
    calls = {name: _calls(action) for name, (_, action) in methods.items()}
    clock: dict[str, list[float]] = {name: [] for name in methods}
    processor: dict[str, list[float]] = {name: [] for name in methods}
    factors = {name: (scaled or {}).get(name, 1.0) / calls[name] for name in methods}
    order = list(methods)
    started, rounds = time.perf_counter(), 0
    gc.collect()
    gc.disable()
    try:
        while rounds < scale.rounds and (
            rounds < 3 or time.perf_counter() - started < longer * scale.patience
        ):
            for name in order:
                seconds, busy = _clocked(methods[name][1], calls[name])
                clock[name].append(seconds * factors[name])
                processor[name].append(busy * factors[name])
            order.reverse()  # no method always runs in the wake of the same other one
            rounds += 1
    finally:
        gc.enable()
    base = clock[next(name for name, (role, _) in methods.items() if role == reference)]
    timings = tuple(
        Timing(
            name,
            role,
            statistics.median(clock[name]),
            min(clock[name]),
            max(clock[name]),
            statistics.median(processor[name]),
            statistics.median(ours / theirs for ours, theirs in zip(clock[name], base, strict=True)),
            min(clock[name]) / min(base),
        )
        for name, (role, _) in methods.items()
    )
    return Comparison(case, size, rounds, timings, judged, aim)


def exponent(sizes: Iterable[int], seconds: Iterable[float]) -> float:
    """Return the slope of log time on log size, by least squares: 1 is linear.

    >>> round(exponent([10, 100, 1000, 10000], [0.2, 2.0, 20.0, 200.0]), 6)
    1.0
    """
    slope, _ = np.polyfit(np.log(list(sizes)), np.log(list(seconds)), 1)
    return float(slope)


def growths(comparisons: Iterable[Comparison], scale: Scale, aim: Aim | None = LINEAR) -> tuple[Growth, ...]:
    """Return how ours and the limit grow, for each case that was run at four sizes or more."""
    found = []
    first = scale.pick(0, GROWTH_FROM, GROWTH_FROM)
    kept = [one for one in comparisons if one.size is not None and one.size >= first]
    for case in dict.fromkeys(one.case for one in kept):
        runs = [one for one in kept if one.case == case]
        sizes = tuple(one.size for one in runs if one.size is not None)
        if len(sizes) < 4:
            continue
        roles: tuple[Role, Role] = ("ours", "limit")
        for role in roles:
            timings = [one.of(role) for one in runs]
            slope = exponent(sizes, [timing.median for timing in timings])
            found.append(Growth(case, timings[0].method, slope, sizes, aim if role == "ours" else None))
    return tuple(found)


def affordable(peers: Mapping[str, Action], last: Comparison | None, scale: Scale) -> dict[str, Action]:
    """Return the peers that would not outlast the patience at ten times the size they last ran at."""
    if last is None:
        return dict(peers)
    seconds = {timing.method: timing.median for timing in last.timings}
    return {
        name: peer for name, peer in peers.items() if name in seconds and 10 * seconds[name] <= scale.patience
    }


def _calls(action: Action) -> int:
    """Warm up, and return how many calls make a run long enough for the clock."""
    seconds, _ = _clocked(action, 1)
    if seconds < SHORTEST:  # the first call may have paid for imports and caches
        seconds, _ = _clocked(action, 1)
    return max(1, round(SHORTEST / max(seconds, 1e-7)))


def _clocked(action: Action, calls: int) -> tuple[float, float]:
    busy, start = time.process_time(), time.perf_counter()
    for _ in range(calls):
        action()
    return time.perf_counter() - start, time.process_time() - busy
