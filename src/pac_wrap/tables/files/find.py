"""Finding files of scores: paths, patterns, standard input, none of them twice; which reader fits them."""

import re
import stat
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from glob import glob, has_magic
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Final, NamedTuple

from pac_wrap.base.files import scratch_folder
from pac_wrap.base.text import is_unicode
from pac_wrap.errors import InputError, PACWrapWarning
from pac_wrap.tables.files.text_format import EMPTY_INPUT, PARQUET, is_json, standard_input

_READERS: Final = {
    ".csv": "read_csv",
    ".tsv": "read_csv",
    ".txt": "read_csv",
    ".parquet": "read_parquet",
    ".pq": "read_parquet",
    ".json": "read_json",
    ".jsonl": "read_json",
    ".ndjson": "read_json",
    ".npy": "numpy",
    ".npz": "numpy",
}
_PACKED: Final = (".gz", ".zst")
# s3://, https:// and the like; a drive of Windows has one letter
_REMOTE: Final = re.compile("[A-Za-z][A-Za-z0-9+.-]+://")
_BLOCK: Final = 1 << 16
_SPOOLED: Final = "standard-input"


class FoundFiles(NamedTuple):
    """Files, as they were named and as they are, what reads them, and a folder for temporary files."""

    names: list[str]
    files: list[Path]
    reader: str
    scratch: Path

    @property
    def source_names(self) -> list[str]:
        """What each file is called where a row tells its source: its path, or - for standard input."""
        return ["-" if file.with_suffix("") == self.scratch / _SPOOLED else str(file) for file in self.files]


@contextmanager
def found_files(paths: Sequence[str], start: bytes = b"") -> Iterator[FoundFiles]:
    """Yield what files, patterns or "-" (standard input, of which `start` was read already) stand for."""
    with scratch_folder() as scratch:
        files = find_all(paths, scratch, start)
        yield FoundFiles(list(paths), files, reader_of(files), scratch)


def find_all(paths: Sequence[str], scratch: Path, start: bytes = b"") -> list[Path]:
    """Return the files that several paths or patterns stand for; a file named twice is refused."""
    if list(paths).count("-") > 1:
        raise InputError("standard input is named twice, but can be read once; name - once")
    files = [file for path in paths for file in find_files(path, scratch, start)]
    found: dict[tuple[int, int], Path] = {}
    for file in files:
        facts = file.stat()
        first = found.setdefault((facts.st_dev, facts.st_ino), file)
        if first is not file:
            twice = f"{file} is named twice" if file == first else f"{first} and {file} are one file"
            raise InputError(f"{twice}, and its rows would count twice; name it once")
    for first, second in _same_content(files):
        shown = " and ".join(
            "standard input" if one.with_suffix("") == scratch / _SPOOLED else str(one)
            for one in (first, second)
        )
        warnings.warn(
            f"{shown} have the same content; if that is one table twice, its rows count twice",
            PACWrapWarning,
            stacklevel=2,
        )
    return files


def _same_content(files: list[Path]) -> Iterator[tuple[Path, Path]]:
    """Yield each file whose content an earlier one has, after that one."""
    alike: dict[tuple[int, bytes], list[Path]] = {}
    sizes = Counter(file.stat().st_size for file in files)
    for file in files:
        size = file.stat().st_size
        if sizes[size] > 1:
            alike.setdefault((size, _outer_blocks(file, size)), []).append(file)
    for group in alike.values():
        first_with: dict[bytes, Path] = {}
        for file in group if len(group) > 1 else ():
            with file.open("rb") as opened:
                content = file_digest(opened, "sha256").digest()
            first = first_with.setdefault(content, file)
            if first is not file:
                yield first, file


def _outer_blocks(file: Path, size: int) -> bytes:
    with file.open("rb") as opened:
        first = opened.read(_BLOCK)
        opened.seek(max(0, size - _BLOCK))
        return sha256(first + opened.read(_BLOCK)).digest()


def find_files(path: str, scratch: Path, start: bytes = b"") -> list[Path]:
    """Return the files that a path, a pattern or "-" (standard input) stands for."""
    if path == "-":
        return [_spooled(scratch, start)]
    if _REMOTE.match(path) and not Path(path).exists():
        raise InputError(
            f"{path} is not on this computer, and only local files are read; copy it here, or pipe it in and"
            " name - instead"
        )
    file = Path(path)
    if file.is_dir():
        endings = Counter(ending for one in file.iterdir() if (ending := _ending(one)) in _READERS)
        example = [f", for example {path.rstrip('/')}/*{ending}" for ending, _ in endings.most_common(1)]
        raise InputError(f"{path} is a folder; name the files in it{''.join(example)}")
    if not file.exists() and has_magic(path):
        found = sorted(Path(name) for name in glob(path, recursive=True) if Path(name).is_file())
        if not found:
            raise InputError(f"no file matches {path}")
        return [_with_content(one) for one in found]
    if not file.exists():
        near = get_close_matches(file.name, [other.name for other in file.parent.glob("*")], 1)
        hint = f"; did you mean {file.parent / near[0]}?" if near else "; check the path"
        raise InputError(f"there is no file {path}{hint}")
    return [_with_content(file)]


def _with_content(file: Path) -> Path:
    if not is_unicode(str(file)):
        shown = str(file).encode("utf-8", "backslashreplace").decode()
        raise InputError(f"the name {shown} is not UTF-8; rename the file, or pipe it in and name - instead")
    facts = file.stat()
    if not stat.S_ISREG(facts.st_mode):
        raise InputError(
            f"{file} is not a regular file, and a table is read more than once; pipe it in and name - instead"
        )
    if facts.st_size == 0:
        raise InputError(f"{file} is empty; it needs a header and rows")
    return file


def _spooled(scratch: Path, start: bytes) -> Path:
    """Return a file with what stands on standard input, named after its format."""
    target, stream = scratch / _SPOOLED, standard_input()
    with target.open("wb") as copy:
        copy.write(start)
        while chunk := stream.read(1 << 20):
            copy.write(chunk)
    with target.open("rb") as copy:
        first = copy.read(_BLOCK)
    if not first:
        raise InputError(EMPTY_INPUT)
    suffix = ".parquet" if first[:4] == PARQUET else ".jsonl" if is_json(first) else ".csv"
    return target.rename(target.with_suffix(suffix))


def _ending(file: Path) -> str:
    """Return what the format is told from: the last ending but that of packing."""
    suffixes = [suffix.lower() for suffix in file.suffixes]
    if suffixes and suffixes[-1] in _PACKED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def reader_of(files: list[Path]) -> str:
    """Return the DuckDB function that reads files of this format, or "numpy"."""
    readers = set()
    for file in files:
        if _ending(file) not in _READERS:
            endings = f"{', '.join(_READERS)} (and {', '.join(_PACKED)})"
            raise InputError(f"{file} has no known format; the endings are {endings}")
        readers.add(_READERS[_ending(file)])
    if len(readers) > 1:
        raise InputError("the tables have different formats; pass files of one format at a time")
    return readers.pop()
