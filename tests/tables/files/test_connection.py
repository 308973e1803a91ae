"""DuckDB reads the files it was told of, and no query gets it to do more."""

import ast
from pathlib import Path

import duckdb
import pytest

import pac_wrap
from pac_wrap.tables.files.connection import connected, file_text
from pac_wrap.tables.table import open_table
from support.patience import LIMIT
from support.shell import parquet, write
from support.tables import scores_of


@pytest.fixture
def told(tmp_path: Path) -> Path:
    write(tmp_path / "other.csv", "a\n2\n")
    return write(tmp_path / "a.csv", "score\n1\n")


FORBIDDEN = (
    "SELECT * FROM read_csv('{}/other.csv')",
    "SELECT * FROM read_csv('{}/*.csv')",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM 'https://127.0.0.1:9/a.parquet'",
    "SELECT * FROM read_csv('{}/link.csv')",
    "COPY (SELECT 1) TO '{}/new.csv'",
    "COPY (SELECT 1) TO '{}/a.csv.new'",
    "ATTACH '{}/new.db'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "INSTALL h3 FROM community",
    "SET enable_external_access = true",
    "SET allowed_paths = ['/etc/passwd']",
    "SET lock_configuration = false",
    "SET threads = 1",
    "RESET threads",
    "SELECT * FROM told",
)


@pytest.mark.parametrize("passes", [False, True])
def test_nothing_else_can_be_read_written_fetched_or_set(passes: bool, told: Path, tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    (tmp_path / "link.csv").symlink_to("/etc/passwd")
    before = sorted(path.name for path in tmp_path.iterdir())
    with connected([told], tmp_path / "scratch", passes=passes) as connection:
        for query in FORBIDDEN:
            assert connection.execute(f"SELECT * FROM read_csv('{told}')").fetchall() == [(1,)]
            with pytest.raises(duckdb.Error):
                connection.execute(query.format(tmp_path)).fetchall()
            assert sorted(path.name for path in tmp_path.iterdir()) == before, query


def test_the_output_and_the_scratch_folder_can_be_written(told: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.csv"
    with connected([told], output=output) as connection:
        connection.execute(f"COPY (SELECT 1 AS x) TO '{output}' (USE_TMP_FILE false)")
    assert output.read_text() == "x\n1\n"


def test_a_table_is_opened_that_way(told: Path, tmp_path: Path) -> None:
    with open_table([str(told)], ["score"]) as table:
        assert scores_of(table, "score").tolist() == [1.0]
        with pytest.raises(duckdb.Error, match="disabled by configuration"):
            table._connection.execute(f"SELECT * FROM read_csv('{tmp_path}/other.csv')")


@pytest.mark.parametrize(
    "name", ["a[1].csv", "a*.csv", "a?.csv", "[x].parquet", "it's.csv", "b=1.csv", "~a.csv"]
)
def test_names_are_never_patterns(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if name.endswith("csv"):
        write(path, "score\n5\n")
    else:
        parquet(tmp_path / "plain.parquet", "SELECT 5.0 AS score").rename(path)
    write(tmp_path / "a1.csv", "score\n7\n")
    write(tmp_path / "x.parquet", "nothing")
    with open_table([str(path)], ["score"]) as table:
        assert scores_of(table, "score").tolist() == [5.0]
    linked = tmp_path / "linked.csv"
    linked.symlink_to(path)
    assert file_text(linked, tmp_path).startswith("'/")


def connects(text: str) -> bool:
    """Return whether a module asks DuckDB itself for anything but a connection's type and its errors."""
    tree = ast.parse(text)
    imported = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    if any(str(node.module).split(".")[0] in ("duckdb", "_duckdb") for node in imported):
        return True
    renamed = [name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names]
    if any(name.name.split(".")[0] in ("duckdb", "_duckdb") and name.asname for name in renamed):
        return True
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "duckdb"
    }
    return any(name[0].islower() for name in used)


def test_one_module_opens_connections() -> None:
    root = Path(pac_wrap.__file__).parent
    modules = {path.relative_to(root).as_posix(): path.read_text("utf-8") for path in root.rglob("*.py")}
    # who does not name it asks it for nothing
    named = {name: text for name, text in modules.items() if "duckdb" in text}
    assert [name for name, text in named.items() if connects(text)] == ["tables/files/connection.py"]


@pytest.mark.parametrize(
    ("text", "opens"),
    [
        ("import duckdb\nduckdb.connect()", True),
        ("import duckdb\nduckdb.sql('SELECT 1')", True),
        ("import duckdb as d\nd.connect()", True),
        ("from duckdb import connect", True),
        ("import duckdb\nraise duckdb.Error", False),
        ("x: 'duckdb.DuckDBPyConnection'", False),
    ],
)
def test_every_way_to_connect_is_seen(text: str, opens: bool) -> None:
    assert connects(text) is opens


@pytest.mark.slow  # the kernel of a notebook is a process of its own, which takes seconds to start
def test_a_notebook_reads_tables_without_the_widgets_of_jupyter(told: Path) -> None:
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    code = (
        "import sys; sys.modules['ipywidgets'] = None\n"  # as if it were not installed
        "from pac_wrap.tables.table import open_table\n"
        f"with open_table([{str(told)!r}], ['score'], None) as table:\n"
        "    print(len(table.first_scores('score')))"
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    nbclient.NotebookClient(notebook, kernel_name="python3", timeout=LIMIT).execute()
    assert [output.text for output in notebook.cells[0].outputs] == ["1\n"]
