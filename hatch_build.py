"""Compiles the kernels where there is a C compiler; without one the package does the same in NumPy."""

import os
import shlex
import subprocess
import sys
import sysconfig
from contextlib import suppress
from pathlib import Path
from platform import machine
from runpy import run_path
from typing import Any
from zlib import crc32

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

KERNELS = "src/pac_wrap/ranks"


class Kernels(BuildHookInterface[Any]):
    """Puts a shared library beside its source, named after it, so that no other is ever loaded."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile; a wheel that holds the library is one for this platform."""
        folder = Path(self.root, KERNELS)
        try:
            built = build_library(folder)
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            failure = getattr(error, "stderr", "") or error
            self.app.display_warning(f"the kernels were not compiled, so NumPy does their work: {failure}")
            return
        build_data["artifacts"] += [f"{KERNELS}/{file.name}" for file in built]
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag()}"


def build_library(folder: Path) -> tuple[Path, Path]:
    """Return the library, compiled and tested, and the file with its SHA-256; older ones are removed."""
    source, checks = folder / "kernels.c", folder / "compiled.py"
    library = folder / f"kernels-{crc32(source.read_bytes()):08x}.so"
    partial = folder / f"partial-{os.getpid()}.so"
    try:
        for old in folder.glob("kernels-*"):
            old.unlink(missing_ok=True)
        run(*compiler(), "-o", partial, source)
        # in a process of its own: a library that crashes must not take the install with it
        run(sys.executable, "-IS", checks, partial)
        os.replace(partial, library)
    finally:
        with suppress(OSError):
            partial.unlink()
    loading = run_path(str(checks))
    sealed: Path = loading["seal_of"](library)
    sealed.write_text(loading["seal"](library), encoding="ascii", newline="\n")
    return library, sealed


def compiler() -> list[str]:
    """Return the command that compiles, with the user's flags, and after them those that keep NaN a NaN."""
    flags = ["-std=c11", "-O3", "-fno-fast-math", "-fno-unsafe-math-optimizations", "-shared", "-fPIC"]
    return [*shlex.split(os.environ.get("CC") or "cc"), *shlex.split(os.environ.get("CFLAGS", "")), *flags]


def run(*command: str | Path) -> None:
    """Run a command; what it complains about goes into the error."""
    subprocess.run(command, check=True, capture_output=True, text=True, errors="replace")


def platform_tag() -> str:
    """Return this platform as wheels name it; on macOS that of the processor compiled for."""
    platform = sysconfig.get_platform()
    if sys.platform == "darwin":
        platform = f"{platform.rpartition('-')[0]}-{machine()}"
    return platform.replace("-", "_").replace(".", "_")
