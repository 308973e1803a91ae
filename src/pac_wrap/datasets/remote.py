"""What is known of a data set without reading it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class RemoteFile:
    """A file of a public data set, and the hash without which it is not used.

    `published` says where the hash is public. Where it is None no public hash is known, and `sha256` is that
    of the copy the results were made with. `original` says how the archive at `url` differs from this file,
    if it does: it would be refused for its hash, so it is not downloaded.
    """

    name: str
    url: str
    sha256: str
    size: int
    published: str | None = None
    original: str = ""

    @property
    def absence(self) -> str:
        """Why a file that differs from its original cannot be downloaded."""
        return (
            f"{self.name} is not on this machine and cannot be downloaded, for {self.url} {self.original};"
            f" put a copy of {self.name} into a folder and set PAC_WRAP_DATA to that folder"
        )


@dataclass(frozen=True)
class Parts:
    """The series of a data set that are loaded one at a time: `count` of the `total` there are can be.

    >>> str(Parts("channels", 81, 82, ("P-1", "S-1"), "T-10 has no labels"))
    '81 of 82 channels; T-10 has no labels'
    """

    kind: str
    count: int
    total: int
    examples: tuple[str, ...]
    note: str

    def __str__(self) -> str:
        return f"{self.count} of {self.total} {self.kind}; {self.note}"


@dataclass(frozen=True)
class Entry:
    """The facts of one data set: its files, its shape as `load` returns it by default, its terms.

    If it has parts, rows and anomalies are those of all that can be loaded, and columns of the widest.
    """

    files: tuple[RemoteFile, ...]
    rows: int
    columns: int
    anomalies: int
    source: str
    licence: str
    citation: str
    parts: Parts | None = None

    @property
    def size(self) -> int:
        """The bytes of all files together."""
        return sum(file.size for file in self.files)
