"""A monitor that is kept in a file: written whole, gone on from, and held by one process at a time."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any, Self

from pac_wrap.base.files import write_whole
from pac_wrap.base.locks import held


class Kept:
    """What a monitor does with its file; a part of `Monitor` and `GroupMonitor`.

    One thread at a time changes a monitor, and others wait. What it holds is replaced, never changed, so a
    copy goes its own way.
    """

    def __init__(self) -> None:
        self._turn = RLock()

    def __getstate__(self) -> dict[str, Any]:
        with self._turn:
            return {name: value for name, value in vars(self).items() if name != "_turn"}

    def __setstate__(self, facts: dict[str, Any]) -> None:
        vars(self).update(facts, _turn=RLock())

    def to_json(self) -> str:
        """Return everything that was seen as JSON text."""
        raise NotImplementedError

    def load(self, path: str | os.PathLike[str]) -> Self:
        """Go on from a file."""
        raise NotImplementedError

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything that was seen as a JSON file that appears whole or not at all.

        Parameters
        ----------
        path : str or path
            The file.
        """
        write_whole(path, self.to_json())

    @contextmanager
    def on(self, path: str | os.PathLike[str]) -> Iterator[Self]:
        """Go on from a file if there is one, and save there at the end; no other process may meanwhile.

        Parameters
        ----------
        path : str or path
            The file. If something goes wrong within, it stays as it was.

        Returns
        -------
        context manager
            It gives this monitor.

        Raises
        ------
        OutputError
            If another process holds the file, or it cannot be written.

        Examples
        --------
        >>> import tempfile
        >>> from pac_wrap import Monitor, calibrate
        >>> certificate = calibrate(range(1000), range(2000, 3000))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for night in ("Monday", "Tuesday"):
        ...         with Monitor(certificate).on(f"{folder}/watch.json") as monitor:
        ...             _ = monitor.update([0, 0, 1], [0, 0, 1], id=night)
        >>> monitor.rows
        6
        """
        with held(path):
            if os.path.exists(path):
                self.load(path)
            yield self
            self.save(path)
