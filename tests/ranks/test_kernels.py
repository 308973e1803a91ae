import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from math import inf, nan
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from pac_wrap.base.floats import largest_up_to, least_from
from pac_wrap.ranks import kernels as package
from pac_wrap.ranks.compiled import load_sealed
from pac_wrap.ranks.kernels import BITS, Native, Plain, kernels, library, together, usable_cores
from pac_wrap.tables.files import csv_files
from support.patience import LIMIT
from support.slow import slow_but
from support.strategies import refusal

ROOT = Path(__file__).parents[2]
compiled = pytest.mark.skipif(
    not library().exists(), reason="the kernels were not compiled; a C compiler at install time is needed"
)
# both sides of every block and chunk that the loops are cut into
SIZES = (0, 1, 7, 8, 9, 511, 512, 513, 1025, 65_536, 65_537, 262_145)
EDGES = st.sampled_from([-inf, -1.0, -5e-324, 0.0, 5e-324, 0.5, 1.0, 1.7e308, inf])
VALUES = st.sampled_from([-inf, -1.0, -0.5, -5e-324, -0.0, 0.0, 5e-324, 0.5, 1.0, 1.7e308, inf, nan])


def drawn(values: list[float], size: int, kind: Any, layout: str) -> NDArray[Any]:
    """Return scores of some size, in one piece or not."""
    with np.errstate(over="ignore"):
        scores = np.resize(np.array(values), size).astype(kind)
    if layout == "strided":
        return np.repeat(scores, 2)[::2]
    if layout == "unaligned" and size:
        return np.frombuffer(b"x" + scores.tobytes(), dtype=kind, offset=1)
    return scores


def native() -> Native:
    return Native(load_sealed(library()))


ARRAYS = st.builds(
    drawn,
    st.lists(VALUES, min_size=1, max_size=40),
    st.sampled_from(SIZES),
    st.sampled_from([np.float64, np.float32]),
    st.sampled_from(["whole", "strided", "unaligned"]),
)
SOUND = ARRAYS.filter(lambda scores: not np.isnan(scores).any())


@compiled
@given(ARRAYS, EDGES, EDGES, st.permutations([-1, 0, 1]))
def test_codes_are_the_same(scores: NDArray[Any], low: float, high: float, steps: list[int]) -> None:
    low, high = sorted([low, high])
    bounds = largest_up_to(low, scores.dtype), largest_up_to(high, scores.dtype)
    codes = np.full((2, scores.size), 7, dtype=np.int8)
    sound = [
        one.codes(scores, *bounds, (steps[0], steps[1], steps[2]), out)
        for one, out in zip((Plain(), native()), codes, strict=True)
    ]
    assert sound == [not np.isnan(scores).any()] * 2
    if sound[0]:
        assert np.array_equal(codes[0], codes[1])


@compiled
@given(ARRAYS, EDGES, EDGES, st.booleans())
def test_brackets_are_the_same(scores: NDArray[Any], low: float, high: float, keep: bool) -> None:
    low, high = sorted([low, high])
    bounds = largest_up_to(low, scores.dtype), largest_up_to(high, scores.dtype)
    slow, fast = (one.bracket(scores, *bounds, keep=keep) for one in (Plain(), native()))
    assert fast._replace(scores=slow.scores) == slow
    assert fast.scores.tobytes() == slow.scores.tobytes()
    assert fast.scores.dtype == scores.dtype
    assert slow.nan == np.isnan(scores).any()
    with np.errstate(invalid="ignore"):
        assert (slow.below, slow.above) == ((scores < bounds[0]).sum(), (scores > bounds[1]).sum())
    if not slow.nan and keep:
        assert slow.scores.size == scores.size - slow.below - slow.above


@compiled
@given(SOUND, EDGES)
def test_counts_and_sums_are_the_same(scores: NDArray[Any], last: float) -> None:
    bound = least_from(last, scores.dtype)
    assert (
        native().count(scores, bound)
        == Plain().count(scores, bound)
        == int((scores < np.float64(last)).sum())
    )
    assert native().mix(scores) == Plain().mix(scores)
    wide = scores.astype(np.float64)
    assert native().mix(wide) == Plain().mix(wide) == Plain().mix(scores)
    for values in (scores, wide):
        counts = np.zeros((2, 1 << BITS), dtype=np.int64)
        sums = [one.count_leading(values, out) for one, out in zip((Plain(), native()), counts, strict=True)]
        assert sums == [Plain().mix(wide)] * 2
        assert np.array_equal(counts[0], counts[1])
        assert counts[0].sum() == wide.size


@compiled
@given(SOUND, st.lists(st.booleans(), min_size=1, max_size=30), st.booleans())
def test_classes_are_the_same(scores: NDArray[Any], marks: list[bool], strided: bool) -> None:
    mask = np.resize(np.array(marks), 2 * scores.size)[:: 1 + strided][: scores.size]
    for one in (Plain(), native()):
        for values in (scores, scores.astype(np.float64)):
            unmarked, marked = one.divide(values, mask)
            assert unmarked.tobytes() == values[~mask].tobytes()
            assert marked.tobytes() == values[mask].tobytes()


@compiled
@pytest.mark.parametrize("kind", [">f8", "<f2", "i8"])
def test_types_that_c_does_not_know_are_left_to_numpy(kind: str) -> None:
    scores = np.arange(600).astype(kind)
    out = np.empty(600, dtype=np.int8)
    assert native().codes(scores, np.float64(99.0), np.float64(199.0), (0, -1, 1), out)
    assert (out == np.repeat([0, -1, 1], [100, 100, 400])).all()


@compiled
def test_threads_share_nothing() -> None:
    scores = np.random.default_rng(0).normal(size=500_000)
    bounds, one = (np.float64(1.0), np.float64(1.1)), native()
    expected = Plain().bracket(scores, *bounds, keep=True)
    found: list[Any] = []

    def look() -> None:
        found.extend(one.bracket(scores, *bounds, keep=True) for _ in range(5))

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 20
    assert all(each.scores.tobytes() == expected.scores.tobytes() for each in found)
    assert all(each._replace(scores=expected.scores) == expected for each in found)


def test_an_error_in_a_thread_arrives() -> None:
    def fail() -> int:
        raise ValueError("in a thread")

    with pytest.raises(ValueError, match="in a thread"):
        together([lambda: 1, fail])
    with pytest.raises(ValueError, match="in a thread"):
        together([fail, lambda: 1])


def test_one_core_needs_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, pid})  # 0 is this process
    assert usable_cores() == 1
    assert together([lambda: 1, lambda: 2]) == [1, 2]
    monkeypatch.delattr("os.sched_getaffinity")
    monkeypatch.setattr("os.cpu_count", lambda: None)
    assert usable_cores() == 1


class TestTheChoice:
    @pytest.fixture(autouse=True)
    def fresh(self) -> Iterator[None]:
        kernels.cache_clear()
        yield
        kernels.cache_clear()

    @compiled
    def test_compiled_kernels_are_taken(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("PAC_WRAP_KERNELS", raising=False)
        assert type(kernels()) is Native
        assert kernels() is kernels()

    def test_numpy_can_be_asked_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PAC_WRAP_KERNELS", "plain")
        assert type(kernels()) is Plain

    def test_any_other_word_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PAC_WRAP_KERNELS", "numpy")
        assert refusal(kernels).startswith("PAC_WRAP_KERNELS must be native or plain, got 'numpy'")

    def test_who_asks_for_c_is_told_that_it_is_missing(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("PAC_WRAP_KERNELS", "native")
        monkeypatch.setattr(package, "library", lambda: tmp_path / "absent.so")
        assert "PAC_WRAP_KERNELS is native, but the library cannot be loaded" in refusal(kernels)

    def test_numpy_helps_out_without_a_word_where_nothing_was_compiled(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.delenv("PAC_WRAP_KERNELS", raising=False)
        monkeypatch.setattr(package, "library", lambda: tmp_path / "kernels-12345678.so")
        assert type(kernels()) is Plain

    def test_a_library_of_another_source_has_another_name(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        changed = tmp_path / "kernels.c"
        changed.write_bytes(package._SOURCE.read_bytes() + b" ")
        name = library().name
        monkeypatch.setattr(package, "_SOURCE", changed)
        assert library().name != name


class TestTheBuild:
    """Wheels built from a copy of the sources, as `pip install` builds them."""

    def wheel(self, tmp_path: Path, compiler: str, flags: str = "") -> tuple[str, list[str], str]:
        source = tmp_path / "a source"
        shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
        (source / "src/pac_wrap/ranks/kernels-00000000.so").write_text("of another source")
        for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, source)
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")]
        environment = {"PATH": "/usr/bin:/bin", "CC": compiler, "CFLAGS": flags, "HOME": str(tmp_path)}
        done = subprocess.run(
            command, cwd=source, env=environment, check=True, capture_output=True, text=True, timeout=LIMIT
        )
        (built,) = (tmp_path / "dist").iterdir()
        with ZipFile(built) as archive:
            names = [name for name in archive.namelist() if "ranks" in name or "cells" in name]
        return built.name, names, done.stdout + done.stderr

    @pytest.mark.parametrize(
        "failure",
        slow_but(
            1,
            [
                ("no-such-compiler", "no-such-compiler"),
                ("cc -fvisibility=hidden", "lacks a function"),
                ("sh -c 'echo out of luck >&2; exit 3'", "out of luck"),
                ("false", "exit status 1"),
                ("true", "cannot open shared object file"),
                ("cc 'x", "No closing quotation"),
            ],
        ),
    )
    def test_without_a_compiler_the_wheel_is_one_for_every_system(
        self, tmp_path: Path, failure: tuple[str, str]
    ) -> None:
        compiler, reason = failure
        name, names, said = self.wheel(tmp_path, compiler)
        assert name.endswith("-py3-none-any.whl")
        assert not [one for one in names if one.endswith(".so")]
        assert {"pac_wrap/ranks/kernels.py", "pac_wrap/ranks/kernels.c"} <= set(names)
        assert "the kernels were not compiled, so NumPy does their work" in said
        assert reason in said

    @compiled
    @pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler on the path")
    @pytest.mark.parametrize(
        ("more", "flags"),
        [(" -ffast-math", "-Ofast -g0"), pytest.param("", "", marks=pytest.mark.slow)],
    )
    def test_with_a_compiler_it_holds_the_library_whatever_the_flags(
        self, tmp_path: Path, more: str, flags: str
    ) -> None:
        name, names, _ = self.wheel(tmp_path, f"{shutil.which('cc')}{more}", flags)
        assert "-py3-none-" in name
        assert not name.endswith("-any.whl")
        built = f"pac_wrap/ranks/{library().name}"
        other = f"pac_wrap/tables/files/{csv_files.library().name}"
        assert sorted(one for one in names if ".so" in one) == [
            name for one in (built, other) for name in (one, f"{one}.sha256")
        ]
        with ZipFile(tmp_path / "dist" / name) as archive:
            archive.extractall(tmp_path / "installed")
        assert Native(load_sealed(tmp_path / "installed" / built)).count(np.arange(9.0), np.float64(3.0)) == 3
