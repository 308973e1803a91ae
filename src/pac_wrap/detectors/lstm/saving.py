"""A trained detector as one file of plain numbers: a NumPy archive, whose loading runs no code."""

import json
from os import PathLike, fspath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pac_wrap.errors import InputError
from pac_wrap.files import whole_file

_FORMAT = "pac-wrap LSTM detector"
_VERSION = 1

Arrays = dict[str, NDArray[Any]]


def write_archive(path: str | PathLike[str], header: dict[str, Any], arrays: Arrays) -> None:
    """Write a header of plain values and named arrays to path, whole or not at all."""
    text = json.dumps({"format": _FORMAT, "version": _VERSION} | header, default=_plain)
    contents: Any = {"header": np.array(text)} | arrays
    with whole_file(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, **contents)


def read_archive(path: str | PathLike[str]) -> tuple[dict[str, Any], Arrays]:
    """Return the header and the arrays of a file; a foreign or damaged one is refused."""
    try:
        # opened here, since np.load leaves a broken archive open
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        header = json.loads(str(arrays.pop("header")))
        known = header["format"] == _FORMAT
        version = header["version"]
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"cannot read {fspath(path)}: {reason}; check the path") from error
    except Exception as error:  # a damaged archive makes its reader raise nearly anything
        raise not_a_detector(path, "it is damaged, or of another kind") from error
    if not known:
        raise not_a_detector(path, "it is of another kind")
    if version != _VERSION:
        raise not_a_detector(path, f"it has version {version!r}, but this program reads {_VERSION}")
    return header, arrays


def not_a_detector(path: str | PathLike[str], reason: str) -> InputError:
    """Return the error for a file that cannot be used."""
    return InputError(
        f"{fspath(path)} holds no detector that can be loaded: {reason}; save the detector again"
    )


def _plain(value: Any) -> Any:
    """Return what JSON does not know, such as numbers of NumPy and ranges, as plain numbers."""
    return np.asarray(value).tolist()
