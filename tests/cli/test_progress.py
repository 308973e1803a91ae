import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pac_wrap.cli import decide, process
from pac_wrap.tables.files import csv_files
from pac_wrap.tables.files.connection import Done
from support.patience import until
from support.shell import CERTIFICATE, write


def test_a_bar_tells_the_pass_its_rows_and_the_time_left_in_80_characters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from rich.console import Console

    screen = io.StringIO()
    monkeypatch.setattr(
        "rich.console.Console", lambda stderr: Console(file=screen, force_terminal=True, width=80)
    )
    monkeypatch.setattr(process, "_PATIENCE", -1.0)
    with process.progress_bar("calibrating", 4) as update:
        for words, told in (
            ([Done(50.0, 1, 60_000_000)], "calibrating, pass 1 of at most 4, 30.0 of 60.0 million rows"),
            ([Done(25.0, 2, 60_000_000)], "calibrating, pass 2 of at most 4, 15.0 of 60.0 million rows"),
            ([Done(100.0, 5)], "calibrating, pass 5 "),
            ([10.0, "q1: training"], "q1: training"),
        ):
            update(*words)
            until(lambda: told in screen.getvalue(), f"the bar says {told!r}")  # noqa: B023  (called at once)
    shown = screen.getvalue()
    assert "left" in shown
    assert "…" not in shown


def test_without_a_terminal_there_is_no_bar(capfd: pytest.CaptureFixture[str]) -> None:
    with process.progress_bar("deciding") as update:
        update(Done(50.0, 1, 10))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("content", "told"),
    [("s\n" + "0.5\n" * 90_000, 90_000), ("s\n0.5,1\n", None)],
    ids=["plain", "ragged"],
)
def test_csv_that_stays_text_tells_how_far_it_is_where_its_rows_are_quickly_counted(
    content: str, told: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = write(tmp_path / "t.csv", content)
    assert decide._rows_of([table], ["s"], None) == told
    if told is None:
        return
    seen: list[Done] = []

    @contextmanager
    def bar(text: str) -> Iterator[Any]:
        yield seen.append

    monkeypatch.setattr(decide, "progress_bar", bar)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    others: Any = {"form": None, "on_missing": "abstain", "source_column": None}
    decide.decide(CERTIFICATE, [str(table)], "s", output=tmp_path / "out.csv", quiet=True, **others)
    assert len(seen) > 1
    assert seen[-1] == Done(100.0, 1, told)


def test_quoted_rows_are_quickly_counted_only_in_c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = write(tmp_path / "t.csv", 's\n"0.5"\n')
    assert decide._rows_of([table], ["s"], None) == (1 if csv_files.functions() else None)
    monkeypatch.setattr(csv_files, "functions", lambda: None)
    assert decide._rows_of([table], ["s"], None) is None
