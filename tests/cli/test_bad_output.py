"""Outputs that cannot be written: one sentence, exit code 2, and the old file as it was."""

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.patience import LIMIT
from support.shell import (
    CERTIFICATE,
    GOLDEN,
    SCRIPT,
    invoke,
    listing,
    one_sentence,
    parquet,
    refused,
    write,
)

LABELLED = [GOLDEN / "scores.csv", "--score", "score", "--label", "label"]
COMMANDS: dict[str, tuple[list[object], str]] = {
    "calibrate -o": (["calibrate", *LABELLED, "-o"], "out.json"),
    "calibrate --report": (["calibrate", *LABELLED, "--report"], "out.md"),
    "decide -o": (["decide", CERTIFICATE, GOLDEN / "new.csv", "--score", "score", "-o"], "out.csv"),
}


@pytest.fixture(params=COMMANDS)
def ask(request: pytest.FixtureRequest) -> tuple[list[object], str]:
    return COMMANDS[request.param]


def test_a_folder_that_does_not_exist(ask: tuple[list[object], str], tmp_path: Path) -> None:
    arguments, name = ask
    path = tmp_path / "nowhere" / name
    sentence = refused(tmp_path, *arguments, path)
    assert sentence == f"cannot write {path}: No such file or directory; nothing was written"


def test_a_file_in_the_place_of_a_folder(ask: tuple[list[object], str], tmp_path: Path) -> None:
    arguments, name = ask
    path = write(tmp_path / "file", "text") / name
    assert refused(tmp_path, *arguments, path) == f"cannot write {path}: Not a directory; nothing was written"


def test_a_folder_in_the_place_of_the_file(ask: tuple[list[object], str], tmp_path: Path) -> None:
    arguments, name = ask
    (tmp_path / name).mkdir()
    sentence = refused(tmp_path, *arguments, tmp_path / name)
    assert sentence == f"cannot write {tmp_path / name}: Is a directory; nothing was written"


def test_a_demo_without_a_place_for_its_report_says_so_before_it_runs(tmp_path: Path) -> None:
    assert "got 'out.pdf'" in refused(tmp_path, "demo", "--report", tmp_path / "out.pdf")


@pytest.mark.parametrize("name", ["out.xlsx", "out", "out.parquet.gz", "out.json", "out.tsv"])
def test_verdicts_in_an_unknown_format(name: str, tmp_path: Path) -> None:
    sentence = refused(
        tmp_path, "decide", CERTIFICATE, GOLDEN / "new.csv", "--score", "score", "-o", tmp_path / name
    )
    assert (
        sentence == f"the output {name} has no known format; the endings are .parquet, .csv, .jsonl, .ndjson"
    )


@pytest.mark.parametrize(
    ("words", "of", "known"),
    [
        (["calibrate", *LABELLED, "--group", "label"], "groups", ".html, .md or .json"),
        (["monitor", CERTIFICATE, *LABELLED, "--state", "s.json"], "a monitor", ".html, .md or .json"),
        (["curve", *LABELLED], "a curve", ".svg, .png or .pdf"),
    ],
)
def test_each_result_has_its_own_reports(words: list[object], of: str, known: str, tmp_path: Path) -> None:
    path = tmp_path / ("out.svg" if "html" in known else "out.html")
    sentence = refused(tmp_path, *words, "--report", path)
    assert sentence == f"the report of {of} must end in {known}, got {path}"
    assert not Path("s.json").exists()


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_the_report_of_a_certificate_may_be_a_picture(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"out.{ending}"
    assert invoke("calibrate", *LABELLED, "--report", path).code == 0
    assert path.read_bytes().startswith(b"<svg" if ending == "svg" else b"\x89PNG")


@pytest.mark.parametrize("name", ["out.pdf", "out", "out.html.gz"])
def test_a_report_in_an_unknown_format_stops_before_anything_is_written(name: str, tmp_path: Path) -> None:
    options = ["-o", tmp_path / "certificate.json", "--report", tmp_path / name]
    assert ".html, .md or .json" in refused(tmp_path, "calibrate", *LABELLED, *options)


@pytest.mark.parametrize(
    ("output", "report"), [("certificate.json", "nowhere/out.md"), ("nowhere/certificate.json", "out.md")]
)
def test_certificate_and_report_are_both_written_or_neither(output: str, report: str, tmp_path: Path) -> None:
    options = ["-o", tmp_path / output, "--report", tmp_path / report]
    sentence = refused(tmp_path, "calibrate", *LABELLED, *options)
    missing = next(path for path in (output, report) if path.startswith("nowhere"))
    assert sentence == f"cannot write {tmp_path / missing}: No such file or directory; nothing was written"


@pytest.mark.parametrize("name", ["verdict", "prediction_set", "Verdict", "PREDICTION_SET"])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_verdict_column_that_is_already_there(name: str, suffix: str, tmp_path: Path) -> None:
    if suffix == ".csv":
        path = write(tmp_path / "a.csv", f"score,{name}\n1,2\n")
    else:
        path = parquet(tmp_path / "a.parquet", f'SELECT 1.0 AS score, 2 AS "{name}"')
    sentence = refused(tmp_path, "decide", CERTIFICATE, path, "--score", "score", "-o", tmp_path / "out.csv")
    assert "there is a column" in sentence
    assert repr(name) in sentence


def test_standard_output_that_nobody_reads_on_is_no_error(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", "SELECT i + 0.5 AS score FROM range(200000) t(i)")
    pipe = f"'{SCRIPT}' decide '{CERTIFICATE}' '{path}' --score score --quiet | head -n 1"
    done = subprocess.run(["sh", "-c", pipe], capture_output=True, text=True, timeout=LIMIT, check=True)
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


MANY = "SELECT i AS id, random() AS score, i % 2 AS label FROM range(200000) t(i)"
LIMITED = """
import resource, sys
from pac_wrap.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
sys.argv[0] = "pac-wrap"
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl", ".csv.gz"])
def test_a_write_the_system_cuts_short_leaves_the_old_file(suffix: str, tmp_path: Path) -> None:
    pytest.importorskip("resource", reason="limits are set by POSIX's setrlimit")
    source, output = parquet(tmp_path / "a.parquet", MANY), write(tmp_path / f"out{suffix}", "old")
    before = listing(tmp_path)
    arguments = ["decide", CERTIFICATE, source, "--score", "score", "-o", output]
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    sentence = one_sentence(done.stderr)
    assert listing(tmp_path) == before
    assert sentence.startswith(f"cannot write {output}: ")
    assert sentence.endswith("; nothing was written")


def in_own_mounts(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a shell script that may mount; what it mounts is seen by nobody else and vanishes with it."""
    if shutil.which("unshare") is None:
        pytest.skip("unshare (util-linux) is not installed")
    words = ["unshare", "--map-root-user", "--mount", "sh", "-e"]
    probe = subprocess.run(
        [*words, "-c", f"mount -t tmpfs none '{folder}'"], capture_output=True, text=True, check=False
    )
    if probe.returncode != 0:
        pytest.skip(f"this user may not mount: {probe.stderr.strip()}")
    return subprocess.run(
        [*words, "-c", script],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
        cwd=folder.parent,
    )


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(suffix: str, tmp_path: Path) -> None:
    parquet(tmp_path / "a.parquet", MANY)
    disk = tmp_path / "disk"
    disk.mkdir()
    done = in_own_mounts(
        f"""
        mount -t tmpfs -o size=64k none disk
        echo old > disk/out{suffix}
        '{SCRIPT}' decide '{CERTIFICATE}' a.parquet --score score -o disk/out{suffix} || echo "code $?"
        cat disk/out{suffix}
        ls -A disk
        """,
        disk,
    )
    assert done.stdout == f"code 2\nold\nout{suffix}\n"
    sentence = one_sentence(done.stderr)
    assert sentence.startswith(f"cannot write disk/out{suffix}: ")
    assert sentence.endswith("No space left on device; nothing was written")
    assert "{" not in sentence  # as where a thread of its own writes, for which DuckDB may wait in vain


# one process for all commands, which must start with the mounts of its own
EACH = """
import json, sys
from support.shell import invoke
for words in json.loads(sys.argv[1]):
    done = invoke(*words)
    print(done.code, done.err, end="")
"""


def test_a_disk_that_cannot_be_written(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    asked = [[*map(str, arguments), f"disk/{output}"] for arguments, output in COMMANDS.values()]
    words = shlex.join([sys.executable, "-c", EACH, json.dumps(asked)])
    tests = f"PYTHONPATH={shlex.quote(str(GOLDEN.parent))}"
    done = in_own_mounts(f"mount -t tmpfs -o ro none disk\n{tests} {words}\nls -A disk", disk)
    assert done.stdout.splitlines() == [
        f"2 pac-wrap: cannot write disk/{output}: Read-only file system; nothing was written"
        for _, output in COMMANDS.values()
    ], done


def test_the_temporary_folder_is_full_too(tmp_path: Path) -> None:
    source = write(tmp_path / "a.csv", "score\n" + "1.5\n" * 100_000)
    disk = tmp_path / "disk"
    disk.mkdir()
    done = in_own_mounts(
        f"""
        mount -t tmpfs -o size=64k none disk
        export TMPDIR=$PWD/disk
        '{SCRIPT}' decide '{CERTIFICATE}' - --score score -o out.csv < {source.name} || echo "code $?"
        ls -A disk
        """,
        disk,
    )
    assert done.stdout == "code 2\n"
    sentence = one_sentence(done.stderr)
    assert "No space left on device" in sentence
    assert "[Errno" not in sentence
