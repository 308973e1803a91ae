"""Real commands whose surroundings fail: readers that leave, full disks, signals at any moment."""

import os
import resource
import signal
import subprocess
import time
from pathlib import Path
from typing import Final

import numpy as np

from support.patience import LIMIT
from support.shell import CERTIFICATE, GOLDEN, SCRIPT

_OLD: Final = b"old"
# without a traceback, and with the code that the command would have had
_FORBIDDEN: Final = (b"Traceback", b"Exception ignored", b"core dumped", b"terminate called")
# the first line of the command, before any of ours has run
_STARTING: Final = b"from pac_wrap.cli import main\n"
_LABELLED: Final = ["--score", "score", "--label", "label"]
_COMMANDS: Final[dict[str, tuple[list[str], int]]] = {
    "a verification that fails": (["verify", str(CERTIFICATE), "{other}", *_LABELLED], 1),
    "a verification that holds": (
        ["verify", str(CERTIFICATE), str(GOLDEN / "scores.csv"), *_LABELLED],
        0,
    ),
    "an evaluation": (["evaluate", str(CERTIFICATE), "{other}", *_LABELLED], 1),
    "show": (["show", str(CERTIFICATE)], 0),
    "plan": (["plan"], 0),
    "help": (["--help"], 0),
    "version": (["--version"], 0),
    "decide": (["decide", str(CERTIFICATE), "{other}", "--score", "score"], 0),
    "bad input": (["show", "missing.json"], 2),
}


def early_reader(random: np.random.Generator, folder: Path) -> str:
    """Close the other end of a pipe after a few bytes, or hand over closed streams; the code must stay."""
    name = str(random.choice(sorted(_COMMANDS)))
    words, expected = _COMMANDS[name]
    other = _table(folder / "other.csv", random, 400)
    line = [str(SCRIPT), *(word.format(other=other) for word in words)]
    way = str(random.choice(["closed after some bytes", "never read", "stdout closed", "stderr closed"]))
    if way.endswith("closed"):
        redirection = ">&-" if way.startswith("stdout") else "2>&-"
        quoted = " ".join(f"'{word}'" for word in line)
        done = subprocess.run(
            ["sh", "-c", f"{quoted} {redirection}"], capture_output=True, timeout=LIMIT, check=False
        )
        code, err = done.returncode, done.stderr
        # what cannot be written at all is an error of its own, unless there was nothing to write
        allowed = {expected, 2} if way.startswith("stdout") else {expected}
    else:
        process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stderr is not None
        if way == "closed after some bytes":
            process.stdout.read(int(random.integers(1, 2000)))
        process.stdout.close()
        err = process.stderr.read()
        process.stderr.close()
        code = process.wait(LIMIT)
        allowed = {expected}
    assert not any(word in err for word in _FORBIDDEN), f"{name}, {way}: {err!r}"
    assert code in allowed, f"{name}, {way}: code {code} instead of {expected}: {err!r}"
    return f"code {code} as it should be"


def signalled(random: np.random.Generator, folder: Path) -> str:
    """End a command by a signal at a random moment; its output is the old file or a whole new one."""
    source = _table(folder / "in.csv", random, 200_000)
    suffix = str(random.choice([".csv", ".parquet", ".jsonl"]))
    kind = str(random.choice(["decide", "calibrate"]))
    output = folder / ("out.json" if kind == "calibrate" else f"out{suffix}")
    output.write_bytes(_OLD)
    words = {
        "decide": ["decide", str(CERTIFICATE), str(source), "--score", "score", "-o", str(output)],
        "calibrate": ["calibrate", str(source), *_LABELLED, "-o", str(output)],
    }[kind]
    number = signal.Signals(
        int(random.choice([signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL]))
    )
    scratch = folder / "scratch"
    scratch.mkdir()
    environment = os.environ | {"TMPDIR": str(scratch)}
    process = subprocess.Popen(
        [str(SCRIPT), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )
    time.sleep(float(random.uniform(0.0, 1.2)))
    process.send_signal(number)
    _, err = process.communicate(timeout=LIMIT)
    if number == signal.SIGINT and _STARTING in err and process.returncode in (-number, 130, 1):
        assert output.read_bytes() == _OLD
        return "Python itself was still starting, and shows its own traceback"
    assert not any(word in err for word in _FORBIDDEN), f"{kind}, {number.name}: {err!r}"
    # before Python runs any code of ours, a signal ends it as it ends any process
    codes = {0, 1, 128 + number, -number} if number != signal.SIGINT else {0, 1, 130, -number}
    assert process.returncode in codes, f"{kind}, {number.name}: code {process.returncode}: {err!r}"
    visible = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    assert visible == sorted(["in.csv", output.name, "scratch"]), f"{kind}, {number.name} leaves {visible}"
    content = output.read_bytes()
    if content == _OLD:
        state = "the old file stays"
    else:
        assert _whole(content, output.suffix), f"{kind}, {number.name}: {output.name} is not whole"
        state = "the new file is whole"
    if number == signal.SIGKILL:  # what is left is swept by the next run
        done = subprocess.run([str(SCRIPT), *words], capture_output=True, env=environment, timeout=LIMIT)
        assert done.returncode in (0, 1), done.stderr
    hidden = sorted(path.name for path in folder.iterdir() if path.name.startswith("."))
    left = sorted(path.name for path in scratch.iterdir() if "pac-wrap" in path.name)
    assert not hidden, f"{kind}, {number.name} leaves {hidden}"
    assert not left, f"{kind}, {number.name} leaves {left} in the temporary folder"
    return state


def full_disk(random: np.random.Generator, folder: Path) -> str:
    """Let the system refuse to write beyond some bytes; one sentence, code 2, and the old file stays."""
    source = _table(folder / "in.csv", random, 50_000)
    output = folder / f"out{random.choice(['.csv', '.parquet', '.jsonl', '.csv.gz'])}"
    output.write_bytes(_OLD)
    limit = int(random.integers(1, 400_000))

    def limited() -> None:
        # a write beyond the limit fails, instead of ending the process
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    words = ["decide", str(CERTIFICATE), str(source), "--score", "score", "-o", str(output)]
    done = subprocess.run(
        [str(SCRIPT), *words], capture_output=True, preexec_fn=limited, timeout=LIMIT, check=False
    )
    assert not any(word in done.stderr for word in _FORBIDDEN), done.stderr
    assert sorted(path.name for path in folder.iterdir()) == sorted(["in.csv", output.name])
    if done.returncode == 0:
        assert output.stat().st_size <= limit
        return "it fits"
    assert done.returncode == 2, f"code {done.returncode}: {done.stderr!r}"
    assert output.read_bytes() == _OLD
    assert done.stderr.count(b"\n") == 1, done.stderr
    return "refused in one sentence, the old file stays"


def _table(path: Path, random: np.random.Generator, rows: int) -> Path:
    labels = random.integers(0, 2, rows)
    # scores above 3 for both classes, so that a ceiling of the golden certificate is exceeded
    scores = random.normal(3.0 * (1 - labels), 1.0)
    lines = [f"{i},{s!r},{y}" for i, (s, y) in enumerate(zip(scores.tolist(), labels.tolist(), strict=True))]
    path.write_text("id,score,label\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def _whole(content: bytes, suffix: str) -> bool:
    if suffix == ".json":
        return content.endswith(b"}\n")
    if suffix == ".parquet":
        return content.startswith(b"PAR1") and content.endswith(b"PAR1")
    return content.endswith(b"\n") and content.count(b"\n") in (200_000, 200_001)
