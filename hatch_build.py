"""Compiles the kernels where there is a C compiler; without one the package does the same in NumPy."""

import ctypes
import os
import shlex
import subprocess
import sys
import sysconfig
from contextlib import suppress
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
        partial = folder / f"partial-{os.getpid()}.so"
        try:
            for old in folder.glob("kernels-*.so"):
                old.unlink(missing_ok=True)
            compile_library(source, partial)
            os.replace(partial, library)
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            failure = getattr(error, "stderr", "") or error
            self.app.display_warning(f"the kernels were not compiled, so NumPy does their work: {failure}")
            return
        finally:
            with suppress(OSError):
                partial.unlink()
        build_data["artifacts"].append(f"{KERNELS}/{library.name}")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag()}"


def compile_library(source: Path, target: Path) -> None:
    """Compile, and see that the library can be loaded."""
    command = [*shlex.split(os.environ.get("CC") or "cc"), "-std=c11", "-O3", "-shared", "-fPIC"]
    subprocess.run(
        [*command, "-o", target, source], check=True, capture_output=True, text=True, errors="replace"
    )
    if not hasattr(ctypes.CDLL(str(target)), "divide"):
        raise OSError(f"{' '.join(command)} made a library without its functions")


def platform_tag() -> str:
    """Return this platform as wheels name it; on macOS that of the processor compiled for."""
    platform = sysconfig.get_platform()
    if sys.platform == "darwin":
        platform = f"{platform.rpartition('-')[0]}-{machine()}"
    return platform.replace("-", "_").replace(".", "_")
