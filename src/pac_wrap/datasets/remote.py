"""What is known of a data set without reading it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class RemoteFile:
    """A file of a public data set, and the hash without which it is not used.

    `published` says where the hash is public. Where it is None no public hash is known, and `sha256` is that
    of the copy the results were made with.
    """

    name: str
    url: str
    sha256: str
    size: int
    published: str | None = None


@dataclass(frozen=True)
class Entry:
    """The facts of one data set: its files, its shape as `load` returns it by default, its terms."""

    files: tuple[RemoteFile, ...]
    rows: int
    columns: int
    anomalies: int
    source: str
    licence: str
    citation: str

    @property
    def size(self) -> int:
        """The bytes of all files together."""
        return sum(file.size for file in self.files)
