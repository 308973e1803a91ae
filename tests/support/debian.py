"""Debian's packages, unpacked into a folder and installed nowhere: other processors, newer releases."""

import shutil
import subprocess
from pathlib import Path

import pytest

# what all packages together may take, of an archive that may be far away
_SECONDS = 120


def unpack(folder: Path, *packages: str, architecture: str | None = None, release: str | None = None) -> Path:
    """Return where some packages, and all that they need, were unpacked; skip if they are not available.

    They are those of this machine's archive and, unless others are asked for, of its release and processor.
    """
    if shutil.which("apt-get") is None:
        pytest.skip("no apt-get on this machine")
    for place in ("lists", "cache/archives"):
        (folder / place / "partial").mkdir(parents=True)
    (folder / "status").touch()
    settings: dict[str, object] = {
        "APT::Sandbox::User": "root",
        "Dir::State::status": folder / "status",
        "Dir::State::lists": folder / "lists",
        "Dir::Cache": folder / "cache",
    }
    if architecture is not None:
        settings |= {"APT::Architecture": architecture, "APT::Architectures": architecture}
    if release is not None:
        sources = folder / "sources.list"
        sources.write_text(f"deb {_archive()} {release} main\n")
        settings |= {"Dir::Etc::sourcelist": sources, "Dir::Etc::sourceparts": "-"}
    options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
    _run("apt-get", "update", "-qq", *options)
    _run("apt-get", "install", "-qqy", "--download-only", "--no-install-recommends", *options, *packages)
    for package in (folder / "cache/archives").glob("*.deb"):
        _run("dpkg", "-x", str(package), str(folder / "system"))
    return folder / "system"


def _archive() -> str:
    """Return the address of the archive that this machine's own packages come from."""
    for line in _run("apt-get", "indextargets", "--format", "$(ORIGIN) $(RELEASE) $(REPO_URI)").splitlines():
        origin, release, address = line.split(maxsplit=2)
        if origin == "Debian" and "-" not in release:
            return address
    pytest.skip("this machine's packages are not Debian's")


def _run(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_SECONDS)
    except (subprocess.SubprocessError, OSError) as error:
        said = str(getattr(error, "stderr", None) or error).strip().splitlines()
        pytest.skip(f"Debian's packages are not available: {said[-1] if said else error}")
    return done.stdout
