"""The exit code is settled before anything is printed: no reader, output or encoding changes it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pac_wrap import __version__
from pac_wrap.method.certificate import Certificate
from support.patience import LIMIT
from support.shell import CERTIFICATE, GOLDEN, SCRIPT, Done, invoke, one_sentence, refused, write
from support.slow import slow_but

pytestmark = pytest.mark.skipif(os.name != "posix", reason="shells of POSIX")

LABELLED = "--score score --label label"
FULL = "pac-wrap: cannot write standard output: No space left on device\n"
# what each command ends with when somebody reads
CODES = {
    f"verify {CERTIFICATE} few.csv {LABELLED}": 1,
    f"show {CERTIFICATE}": 0,
    "show missing.json": 2,
    f"evaluate {CERTIFICATE} upside.csv {LABELLED} -q": 1,
    f"calibrate few.csv {LABELLED}": 1,
    "show": 2,
    "--version": 0,
    "--help": 0,
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    rows = (GOLDEN / "scores.csv").read_text().splitlines(keepends=True)
    write(tmp_path / "few.csv", "".join(rows[:30]))
    wrong = "".join(f"{9 if number % 2 else -9},{1 - number % 2}\n" for number in range(400))
    write(tmp_path / "upside.csv", "score,label\n" + wrong)
    return tmp_path


def shell(script: str, place: Path, **environment: str) -> tuple[int, str, str]:
    """Run a shell script in which "$PW" is the command; return its code and what came out."""
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=place,
        capture_output=True,
        timeout=LIMIT,
        check=False,
        env=os.environ | {"PW": str(SCRIPT), "COLUMNS": "80"} | environment,
    )
    return done.returncode, done.stdout.decode("utf-8", "surrogateescape"), done.stderr.decode()


@pytest.mark.parametrize("words", slow_but(1, CODES))
def test_nobody_reads(words: str, place: Path) -> None:
    # the reader is gone before the command starts
    code, out, err = shell(f'{{ sleep 0.1; "$PW" {words}; echo "code $?" >&2; }} | true', place)
    assert code == 0
    assert out == ""
    assert err.endswith(f"code {CODES[words]}\n")
    assert "Error" not in err.replace("─ Error ─", "")
    assert "Traceback" not in err
    if CODES[words] < 2:
        assert err == f"code {CODES[words]}\n"


@pytest.mark.parametrize("words", slow_but(1, CODES))
def test_everything_is_closed(words: str, place: Path) -> None:
    assert shell(f'"$PW" {words} >&- 2>&- <&-', place) == (CODES[words], "", "")


@pytest.mark.parametrize("words", slow_but(1, [f"show {CERTIFICATE}", "--version", "show missing.json"]))
@pytest.mark.parametrize("where", ["2>&-", "2>/dev/full"])
def test_standard_error_is_closed_or_full(words: str, where: str, place: Path) -> None:
    code, out, err = shell(f'"$PW" {words} {where}', place)
    assert (code, bool(out), err) == (CODES[words], CODES[words] == 0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
@pytest.mark.parametrize("words", slow_but(1, [words for words, code in CODES.items() if code < 2]))
def test_a_good_result_that_cannot_be_written_is_code_2_and_bad_news_stay(words: str, place: Path) -> None:
    assert shell(f'"$PW" {words} >/dev/full', place) == (CODES[words] or 2, "", FULL)


def test_standard_output_is_closed_and_its_number_is_not_taken_by_a_table(place: Path) -> None:
    # a file opened later would be number 1, and what libraries print there would be written into it
    before = (place / "few.csv").read_bytes()
    code, _, err = shell(f'"$PW" calibrate few.csv {LABELLED} -o out.json >&-', place)
    assert (code, err) == (1, "pac-wrap: 29 rows: 17 normal, 12 anomalous -> out.json\n")
    assert (place / "few.csv").read_bytes() == before
    assert Certificate.load(place / "out.json").empty


BREAKS = """
import sys
from pac_wrap.cli import main
import pac_wrap.method.certificate
def broken(*_):
    raise KeyError("surprise")
pac_wrap.method.certificate.Certificate.from_json = broken
sys.argv = ["pac-wrap", *sys.argv[1:]]
main()
"""


def test_an_error_of_ours_has_its_own_code_and_can_be_traced() -> None:
    words = [sys.executable, "-c", BREAKS, "--debug", "show", str(CERTIFICATE)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert (done.returncode, done.stdout) == (70, "")
    assert done.stderr.startswith("Traceback")
    assert done.stderr.endswith("KeyError: 'surprise'\n")


@pytest.mark.parametrize("error", [EOFError(), RecursionError("deep"), MemoryError(), KeyError("surprise")])
def test_whatever_goes_wrong_is_one_sentence(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(Certificate, "from_json", fail)
    done = invoke("show", CERTIFICATE)
    assert (done.code, done.out) == (70, "")
    what = f"{type(error).__name__}: {error}".removesuffix(": ")
    sentence = f"a bug in pac-wrap, {what}; run it as pac-wrap --debug to see the traceback"
    assert one_sentence(done.err) == sentence


ASCII = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii:strict", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.parametrize(
    "words",
    slow_but(1, ["plan", "show schön.json", *CODES, "data list", "calibrate größe.csv --score s --label l"]),
)
def test_a_terminal_that_knows_ascii_only(words: str, place: Path) -> None:
    # the folder of data sets may be named relative to another folder
    code, out, err = shell(f'unset PAC_WRAP_DATA; "$PW" {words}', place, **ASCII)
    assert code == CODES.get(words, 0 if words in ("plan", "data list") else 2)
    assert (out + err).isascii()
    assert "Traceback" not in err
    assert code or err == ""


NOT_UTF8 = [
    "show \udcff.json",
    f"calibrate \udcff.csv {LABELLED}",
    f"calibrate ./\udcff.csv {LABELLED}",
    "calibrate few.csv --score \udcff --label label",
    "calibrate few.csv --score score --label \udcff",
    "calibrate few.csv --score score --label label --anomaly-label \udcff",
    f"decide {CERTIFICATE} few.csv --score \udcff",
    f"decide {CERTIFICATE} few.csv --score score -o \udcfe/out.parquet",
    f"decide {CERTIFICATE} few.csv --score score -o missing\udcfe/out.csv",
    f"sql {CERTIFICATE} --score \udcff",
    "data where \udcff",
    "reproduce \udcff",
    "\udcff",
    "show --format \udcff",
]


def test_names_that_are_not_utf8_are_one_sentence(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.rename(place / "few.csv", os.fsencode(place) + b"/\xff.csv")
    write(place / "few.csv", "score,label\n1,0\n2,1\n")
    os.mkdir(os.fsencode(place) + b"/\xfe")
    monkeypatch.chdir(place)
    ended = {words: invoke(*words.split()) for words in NOT_UTF8}
    ended["in a process"] = Done(*shell(rf'"$PW" calibrate ./?.csv {LABELLED}', place))
    for words, done in ended.items():
        assert (done.code, done.out) == (2, ""), words
        assert "bad_cast" not in done.err
        assert r"\udcf" in one_sentence(done.err), words


@pytest.mark.slow
def test_outputs_whose_names_are_not_utf8_are_written(place: Path) -> None:
    words = rf"calibrate few.csv {LABELLED} -o $'\xfe.json' --report $'\xfe.html' -q"
    assert shell(f'"$PW" {words}', place)[0::2] == (1, "")
    words = rf"decide {CERTIFICATE} {GOLDEN}/new.csv --score score -o $'\xfe.csv' -q"
    assert shell(f'"$PW" {words}', place) == (0, "", "")
    with open(os.fsencode(place) + b"/\xfe.csv", "rb") as written:
        assert written.read() == (GOLDEN / "verdicts.csv").read_bytes()


def test_a_device_that_never_ends_is_no_certificate(tmp_path: Path) -> None:
    if not Path("/dev/zero").exists():
        pytest.skip("a device that never ends")
    assert refused(tmp_path, "show", "/dev/zero") == (
        "this is no certificate: it has over 1,000,000 bytes; is it the right file?"
    )


def test_a_pipe_may_hold_a_certificate(place: Path) -> None:
    code, out, err = shell(f'"$PW" show <(cat {CERTIFICATE})', place)
    assert (code, out, err) == (0, (GOLDEN / "show.txt").read_text(), "")


def test_the_version_is_all_that_is_printed() -> None:
    assert invoke("--version") == Done(0, f"pac-wrap {__version__}\n", "")


@pytest.mark.filterwarnings("ignore::pac_wrap.VacuousWarning")
@pytest.mark.parametrize(
    ("normal", "anomalous", "options", "code"),
    [
        (300, 300, [], 0),
        (300, 40, [], 1),  # the FPR alone is promised
        (300, 40, ["--max-fnr", "none"], 0),
        (40, 300, ["--max-fpr", "none"], 0),
        (300, 5, ["--overlap", "hold-fpr"], 1),  # the five miss by the held FPR, and bound no FNR
        (300, 300, ["--overlap", "hold-fpr"], 0),
    ],
)
def test_calibrate_ends_with_1_if_a_rate_that_was_asked_for_is_certified_nowhere(
    normal: int, anomalous: int, options: list[str], code: int, tmp_path: Path
) -> None:
    rows = [(f"{number / normal}", 0) for number in range(normal)]
    rows += [(f"{0.5 + (anomalous > 5) + number / 1000}", 1) for number in range(anomalous)]
    lines = [f"{score},{label},g,worn" for score, label in rows]
    table = write(tmp_path / "scores.csv", "score,label,group,kind\n" + "\n".join(lines) + "\n")
    words = ["calibrate", table, *LABELLED.split(), *options]
    assert invoke(*words).code == code
    modes = [["--group", "group"], ["--kind", "kind"]]
    if "--overlap" not in options:  # a pool goes with abstention alone
        modes.append(["--group", "group", "--pool"])
    for mode in modes:
        assert invoke(*words, *mode).code == code, mode
