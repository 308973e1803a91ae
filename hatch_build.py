"""Compiles the kernels where there is a C compiler; without one the package does the same in NumPy."""

import os
import shlex
import subprocess
import sysconfig
from pathlib import Path
from typing import Any
from zlib import crc32

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

KERNELS = "src/pac_wrap/kernels"


class Kernels(BuildHookInterface):
    """Puts a shared library beside its source, named after it, so that no other is ever loaded."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile; a wheel that holds the library is one for this platform."""
        folder = Path(self.root, KERNELS)
        source = folder / "kernels.c"
        library = folder / f"kernels-{crc32(source.read_bytes()):08x}.so"
        partial = library.with_suffix(f".{os.getpid()}")
        compiler = shlex.split(os.environ.get("CC", "cc"))
        try:
            # no contraction: a sum must be rounded as NumPy rounds it
            options = ["-std=c11", "-O3", "-ffp-contract=off", "-shared", "-fPIC"]
            subprocess.run([*compiler, *options, "-o", partial, source], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            self.app.display_warning(f"the kernels were not compiled, so NumPy does their work: {error}")
            return
        for old in folder.glob("kernels-*.so"):
            old.unlink()
        os.replace(partial, library)
        build_data["artifacts"].append(f"{KERNELS}/{library.name}")
        build_data["pure_python"] = False
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"
