"""Real libraries, broken in every way: none is loaded that is not the one built, none used that errs."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from hatch_build import build_library

from pac_wrap.base.floats import flushes
from pac_wrap.errors import PACWrapWarning
from pac_wrap.ranks import compiled
from pac_wrap.ranks import kernels as package
from pac_wrap.ranks.kernels import Native, Plain, kernels, library
from support.strategies import refusal

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler on the path")

SOURCE = package._SOURCE
PLAIN_FLAGS = ("-O0", "-shared", "-fPIC")


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Iterator[None]:
    """Look for the library in another folder, as if for the first time."""
    monkeypatch.delenv("PAC_WRAP_KERNELS", raising=False)
    monkeypatch.setattr(package, "_SOURCE", folder / SOURCE.name)
    kernels.cache_clear()
    yield
    kernels.cache_clear()


def parts(folder: Path) -> tuple[Path, Path]:
    """Return the source in a folder, and what tests the library made of it."""
    return folder / SOURCE.name, folder / "compiled.py"


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which the library was built, once for all tests."""
    folder = tmp_path_factory.mktemp("kernels")
    for name in (SOURCE.name, "compiled.py"):
        shutil.copy(SOURCE.with_name(name), folder)
    build_library(*parts(folder))
    return folder


@pytest.fixture
def folder(tmp_path: Path, ready: Path) -> Path:
    """Return a copy of that folder, to break things in."""
    shutil.copytree(ready, tmp_path, dirs_exist_ok=True)
    return tmp_path


def compile_as_it_is(text: str, *flags: str, target: Path | None = None) -> None:
    """Put a library of some source in the place of the right one, with the SHA-256 that it has."""
    target = target or library()
    source = target.with_name("other.c")
    source.write_text(text)
    subprocess.run(["cc", *(flags or PLAIN_FLAGS), "-o", target, source], check=True)
    reseal(target)


def reseal(target: Path) -> None:
    compiled.seal_of(target).write_text(compiled.seal(target))


def warned() -> str:
    """Return the reason that is told as NumPy takes over."""
    with pytest.warns(PACWrapWarning) as caught:
        assert type(kernels()) is Plain
    assert kernels() is kernels()
    (text,) = (str(one.message) for one in caught)
    start = "the compiled kernels cannot be used, so NumPy does the same more slowly: "
    end = "; install the package again, or set PAC_WRAP_KERNELS=plain"
    assert text.startswith(start)
    assert text.endswith(end)
    kernels.cache_clear()
    return text.removeprefix(start).removesuffix(end)


def test_what_the_build_makes_is_taken(folder: Path) -> None:
    assert type(kernels()) is Native
    # sha256sum can check it, too
    seal = f"{sha256(library().read_bytes()).hexdigest()}  {library().name}\n"
    assert compiled.seal_of(library()).read_text() == seal
    assert sorted(one.name for one in folder.iterdir()) == sorted(
        ["compiled.py", "kernels.c", library().name, f"{library().name}.sha256"]
    )


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.999])
def test_a_truncated_library_is_not_loaded(folder: Path, share: float) -> None:
    path = library()
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
    assert "is not the file whose SHA-256 is in" in warned()


@pytest.mark.parametrize("share", [0.0, 0.0005, 0.3, 0.6, 1.0])
def test_one_flipped_bit_is_enough(folder: Path, share: float) -> None:
    path = library()
    content = bytearray(path.read_bytes())
    content[int((len(content) - 1) * share)] ^= 16
    path.write_bytes(content)
    assert "is not the file whose SHA-256 is in" in warned()


def test_without_the_right_hash_a_library_that_kills_is_never_loaded(folder: Path) -> None:
    kills = "#include <unistd.h>\n__attribute__((constructor)) static void at_once(void) { _exit(7); }\n"
    seal = compiled.seal_of(library())
    right = seal.read_text()
    compile_as_it_is(kills)
    for other in (right, "", "0" * 64, "ä" * 70):
        seal.write_text(other)
        assert "is not the file whose SHA-256 is in" in warned()
    seal.unlink()
    assert warned().endswith(f"has no {seal.name} beside it")
    # and this test could fail: loaded, it does kill
    script = [sys.executable, "-I", str(folder / "compiled.py"), str(library())]
    assert subprocess.run(script).returncode == 7


def test_a_library_of_another_source_is_stale(folder: Path) -> None:
    path = library()
    source = folder / SOURCE.name
    source.write_text(source.read_text() + "\n")
    assert library() != path
    assert "was compiled from another source" in warned()


def test_a_library_that_was_lost_is_not_one_that_was_never_compiled(folder: Path) -> None:
    path, seal = library(), compiled.seal_of(library())
    path.unlink()
    assert seal.name in warned()
    seal.unlink()
    assert type(kernels()) is Plain


def test_who_asks_for_c_is_told_the_same_reason(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library().write_bytes(b"")
    reason = warned()
    monkeypatch.setenv("PAC_WRAP_KERNELS", "native")
    assert f"PAC_WRAP_KERNELS is native, but the library cannot be loaded: {reason};" in refusal(kernels)


@pytest.mark.parametrize(
    "machine", [0x03, 0xB7, 0xF3]
)  # i386, AArch64, RISC-V; none is x86-64, one may be ours
def test_a_library_for_another_processor_is_left_alone(folder: Path, machine: int) -> None:
    path = library()
    content = bytearray(path.read_bytes())
    if content[:4] != b"\x7fELF" or content[18] == machine:
        pytest.skip("this is the processor itself, or a system without ELF")
    content[18] = machine
    path.write_bytes(content)
    reseal(path)
    assert path.name in warned()


def test_a_file_that_is_no_library_is_left_alone() -> None:
    library().write_text("no library at all")
    reseal(library())
    assert library().name in warned()


@pytest.mark.slow
@pytest.mark.parametrize("flags", ["-ffast-math", "-Ofast", "-funsafe-math-optimizations"])
def test_fast_math_is_noticed_and_does_not_spread(flags: str) -> None:
    compile_as_it_is(SOURCE.read_text(), "-O3", "-shared", "-fPIC", flags)
    reason = warned()
    assert "flush subnormal numbers" in reason or "fails its test" in reason
    assert not flushes()


@pytest.mark.slow
def test_numbers_without_nan_are_noticed() -> None:
    compile_as_it_is(SOURCE.read_text(), "-O3", "-shared", "-fPIC", "-ffinite-math-only")
    assert "fails its test: codes_float64 gives a different result" in warned()


# one slip for every function and every kind of number
SLIPS = {
    "codes_float64": ("score > low ? second : first", "score >= low ? second : first"),
    "bracket_float64": ("above += block[i] > high", "above += block[i] >= high"),
    "bracket_float32": ("!(block[i] < low) & !(block[i] > high)", "block[i] >= low && block[i] <= high"),
    "count_float64": ("found += scores[i] < bound", "found += scores[i] <= bound"),
    "mix_float64": ("sum += mixed(bits_of(scores[i]))", "sum ^= mixed(bits_of(scores[i]))"),
    "count_leading": ("counts[bits >> 48]++", "counts[bits >> 47 & 65535]++"),
    "divide": ("found += marks[i] != 0", "found += marks[i] == 0"),
}
HASH_SLIPS = [
    ("bits == (uint64_t)1 << 63 ? 0 : bits", "bits"),
    ("bits == (uint64_t)1 << 63 ? 0 : bits", "bits << 1 >> 53 == 0 ? 0 : bits"),
    ("(42 + fifth + 8)", "(43 + fifth + 8)"),
    ("bits >> 29", "bits >> 30"),
]


@pytest.mark.parametrize("name", SLIPS)
def test_a_slip_in_any_function_is_noticed(name: str) -> None:
    right, wrong = SLIPS[name]
    text = SOURCE.read_text()
    assert text.count(right) == 1
    compile_as_it_is(text.replace(right, wrong))
    reason = warned()
    assert "fails its test: " in reason
    assert name.rpartition("_")[0] in reason or name in reason


@pytest.mark.parametrize(("right", "wrong"), HASH_SLIPS)
def test_a_slip_in_the_hash_is_noticed(right: str, wrong: str) -> None:
    text = SOURCE.read_text()
    assert text.count(right) == 1
    compile_as_it_is(text.replace(right, wrong))
    assert "fails its test: bracket_float64" in warned()


def test_a_function_that_is_missing_is_named() -> None:
    compile_as_it_is(SOURCE.read_text().replace("void divide(", "void part("))
    reason = warned()
    assert "lacks a function" in reason
    assert "divide" in reason


@pytest.mark.slow
@pytest.mark.parametrize("slip", ["abort();", "found += 1;", "for (volatile int *p = 0;;) *p = 1;"])
def test_the_build_ships_no_library_that_errs_or_crashes(folder: Path, slip: str) -> None:
    source = folder / SOURCE.name
    text = source.read_text().replace("size_t found = 0;", f"size_t found = 0; if (n > 1000) {{ {slip} }}")
    source.write_text("#include <stdlib.h>\n" + text)
    with pytest.raises(subprocess.CalledProcessError):
        build_library(*parts(folder))
    # the older one is of another source, and gone too
    assert list(folder.glob("*.so*")) == []


def test_the_build_tests_the_vectors_of_other_processors_too(folder: Path) -> None:
    source = folder / SOURCE.name
    slip = '__attribute__((optimize("finite-math-only"))) RETURN NAME##_any'
    source.write_text(source.read_text().replace("RETURN NAME##_any", slip))
    with pytest.raises(subprocess.CalledProcessError) as caught:
        build_library(*parts(folder))
    assert "fails its test: codes_float64 gives a different result" in caught.value.stderr


@pytest.mark.slow
def test_a_compiler_that_has_the_last_word_is_found_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrapper = folder / "wrapped cc"
    wrapper.write_text('#!/bin/sh\nexec cc "$@" -ffast-math\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("CC", f"'{wrapper}'")
    with pytest.raises(subprocess.CalledProcessError) as caught:
        build_library(*parts(folder))
    assert "flush subnormal numbers" in caught.value.stderr or "fails its test" in caught.value.stderr
    monkeypatch.delenv("CC")
    # first in the line, they do no harm
    for flags in ("-ffast-math", "-Ofast", "-funsafe-math-optimizations", "-ffinite-math-only"):
        monkeypatch.setenv("CFLAGS", flags)
        built, _ = build_library(*parts(folder))
        assert Native(compiled.load_sealed(built)).count(np.arange(9.0), np.float64(3.0)) == 3


def test_where_subnormal_numbers_are_flushed_the_library_still_passes(folder: Path, flushing: object) -> None:
    path = library()
    assert callable(flushing)
    flushing()
    assert flushes()
    assert type(Native(compiled.load_sealed(path))) is Native


def test_importing_the_package_loads_nothing() -> None:
    loaded = "'pac_wrap.ranks.kernels' in sys.modules or 'ctypes' in sys.modules"
    script = f"import pac_wrap, sys; sys.exit({loaded})"
    subprocess.run([sys.executable, "-c", script], check=True)
