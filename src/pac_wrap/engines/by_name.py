"""The engine that the command line names."""

from importlib import import_module
from typing import Any, Literal

from pac_wrap.certificate import Certificate
from pac_wrap.engines.duckdb import calibrate_table
from pac_wrap.errors import InputError
from pac_wrap.guarantee import Guarantee
from pac_wrap.tables import Table

Engine = Literal["duckdb", "spark", "dask"]


def calibrate_with(engine: Engine, table: Table, guarantee: Guarantee, **arguments: Any) -> Certificate:
    """Return the certificate of a table's files, read by the named engine; the arguments are those of all."""
    if engine == "duckdb":
        return calibrate_table(table, guarantee, **arguments)
    if table.reader == "numpy":
        raise InputError(f"the engine {engine} does not read NumPy files; leave --engine out")
    files = [str(file.absolute()) for file in table.files]
    adapter = import_module(f"pac_wrap.engines.{engine}_files")
    certificate: Certificate = adapter.calibrate_files(
        files, table.reader, guarantee, delimiter=table.delimiter, **arguments
    )
    return certificate
