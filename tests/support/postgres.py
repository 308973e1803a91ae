"""A PostgreSQL server of the distribution's package, behind a file and no port, for the time of a test."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from support.patience import LIMIT, until


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
        initdb = [str(folder / "initdb"), "-D", f"{data}/db", "-U", "postgres", "-A", "trust", "-E", "UTF8"]
        subprocess.run(initdb, check=True, capture_output=True, cwd=data, **account)
        options = ["-D", f"{data}/db", "-k", data, "-h", "", "-F"]
        process = subprocess.Popen(
            [str(folder / "postgres"), *options],
            cwd=data,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **account,
        )
        try:
            connections: list[Any] = []

            def answers() -> bool:
                assert process.poll() is None, "the server ended"
                with suppress(psycopg.OperationalError):
                    connections.append(psycopg.connect(f"host={data} user=postgres dbname=postgres"))
                return bool(connections)

            until(answers, "the server answered", step=0.1)
            with connections[0] as connection:
                yield connection
        finally:
            process.terminate()
            process.wait(LIMIT)
