"""What a certificate may cost: a hostile file is refused in little time and memory."""

import json
import os
import subprocess
import threading
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from pac_wrap import Algorithm1, Certificate, CertificateError, Guarantee, calibrate
from pac_wrap.base.arguments import MOST_SCORES
from pac_wrap.base.codec import MOST_BYTES
from support.patience import LIMIT
from support.resealed import said, sealed, tampered
from support.shell import SCRIPT, refused, write

RNG = np.random.default_rng(0)
NORMAL, FAR, NEAR = RNG.normal(0, 1, 2000), RNG.normal(6, 1, 2000), RNG.normal(1, 1, 2000)
SEPARATED = calibrate(NORMAL, FAR)

COSTLY = {
    "digits": '{"a": ' + "9" * 999_000 + "}",
    "a fraction": '{"a": 0.' + "9" * 999_000 + "}",
    "one text": '{"a": "' + "x" * 999_000 + '"}',
    "escapes": '{"a": "' + r"\u001b" * 166_000 + '"}',
    "one name": '{"' + "x" * 999_000 + '": 1}',
    "blanks": " " * 999_999 + "{",
    "lists": "[" + "[]," * 333_000 + "[]]",
    "objects": '{"a": [' + "{}," * 333_000 + "{}]}",
    "names": "{" + ",".join(f'"{i}": 0' for i in range(90_000)) + "}",
    "depth": "[" * 500_000 + "]" * 499_999,
    "too large": " " * MOST_BYTES + "{}",
}


@pytest.mark.parametrize("name", COSTLY)
@pytest.mark.parametrize("as_bytes", [False, True], ids=["text", "bytes"])
def test_a_costly_text_is_refused_in_little_time_and_memory(name: str, as_bytes: bool) -> None:
    text = COSTLY[name].encode() if as_bytes else COSTLY[name]
    tracemalloc.start()
    try:
        said(text)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20e6


def test_no_more_is_read_than_a_certificate_can_have(tmp_path: Path) -> None:
    assert "over 1,000,000 bytes" in refused(tmp_path, "show", "/dev/zero")
    large = write(tmp_path / "large.json", SEPARATED.to_json().encode() + b" " * MOST_BYTES)
    assert "over 1,000,000 bytes" in refused(tmp_path, "show", large)
    fits = SEPARATED.to_json().encode()
    assert Certificate.load(write(tmp_path / "fits", fits + b" " * (MOST_BYTES - len(fits)))) == SEPARATED


def test_a_pipe_that_never_ends_is_left_after_its_first_megabyte(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    sent = 0

    def feed() -> None:
        nonlocal sent
        with open(tmp_path / "pipe", "wb", buffering=0) as pipe:
            try:
                while True:
                    sent += pipe.write(b" " * 65_536)
            except BrokenPipeError:
                pass

    feeder = threading.Thread(target=feed)
    feeder.start()
    with pytest.raises(CertificateError, match="over 1,000,000 bytes"):
        Certificate.load(tmp_path / "pipe")
    feeder.join(timeout=LIMIT)
    assert not feeder.is_alive()
    assert sent < 3 * MOST_BYTES


def test_a_certificate_is_read_from_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    text = SEPARATED.to_json()
    feeder = threading.Thread(target=lambda: (tmp_path / "pipe").write_text(text))
    feeder.start()
    assert Certificate.load(tmp_path / "pipe") == SEPARATED
    feeder.join(timeout=LIMIT)


def test_the_most_scores_are_read_in_milliseconds_and_one_more_is_refused() -> None:
    content = json.loads(calibrate(NORMAL, FAR, Guarantee(max_fnr=None)).to_json())
    content["clauses"][1]["n"] = MOST_SCORES
    assert Certificate.from_json(sealed(content)).fnr.n == MOST_SCORES
    content["clauses"][1]["n"] = MOST_SCORES + 1
    assert "a class has at most 1,000,000,000,000" in said(sealed(content))


def test_the_certificate_of_the_issue_ends_at_once(tmp_path: Path) -> None:
    changes = {"normal.n": 10**15, "normal.beyond": 0}
    path = write(tmp_path / "c.json", tampered(SEPARATED, changes))
    done = subprocess.run([str(SCRIPT), "show", str(path)], capture_output=True, timeout=LIMIT, check=False)
    assert done.returncode == 2
    assert b"there cannot be 1,000,000,000,000,000 normal scores" in done.stderr


def test_a_certificate_of_ten_thousand_levels_is_read_in_little_memory() -> None:
    certificate = calibrate(NORMAL, NEAR, Guarantee(0.001, 0.001), overlap=Algorithm1(step=0.0001))
    text = certificate.to_json()
    tracemalloc.start()
    try:
        Certificate.from_json(text)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert certificate.overlap.tried(certificate.guarantee, (2000, 2000)) > 9_000
    assert peak < 20e6
