"""A PostgreSQL server of the distribution's package, on loopback, for the time of a test."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


def binaries() -> Path | None:
    """Return the folder with initdb and postgres, the newest if there are several."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    on_path = shutil.which("initdb")
    return None if on_path is None else Path(on_path).parent


@contextmanager
def server() -> Iterator[Any]:
    """Yield a connection to a fresh server, and stop that server afterwards; skip where there is none."""
    folder = binaries()
    if folder is None:
        pytest.skip("PostgreSQL is not installed (Debian's package: postgresql)")
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")

    # the server refuses to run as root; the package has made a user for it
    account: dict[str, Any] = {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
    with tempfile.TemporaryDirectory(prefix="pg-") as data:
        if account:
            shutil.chown(data, **account)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        initdb = [str(folder / "initdb"), "-D", f"{data}/db", "-U", "postgres", "-A", "trust", "-E", "UTF8"]
        subprocess.run(initdb, check=True, capture_output=True, cwd=data, **account)
        options = ["-D", f"{data}/db", "-k", data, "-h", "127.0.0.1", "-p", str(port), "-F"]
        process = subprocess.Popen(
            [str(folder / "postgres"), *options],
            cwd=data,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **account,
        )
        try:
            address = f"host=127.0.0.1 port={port} user=postgres dbname=postgres"
            for _ in range(100):
                try:
                    connection = psycopg.connect(address)
                    break
                except psycopg.OperationalError:
                    time.sleep(0.1)
            else:
                raise RuntimeError("the server did not start within ten seconds")
            with connection:
                yield connection
        finally:
            process.terminate()
            process.wait(timeout=30)
