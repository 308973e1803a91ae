"""Command lines with wrong options and files: a known exit code, one sentence, nothing left behind."""

from pathlib import Path
from typing import Any, Final

import numpy as np
import typer
from typer.testing import CliRunner

from pac_wrap.cli.commands import app
from support.shell import CERTIFICATE, GOLDEN, one_sentence

_WORDS: Final = (
    "", "-", "--", "-1", "0", "1", "0.05", "nan", "inf", "1e-320", "1e400", "none", "None", "é", "\x1b[31m",
    "\ud800", "a\nb", "*", "[", "~", "~nobody", "/", ".", "..", "/dev/null", "/dev/zero", "/proc/self/mem",
    "missing.csv", "*.csv", "score", "label", "--score", "--help", "' OR 1=1 --", "$(true)", "%s", "9" * 400,
    "hold-fnr", "algorithm1", "raise", "local[1]",
)  # fmt: skip  # a row is one line
_FILES: Final = {
    "empty.csv": b"",
    "header.csv": b"score,label\n",
    "text.csv": b"score,label\nabc,0\n",
    "ragged.csv": b"score,label\n1,0,3\n",
    "binary.parquet": b"PAR1\x00\xffPAR1",
    "nan.csv": b"score,label\nnan,0\n1,1\n",
    "latin.csv": b"score,label\n1,\xe9\n",
    "twins.csv": b"score,score,label\n1,2,0\n",
    "half.json": b'{"score": 1',
    "half.npy": b"\x93NUMPY\x01\x00",
    "half.npz": b"PK\x03\x04",
    "good.csv": b"id,score,label\n" + b"".join(b"%d,%d.5,%d\n" % (i, i, i > 60) for i in range(120)),
}
_COMMANDS: Final[dict[str, list[str]]] = {
    "calibrate": ["good.csv", "--score", "score", "--label", "label", "-o", "out.json"],
    "decide": [str(CERTIFICATE), "good.csv", "--score", "score", "-o", "out.csv"],
    "evaluate": [str(CERTIFICATE), "good.csv", "--score", "score", "--label", "label"],
    "verify": [str(CERTIFICATE), str(GOLDEN / "scores.csv"), "--score", "score", "--label", "label"],
    "compare": ["good.csv", "--score", "score", "--score", "id", "--label", "label"],
    "show": [str(CERTIFICATE), "--format", "text"],
    "sql": [str(CERTIFICATE), "--score", "score", "--dialect", "duckdb"],
    "plan": ["--max-fnr", "0.05", "--delta", "0.05", "--labels", "100"],
}
_GROUP: Any = typer.main.get_command(app)
# every option of these commands, whatever they are called today
_OPTIONS: Final = sorted(
    {
        name
        for command in _COMMANDS
        for option in _GROUP.commands[command].params
        for name in option.opts
        if name.startswith("-")
    }
)


def wrong_command(random: np.random.Generator, folder: Path) -> str:
    """Run a command line in the folder, some of whose words were replaced, dropped or added."""
    for name, content in _FILES.items():
        (folder / name).write_bytes(content)
    command = str(random.choice(sorted(_COMMANDS)))
    words = list(_COMMANDS[command])
    for _ in range(int(random.integers(1, 4))):
        _change(words, random)
    before = set(folder.iterdir())
    streams = bytes(random.integers(0, 256, 40, dtype=np.uint8)) if random.integers(2) else b""
    result = CliRunner().invoke(app, [command, *words], input=streams, env={"COLUMNS": "80"})
    shown = f"{command} {words}"
    assert result.exception is None or isinstance(result.exception, SystemExit), (
        f"{shown} raises {type(result.exception).__name__}: {result.exception}"
    )
    assert result.exit_code in (0, 1, 2), f"{shown} ends with {result.exit_code}: {result.stderr}"
    assert not any(_control(text) for text in (result.stdout, result.stderr)), f"{shown}: {result.stderr!r}"
    if result.exit_code == 2:
        added = set(folder.iterdir()) - before
        assert not added, f"{shown} leaves {added}"
        if "Error ─" not in result.stderr:  # the box of a usage error
            last = [line for line in result.stderr.splitlines(keepends=True) if "note:" not in line]
            one_sentence("".join(last))
        return "refused"
    return "done" if result.exit_code == 0 else "not certified or not verified"


def _change(words: list[str], random: np.random.Generator) -> None:
    odd = (*_WORDS, *_FILES)
    kind, place = int(random.integers(4)), int(random.integers(max(1, len(words))))
    if kind == 0 and words:
        words[place] = str(random.choice(odd))
    elif kind == 1 and words:
        del words[place]
    elif kind == 2:
        words.insert(place, str(random.choice(odd)))
    else:
        words += [str(random.choice(_OPTIONS)), str(random.choice(odd))]


def _control(text: str) -> bool:
    return any(not (character.isprintable() or character == "\n") for character in text)
