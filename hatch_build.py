"""Compiles the C: with the compiler of this machine, if any, or with zig for the wheels of a release.

Without a compiler the package does the same in NumPy. `python hatch_build.py FOLDER` builds what is released.
"""

import os
import shlex
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path
from platform import machine
from runpy import run_path
from tempfile import TemporaryDirectory
from typing import Any, Final
from zlib import crc32

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import platform_tags

# what is compiled, each into a library of its own; the first folder has what tests them
SOURCES: Final = "src/pac_wrap/ranks/kernels.c", "src/pac_wrap/tables/files/cells.c"
CHECKS: Final = "src/pac_wrap/ranks/compiled.py"
# set for the wheels of a release: a platform of these, or "any" for one without the library
WHEEL: Final = "PAC_WRAP_WHEEL"
# the platforms, as wheels name them, and what zig is told; macOS would write the path of the library into it
PLATFORMS: Final = {
    "manylinux_2_28_x86_64": "x86_64-linux-gnu.2.28",
    "manylinux_2_28_aarch64": "aarch64-linux-gnu.2.28",
    "musllinux_1_2_x86_64": "x86_64-linux-musl",
    "musllinux_1_2_aarch64": "aarch64-linux-musl",
    "macosx_10_13_x86_64": "x86_64-macos.10.13 -Wl,-install_name,kernels",
    "macosx_11_0_arm64": "aarch64-macos.11.0 -Wl,-install_name,kernels",
    "win_amd64": "x86_64-windows-gnu",
}
FLAGS: Final = ("-std=c11", "-O3", "-fno-fast-math", "-fno-unsafe-math-optimizations", "-shared", "-fPIC")


class Kernels(BuildHookInterface[Any]):
    """Puts a shared library beside its source, named after it, so that no other is ever loaded."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile; a wheel that holds the library is one for its platform."""
        wanted = os.environ.get(WHEEL, "")
        try:
            built = [
                file
                for source in SOURCES
                for file in build_library(Path(self.root, source), Path(self.root, CHECKS), wanted)
            ]
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            failure = getattr(error, "stderr", "") or error
            if wanted:
                self.app.abort(f"{WHEEL} is {wanted}, but the kernels were not compiled for it: {failure}")
            self.app.display_warning(f"the kernels were not compiled, so NumPy does their work: {failure}")
            return
        if not built:
            return
        build_data["artifacts"] += [file.relative_to(self.root).as_posix() for file in built]
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{wanted or platform_tag()}"


def build_library(source: Path, checks: Path, platform: str = "") -> tuple[Path, ...]:
    """Return the library, tested if it can run here, and the file with its SHA-256; nothing for "any".

    Older ones are removed.
    """
    folder = source.parent
    library = folder / f"{source.stem}-{crc32(source.read_bytes()):08x}.so"
    for old in folder.glob(f"{source.stem}-*"):
        old.unlink(missing_ok=True)
    if platform == "any":
        return ()
    # on the same disk, so that it can be moved
    with TemporaryDirectory(prefix="partial-", dir=folder) as scratch:
        partial = Path(scratch, library.name)
        run(*(compiler_for(platform) if platform else compiler()), "-o", partial, source)
        if not platform or platform in platform_tags():
            # in a process of its own: a library that crashes must not take the install with it
            run(sys.executable, "-IS", checks, partial)
        os.replace(partial, library)
    loading = run_path(str(checks))
    sealed: Path = loading["seal_of"](library)
    sealed.write_text(loading["seal"](library), encoding="ascii", newline="\n")
    return library, sealed


def compiler() -> list[str]:
    """Return the command that compiles, with the user's flags, and after them those that keep NaN a NaN."""
    return [*shlex.split(os.environ.get("CC") or "cc"), *shlex.split(os.environ.get("CFLAGS", "")), *FLAGS]


def compiler_for(platform: str) -> list[str]:
    """Return the command that compiles for any platform, the same bytes on each; no C library is linked."""
    if platform not in PLATFORMS:
        raise ValueError(f"{platform} is none of any, {', '.join(PLATFORMS)}")
    zig = [sys.executable, "-m", "ziglang", "cc", "-target", *PLATFORMS[platform].split()]
    return [*zig, *FLAGS, "-s", "-nostdlib", "-Wl,--no-entry"]


def run(*command: str | Path) -> None:
    """Run a command; what it complains about goes into the error."""
    subprocess.run(command, check=True, capture_output=True, text=True, errors="replace")


def platform_tag() -> str:
    """Return this platform as wheels name it; on macOS that of the processor compiled for."""
    platform = sysconfig.get_platform()
    if sys.platform == "darwin":
        platform = f"{platform.rpartition('-')[0]}-{machine()}"
    return platform.replace("-", "_").replace(".", "_")


def build_release(folder: Path) -> None:
    """Build the source archive and, out of it, a wheel for each platform and one for all others."""
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(folder.absolute())]
    subprocess.run([*build, "-t", "sdist"], check=True, cwd=Path(__file__).parent)
    (archive,) = folder.glob("*.tar.gz")
    with TemporaryDirectory() as scratch:
        with tarfile.open(archive) as content:
            content.extractall(scratch, filter="data")
        for platform in ("any", *PLATFORMS):
            source = Path(scratch, archive.name.removesuffix(".tar.gz"))
            environment = os.environ | {WHEEL: platform}
            subprocess.run([*build, "-t", "wheel"], check=True, cwd=source, env=environment)


if __name__ == "__main__":
    build_release(Path(sys.argv[1]))
