"""Downloads from real servers on this machine: good ones, and every way for one to be bad."""

import gzip
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from pac_wrap.errors import DataError
from pac_wrap_paper.data.registry import RemoteFile
from pac_wrap_paper.data.store import fetch, sha256_of
from support.datafolder import CONTENT, empty_cache, small_file
from support.patience import LIMIT
from support.shell import write

pytest.importorskip("pooch")
pytest.importorskip("tqdm")

BY_HAND = "download it yourself, put it into a folder and set PAC_WRAP_DATA to that folder"
WRONG = b"<html>moved</html>"
PACKED = gzip.compress(CONTENT)
BIG = os.urandom(3_000_000)


class Handler(BaseHTTPRequestHandler):
    """Answer well or badly, as the address asks."""

    over: threading.Event

    def do_GET(self) -> None:
        case = self.path.split("/")[1]
        if case == "silent":
            self.over.wait(LIMIT)
            return
        if case == "drip-header":
            self.drip(b"HTTP/1.0 200 OK\r\n" + b"X-Header: x\r\n" * 10_000)
            return
        if case == "gone":
            self.send_error(404)
            return
        body = {"wrong": WRONG, "encoded": PACKED, "big": BIG, "stall": CONTENT}.get(case, CONTENT)
        self.send_response(200)
        missing = 100 if case in ("truncated", "stall") else 0
        self.send_header("Content-Length", str(len(body) + missing))
        if case == "encoded":
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        if case == "drip":
            self.drip(body)
            return
        self.wfile.write(body)
        if case == "stall":
            self.wfile.flush()
            self.over.wait(LIMIT)

    def drip(self, content: bytes) -> None:
        """Send a byte every now and then, always before anybody loses patience with the next one."""
        with suppress(OSError):  # the other side has had enough
            for byte in content:
                if self.over.wait(0.05):
                    return
                self.wfile.write(bytes([byte]))
                self.wfile.flush()

    def log_message(self, *_: object) -> None:
        """Keep the server quiet."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    Handler.over = threading.Event()
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        Handler.over.set()
        running.shutdown()
        thread.join()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return empty_cache(tmp_path, monkeypatch)


def refusal(file: RemoteFile, timeout: float = LIMIT) -> str:
    with pytest.raises(DataError) as caught:
        fetch(file, timeout=timeout)
    return str(caught.value)


def test_a_good_file_arrives_whole(server: str, cache: Path) -> None:
    file = small_file(f"{server}/good/small.csv")
    assert not cache.exists()
    path = fetch(file)
    assert path == cache / "small.csv"
    assert path.read_bytes() == CONTENT
    assert [found.name for found in cache.iterdir()] == ["small.csv"]


def test_a_file_that_came_is_not_fetched_again(server: str, cache: Path) -> None:
    file = small_file(f"{server}/good/small.csv")
    stamp = fetch(file).stat().st_mtime_ns
    assert fetch(file).stat().st_mtime_ns == stamp


def test_a_file_of_many_chunks_arrives_whole(server: str, cache: Path) -> None:
    assert fetch(small_file(f"{server}/big/big.bin", BIG)).read_bytes() == BIG


def test_a_packed_file_stays_packed_whatever_the_server_calls_it(server: str, cache: Path) -> None:
    assert fetch(small_file(f"{server}/encoded/small.csv.gz", PACKED)).read_bytes() == PACKED


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("progress", [True, False])
def test_a_bar_shows_on_a_terminal_only(
    server: str,
    cache: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    terminal: bool,
    progress: bool,
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    fetch(small_file(f"{server}/good/small.csv"), progress)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert ("small.csv: 100%" in shown.err) == (terminal and progress)
    assert (shown.err == "") == (not (terminal and progress))


@pytest.mark.parametrize(
    ("published", "original"),
    [
        ("a page", "the public original"),
        (None, "the copy that the published results were made with; no public hash is known"),
    ],
)
def test_wrong_content_is_kept_aside_and_not_used(
    server: str, cache: Path, published: str | None, original: str
) -> None:
    file = small_file(f"{server}/wrong/small.csv", published=published)
    sentence = refusal(file)
    aside = cache / "small.csv.rejected"
    assert sentence == (
        f"the file from {file.url} differs from {original} (sha256 {sha256_of(aside)[:12]},"
        f" expected {file.sha256[:12]}), so it is not used; it is kept as {aside};"
        f" try again later, or {BY_HAND}"
    )
    assert aside.read_bytes() == WRONG
    assert [path.name for path in cache.iterdir()] == ["small.csv.rejected"]


@pytest.mark.parametrize(
    ("case", "timeout", "reason"),
    [
        ("gone", LIMIT, "the server answered 404 Not Found"),
        ("truncated", LIMIT, "the connection broke off before the end"),
        ("silent", 0.3, "no answer within 0.3 seconds"),
        # long enough for the first bytes on a busy machine
        ("stall", 3.0, "the server cannot be reached, or stopped answering"),
    ],
)
def test_a_failed_download_leaves_nothing(
    server: str, cache: Path, case: str, timeout: float, reason: str
) -> None:
    file = small_file(f"{server}/{case}/small.csv")
    assert refusal(file, timeout) == f"cannot download {file.url}: {reason}; {BY_HAND}"
    assert list(cache.iterdir()) == []


def test_a_server_that_sends_too_much_is_stopped(server: str, cache: Path) -> None:
    file = small_file(f"{server}/big/data.csv")
    assert refusal(file) == (
        f"{file.url} sends more than the {file.size:,} bytes of {file.name}; nothing was kept; {BY_HAND}"
    )
    assert [path for path in cache.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("case", ["drip", "drip-header"])
def test_a_server_that_drips_is_left_after_a_while(server: str, cache: Path, case: str) -> None:
    file = small_file(f"{server}/{case}/small.csv", b"x" * 10_000)
    start = time.monotonic()
    with pytest.raises(DataError) as caught:
        fetch(file, timeout=LIMIT, patience=0.5)
    assert time.monotonic() - start < 60.0  # all of it would take eight minutes
    # a second for every 50 kB on top
    assert str(caught.value) == (
        f"cannot download {file.url}: it did not arrive whole within 0.7 seconds; {BY_HAND}"
    )
    assert list(cache.iterdir()) == []


def test_a_killed_download_is_swept_by_the_next_one(server: str, cache: Path) -> None:
    stale = cache / ".pac-wrap-0123.tmp"
    stale.mkdir(parents=True)
    write(stale / "arrived", "half")
    write(stale / ".lock", "")
    fetch(small_file(f"{server}/good/small.csv"))
    assert [path.name for path in cache.iterdir()] == ["small.csv"]


def test_nobody_listening_is_one_sentence(cache: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    file = small_file(f"http://127.0.0.1:{port}/small.csv")
    assert refusal(file) == (
        f"cannot download {file.url}: the server cannot be reached, or stopped answering; {BY_HAND}"
    )
    assert list(cache.iterdir()) == []


def test_an_address_that_is_none_is_one_sentence(cache: Path) -> None:
    assert refusal(small_file("http:///small.csv")).startswith(
        "cannot download http:///small.csv: Invalid URL"
    )


def test_a_bar_ends_before_the_sentence_begins(
    server: str, cache: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    refusal(small_file(f"{server}/truncated/small.csv"))
    assert capsys.readouterr().err.endswith("\n")


def test_an_interrupt_leaves_nothing(server: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pac_wrap_paper.data.store.sha256_of", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fetch(small_file(f"{server}/good/small.csv"))
    assert list(cache.iterdir()) == []


def test_a_cache_that_cannot_be_made_is_one_sentence(server: str, cache: Path) -> None:
    cache.parent.mkdir(parents=True, exist_ok=True)
    cache.write_text("a file where the folder should be")
    file = small_file(f"{server}/good/small.csv")
    assert refusal(file) == (
        f"cannot write small.csv into the cache folder {cache}: File exists; download {file.url} yourself,"
        " put it into a folder and set PAC_WRAP_DATA to that folder"
    )


def test_a_read_only_cache_is_one_sentence(server: str, cache: Path) -> None:
    cache.mkdir(parents=True)
    cache.chmod(0o500)
    try:
        if os.access(cache, os.W_OK):
            pytest.skip("this user may write into a read-only folder")
        sentence = refusal(small_file(f"{server}/good/small.csv"))
    finally:
        cache.chmod(0o700)
    assert sentence.startswith(
        f"cannot write small.csv into the cache folder {cache}: Permission denied; download http"
    )
    assert list(cache.iterdir()) == []
