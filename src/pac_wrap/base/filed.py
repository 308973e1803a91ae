"""What is kept as JSON text: written whole or not at all, and refused if it contradicts itself."""

import os
from collections.abc import Iterator
from typing import Any, ClassVar, Self

from pac_wrap.base.codec import MOST_BYTES, decode, encode
from pac_wrap.base.files import write_whole
from pac_wrap.errors import CertificateError, InputError


class Filed:
    """A dataclass that can be saved and loaded: a certificate of any kind, or a curve.

    Whoever takes it says what stands at the head of its files, and finds its own contradictions.
    """

    __slots__ = ()

    _header: ClassVar[dict[str, Any]]
    _noun: ClassVar[str] = "certificate"
    _remedy: ClassVar[str] = "calibrate again"
    _most_bytes: ClassVar[int] = MOST_BYTES

    def to_json(self) -> str:
        """Return the same as JSON text, from which `from_json` makes it again."""
        return encode(self, self._header)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Return what a JSON text holds, after checking that it is whole and consistent.

        Parameters
        ----------
        text : str or bytes
            What `to_json` gave.

        Returns
        -------
        certificate or curve
            What was written, to the last digit.

        Raises
        ------
        CertificateError
            If the text holds something else, was changed, or contradicts itself.
        """
        found = cls._read(text)
        try:
            problem = next(found._problems(), None)
        except InputError as error:  # numbers that no calibration would take
            problem = str(error)
        if problem is not None:
            raise CertificateError(f"the {cls._noun} contradicts itself: {problem}; {cls._remedy}")
        return found

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a JSON file that appears whole or not at all.

        Parameters
        ----------
        path : str or path
            The file.
        """
        write_whole(path, self.to_json())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote; loading never runs code, and reads no more than such a file can have.

        Its checksum and digests detect accidents, not forgery: anyone who can write the file can change them.

        Parameters
        ----------
        path : str or path
            The file.

        Returns
        -------
        certificate or curve
            What the file holds, if it is whole and does not contradict itself.

        Raises
        ------
        CertificateError
            As for `from_json`.
        """
        with open(path, "rb") as file:
            return cls.from_json(file.read(cls._most_bytes + 1))

    @classmethod
    def _read(cls, text: str | bytes) -> Self:
        """Return what a text holds, if it was not changed; whether it is possible is asked next."""
        return decode(cls, text, cls._header)

    def _problems(self) -> Iterator[str]:
        """Yield what contradicts itself."""
        raise NotImplementedError
