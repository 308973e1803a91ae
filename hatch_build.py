"""Compiles the kernels where there is a C compiler; without one the package does the same in NumPy."""

import os
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path
from platform import machine
from typing import Any
from zlib import crc32

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

KERNELS = "src/pac_wrap/kernels"


class Kernels(BuildHookInterface[Any]):
    """Puts a shared library beside its source, named after it, so that no other is ever loaded."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile; a wheel that holds the library is one for this platform."""
        folder = Path(self.root, KERNELS)
        source = folder / "kernels.c"
        library = folder / f"kernels-{crc32(source.read_bytes()):08x}.so"
        partial = folder / f"kernels-{os.getpid()}.so"
        try:
            failure = compiled(source, partial)
            if not failure:
                os.replace(partial, library)
        except OSError as error:
            failure = str(error)
        for old in set(folder.glob("kernels-*.so")) - {library}:
            old.unlink(missing_ok=True)
        if failure:
            self.app.display_warning(f"the kernels were not compiled, so NumPy does their work: {failure}")
            return
        build_data["artifacts"].append(f"{KERNELS}/{library.name}")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag()}"


def compiled(source: Path, target: Path) -> str:
    """Compile, and return what went wrong, if anything did."""
    command = [*shlex.split(os.environ.get("CC", "cc")), "-std=c11", "-O3", "-shared", "-fPIC"]
    done = subprocess.run([*command, "-o", target, source], capture_output=True, text=True, errors="replace")
    return f"{done.stderr.strip()} (exit code {done.returncode})" if done.returncode else ""


def platform_tag() -> str:
    """Return this platform as wheels name it; on macOS that of the processor compiled for."""
    platform = sysconfig.get_platform()
    if sys.platform == "darwin":
        platform = f"{platform.rpartition('-')[0]}-{machine()}"
    return platform.replace("-", "_").replace(".", "_")
