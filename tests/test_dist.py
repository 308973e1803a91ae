"""What is released, as `make dist` has built it: wheels for every platform, the same bytes twice."""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from tarfile import open as open_archive
from zipfile import ZipFile

import pytest
from hatch_build import PLATFORMS, WHEEL

from pac_wrap import __version__
from pac_wrap.ranks.compiled import seal
from pac_wrap.ranks.kernels import library
from pac_wrap.tables.files import csv_files
from support import debian
from support.patience import LIMIT
from support.shell import CERTIFICATE, GOLDEN

FOLDER = Path(os.environ.get("PAC_WRAP_DIST", "no folder")).absolute()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="make dist builds what is checked here"),
]
ROOT = Path(__file__).parent.parent
NAME = f"pac_wrap_ad-{__version__}"
HERE = next(
    (one for one in PLATFORMS if one.startswith("manylinux") and one.endswith(platform.machine())), ""
)
EMULATOR = "qemu-{}-static"
# what the file of a library starts with, and where its processor stands; each has its own numbers for them
FORMATS = {
    "linux": (b"\x7fELF", 18, {"x86_64": b"\x3e\x00", "aarch64": b"\xb7\x00"}),
    "macosx": (b"\xcf\xfa\xed\xfe", 4, {"x86_64": b"\x07\x00\x00\x01", "arm64": b"\x0c\x00\x00\x01"}),
    "win": (b"MZ", 0x7C, {"amd64": b"\x64\x86"}),
}
SMOKE = """
import numpy as np
from pac_wrap import calibrate
from pac_wrap.ranks.kernels import kernels
scores = np.random.default_rng(0).normal(size=(2, 5000)) + [[0], [3]]
certificate = calibrate(*scores)
print(certificate.verdicts(scores.ravel()).sum(), certificate.to_json())
print(type(kernels()).__name__)
"""


def wheel(tag: str) -> Path:
    return FOLDER / f"{NAME}-py3-none-{tag}.whl"


def run(*command: object, cwd: Path = ROOT, **variables: str) -> str:
    """Return the standard output of a command that must end well."""
    words = [str(word) for word in command]
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PAC_WRAP", "PYTHON"))}
    done = subprocess.run(
        words, cwd=cwd, env=clean | variables, capture_output=True, text=True, check=False, timeout=LIMIT
    )
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def unpacked(tag: str, folder: Path) -> Path:
    """Return where the library of a wheel lies that was unpacked into a folder."""
    with ZipFile(wheel(tag)) as archive:
        archive.extractall(folder)
    return folder / "pac_wrap/ranks" / library().name


def test_there_is_a_wheel_for_each_platform_one_for_all_others_and_the_source() -> None:
    wheels = [wheel(tag).name for tag in ("any", *PLATFORMS)]
    assert sorted(one.name for one in FOLDER.iterdir()) == sorted([*wheels, f"{NAME}.tar.gz"])


def test_an_index_would_take_them() -> None:
    said = run(sys.executable, "-m", "twine", "--no-color", "check", "--strict", *FOLDER.iterdir())
    assert said.count("PASSED") == len(PLATFORMS) + 2


@pytest.mark.parametrize("tag", PLATFORMS)
def test_the_library_is_for_the_platform_that_the_wheel_names(tag: str, tmp_path: Path) -> None:
    built = unpacked(tag, tmp_path)
    other = tmp_path / "pac_wrap/tables/files" / csv_files.library().name
    for one, names in ((built, "kernels-*"), (other, "cells-*")):
        assert sorted(file.name for file in one.parent.glob(names)) == [one.name, f"{one.name}.sha256"]
        assert one.with_name(f"{one.name}.sha256").read_text() == seal(one)
    (system,) = (one for one in FORMATS if tag.partition("_")[0].endswith(one))
    start, place, processors = FORMATS[system]
    (number,) = (number for name, number in processors.items() if tag.endswith(f"_{name}"))
    content = built.read_bytes()
    assert content.startswith(start)
    assert content[place:].startswith(number)
    text = (tmp_path / f"{NAME}.dist-info/WHEEL").read_text()
    assert f"Root-Is-Purelib: false\nTag: py3-none-{tag}\n" in text


@pytest.mark.parametrize("processor", ["x86_64", "aarch64"])
def test_any_c_library_will_do(processor: str, tmp_path: Path) -> None:
    """So what holds of one, tested here, holds of the other."""
    built = [
        unpacked(f"{system}_{processor}", tmp_path / system) for system in ("manylinux_2_28", "musllinux_1_2")
    ]
    assert built[0].read_bytes() == built[1].read_bytes()


def test_the_wheel_for_all_others_has_no_library() -> None:
    with ZipFile(wheel("any")) as archive:
        assert not [name for name in archive.namelist() if "kernels-" in name or "cells-" in name]
        assert b"Root-Is-Purelib: true" in archive.read(f"{NAME}.dist-info/WHEEL")


@pytest.mark.parametrize("tag", [tag for tag in PLATFORMS if "linux" in tag])
def test_nothing_newer_than_the_platform_is_needed(tag: str) -> None:
    said = " ".join(run(sys.executable, "-m", "auditwheel", "show", wheel(tag)).split())
    assert "The wheel requires no external shared libraries!" in said
    assert "references no external versioned symbols" in said


@pytest.mark.parametrize("tag", ["any", *PLATFORMS])
def test_pip_chooses_the_wheel_that_is_meant(tag: str, tmp_path: Path) -> None:
    # a system that no library was compiled for gets the one without
    asked = "linux_riscv64" if tag == "any" else tag
    index = ["--no-index", "--find-links", FOLDER, "--only-binary=:all:", "--no-deps", "--dest", tmp_path]
    run(sys.executable, "-m", "pip", "download", *index, "--platform", asked, "pac-wrap-ad")
    assert [one.name for one in tmp_path.iterdir()] == [wheel(tag).name]


def test_a_second_build_gives_the_same_bytes(tmp_path: Path) -> None:
    """Elsewhere, at another time of day and with nothing in zig's cache."""
    with open_archive(FOLDER / f"{NAME}.tar.gz") as archive:
        archive.extractall(tmp_path / "another place", filter="data")
    again = tmp_path / "again"
    run(
        sys.executable,
        "hatch_build.py",
        again,
        cwd=tmp_path / "another place" / NAME,
        ZIG_GLOBAL_CACHE_DIR=str(tmp_path / "cache"),
        TZ="Asia/Tokyo",
        CFLAGS="-O0 -g",
    )
    assert sorted(one.name for one in again.iterdir()) == sorted(one.name for one in FOLDER.iterdir())
    assert [one.name for one in again.iterdir() if one.read_bytes() != (FOLDER / one.name).read_bytes()] == []


def test_a_wheel_that_cannot_be_built_is_an_error(tmp_path: Path) -> None:
    """Nobody releases one without the library by mistake."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")]
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("*.so*", "__pycache__"))
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    done = subprocess.run(
        build,
        cwd=tmp_path,
        env=os.environ | {WHEEL: "linux_vax"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert f"{WHEEL} is linux_vax, but the kernels were not compiled for it" in done.stdout + done.stderr
    assert not list(tmp_path.glob("dist/*"))


def test_the_container_file_has_no_flaw() -> None:
    run(Path(sys.executable).with_name("hadolint"), ROOT / "Containerfile")


def interpreter(version: str) -> Path | None:
    """Return a Python of some version that is on this machine, if one is."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    for found in (shutil.which(f"python{version}"), *sorted(pyenv.glob(f"{version}.*/bin/python"))):
        asked = [str(found), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        # a name on the path may stand for a version that is not there
        if found and subprocess.run(asked, capture_output=True, text=True).stdout.strip() == version:
            return Path(found)
    return None


def environment(version: str, folder: Path) -> Path:
    """Return the programs of a new environment, in which only the wheel for this platform was installed."""
    python = interpreter(version)
    if python is None:
        pytest.skip(f"no Python {version} on this machine")
    if not HERE:
        pytest.skip("no wheel is for this platform")
    run(sys.executable, "-m", "uv", "venv", "--python", python, folder / "empty")
    programs = folder / "empty/bin"
    install(programs, wheel(HERE))
    return programs


def install(programs: Path, what: Path, *options: str, CC: str = "cc") -> None:
    into = [sys.executable, "-m", "uv", "pip", "install", "--python", programs / "python"]
    run(*into, "--reinstall-package", "pac-wrap-ad", *options, what, CC=CC)


def at_work(programs: Path, folder: Path, **variables: str) -> list[str]:
    """Return what the installed package prints, last the kernels used; its verdicts are the golden ones."""
    pac_wrap = programs / "pac-wrap"
    decide = [pac_wrap, "decide", CERTIFICATE, GOLDEN / "new.csv", "--score", "score", "--format", "csv"]
    assert run(*decide, cwd=folder, **variables) == (GOLDEN / "verdicts.csv").read_text(encoding="utf-8")
    demo = run(pac_wrap, "demo", cwd=folder, **variables)
    smoke = run(programs / "python", "-I", "-W", "error", "-c", SMOKE, cwd=folder, **variables)
    return [demo, *smoke.split("\n")]


def newest(version: str, release: str, folder: Path) -> Path:
    """Return the programs of a Python out of a release of Debian, in which only the wheel was installed."""
    if interpreter(version):
        return environment(version, folder)
    packages = f"python{version}-minimal", f"libpython{version}-stdlib", "libgomp1", "libstdc++6"
    system = debian.unpack(folder / "debian", *packages, release=release)
    (loader,) = system.glob("usr/lib/*/ld-linux-*")
    into = ["--target", system / "usr/lib/python3/dist-packages", "--python-version", version]
    run(sys.executable, "-m", "uv", "pip", "install", *into, wheel(HERE))
    (programs := folder / "programs").mkdir()
    # its C library is newer than that of this machine, so it is started by a loader of its own
    python = f"{loader} --library-path {loader.parent} {system}/usr/bin/python{version}"
    for name, first in {"python": "", "pac-wrap": "-c 'from pac_wrap.cli import main; main()'"}.items():
        (programs / name).write_text(f'#!/bin/sh\nexec {python} {first} "$@"\n')
        (programs / name).chmod(0o755)
    assert run(programs / "python", "--version").startswith(f"Python {version}.")
    return programs


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_it_works_in_an_empty_environment(version: str, tmp_path: Path) -> None:
    programs = newest(version, "forky", tmp_path) if version == "3.14" else environment(version, tmp_path)
    *printed, kernels, _ = at_work(programs, tmp_path)
    assert kernels == "Native"
    if version != "3.11":
        return
    assert at_work(programs, tmp_path, PAC_WRAP_KERNELS="plain") == [*printed, "Plain", ""]
    install(programs, wheel("any"), "--no-deps")
    assert at_work(programs, tmp_path) == [*printed, "Plain", ""]
    # and out of the source, where there is no compiler
    install(programs, FOLDER / f"{NAME}.tar.gz", "--no-deps", "--no-cache", CC="false")
    assert at_work(programs, tmp_path) == [*printed, "Plain", ""]


def emulator(processor: str) -> str:
    found = shutil.which(EMULATOR.format(processor))
    if found is None:
        pytest.skip(f"no {EMULATOR.format(processor)} on this machine; make system installs it")
    return found


@pytest.mark.skipif(not HERE.endswith("x86_64"), reason="the interpreter is not one for x86-64")
@pytest.mark.parametrize(("processor", "vectors"), [("qemu64", 0), ("max", 1)])
def test_an_older_processor_gets_narrower_vectors(processor: str, vectors: int, tmp_path: Path) -> None:
    emulated = [emulator("x86_64"), "-cpu", processor, sys.executable, "-IS"]
    built = unpacked(HERE, tmp_path)
    found = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).vectors())"
    assert run(*emulated, "-c", found, built) == f"{vectors}\n"
    run(*emulated, built.with_name("compiled.py"), built)


@pytest.fixture(scope="module")
def python_on_arm(tmp_path_factory: pytest.TempPathFactory) -> list[object]:
    """Return the command of a Python for 64-bit ARM, out of Debian's packages, installed nowhere."""
    packages = "python3-minimal", "libpython3-stdlib"
    system = debian.unpack(tmp_path_factory.mktemp("arm"), *packages, architecture="arm64")
    return [emulator("aarch64"), "-L", system, system / "usr/bin/python3", "-IS"]


def test_on_arm_the_library_passes_the_test_of_the_build(python_on_arm: list[object], tmp_path: Path) -> None:
    built = unpacked("manylinux_2_28_aarch64", tmp_path)
    checks = built.with_name("compiled.py")
    run(*python_on_arm, checks, built)
    # and this test could fail: a library with a slip does not pass
    source = built.with_name("kernels.c")
    source.write_text(source.read_text().replace("above += block[i] > high", "above += block[i] >= high"))
    zig = [sys.executable, "-m", "ziglang", "cc", "-target", PLATFORMS["manylinux_2_28_aarch64"], "-O3"]
    run(*zig, "-shared", "-fPIC", "-nostdlib", "-o", tmp_path / "slip.so", source)
    with pytest.raises(AssertionError, match=r"slip\.so fails its test: bracket_float64"):
        run(*python_on_arm, checks, tmp_path / "slip.so")
