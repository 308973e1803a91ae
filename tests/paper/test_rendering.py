"""A study as text, CSV, Markdown and files: nothing is lost, nothing runs, nothing is left behind."""

import csv
import errno
import io
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from math import inf, nan
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from pac_wrap.errors import OutputError
from pac_wrap.tails import Rate
from pac_wrap_paper.rendering import (
    cell_lines,
    cell_text,
    csv_text,
    markdown,
    numeric_columns,
    show_study,
    write_study,
)
from pac_wrap_paper.studies.charts import Bar, Interval, IntervalChart
from pac_wrap_paper.studies.study import Cell, Row, Spread, Study, StudyTable
from support.strategies import refusal

MINUS = "\N{MINUS SIGN}"
RATE = Rate(433, 10_000, 0.039401, 0.047471)
ROW: Row = {
    "detector": "isolation forest",
    "calibration points": 100_000,
    "exact": 0.0433,
    "violations counted": RATE,
    "ambiguity": Spread(0.121, 0.11, 0.135),
    "printed": Interval(0.034, 0.046),
    "kept": True,
}
MISSING: Row = {
    "detector": "a|b [red]c[/red] <b>",
    "calibration points": None,
    "exact": None,
    "violations counted": None,
    "ambiguity": Spread(0.5, 0.5, 0.5),
    "printed": None,
    "kept": False,
}
RATES = StudyTable("rates", "How often a ceiling was exceeded", (ROW, MISSING))
TRIALS = StudyTable("trials", "Every trial", ({"trial": 1, "FPR": 0.1 + 0.2},), detail=True)
PICTURE = IntervalChart(
    "violations",
    'Counted & <exact> "rates"',
    "violations (%)",
    0.05,
    "delta",
    (("synthetic", (Bar("FPR", 0.039, 0.047, 0.043),)),),
)
STUDY = Study(
    "q1",
    "Is the promise kept?",
    ("10,000 calibration sets were drawn.", "Each from a known population."),
    (RATES, TRIALS),
    ("It is kept [always].", "The *tight* bound: 2 * 3 * 4."),
    (PICTURE,),
)


class TestCells:
    @pytest.mark.parametrize(
        ("cell", "expected"),
        [
            (0.0433, "0.043"),
            (0.0, "0.000"),
            (-0.0, "0.000"),
            (0.0004, "<0.001"),
            (0.0005, "0.001"),
            (-0.0004, f">{MINUS}0.001"),
            (-0.25, f"{MINUS}0.250"),
            (0.9996, ">0.999"),
            (1.0, "1.000"),
            (1.0003, "1.000"),
            (1234.5, "1,234.500"),
            (inf, "\N{INFINITY}"),
            (-inf, f"{MINUS}\N{INFINITY}"),
            (nan, "\N{EN DASH}"),
            (100_000, "100,000"),
            (-3, f"{MINUS}3"),
            (True, "yes"),
            (False, "no"),
            (None, "\N{EN DASH}"),
            ("a|b", "a|b"),
            (RATE, "0.043 [0.039, 0.047]"),
            (Rate(0, 10, 0.0, 0.3085), "0.000 [0.000, 0.308]"),
            (Rate(0, 0, 0.0, 1.0), "no points"),
            (Spread(0.121, 0.11, 0.135), "0.121 (0.110 to 0.135)"),
            (Spread(0.5, 0.5, 0.5), "0.500"),
            (Interval(0.0342, 0.0461), "[0.034, 0.046]"),
            (np.float64(0.25), "0.250"),
        ],
    )
    def test_text(self, cell: Cell, expected: str) -> None:
        assert cell_text(cell) == expected
        assert " ".join(cell_lines(cell)) == expected

    def test_a_column_holds_numbers_unless_one_cell_is_a_word(self) -> None:
        assert [head for head, numeric in numeric_columns(RATES).items() if not numeric] == [
            "detector",
            "kept",
        ]
        mixed = StudyTable("t", "", ({"a": 1, "b": None}, {"a": "none", "b": None}))
        assert numeric_columns(mixed) == {"a": False, "b": True}
        assert numeric_columns(StudyTable("t", "", ())) == {}


class TestCsv:
    def test_columns_stand_in_order_and_every_digit_comes_back(self) -> None:
        text = csv_text(RATES)
        assert "\r" not in text
        first, second = csv.DictReader(io.StringIO(text))
        assert list(first) == [
            "detector",
            "calibration points",
            "exact",
            *(f"violations counted {part}" for part in ("count", "n", "low", "high")),
            *(f"ambiguity {part}" for part in ("mean", "low", "high")),
            "printed low",
            "printed high",
            "kept",
        ]
        assert float(first["exact"]) == 0.0433
        assert [int(first[f"violations counted {part}"]) for part in ("count", "n")] == [433, 10_000]
        assert float(first["violations counted high"]) == RATE.high
        assert (first["kept"], second["kept"]) == ("true", "false")
        assert second["detector"] == MISSING["detector"]
        assert {second[name] for name in list(first)[1:7]} == {""}

    @given(st.lists(st.floats(allow_nan=False), min_size=1), st.text(st.characters(exclude_characters="\r")))
    def test_numbers_and_words_round_trip(self, values: list[float], word: str) -> None:
        rows: tuple[Row, ...] = tuple({"word": word, "value": value} for value in values)
        found = list(csv.reader(io.StringIO(csv_text(StudyTable("t", "", rows)), newline="")))
        assert [float(row[1]) for row in found[1:]] == values
        assert all(row[0] == word for row in found[1:])

    def test_floats_of_numpy_are_plain_numbers(self) -> None:
        assert csv_text(StudyTable("t", "", ({"x": np.float64(0.1)},))) == "x\n0.1\n"

    def test_column_with_nothing_in_it_keeps_its_head(self) -> None:
        assert csv_text(StudyTable("t", "", ({"x": 1, "y": None},))) == "x,y\n1,\n"

    def test_column_of_several_kinds_has_the_parts_of_each(self) -> None:
        rows: tuple[Row, ...] = ({"x": 0.5}, {"x": Interval(0.1, 0.2)}, {"x": "none"})
        assert csv_text(StudyTable("t", "", rows)) == "x,x low,x high\n0.5,,\n,0.1,0.2\nnone,,\n"

    def test_row_without_a_column_is_an_error(self) -> None:
        with pytest.raises(KeyError):
            csv_text(StudyTable("t", "", ({"x": 1, "y": 2}, {"x": 1})))


class TestMarkdown:
    def test_parts_stand_in_order(self) -> None:
        text = markdown(STUDY, {"violations": "q1-violations.svg"})
        parts = [
            "## Is the promise kept?\n",
            "\n10,000 calibration sets were drawn.\n",
            "\nEach from a known population.\n",
            "\n**How often a ceiling was exceeded**\n",
            "\n| detector |",
            '\n![Counted &amp; &lt;exact&gt; "rates"](q1-violations.svg)\n',
            "\n**What it shows.**\n\n- It is kept \\[always\\].\n- The *tight* bound: 2 \\* 3 \\* 4.\n",
        ]
        places = [text.index(part) for part in parts]
        assert places == sorted(places)
        assert places[0] == 0
        assert text.endswith(parts[-1])
        assert "Every trial" not in text

    def test_numbers_are_flush_right_and_no_cell_ends_early(self) -> None:
        head, rule, first, second = (
            line for line in markdown(STUDY, {}).splitlines() if line.startswith("|")
        )
        assert rule == "| --- | ---: | ---: | ---: | ---: | ---: | --- |"
        assert first == (
            "| isolation forest | 100,000 | 0.043 | 0.043 [0.039, 0.047]"
            " | 0.121 (0.110 to 0.135) | [0.034, 0.046] | yes |"
        )
        assert second.startswith("| a\\|b \\[red\\]c\\[/red\\] &lt;b&gt; |")
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in (head, rule, first, second)}) == 1

    def test_emphasis_may_begin_a_paragraph_and_needs_both_stars(self) -> None:
        study = replace(STUDY, setting=("*th* and *two words*, not * this* or a*b*c.",))
        assert "\n*th* and *two words*, not \\* this\\* or a\\*b\\*c.\n" in markdown(study, {})

    def test_small_number_is_no_tag(self) -> None:
        table = StudyTable("t", "T", ({"x": 1e-9},))
        assert "| &lt;0.001 |" in markdown(replace(STUDY, tables=(table,)), {})

    def test_what_is_not_there_leaves_no_gap(self) -> None:
        empty = Study("q9", "Nothing", (), (StudyTable("t", "No rows", ()),), (), (PICTURE,))
        assert markdown(empty, {}) == "## Nothing\n\n**No rows**\n"


def printed(study: Study, width: int) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(show_study(study))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


class TestTerminal:
    WIDE = StudyTable(
        "wide", "Wide", tuple(ROW | {"rate": f"FPR {share} %", "n": 10**7} for share in (50, 100))
    )

    @pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 200])
    @pytest.mark.parametrize("table", [RATES, WIDE], ids=["rates", "wide"])
    def test_no_line_is_too_long_and_no_number_is_broken(self, table: StudyTable, width: int) -> None:
        text = printed(replace(STUDY, tables=(table,)), width)
        assert all(len(line) <= width for line in text.splitlines())
        assert "\N{HORIZONTAL ELLIPSIS}" not in text
        for part in ("100,000", "0.043", "[0.039, 0.047]", "(0.110 to 0.135)", "[0.034, 0.046]"):
            assert part in text
        words = text.split()
        assert {"calibration", "violations", "ambiguity", "printed", "isolation", "forest"} <= set(words)

    def test_whole_where_it_fits_then_intervals_below_values_then_columns_below_columns(self) -> None:
        wide, narrow, blocks, lists = (printed(STUDY, width) for width in (120, 90, 60, 24))
        assert "0.043 [0.039, 0.047]" in wide
        assert "0.043 [0.039, 0.047]" not in narrow
        assert "[0.039, 0.047]" in narrow
        assert (wide.count("detector"), narrow.count("detector")) == (1, 1)
        assert "0.043 [0.039, 0.047]" in blocks
        assert blocks.count("detector") > 1
        assert blocks.count("isolation") == blocks.count("detector")
        assert "\N{BOX DRAWINGS LIGHT HORIZONTAL}" not in lists
        assert lists.count("detector") == len(RATES.rows)

    def test_shows_tables_and_findings_as_they_are_written(self) -> None:
        text = printed(STUDY, 120)
        assert "a|b [red]c[/red] <b>" in text
        assert "It is kept [always]." in text
        assert "The tight bound: 2 * 3 * 4." in text
        assert "How often a ceiling was exceeded" in text
        assert "Every trial" not in text
        assert "drawn" not in text

    def test_empty_study_has_its_title(self) -> None:
        empty = Study("q9", "Nothing", (), (StudyTable("t", "No rows", ()),), (), ())
        assert printed(empty, 80) == "Nothing\n\nNo rows\n"

    def test_numbers_are_flush_right_below_their_heads(self) -> None:
        rows: tuple[Row, ...] = ({"word": "a", "n": 5}, {"word": "long", "n": 10_000})
        text = printed(replace(STUDY, tables=(StudyTable("t", "T", rows),), findings=()), 80)
        ends = {len(line) for line in text.splitlines()[3:]}
        assert len(ends) == 1


META = {"version": "1.0", "seed": 7, "name": "größer", "settings": {"b": 1, "a": [0.1, None]}}


def written(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


class TestFiles:
    def test_names_and_content(self, tmp_path: Path) -> None:
        paths = write_study(STUDY, tmp_path, META)
        assert paths == [
            tmp_path / name
            for name in ("q1-rates.csv", "q1-trials.csv", "q1-violations.svg", "q1.md", "q1.json")
        ]
        assert sorted(os.listdir(tmp_path)) == sorted(path.name for path in paths)
        assert paths[0].read_text(encoding="utf-8") == csv_text(RATES)
        assert paths[1].read_text() == "trial,FPR\n1,0.30000000000000004\n"
        assert paths[3].read_text(encoding="utf-8") == markdown(STUDY, {"violations": "q1-violations.svg"})
        text = paths[4].read_text(encoding="utf-8")
        assert json.loads(text) == META
        assert text.endswith("\n}\n")
        assert re.findall(r'^  "(\w+)"', text, re.MULTILINE) == ["name", "seed", "settings", "version"]
        assert "größer" in text

    def test_picture_has_a_white_ground_and_says_what_it_is(self, tmp_path: Path) -> None:
        write_study(STUDY, tmp_path, {})
        root = ElementTree.parse(tmp_path / "q1-violations.svg").getroot()
        assert root.get("aria-label") == PICTURE.title
        ground = next(iter(root.iter("{http://www.w3.org/2000/svg}path")))
        assert "#ffffff" in str(ground.get("style"))

    def test_two_runs_give_the_same_bytes(self, tmp_path: Path) -> None:
        for name in ("one", "two"):
            write_study(STUDY, tmp_path / name, META)
        assert written(tmp_path / "one") == written(tmp_path / "two")
        write_study(STUDY, str(tmp_path / "one"), META)
        assert written(tmp_path / "one") == written(tmp_path / "two")

    def test_another_process_gives_the_same_bytes(self, tmp_path: Path) -> None:
        code = (
            "import sys; sys.path[:0] = sys.argv[1:2]\n"
            "from paper.test_rendering import META, STUDY, write_study\n"
            "write_study(STUDY, sys.argv[2], META)\n"
        )
        command = [sys.executable, "-c", code, str(Path(__file__).parents[1]), str(tmp_path / "there")]
        subprocess.run(command, check=True, env=os.environ | {"PYTHONHASHSEED": "5"})
        write_study(STUDY, tmp_path / "here", META)
        assert written(tmp_path / "here") == written(tmp_path / "there")

    def test_missing_folders_are_made(self, tmp_path: Path) -> None:
        paths = write_study(replace(STUDY, charts=()), tmp_path / "a" / "b", {})
        assert all(path.is_file() for path in paths)

    def test_other_files_stay(self, tmp_path: Path) -> None:
        (tmp_path / "mine.txt").write_text("mine")
        write_study(replace(STUDY, charts=()), tmp_path, {})
        assert (tmp_path / "mine.txt").read_text() == "mine"


PLAIN = replace(STUDY, charts=())


class TestFailure:
    def refused(self, folder: Path) -> str:
        with pytest.raises(OutputError) as caught:
            write_study(PLAIN, folder, META)
        return str(caught.value)

    def test_folder_that_is_a_file(self, tmp_path: Path) -> None:
        target = tmp_path / "file"
        target.write_text("mine")
        assert self.refused(target) == f"cannot write into {target}: it is not a folder; nothing was written"
        below = target / "below"
        assert self.refused(below) == (
            f"cannot create the folder {below}: Not a directory; nothing was written"
        )
        assert target.read_text() == "mine"

    def test_folder_that_may_not_be_written(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def denied(*_: Any, **__: Any) -> Any:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

        monkeypatch.setattr("pac_wrap.base.files.scratch_folder", denied)
        path = tmp_path / "new" / "q1-rates.csv"
        assert (
            self.refused(tmp_path / "new") == f"cannot write {path}: Permission denied; nothing was written"
        )
        assert os.listdir(tmp_path) == []

    def test_full_disk_leaves_old_files_as_they_were(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_study(PLAIN, tmp_path, META)
        before = written(tmp_path)
        write_bytes, count = Path.write_bytes, iter(range(100))

        def full(self: Path, *arguments: Any, **options: Any) -> int:
            if next(count) == 2:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return write_bytes(self, *arguments, **options)

        monkeypatch.setattr(Path, "write_bytes", full)
        with pytest.raises(OutputError, match=r"^cannot write .*q1\.md: No space left on device; nothing"):
            write_study(replace(PLAIN, tables=(TRIALS, RATES)), tmp_path, {"seed": 8})
        assert written(tmp_path) == before

    def test_folder_in_the_place_of_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "q1.md").mkdir()
        assert self.refused(tmp_path).endswith("q1.md: it is a folder; nothing was written")
        assert os.listdir(tmp_path) == ["q1.md"]

    def test_two_of_one_name_would_share_a_file_and_are_refused(self, tmp_path: Path) -> None:
        twice = replace(PLAIN, tables=(RATES, TRIALS, RATES))
        sentence = refusal(lambda: write_study(twice, tmp_path / "new", META))
        assert sentence == "tables of a study need different names, got rates, trials, rates"
        assert os.listdir(tmp_path) == []

    @pytest.mark.parametrize("meta", [{"a": nan}, {"a": object()}])
    def test_what_json_cannot_hold_is_found_before_anything_is_written(
        self, tmp_path: Path, meta: dict[str, object]
    ) -> None:
        with pytest.raises((ValueError, TypeError)):
            write_study(PLAIN, tmp_path / "new", meta)
        assert os.listdir(tmp_path) == []

    def test_without_matplotlib_nothing_is_written_and_studies_without_pictures_are(
        self, tmp_path: Path
    ) -> None:
        code = (
            "import sys; sys.modules['matplotlib'] = None\n"
            "from pac_wrap import MissingExtraError\n"
            "from pac_wrap_paper.studies.charts import LineChart\n"
            "from pac_wrap_paper.studies.study import Study\n"
            "from pac_wrap_paper.rendering import show_study, write_study\n"
            "picture = LineChart('c', 'C', 'x', 'y', (0.0,), (), 0.05, 'limit')\n"
            "study = Study('q1', 'Q', (), (), (), (picture,))\n"
            "try:\n    write_study(study, sys.argv[1] + '/with', {})\n"
            "except MissingExtraError as error:\n    print(error)\n"
            "write_study(Study('q1', 'Q', (), (), (), ()), sys.argv[1] + '/without', {})\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
        )
        assert done.stdout == (
            'figures need matplotlib, which is not installed: pip install "pac-wrap-ad[plot]"\n'
        )
        assert os.listdir(tmp_path) == ["without"]


def test_importing_studies_loads_neither_matplotlib_nor_scikit_learn() -> None:
    code = (
        "import sys, pac_wrap_paper.rendering\n"
        "assert not {'matplotlib', 'sklearn'} & set(sys.modules), sorted(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_columns_of_a_block_lose_nothing() -> None:
    seen = [printed(replace(STUDY, tables=(TestTerminal.WIDE,)), width) for width in (70, 100, 200)]
    words = [
        {word for word in text.split() if word[0] != "\N{BOX DRAWINGS LIGHT HORIZONTAL}"} for text in seen
    ]
    assert words[0] == words[1] == words[2]
