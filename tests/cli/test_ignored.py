"""No option is ignored: beside every mode of its command it is refused, or what is done differs without it.

The options are those of the commands, so that a new one is tried without anybody thinking of it: with values
of its type, unless `VALUES` has some that fit its meaning. What does nothing on purpose stands in `SAME`,
with its reason, and what stands there in vain is found as well.
"""

import json
import os
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import duckdb
import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from pac_wrap import calibrate_classes
from pac_wrap.cli.commands import app
from pac_wrap.method import provenance

# they are said as notes, every time
pytestmark = pytest.mark.filterwarnings("always")
ROWS = 660
LABELLED = ["--score", "s", "--label", "y"]
CALIBRATE = ["t.csv", *LABELLED]
ASK = ["--calibrate", "--table", "t", *LABELLED]


class Mode(NamedTuple):
    """One way to use a command: its arguments, what is piped into it, and whether it is tried quickly."""

    arguments: list[str]
    piped: str | None = None
    quick: bool = False


# every command, and the ways in which it does something else with its options
MODES: dict[str, dict[str, Mode]] = {
    "calibrate": {
        "plain": Mode(CALIBRATE),
        "parquet": Mode(["t.parquet", *LABELLED]),
        "json lines": Mode(["t.jsonl", *LABELLED]),
        "numpy": Mode(["t.npz", *LABELLED]),
        "pipe": Mode(["-", *LABELLED], "t.csv"),
        "group": Mode([*CALIBRATE, "--group", "g"], quick=True),
        "kind": Mode([*CALIBRATE, "--kind", "k"]),
        "time": Mode([*CALIBRATE, "--time", "t"]),
        "series": Mode([*CALIBRATE, "--time", "t", "--series", "u"]),
        "held out": Mode([*CALIBRATE, "--time", "t", "--series", "u", "--hold-out", "0.3"]),
        "weight": Mode([*CALIBRATE, "--weight", "w", "--weight-bound", "2", "--seed", "1"]),
        "report": Mode([*CALIBRATE, "--report", "out/r.md"]),
        "report of groups": Mode([*CALIBRATE, "--group", "g", "--report", "out/r.md"]),
        "report of kinds": Mode([*CALIBRATE, "--kind", "k", "--report", "out/r.md"]),
        "traffic": Mode(["t.csv", "--score", "s", "--max-false-alarms", "0.05", "--review", "y"]),
        "one ceiling": Mode([*CALIBRATE, "--max-fnr", "none"]),
        "dask": Mode([*CALIBRATE, "--engine", "dask"]),
        "dask by group": Mode([*CALIBRATE, "--engine", "dask", "--group", "g"]),
        "dask by kind": Mode([*CALIBRATE, "--engine", "dask", "--kind", "k"]),
    },
    "review": {
        "plain": Mode(["t.csv", "--score", "s", "--max-false-alarms", "0.05"], quick=True),
    },
    "curve": {
        "plain": Mode(CALIBRATE),
        "parquet": Mode(["t.parquet", *LABELLED]),
        "chosen": Mode([*CALIBRATE, "--max-fpr", "0.2"]),
        "at": Mode([*CALIBRATE, "--at", "1.5"]),
        "dask": Mode([*CALIBRATE, "--engine", "dask"]),
    },
    "decide": {
        "csv": Mode(["plain.json", "n.csv", "--score", "s"], quick=True),
        "parquet": Mode(["plain.json", "n.parquet", "--score", "s"]),
        "numpy": Mode(["plain.json", "n.npz", "--score", "s"]),
        "json lines": Mode(["plain.json", "n.jsonl", "--score", "s"]),
        "pipe": Mode(["plain.json", "-", "--score", "s"], "n.csv", quick=True),
        "pipe of lines": Mode(["plain.json", "-", "--score", "s"], "n.jsonl", quick=True),
        "to a file": Mode(["plain.json", "n.csv", "--score", "s", "-o", "out/v.csv"], quick=True),
        "to parquet": Mode(["plain.json", "n.csv", "--score", "s", "-o", "out/v.parquet"]),
        "group": Mode(["groups.json", "n.csv", "--score", "s", "--group", "g"]),
        "group of parquet": Mode(["groups.json", "n.parquet", "--score", "s", "--group", "g"]),
        "pipe of groups": Mode(["groups.json", "-", "--score", "s", "--group", "g"], "n.csv"),
        "kinds": Mode(["kinds.json", "n.csv", "--score", "s"]),
    },
    "evaluate": {
        "plain": Mode(["plain.json", *CALIBRATE]),
        "parquet": Mode(["plain.json", "t.parquet", *LABELLED]),
        "kind": Mode(["kinds.json", *CALIBRATE, "--kind", "k"]),
        "group": Mode(["groups.json", *CALIBRATE, "--group", "g"], quick=True),
    },
    "monitor": {
        "plain": Mode(["plain.json", *CALIBRATE, "--state", "out/m.json"]),
        "parquet": Mode(["plain.json", "t.parquet", *LABELLED, "--state", "out/m.json"]),
        "without labels": Mode(["plain.json", "t.csv", "--score", "s", "--state", "out/m.json"], quick=True),
        "pipe": Mode(["plain.json", "-", *LABELLED, "--state", "out/m.json"], "t.csv"),
        "pipe of lines": Mode(["plain.json", "-", *LABELLED, "--state", "out/m.json"], "t.jsonl"),
        "group": Mode(["groups.json", *CALIBRATE, "--group", "g", "--state", "out/m.json"]),
        "curve": Mode(["plain.json", *CALIBRATE, "--curve", "curve.json", "--state", "out/m.json"]),
    },
    "recalibrate": {
        "plain": Mode(["plain.json", *CALIBRATE, "-o", "out/n.json"], quick=True),
        "parquet": Mode(["plain.json", "t.parquet", *LABELLED, "-o", "out/n.json"]),
    },
    "verify": {
        "plain": Mode(["plain.json", *CALIBRATE]),
        "parquet": Mode(["plain.json", "t.parquet", *LABELLED]),
        "kind": Mode(["kinds.json", *CALIBRATE, "--kind", "k"]),
        "group": Mode(["groups.json", *CALIBRATE, "--group", "g"]),
        "weight": Mode(["weighted.json", *CALIBRATE, "--weight", "w"]),
        "time": Mode(["time.json", *CALIBRATE, "--time", "t"], quick=True),
        "series": Mode(["series.json", *CALIBRATE, "--time", "t", "--series", "u"]),
        "curve": Mode(["curve.json", *CALIBRATE]),
    },
    "show": {
        name: Mode([f"{name}.json"], quick=True)
        for name in ("plain", "kinds", "groups", "classes", "curve", "weighted", "series")
    },
    "worth": {
        "prevalence": Mode(["plain.json", "--prevalence", "0.1"], quick=True),
        "unlabelled": Mode(["plain.json", "--unlabelled", "t.csv", "--score", "s"], quick=True),
        "unlabelled parquet": Mode(["plain.json", "--unlabelled", "t.parquet", "--score", "s"]),
    },
    "compare": {
        "plain": Mode([*CALIBRATE, "--score", "s2"]),
        "one": Mode(CALIBRATE, quick=True),
        "parquet": Mode(["t.parquet", *LABELLED, "--score", "s2"]),
        "joined": Mode(["one.csv", "two.csv", *LABELLED, "--score", "s2", "--key", "id"]),
    },
    "sql": {
        "rule": Mode(["plain.json", "--score", "s"], quick=True),
        "kinds": Mode(["kinds.json", "--score", "s"]),
        "group": Mode(["groups.json", "--score", "s", "--group", "g"]),
        "join": Mode(["groups.json", "--score", "s", "--group", "g", "--join-table", "rules"], quick=True),
        "calibrate": Mode(ASK, quick=True),
        "answered": Mode([*ASK, "--answers", "answers.csv"], quick=True),
        "finished": Mode([*ASK, "--answers", "all.csv"], quick=True),
    },
    "plan": {
        "plain": Mode([], quick=True),
        "ceiling": Mode(["--max-fpr", "0.02"]),
        "labels": Mode(["--labels", "100"], quick=True),
        "counts": Mode(["--normal", "500", "--anomalous", "100"]),
        "pilot": Mode(["--pilot", "t.csv", *LABELLED]),
        "pilot of parquet": Mode(["--pilot", "t.parquet", *LABELLED]),
        "sequential": Mode(["--sequential", "--every", "50", "--up-to", "500"]),
    },
}
# commands that read no table and make no certificate
APART = {
    "demo": "trains a forest for each run; tests/cli/test_demo.py tries its four options",
    "reproduce": "repeats studies; tests/cli/test_paper_reproduce.py",
}

# what fits the meaning of an option, where values of its type do not
VALUES: dict[str, list[str]] = {
    "score": ["s2"],
    "label": ["y2"],
    "max_fpr": ["0.07"],
    "max_fnr": ["0.07"],
    "shift": ["tv:0.01"],
    "label_noise": ["0.01"],
    "weight": ["w2"],
    "weight_bound": ["3"],
    "anomaly_label": ["0"],
    "leave_out": ["0"],
    "kind": ["k2"],
    "group": ["g2"],
    "time": ["t2"],
    "series": ["u2"],
    "prevalence": ["0.3"],
    "delimiter": [";"],
    "master": ["local[1]"],
    "output": ["out/new.json", "out/new.csv"],
    "report": ["out/new.md", "out/new.svg"],
    "certificate": ["out/certificate.json"],
    "state": ["out/other.json"],
    "curve": ["curve2.json"],
    "answers": ["answers.csv", "nothing.csv"],
    "key": ["t"],
    "unlabelled": ["n.csv"],
    "pilot": ["t2.csv"],
    "engine": ["dask"],
    "source_column": ["file"],
    "join_table": ["rules2"],
    "table": ["t2"],
    "name": ["batch"],
    "labels": ["70"],
    "normal": ["700"],
    "anomalous": ["700"],
    "at": ["1.0"],
    "top_fpr": ["0.3"],
    "top_fnr": ["0.3"],
    "on_missing": ["stop"],
}

_ENGINES = "every engine gives the same certificate, byte for byte"
_QUIET = "nothing is said in the first place, as no file is written"
_LATER = "the first statements count rows; what is asked of them is for the last one"
# of a command, in some of its modes, an option: why nothing differs
SAME: dict[tuple[str, tuple[str, ...], str], str] = {
    (
        "calibrate",
        ("plain", "parquet", "json lines", "pipe", "kind", "group", "traffic", "one ceiling"),
        "--engine",
    ): _ENGINES,
    ("curve", ("plain", "parquet", "chosen", "at"), "--engine"): _ENGINES,
    ("calibrate", tuple(one for one in MODES["calibrate"] if "report" not in one), "--quiet"): _QUIET,
    ("evaluate", ("kind", "group"), "--quiet"): "all that is said is what was measured",
    ("sql", ("calibrate", "answered"), "--output"): "the certificate is made by the last statement",
    **{
        ("sql", ("calibrate",), option): _LATER
        for option in (
            "--anomaly-label",
            "--max-fpr",
            "--max-fnr",
            "--delta-fpr",
            "--delta-fnr",
            "--confidence",
            "--overlap",
        )
    },
}


def commands() -> dict[str, Any]:
    """Return the commands as the command line has them; what groups several of them is left out."""
    tree: Any = typer.main.get_command(app)
    return {name: one for name, one in tree.commands.items() if not hasattr(one, "commands")}


def options_of(name: str) -> dict[str, tuple[str, Any]]:
    """Return how each option of a command is written, and its type."""
    (function,) = (
        one.callback for one in app.registered_commands if one.callback and one.callback.__name__ == name
    )
    types = get_type_hints(function)
    return {
        one.name: (one.opts[0], types[one.name])
        for one in commands()[name].params
        if one.param_type_name == "option"
    }


def written(name: str, option: str, kind: Any) -> Iterator[list[str]]:
    """Yield the words of an option with each value that is tried."""
    if get_origin(kind) in (Union, types.UnionType):
        (kind,) = (one for one in get_args(kind) if one is not type(None))
    if get_origin(kind) is list:
        (kind,) = get_args(kind)
    if kind is bool:
        yield [option]
        return
    usual = {int: ["3"], float: ["0.2"], Path: ["out/new.json"], str: ["g"]}
    values = get_args(kind) if get_origin(kind) is Literal else usual[kind]
    for value in VALUES.get(name, values):
        yield [option, value]


def given(words: list[str], arguments: list[str], option: str, kind: Any) -> list[str]:
    """Return the arguments of a mode with an option, in the place of what it had of it."""
    if option in arguments and get_origin(kind) is not list:
        at = arguments.index(option)
        arguments = arguments[:at] + arguments[at + len(words) :]
    return [*arguments, *words]


def has(arguments: list[str], words: list[str]) -> bool:
    """Return whether arguments have an option with the same value already."""
    return any(arguments[at : at + len(words)] == words for at in range(len(arguments)))


def outcome(name: str, arguments: list[str], piped: str | None) -> tuple[Any, ...]:
    """Return all that a command did: its code, what it said, and what it wrote."""
    for path in Path("out").iterdir():
        path.unlink()
    stdin = None if piped is None else Path(piped).read_bytes()
    result = CliRunner().invoke(app, [name, *arguments], input=stdin, env={"COLUMNS": "100"})
    assert result.exception is None or isinstance(result.exception, SystemExit), (name, arguments, result)
    assert result.exit_code in (0, 1, 2), (name, arguments, result.stderr)
    if result.exit_code == 2:
        assert result.stderr.startswith("pac-wrap: "), (name, arguments, result.stderr)
        assert result.stderr.count("\n") == 1, (name, arguments, result.stderr)
    files = {path.name: path.read_bytes() for path in sorted(Path("out").iterdir())}
    return result.exit_code, result.stdout, result.stderr, files


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield a folder with tables of every format and certificates of every kind, which is the current one."""
    here, before = tmp_path_factory.mktemp("ignored"), Path.cwd()
    rng = np.random.default_rng(3)
    row = np.arange(ROWS)
    anomalous = row % 2
    columns: dict[str, Any] = {
        "s": np.round(rng.normal(2.5 * anomalous, 1), 3),
        "y": anomalous,
        "s2": np.round(rng.normal(2.0 * anomalous, 1), 3),
        "y2": (row + (row % 50 == 0)) % 2,
        "k": [("worn", "torn")[i // 2 % 2] if i % 2 else "" for i in row],
        "k2": [("worn", "torn")[i // 4 % 2] if i % 2 else "" for i in row],
        "g": ["c" if i < 20 else "ab"[i // 2 % 2] for i in row],
        "g2": ["c" if i < 20 else "ab"[i // 4 % 2] for i in row],
        "t": row,
        "t2": row[::-1],
        "u": [f"u{i // 66}" for i in row],
        "u2": [f"u{i // 107}" for i in row],
        "w": 1 + row // 2 % 2,
        "w2": 1 + row // 4 % 2,
        "id": row,
    }
    os.chdir(here)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(provenance, "now", lambda: "2026-01-01T00:00:00Z")
        rows = zip(*(np.asarray(one).tolist() for one in columns.values()), strict=True)
        records = [dict(zip(columns, values, strict=True)) for values in rows]
        save("t", records)
        save("t2", records[:500])
        # which have the same rows by one key, and others by another
        save("one", [{"id": one["id"], "t": one["t"], "s": one["s"], "y": one["y"]} for one in records])
        save("two", [{"id": one["id"], "t": one["t2"], "s2": one["s2"]} for one in records])
        # new points, of which one has no score
        save("n", [*records[:300], records[0] | {"s": None}])
        Path("out").mkdir()
        for name, words in {
            "plain": [],
            "kinds": ["--kind", "k"],
            "groups": ["--group", "g"],
            "weighted": ["--weight", "w", "--weight-bound", "2", "--seed", "1"],
            "time": ["--time", "t", "--every", "2"],
            "series": ["--time", "t", "--series", "u", "--every", "2"],
        }.items():
            outcome("calibrate", [*CALIBRATE, *words, "-o", f"{name}.json"], None)
        outcome("curve", [*CALIBRATE, "-o", "curve.json"], None)
        outcome("curve", [*CALIBRATE, "--delta-fpr", "0.1", "-o", "curve2.json"], None)
        calibrate_classes(np.repeat(np.eye(3), 60, axis=0), np.repeat([0, 1, 2], 60)).save("classes.json")
        answer()
        yield here
    os.chdir(before)


def save(name: str, records: list[dict[str, Any]]) -> None:
    """Write rows as JSON lines, CSV, Parquet and arrays of NumPy."""
    Path(f"{name}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
    with duckdb.connect() as connection:
        for form in ("csv", "parquet"):
            connection.execute(f"COPY (FROM read_json('{name}.jsonl')) TO '{name}.{form}'")
    numbers = [key for key, one in records[0].items() if not isinstance(one, str)]
    arrays: dict[str, Any] = {
        key: np.array([np.nan if one[key] is None else one[key] for one in records]) for key in numbers
    }
    np.savez(f"{name}.npz", **arrays)


def answer() -> None:
    """Write the answers of a database to all statements that calibrate, and those to the first two."""
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS FROM 't.parquet'")
        for number in range(5):
            _, statement, _, _ = outcome("sql", [*ASK, "--answers", "all.csv"], None)
            if "every statement is answered" in statement:
                return
            found = connection.execute(statement)
            names = [one[0] for one in found.description or []]
            lines = [names, *found.fetchall()]
            text = "".join(",".join(map(str, one)) + "\n" for one in lines)
            for file in ["all.csv", *(["answers.csv"] if number < 2 else [])]:
                with Path(file).open("a", encoding="utf-8") as opened:
                    opened.write(text)
    raise AssertionError("the statements do not end")


def ignored(name: str, mode: str) -> set[str]:
    """Return the options that change nothing of what a mode does."""
    arguments, piped, _ = MODES[name][mode]
    base = outcome(name, arguments, piped)
    assert base[0] in (0, 1), base
    assert outcome(name, arguments, piped) == base, "what differs anyway shows nothing"
    return {
        option
        for key, (option, kind) in options_of(name).items()
        if (tried := [words for words in written(key, option, kind) if not has(arguments, words)])
        and all(outcome(name, given(words, arguments, option, kind), piped) == base for words in tried)
    }


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        pytest.param(name, mode, marks=() if one.quick else pytest.mark.slow)
        for name, modes in MODES.items()
        for mode, one in modes.items()
    ],
)
def test_no_option_is_ignored(name: str, mode: str, folder: Path) -> None:
    expected = {option for command, modes, option in SAME if command == name and mode in modes}
    assert ignored(name, mode) == expected


def test_every_command_has_its_modes() -> None:
    assert set(commands()) == set(MODES) | set(APART)


HOSTILE: dict[str, Any] = {
    "no rows": lambda rows: [],
    "one row": lambda rows: rows[:1],
    "one class": lambda rows: [one for one in rows if one["y"] == 0],
    "no names": lambda rows: [one | dict.fromkeys(("k", "g", "u", "t", "w")) for one in rows],
    "other names": lambda rows: [one | {"g": "z", "k": "z", "u": "z"} for one in rows],
    "one score": lambda rows: [one | {"s": 1.0} for one in rows],
    "other columns": lambda rows: [{"a": one["s"], "b": one["y"]} for one in rows],
}
COLUMNS = [[], ["--kind", "k"], ["--group", "g"], ["--weight", "w"], ["--time", "t", "--series", "u"]]


@pytest.mark.slow
@pytest.mark.parametrize("certificate", [*MODES["show"], "time"])
def test_no_table_breaks_a_command_with_any_certificate(certificate: str, folder: Path) -> None:
    saved = f"{certificate}.json"
    rows = [json.loads(line) for line in Path("t2.jsonl").read_text(encoding="utf-8").splitlines()[:200]]
    for changed in HOSTILE.values():
        table = changed(rows)
        lines = [list(table[0] if table else rows[0]), *(list(one.values()) for one in table)]
        text = "".join(",".join("" if one is None else str(one) for one in line) + "\n" for line in lines)
        Path("hostile.csv").write_text(text, encoding="utf-8")
        tried = [
            [name, *words]
            for name in ("evaluate", "verify")
            for words in COLUMNS[: 3 + 2 * (name == "verify")]
        ]
        for name, *words in tried:
            survived(name, saved, "hostile.csv", *LABELLED, *words)
        for words in (COLUMNS[0], COLUMNS[2]):
            survived("decide", saved, "hostile.csv", "--score", "s", *words)
            survived("decide", saved, "-", "--score", "s", *words, piped="hostile.csv")
            survived("monitor", saved, "hostile.csv", *LABELLED, *words, "--state", "out/m.json")
        survived("recalibrate", saved, "hostile.csv", *LABELLED, "-o", "out/n.json")
        survived("worth", saved, "--unlabelled", "hostile.csv", "--score", "s")


def survived(*words: str, piped: str | None = None) -> None:
    """Fail if a command ends in an error of its own, or says more than sentences."""
    for path in Path("out").iterdir():
        path.unlink()
    stdin = None if piped is None else Path(piped).read_bytes()
    result = CliRunner().invoke(app, list(words), input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), (words, result)
    assert result.exit_code in (0, 1, 2), (words, result.stderr)
    assert all(line.startswith("pac-wrap: ") for line in result.stderr.splitlines()), (words, result.stderr)
