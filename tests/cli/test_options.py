"""Inputs and outputs are kept apart, by whatever name they are given."""

import shutil
from pathlib import Path

import pytest

from pac_wrap import TotalVariation
from pac_wrap.cli.options import rooms_of, shares_in
from support.shell import (
    CERTIFICATE,
    GOLDEN,
    parquet,
    refused,
    write,
)

LABELLED = [GOLDEN / "scores.csv", "--score", "score", "--label", "label"]


@pytest.mark.parametrize("way", ["same name", "another name", "link", "pattern", "parquet"])
def test_verdicts_never_replace_the_table_they_are_about(way: str, tmp_path: Path) -> None:
    if way == "parquet":
        path = parquet(tmp_path / "a.parquet", "SELECT 1.5 AS score")
    else:
        path = write(tmp_path / "a.csv", "score\n1.5\n")
    source, output = path, path
    if way == "another name":
        output = tmp_path / ".." / tmp_path.name / path.name
    elif way == "link":
        output = tmp_path / "link.csv"
        output.symlink_to(path)
    elif way == "pattern":
        source = tmp_path / "*.csv"
    sentence = refused(tmp_path, "decide", CERTIFICATE, source, "--score", "score", "-o", output)
    assert str(output) in sentence


@pytest.mark.parametrize("option", ["-o", "--report"])
def test_a_certificate_or_report_never_replaces_the_scores(option: str, tmp_path: Path) -> None:
    path = write(tmp_path / "scores.json", '[{"score": 1, "label": 0}, {"score": 2, "label": 1}]')
    assert str(path) in refused(
        tmp_path, "calibrate", path, "--score", "score", "--label", "label", option, path
    )


def test_a_report_never_replaces_the_certificate(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    assert str(path) in refused(tmp_path, "calibrate", *LABELLED, "-o", path, "--report", path)


@pytest.mark.parametrize("way", ["itself", "dots", "link", "hard link", "linked folder"])
def test_verdicts_never_replace_the_certificate(way: str, tmp_path: Path) -> None:
    certificate = tmp_path / "certificate.csv"  # whatever its name
    shutil.copy(CERTIFICATE, certificate)
    output = {
        "itself": certificate,
        "dots": tmp_path / ".." / tmp_path.name / certificate.name,
        "link": tmp_path / "link.csv",
        "hard link": tmp_path / "hard.csv",
        "linked folder": tmp_path / "folder" / certificate.name,
    }[way]
    (tmp_path / "link.csv").symlink_to(certificate)
    (tmp_path / "hard.csv").hardlink_to(certificate)
    (tmp_path / "folder").symlink_to(tmp_path)
    sentence = refused(tmp_path, "decide", certificate, GOLDEN / "new.csv", "--score", "score", "-o", output)
    assert sentence == (
        f"{output} is also an input, under this name or another; name another output, to keep both"
    )


@pytest.mark.parametrize("way", ["hard link", "literal name of a pattern", "match of a pattern"])
def test_an_output_that_is_a_table_by_another_name_is_refused(way: str, tmp_path: Path) -> None:
    table = write(tmp_path / "[ab].csv", "score\n1.5\n")
    write(tmp_path / "a.csv", "score\n2.5\n")
    (tmp_path / "hard.csv").hardlink_to(table)
    source, output = {
        "hard link": (table, tmp_path / "hard.csv"),
        "literal name of a pattern": (table, table),
        "match of a pattern": (tmp_path / "?.csv", tmp_path / "." / "a.csv"),
    }[way]
    sentence = refused(tmp_path, "decide", CERTIFICATE, source, "--score", "score", "-o", output)
    assert sentence.startswith(f"{output} is also an input")


@pytest.mark.parametrize("way", ["dots", "linked folder", "link", "hard link", "link to nothing"])
def test_two_outputs_that_are_one_file_are_refused(way: str, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path)
    first, second = tmp_path / "x.json", tmp_path / "y.json"
    if way == "dots":
        second = tmp_path / "sub" / ".." / "x.json"
    elif way == "linked folder":
        second = tmp_path / "linked" / "x.json"
    elif way == "link to nothing":
        second.symlink_to("x.json")
    else:
        write(first, "old")
        second.symlink_to(first) if way == "link" else second.hardlink_to(first)
    for one, other in ((first, second), (second, first)):
        sentence = refused(tmp_path, "calibrate", *LABELLED, "-o", one, "--report", other)
        assert sentence == f"{other} is named for two outputs, under this name or another; name two files"


def test_a_curve_keeps_its_file_and_its_picture_apart(tmp_path: Path) -> None:
    path = tmp_path / "x.svg"
    assert "is named for two outputs" in refused(tmp_path, "curve", *LABELLED, "-o", path, "--report", path)


def test_a_range_of_shares_and_room_for_each_class_are_read() -> None:
    assert (shares_in("0.01-0.03"), shares_in("1e-3:2e-3")) == ((0.01, 0.03), (0.001, 0.002))
    assert shares_in("0.02") == (0.02, 0.02)
    assert rooms_of("tv:0.02,none", None) == {"shift": (TotalVariation(0.02), None), "label_noise": None}
