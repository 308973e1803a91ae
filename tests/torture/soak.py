"""A monitor on a pipe, killed and resumed at random moments: its state must be that of one never killed.

python -m torture.soak [--points 1e6] [--kills 3] [--seed 0] [--write]
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pac_wrap import Certificate, Curve, Monitor, calibrate, certify_curve
from support.shell import SCRIPT

BLOCK: Final = 100_000
# the share of all rows that are as at calibration
_BEFORE: Final = 0.9
_SIGNALS: Final = (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL, signal.SIGINT)
# what differs though nothing is lost: every run is a batch
_PER_RUN: Final = ("batches", "checksum")
_HEAD: Final = b"score,label\n"


@dataclass(frozen=True)
class Soak:
    """One soak: rows, how often it was ended and by what, rows sent again, and what was compared.

    `processes` has for each process how many rows it was sent and how many MB it took at most.
    """

    seed: int
    points: int
    signals: dict[str, int]
    sent_again: int
    alarms: int
    processes: list[tuple[int, int]]
    date: str

    def told(self) -> str:
        """Return it as a paragraph."""
        kills = sum(self.signals.values())
        named = ", ".join(f"{name} {count:,}" for name, count in sorted(self.signals.items()))
        longest = max(self.processes)
        return (
            f"Run of {self.date}, seed {self.seed}: {self.points:,} points went through `pac-wrap monitor`"
            f" on a pipe, which was ended {kills:,} times at random moments ({named}) and resumed from its"
            f" state; {self.sent_again:,} rows that had been sent and not yet saved were sent again. At the"
            f" end its state, with {self.alarms} alarms, was to the last digit that of a monitor that was"
            f" never ended (except for the number of runs). No process took more than"
            f" {max(size for _, size in self.processes):,} MB; the one that was sent the most rows,"
            f" {longest[0]:,}, took {longest[1]:,} MB."
        )


class Lines:
    """Rows of a stream without end: any part can be made again, as text for a pipe or as arrays."""

    def __init__(self, points: int, seed: int) -> None:
        self.points, self.seed = points, seed
        random = np.random.default_rng(seed)
        kinds = np.repeat([0.0, 1.0, np.nan], [3000, 1000, 12384])
        centres = np.repeat([0.0, 2.5, 0.0], [3000, 1000, 12384])
        raw = random.normal(centres)
        # lines of one length, so that a block of them is one piece of memory
        texts = [
            f"{score:+010.6f}," if label != label else f"{score:+09.5f},{label:.0f}"
            for score, label in zip(raw, kinds, strict=True)
        ]
        self._texts = np.array([f"{text}\n".encode() for text in texts])
        self._scores = np.array([float(text.split(",")[0]) for text in texts])
        self._labels = kinds
        # in the end only those with large scores come
        self._drifted = np.flatnonzero(self._scores > np.median(self._scores))

    def places(self, block: int) -> NDArray[np.int64]:
        """Return which lines a block has."""
        random = np.random.default_rng([self.seed, block])
        start = block * BLOCK
        size = min(BLOCK, self.points - start)
        if start < _BEFORE * self.points:
            return random.integers(self._texts.size, size=size)
        return self._drifted[random.integers(self._drifted.size, size=size)]

    def text_from(self, row: int) -> Iterator[bytes]:
        """Yield the text of all rows from one on, in pieces."""
        yield _HEAD
        for block in range(row // BLOCK, -(-self.points // BLOCK)):
            places = self.places(block)[max(0, row - block * BLOCK) :]
            for start in range(0, places.size, 10_000):
                yield self._texts[places[start : start + 10_000]].tobytes()

    def arrays(self) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Yield scores and labels, block by block."""
        for block in range(-(-self.points // BLOCK)):
            places = self.places(block)
            yield self._scores[places], self._labels[places]


def soak(points: int, kills: int, seed: int, folder: Path) -> Soak:
    """Return what was done, if the state of the monitor that was killed is that of one that never was."""
    lines, random = Lines(points, seed), np.random.default_rng([seed, kills])
    normal, anomalous = random.normal(size=2000), random.normal(2.5, 1.0, size=2000)
    certificate, curve = calibrate(normal, anomalous), certify_curve(normal, anomalous)
    certificate.save(folder / "certificate.json")
    curve.save(folder / "curve.json")
    state = folder / "watch.json"
    words = [SCRIPT, "monitor", folder / "certificate.json", "-", "--score", "score", "--label", "label"]
    words += ["--curve", folder / "curve.json", "--state", state]
    moments = sorted(random.integers(points // 100, points, size=kills).tolist())
    signals: Counter[str] = Counter()
    sent_again, processes = 0, []
    while (done := _rows(state)) < points:
        name, sent, size = _feed(words, lines, done, moments, random)
        processes.append((sent - done, size))
        if name is not None:
            signals[name] += 1
            sent_again += max(0, sent - _rows(state))
    watched = _never_killed(certificate, curve, lines)
    found, expected = (_bare(text) for text in (state.read_text(), watched.to_json()))
    assert found == expected, "the state is not that of a monitor that was never killed"
    today = datetime.now(UTC).date().isoformat()
    return Soak(seed, points, dict(signals), sent_again, len(watched.alarms), processes, today)


def _feed(
    words: list[Any], lines: Lines, done: int, moments: list[int], random: np.random.Generator
) -> tuple[str | None, int, int]:
    """Feed a process until it ends; return by which signal, if by one, the last row sent, and its MB."""
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as one:
        assert one.stdin is not None
        assert one.stderr is not None
        sent, ended = done, None
        with suppress(BrokenPipeError):
            for piece in lines.text_from(done):
                one.stdin.write(piece)
                sent += piece.count(b"\n") - (piece == _HEAD)
                if moments and sent >= moments[0]:
                    moments.pop(0)
                    one.stdin.flush()
                    time.sleep(float(random.uniform(0.0, 1.5)))
                    ended = _SIGNALS[int(random.integers(len(_SIGNALS)))]
                    one.send_signal(ended)
                    break
        with suppress(BrokenPipeError):
            one.stdin.close()
        told = one.stderr.read()
        _, status, used = os.wait4(one.pid, 0)
        one.returncode = code = os.waitstatus_to_exitcode(status)
    assert b"Traceback" not in told, told
    assert ended is not None or code in (0, 1), (code, told)
    return None if ended is None else ended.name, sent, used.ru_maxrss // 1024


def _never_killed(certificate: Certificate, curve: Curve, lines: Lines) -> Monitor:
    monitor = Monitor(certificate, curve)
    for scores, labels in lines.arrays():
        monitor.update(certificate.verdicts(scores), labels, scores=scores)
    return monitor


def _rows(state: Path) -> int:
    return int(json.loads(state.read_text())["rows"]) if state.exists() else 0


def _bare(text: str) -> dict[str, Any]:
    return {name: value for name, value in json.loads(text).items() if name not in _PER_RUN}


def main() -> None:
    """Run what is asked for, and write it where docs/reliability.md reads it."""
    from torture.page import COUNTS, PAGE, SOAK, build_page
    from torture.record import Record

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--points", type=float, default=1e6)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true", help="write docs/reliability.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        found = soak(int(options.points), options.kills, options.seed, Path(folder))
    print(found.told(), file=sys.stderr)
    if options.write:
        SOAK.write_text(json.dumps(asdict(found), indent=2) + "\n", encoding="utf-8", newline="\n")
        record = Record.from_json(COUNTS.read_text(encoding="utf-8"))
        PAGE.write_text(build_page(record, found), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
