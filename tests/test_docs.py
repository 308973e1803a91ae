import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import IsolationForest

import pac_wrap
from pac_wrap.tails import min_samples
from support.pages import ROOT, python_blocks

SOURCES = sorted(path for path in Path(pac_wrap.__file__).parents[1].rglob("*.py"))
PAGES = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "guide").glob("*.md")]
RECORDS = sorted((ROOT / "docs" / "decisions").glob("*.md"))


def test_readme_examples_run_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first, second, third = python_blocks("README.md")
    assert len([line for line in first.splitlines() if line and "import" not in line]) == 3
    rng = np.random.default_rng(0)
    X, y = np.r_[rng.normal(0, 1, (2000, 4)), rng.normal(4, 1, (200, 4))], np.repeat([0, 1], [2000, 200])
    names: dict[str, Any] = {"detector": IsolationForest(random_state=0), "X": X, "y": y, "X_new": X[::7]}
    exec(first, names)
    assert isinstance(names["wrap"], pac_wrap.PACWrap)
    assert set(names["verdicts"]) <= {-1, 0, 1}
    scores = names["wrap"].decision_function(X)
    names |= {"normal_scores": scores[y == 0], "anomalous_scores": scores[y == 1], "new_scores": scores}
    exec(second, names)
    assert pac_wrap.Certificate.load("certificate.json") == names["certificate"]
    assert (tmp_path / "report.html").exists()
    traffic = np.r_[rng.normal(0, 1, 19_900), rng.normal(6, 1, 100)]
    names |= {"scores": traffic, "reviews": np.where(traffic > 5, np.arange(20_000) >= 19_900, np.nan)}
    exec(third, names)
    assert names["certificate"].traffic.right > 70


def test_what_the_readme_says_of_other_packages_is_what_the_benchmarks_measured() -> None:
    table = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    table = table.partition("## Labels that a promise needs")[2]
    measured = {
        cells[0]: (cells[1].partition(" ")[0], cells[4].partition(" ")[0])
        for line in table.partition("\n## ")[0].splitlines()
        if len(cells := [cell.strip() for cell in line.strip("|").split("|")]) > 9
    }
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = {
        "**PAC-Wrap**": "PAC-Wrap",
        "[MAPIE][1]'s controller": "MAPIE, controller",
        "the same, fixed sequence": "MAPIE, controller, fixed sequence",
        "[crepes][2], MAPIE's sets, [nonconform][3]'s p-values": "crepes",
        "a percentile, [PyOD][4]'s `contamination`": "percentile",
    }
    for said, name in rows.items():
        (line,) = [line for line in readme.splitlines() if line.startswith(f"| {said} |")]
        assert tuple(cell.strip() for cell in line.split("|")[4:6]) == measured[name]


def test_what_the_readme_says_of_reviews_is_what_the_benchmarks_measured() -> None:
    page = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    rows = {
        cells[1].strip(): [cell.split()[0] for cell in cells[2:4]]
        for line in page.partition("## Labels for a low false alarm rate")[2]
        .partition("\n## ")[0]
        .splitlines()
        if len(cells := line.split("|")) > 6
    }
    (labels, points), (controller, _) = (
        rows[name]
        for name in ("0.001: PAC-Wrap, reviewed from the top, 1 % anomalies", "0.001: MAPIE, controller")
    )
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    at_random = rows["0.001: PAC-Wrap, at random"][0]
    assert (
        f" {labels} reviews among {points} unlabelled points, where labels at random take {at_random},"
        in readme
    )
    assert f" and {controller} with MAPIE's default controller." in readme


def test_the_readme_is_a_front_door() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    prose, marks = re.subn(r"<!-- adbench -->.*?<!-- end of adbench -->", "", readme, flags=re.DOTALL)
    assert marks == 1
    assert len(prose.splitlines()) <= 150
    for picture in re.findall(r'(?:src|srcset)="([^"]+)"', readme):
        assert (ROOT / picture).stat().st_size < 200_000


def test_the_chunks_of_the_page_on_clusters_run_as_printed() -> None:
    names: dict[str, object] = {}
    (local,) = [block for block in python_blocks("docs/guide/cluster.md") if "engines" not in block]
    exec(local, names)
    certificate = names["certificate"]
    assert isinstance(certificate, pac_wrap.Certificate)
    assert certificate.regime is pac_wrap.Regime.SEPARATED


def test_readme_opens_with_the_two_commands_that_the_makefile_has() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in ("demo", "test"):
        assert f"make {target} " in readme[:1200]
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)


def test_readme_names_the_labels_that_a_promise_needs() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    least, ten = min_samples(0.05, 0.05), min_samples(0.05, 0.05, errors=10)
    assert f"{least} of the class in question if none of them may be an error, {ten}" in " ".join(
        readme.split()
    )


def test_every_equation_that_the_code_cites_is_in_the_theory_and_back() -> None:
    theory = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
    numbered = [int(number) for number in re.findall(r"\\tag\{(\d+)\}", theory)]
    cited = set()
    for source in SOURCES:
        for start, end in re.findall(r"[Ee]qs?\. \((\d+)\)(?: to \((\d+)\))?", source.read_text("utf-8")):
            cited |= set(range(int(start), int(end or start) + 1))
    # a number keeps its meaning: what is added to an early section has a late one
    assert len(numbered) == len(set(numbered)), "a number is given once"
    assert cited == set(numbered)


def test_decision_records_are_numbered_without_gaps_but_for_those_that_were_merged() -> None:
    index = (ROOT / "docs" / "decisions.md").read_text(encoding="utf-8")
    moved = {
        int(one): int(into) for one, into in re.findall(r"(\d+) (?:was merged )?into record (\d+)", index)
    }
    there = [int(record.name[:4]) for record in RECORDS]
    assert sorted([*there, *moved]) == list(range(1, there[-1] + 1))
    assert set(moved.values()) <= set(there)
    for record in RECORDS:
        title = record.read_text(encoding="utf-8").splitlines()[0]
        assert title.startswith(f"# {int(record.name[:4])}. ")


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.stem)
def test_decision_records_are_short_and_decide(record: Path) -> None:
    text = record.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 30
    assert "**Decision.**" in text or "**Exception.**" in text


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "benchmarks/README.md",
        *(str(page.relative_to(ROOT)) for page in PAGES),
    ],
)
def test_links_between_pages_lead_somewhere(page: str) -> None:
    path = ROOT / page
    for target in re.findall(r"\]\(([^)#\s:]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target


def test_what_is_cited_is_this_version_and_the_paper() -> None:
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.+)$", text, flags=re.MULTILINE) == [pac_wrap.__version__]
    assert re.findall(r"doi: (.+)$", text, flags=re.MULTILINE) == ["10.1145/3534678.3539408"]
    page = (ROOT / "docs" / "cite.md").read_text(encoding="utf-8")
    assert re.findall(r"(?:version|doi) += \{(.+)\}", page) == [
        "10.1145/3534678.3539408",
        pac_wrap.__version__,
    ]
