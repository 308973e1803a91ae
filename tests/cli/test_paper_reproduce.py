"""pac-wrap reproduce: files that come out the same again, and refusals before any work."""

import errno
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from pac_wrap import __version__
from pac_wrap_paper import studies as experiments
from pac_wrap_paper.data.registry import ENTRIES, Entry
from pac_wrap_paper.data.store import VARIABLE
from pac_wrap_paper.studies import QUESTIONS
from pac_wrap_paper.studies.study import Study
from support.datafolder import empty_cache, needs, small_file
from support.patience import LIMIT
from support.shell import command, invoke, one_sentence, refused, succeeded, write

Q4_FILES = [
    "q4-2-sigma.svg",
    "q4-5-sigma.svg",
    "q4-ambiguity.csv",
    "q4-distance-5.svg",
    "q4.json",
    "q4.md",
]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """Answer every question at once, with nothing, and note what was asked."""
    notes: list[tuple[str, dict[str, Any]]] = []

    def answer(question: str, **options: Any) -> Study:
        del options["progress"]
        notes.append((question, options))
        return Study(question, f"Title of {question}", (), (), ("Found.",), ())

    monkeypatch.setattr(experiments, "reproduce", answer)
    monkeypatch.setattr(experiments, "fetch_data", lambda question: None)
    return notes


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make q4 with options that its record must repeat."""
    folder = tmp_path_factory.mktemp("first") / "deep" / "results"
    done = invoke("reproduce", "q4", "--quick", "--trials", 5, "--seed", 3, "--out", folder)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("Q4. ")
    assert done.out.endswith(f"6 files of q4 are in {folder}\n")
    return folder


def test_all_files_of_a_question_are_written(first: Path) -> None:
    assert sorted(os.listdir(first)) == Q4_FILES
    lines = (first / "q4-ambiguity.csv").read_text().splitlines()
    assert lines[0].startswith("margin,eps,delta,ambiguity,separated count")
    assert len(lines) == 1 + 3 * 36
    page = (first / "q4.md").read_text()
    for name in (name for name in Q4_FILES if name.endswith(".svg")):
        assert f"]({name})" in page
        assert (first / name).read_text().startswith(("<?xml", "<svg"))


def test_the_record_says_how_it_was_made_and_nothing_of_when_or_where(first: Path) -> None:
    text = (first / "q4.json").read_text()
    made = json.loads(text)
    assert made["command"] == "pac-wrap reproduce q4 --seed 3 --trials 5 --quick"
    assert (made["question"], made["seed"], made["data"]) == ("q4", 3, {})
    assert made["versions"]["pac-wrap-ad"] == __version__
    assert made["versions"]["python"] == sys.version.split()[0]
    assert not re.search(r"20\d\d-\d\d-\d\d|\d\d:\d\d", text)


def test_no_file_names_a_folder_of_this_machine(first: Path) -> None:
    places = [str(first), str(Path.home()), str(Path.cwd()), tempfile.gettempdir(), sys.prefix]
    for path in first.iterdir():
        text = path.read_text()
        assert not [place for place in places if f"{place}/" in text], path.name


@pytest.mark.slow
def test_the_recorded_command_makes_the_same_files_in_another_process(first: Path, tmp_path: Path) -> None:
    words = shlex.split(json.loads((first / "q4.json").read_text())["command"])
    assert words[0] == "pac-wrap"
    done = command(*words[1:], "--out", "again", cwd=tmp_path)
    assert done.code == 0, done
    for name in Q4_FILES:
        assert (tmp_path / "again" / name).read_bytes() == (first / name).read_bytes(), name


def test_a_question_with_data_records_their_hashes(tmp_path: Path, asked: list[Any]) -> None:
    succeeded("reproduce", "q3", "--out", tmp_path)
    made = json.loads((tmp_path / "q3.json").read_text())
    files = [file for name in ("usps", "mnist") for file in ENTRIES[name].files]
    assert made["data"] == {file.name: file.sha256 for file in files}
    assert made["command"] == "pac-wrap reproduce q3 --seed 0"


def test_all_asks_every_question_in_order_with_the_same_options(
    tmp_path: Path, asked: list[tuple[str, dict[str, Any]]]
) -> None:
    pytest.importorskip("torch", reason="torch is not installed, and all asks for the time series too")
    out = succeeded("reproduce", "all", "--quick", "--seed", 5, "--trials", 6, "--out", tmp_path)
    assert [question for question, _ in asked] == list(QUESTIONS)
    assert all(options == {"seed": 5, "trials": 6, "quick": True} for _, options in asked)
    assert re.findall(r"^Title of (\w+)$", out, flags=re.MULTILINE) == list(QUESTIONS)
    for name in QUESTIONS:
        made = json.loads((tmp_path / f"{name}.json").read_text())
        assert made["command"] == f"pac-wrap reproduce {name} --seed 5 --trials 6 --quick"


def test_without_options_the_defaults_are_asked_for_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: list[tuple[str, dict[str, Any]]]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "are in" not in succeeded("reproduce", "q2")
    assert asked == [("q2", {"seed": 0, "trials": None, "quick": False})]
    assert os.listdir(tmp_path) == []


def test_a_run_shows_tables_and_findings_on_eighty_columns() -> None:
    out = succeeded("reproduce", "shift", "--quick", "--trials", 4)
    assert out.startswith("Distribution shift\n")
    assert "What it shows" in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.slow
def test_the_real_data_are_read_where_they_are(tmp_path: Path) -> None:
    needs("usps", "mnist")
    done = command("reproduce", "q3", "--quick", "--trials", 2, "--out", tmp_path)
    assert (done.code, done.err) == (0, "")
    names = {"q3-rates.csv", "q3-violations.csv", "q3-readings.csv", "q3-violations.svg", "q3.md", "q3.json"}
    assert set(os.listdir(tmp_path)) == names


@pytest.mark.parametrize(("question", "hint"), [("q9", "shift"), ("shfit", "did you mean shift?")])
def test_an_unknown_question_is_one_sentence(
    tmp_path: Path, asked: list[Any], question: str, hint: str
) -> None:
    sentence = refused(tmp_path, "reproduce", question, "--out", tmp_path / "new")
    assert sentence.startswith(f"there is no question {question!r}; the questions are {', '.join(QUESTIONS)}")
    assert hint in sentence
    assert asked == []


@pytest.mark.parametrize("trials", [0, -1])
def test_trials_that_cannot_be_are_one_sentence(tmp_path: Path, trials: int) -> None:
    sentence = refused(tmp_path, "reproduce", "q4", "--quick", "--trials", trials)
    assert sentence.startswith("--trials must be ")
    assert f"got {trials}" in sentence


def test_a_negative_seed_is_refused() -> None:
    done = invoke("reproduce", "q4", "--quick", "--seed", -1)
    assert (done.code, done.out) == (2, "")
    assert "--seed" in done.err


@pytest.mark.parametrize("question", ["q1", "all"])
def test_a_file_in_the_place_of_the_folder_is_refused_before_any_work(
    tmp_path: Path, asked: list[Any], question: str
) -> None:
    path = write(tmp_path / "file", "text")
    sentence = refused(tmp_path, "reproduce", question, "--out", path)
    assert sentence == f"cannot write into {path}: it is not a folder; name another folder"
    sentence = refused(tmp_path, "reproduce", question, "--out", path / "below")
    assert sentence == f"cannot write into {path / 'below'}: Not a directory; name another folder"
    assert asked == []


def test_a_folder_on_a_read_only_disk_is_refused_before_any_work(
    tmp_path: Path, asked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(tempfile, "TemporaryFile", fail)
    sentence = refused(tmp_path, "reproduce", "q4", "--out", tmp_path)
    assert sentence == f"cannot write into {tmp_path}: Read-only file system; name another folder"
    assert asked == []


WITHOUT_MATPLOTLIB = """
import sys
sys.modules["matplotlib"] = None
from pac_wrap.cli import main
sys.argv = ["pac-wrap", "reproduce", "q4", "--quick", "--trials", "2", *sys.argv[1:]]
main()
"""


def without_matplotlib(*arguments: object) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", WITHOUT_MATPLOTLIB, *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, timeout=LIMIT, check=False)


def test_without_matplotlib_files_are_refused_before_any_work(tmp_path: Path) -> None:
    done = without_matplotlib("--out", tmp_path / "new")
    assert (done.returncode, done.stdout) == (2, "")
    assert one_sentence(done.stderr) == (
        'figures need matplotlib, which is not installed: pip install "pac-wrap-ad[plot]"'
    )
    assert os.listdir(tmp_path) == []


@pytest.mark.slow
def test_without_matplotlib_the_answer_can_still_be_read() -> None:
    done = without_matplotlib()
    assert (done.returncode, done.stderr) == (0, "")
    assert "What it shows" in done.stdout


def test_without_data_and_a_network_the_whole_sentence_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pooch")
    empty_cache(tmp_path, monkeypatch)
    own = tmp_path / "own"
    own.mkdir()
    monkeypatch.setenv(VARIABLE, str(own))
    entries = {"thyroid": Entry((small_file(),), 2, 1, 1, "", "none", "")}
    monkeypatch.setattr(experiments, "ENTRIES", entries)
    done = invoke("reproduce", "q1")
    assert (done.code, done.out) == (2, "")
    sentence = one_sentence(done.err)
    assert sentence.startswith("cannot download http://127.0.0.1:9/small.csv: the server cannot be reached")
    assert sentence.endswith("set PAC_WRAP_DATA to that folder")
    assert os.listdir(own) == []
