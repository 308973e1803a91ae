"""Series out of zip archives: the numbers of the files, read here by other means, and every refusal."""

import hashlib
import re
import struct
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest

from pac_wrap.errors import DataError, InputError
from pac_wrap_paper import data as datasets
from pac_wrap_paper.data import series
from pac_wrap_paper.data.registry import ENTRIES
from pac_wrap_paper.data.store import VARIABLE, locate
from support.datafolder import empty_cache, needs

SMD = "OmniAnomaly-master/ServerMachineDataset/"
HEAD = "chan_id,spacecraft,anomaly_sequences,class,num_values\n"
Archive = Callable[[str, dict[str, bytes]], None]


def member(name: str, path: str) -> bytes:
    located = locate(ENTRIES[name].files[0])
    assert located is not None
    with ZipFile(located) as archive:
        return archive.read(path)


def npy(values: object, dtype: type = np.float64) -> bytes:
    content = BytesIO()
    np.save(content, np.array(values, dtype=dtype), allow_pickle=True)
    return content.getvalue()


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Archive:
    """Return a function that puts an archive of these members in the place of the real one."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))

    def put(name: str, members: dict[str, bytes]) -> None:
        (file,) = ENTRIES[name].files
        path = tmp_path / file.name
        with ZipFile(path, "w") as written:
            for place, content in members.items():
                written.writestr(place, content)
        known = replace(file, sha256=hashlib.sha256(path.read_bytes()).hexdigest())
        monkeypatch.setattr(series, "ENTRIES", {name: replace(ENTRIES[name], files=(known,))})

    return put


def nasa_members(
    labels: str = 'X-1,SMAP,"[[1, 1]]",[point],3\n',
    train: object = ((0.5, 1),) * 2,
    test: object = ((0, 1),) * 3,
) -> dict[str, bytes]:
    return {
        "data/labeled_anomalies.csv": (HEAD + labels).encode(),
        "data/train/X-1.npy": npy(train),
        "data/test/X-1.npy": npy(test),
    }


def smd_members(train: str = "0,1\n", test: str = "0,1\n1,0\n", labels: str = "0\n1\n") -> dict[str, bytes]:
    texts = {"train": train, "test": test, "test_label": labels}
    return {f"{SMD}{part}/machine-1-1.txt": text.encode() for part, text in texts.items()}


@pytest.mark.parametrize(
    ("channel", "steps", "anomalous", "columns"),
    [
        ("S-1", 7331, 448, 25),
        ("F-7", 5054, 423, 55),
        ("E-7", 8310, 281, 25),
        ("T-1", 8612, 1536, 25),
        ("T-2", 8625, 1785, 25),
        ("P-3", 8493, 1336, 25),
        # the union of two rows, 5350 to 6575 and 5300 to 6420
        ("P-2", 8209, 1276, 25),
    ],
)
def test_nasa_channels_have_the_documented_sizes(
    channel: str, steps: int, anomalous: int, columns: int
) -> None:
    needs("nasa")
    loaded = series.load_nasa(channel)
    assert loaded.n_train is not None
    assert loaded.X.shape == (loaded.n_train + steps, columns)
    assert not loaded.y[: loaded.n_train].any()
    assert loaded.n_anomalies == anomalous
    assert loaded.name == f"nasa/{channel}"


def test_nasa_totals_are_those_of_the_registry_and_without_p_2_of_the_literature() -> None:
    needs("nasa")
    entry = ENTRIES["nasa"]
    loaded = {channel: series.load_nasa(channel) for channel in series.nasa_channels()}
    assert entry.series is not None
    assert len(loaded) == entry.series.count == 81
    assert sum(one.y.size for one in loaded.values()) == entry.rows
    assert sum(one.n_anomalies for one in loaded.values()) == entry.anomalies
    assert {one.X.shape[1] for one in loaded.values()} == {25, entry.columns}
    for one in loaded.values():
        assert one.X.dtype == np.float32
        assert one.y.dtype == np.int8
        assert one.X.flags.c_contiguous
        assert np.isfinite(one.X).all()
        assert (one.source, one.licence, one.citation) == (entry.source, entry.licence, entry.citation)
    del loaded["P-2"]
    trained = sum(one.n_train or 0 for one in loaded.values())
    assert (trained, sum(one.y.size for one in loaded.values()) - trained) == (193_500, 501_346)


def test_nasa_channels_are_those_of_the_label_file_in_its_order() -> None:
    needs("nasa")
    lines = member("nasa", "data/labeled_anomalies.csv").decode().splitlines()[1:]
    first = [line.partition(",")[0] for line in lines]
    assert len(first) == 82
    assert series.nasa_channels() == tuple(dict.fromkeys(first))
    assert first.count("P-2") == 2
    entry = ENTRIES["nasa"]
    assert entry.series is not None
    assert entry.series.examples == series.nasa_channels()[:3]


@pytest.mark.parametrize("channel", ["S-1", "C-1"])
def test_nasa_values_are_those_of_the_bytes(channel: str) -> None:
    needs("nasa")
    loaded = series.load_nasa(channel)
    columns, start = loaded.X.shape[1], 0
    for part in ("train", "test"):
        content = member("nasa", f"data/{part}/{channel}.npy")
        # version 1 of the format: six bytes of magic, two of version, two for the length of the header
        begin = 10 + struct.unpack("<H", content[8:10])[0]
        assert b"'descr': '<f8', 'fortran_order': False" in content[:begin]
        rows = (len(content) - begin) // (8 * columns)
        for row in (0, rows // 2, rows - 1):
            values = struct.unpack_from(f"<{columns}d", content, begin + 8 * columns * row)
            assert loaded.X[start + row].tolist() == np.array(values, dtype=np.float32).tolist()
        start += rows
    assert start == loaded.y.size


def test_nasa_labels_include_both_ends() -> None:
    needs("nasa")
    for channel, steps in (("S-1", {*range(5300, 5748)}), ("P-2", {*range(5300, 6576)})):
        loaded = series.load_nasa(channel)
        assert {*(np.flatnonzero(loaded.y) - (loaded.n_train or 0)).tolist()} == steps
    last = series.load_nasa("E-3")
    assert last.y[-1] == 1


def test_smd_machines_are_19_and_those_without_series_are_named() -> None:
    needs("smd")
    machines, missing = series.smd_machines(), series.missing_machines()
    assert (len(machines), len(missing)) == (19, 9)
    assert (machines[0], machines[-2:]) == ("machine-1-2", ("machine-3-5", "machine-3-10"))
    ends = ("1-1", "2-6", "2-9", "3-1", "3-6", "3-7", "3-8", "3-9", "3-11")
    assert missing == tuple(f"machine-{end}" for end in ends)
    parts = ENTRIES["smd"].series
    assert parts is not None
    assert (parts.count, parts.total, parts.examples) == (19, 28, machines[:3])


@pytest.mark.slow
def test_smd_totals_are_those_of_the_registry() -> None:
    needs("smd")
    entry = ENTRIES["smd"]
    trained = tested = anomalous = 0
    for machine in series.smd_machines():
        loaded = series.load_smd(machine)
        assert loaded.n_train is not None
        assert loaded.X.shape[1] == entry.columns == 38
        assert loaded.X.dtype == np.float32
        assert loaded.y.dtype == np.int8
        assert loaded.name == f"smd/{machine}"
        assert loaded.X.flags.c_contiguous
        assert (loaded.X.min(), loaded.X.max()) == (0.0, 1.0)
        assert not loaded.y[: loaded.n_train].any()
        trained += loaded.n_train
        tested += loaded.y.size - loaded.n_train
        anomalous += loaded.n_anomalies
    assert (trained, tested, anomalous) == (450_219, 450_232, 20_763)
    assert (trained + tested, anomalous) == (entry.rows, entry.anomalies)


@pytest.mark.parametrize("machine", ["machine-1-2", "machine-3-10"])
def test_smd_values_are_those_of_the_text(machine: str) -> None:
    needs("smd")
    loaded, start = series.load_smd(machine), 0
    for part in ("train", "test"):
        lines = member("smd", f"{SMD}{part}/{machine}.txt").decode().split()
        for row in (0, 777, len(lines) - 1):
            values = np.array([float(value) for value in lines[row].split(",")], dtype=np.float32)
            assert loaded.X[start + row].tolist() == values.tolist()
        start += len(lines)
    labels = [int(line) for line in member("smd", f"{SMD}test_label/{machine}.txt").decode().split()]
    assert loaded.y[loaded.n_train :].tolist() == labels
    assert start == loaded.y.size


def test_the_licence_of_smd_is_in_its_archive() -> None:
    needs("smd")
    assert member("smd", f"{SMD}LICENSE").startswith(f"{ENTRIES['smd'].licence} License\n".encode())


@pytest.mark.parametrize(("name", "part"), [("nasa", "S-1"), ("smd", "machine-1-2")])
def test_a_part_is_loaded_by_its_name(name: str, part: str) -> None:
    needs(name)
    assert datasets.load(name, part).name == f"{name}/{part}"
    assert part in datasets.series_names(name)


@pytest.mark.parametrize(
    ("name", "part", "sentence"),
    [
        (
            "smd",
            None,
            "part must name one of the 19 machines of smd, such as 'machine-1-2', 'machine-1-3' or"
            " 'machine-1-4', got None; pac_wrap_paper.data.series_names('smd') lists them",
        ),
        ("mnist", "S-1", "part must be None for mnist, which has no parts, got 'S-1'; leave it out"),
    ],
)
def test_a_part_is_needed_where_there_are_parts_and_only_there(
    name: str, part: str | None, sentence: str
) -> None:
    with pytest.raises(InputError) as caught:
        datasets.load(name, part)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(("name", "hint"), [("s-1", "did you mean 'S-1'? "), ("Z-9", ""), ("", ""), (1, "")])
def test_an_unknown_channel_is_refused(name: str, hint: str) -> None:
    needs("nasa")
    with pytest.raises(InputError) as caught:
        series.load_nasa(name)
    listed = "series_names('nasa') lists the 81 that have labels"
    assert str(caught.value) == f"there is no channel {name!r} in nasa; {hint}{listed}"


def test_a_channel_without_labels_is_refused() -> None:
    needs("nasa")
    assert "T-10" not in series.nasa_channels()
    with pytest.raises(DataError) as caught:
        series.load_nasa("T-10")
    assert str(caught.value) == (
        "the channel 'T-10' of nasa has a series but no labels, so none of its steps is known to be normal or"
        " anomalous; load another one: series_names('nasa') lists the 81 that have labels"
    )


def test_a_machine_that_cannot_be_loaded_is_refused() -> None:
    needs("smd")
    listed = f"the machines with series are {', '.join(series.smd_machines())}"
    with pytest.raises(DataError) as caught:
        series.load_smd("machine-1-1")
    assert str(caught.value) == (
        "the series of 'machine-1-1' are not in the file of smd, only its labels are; load another one:"
        f" {listed}"
    )
    with pytest.raises(InputError) as unknown:
        series.load_smd("machine-4-1")
    assert str(unknown.value) == f"there is no machine 'machine-4-1' in smd; {listed}"


def test_only_what_is_asked_for_is_read(archive: Archive) -> None:
    labels = 'X-1,SMAP,"[[0, 0], [2, 2]]","[point, point]",3\nX-2,SMAP,"[[0, 0]]",[point],3\n'
    archive("nasa", nasa_members(labels) | {"data/test/X-2.npy": b"damaged"})
    assert series.nasa_channels() == ("X-1", "X-2")
    assert series.load_nasa("X-1").X.tolist() == [[0.5, 1]] * 2 + [[0, 1]] * 3
    assert series.load_nasa("X-1").y.tolist() == [0, 0, 1, 0, 1]
    archive("smd", smd_members() | {f"{SMD}test/machine-1-2.txt": b"damaged"})
    assert series.load_smd("machine-1-1").X.tolist() == [[0, 1], [0, 1], [1, 0]]
    assert series.load_smd("machine-1-1").y.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("members", "sentence"),
    [
        (
            nasa_members('X-1,SMAP,"[[1, 3]]",[point],3\n'),
            "within its 3 test steps, got an interval from 1 to 3;",
        ),
        (
            nasa_members('X-1,SMAP,"[[2, 1]]",[point],3\n'),
            "within its 3 test steps, got an interval from 2 to 1;",
        ),
        (
            nasa_members('X-1,SMAP,"[[-1, 1]]",[point],3\n'),
            "got an interval from -1 to 1; load another channel",
        ),
        (nasa_members('X-1,SMAP,"[[1, 1]]",[point],4\n'), "those of its 3 test steps, got labels of 4; load"),
        (nasa_members(train=[[0.5]]), "must fit together, got the shapes (1, 1), (3, 2), (3,); load another"),
        (nasa_members(train=[0.5]), "must fit together, got the shapes (1,), (3, 2), (3,); load another"),
        (
            nasa_members(train=[[np.nan, np.inf]]),
            "the values of 'X-1' must be finite, but 2 of 8 are not; load another",
        ),
        (
            nasa_members() | {"data/train/X-1.npy": npy([[{}]], object)},
            "data/train/X-1.npy must hold numbers, but does not: ",
        ),
        (
            {name: content for name, content in nasa_members().items() if "train" not in name},
            "nasa-telemanom.zip must hold data/train/X-1.npy, but does not; load another series of it",
        ),
    ],
)
def test_a_wrong_nasa_archive_is_refused(archive: Archive, members: dict[str, bytes], sentence: str) -> None:
    archive("nasa", members)
    with pytest.raises(DataError, match=re.escape(sentence)):
        series.load_nasa("X-1")


@pytest.mark.parametrize(
    ("members", "sentence"),
    [
        (smd_members(test="0,1\n"), "must fit together, got the shapes (1, 2), (1, 2), (2,); load another"),
        (
            smd_members(train="0,1,2\n"),
            "must fit together, got the shapes (1, 3), (2, 2), (2,); load another",
        ),
        (
            smd_members(test="0,1\n1\n"),
            "test/machine-1-1.txt must hold numbers, as many in each line, but does",
        ),
        (
            smd_members(train="0,x\n"),
            "train/machine-1-1.txt must hold numbers, as many in each line, but does",
        ),
        (
            smd_members(train="0,nan\n"),
            "'machine-1-1' must be finite, but 1 of 6 are not; load another",
        ),
        (
            smd_members(labels="0\n2\n"),
            "must be one column of 0 and 1, got the shape (2, 1) and values from 0 to 2;",
        ),
        (
            smd_members(labels="0,1\n0,1\n"),
            "must be one column of 0 and 1, got the shape (2, 2) and values from 0 to 1;",
        ),
    ],
)
def test_a_wrong_smd_archive_is_refused(archive: Archive, members: dict[str, bytes], sentence: str) -> None:
    archive("smd", members)
    with pytest.raises(DataError, match=re.escape(sentence)):
        series.load_smd("machine-1-1")


@pytest.mark.parametrize(
    ("name", "read"),
    [("nasa", series.nasa_channels), ("smd", series.smd_machines), ("smd", series.missing_machines)],
)
def test_an_archive_that_is_not_here_is_not_downloaded(
    name: str, read: Callable[[], tuple[str, ...]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty_cache(tmp_path, monkeypatch)
    with pytest.raises(DataError) as caught:
        read()
    assert str(caught.value) == ENTRIES[name].files[0].absence


def test_an_archive_with_another_hash_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    (tmp_path / "nasa-telemanom.zip").write_bytes(b"PK")
    with pytest.raises(DataError, match=r"nasa-telemanom\.zip differs from the copy"):
        series.nasa_channels()
