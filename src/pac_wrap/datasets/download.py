"""A file from the network into the cache: whole and with the right hash, or not under its name."""

import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from pac_wrap.datasets.checksum import mismatch, rejected_name, sha256_of
from pac_wrap.datasets.remote import RemoteFile
from pac_wrap.errors import DataError, MissingExtraError

if TYPE_CHECKING:
    from requests import RequestException, Response

_CHUNK: Final = 1 << 16


def download(file: RemoteFile, folder: Path, progress: bool, timeout: float) -> Path:
    """Return the path of the file in the folder, downloaded and checked; a DataError says what went wrong."""
    _require_pooch(file)
    from requests import RequestException

    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".pac-wrap.", dir=folder) as scratch:
            arrived = Path(scratch, "arrived")
            _receive(file, arrived, progress, timeout)
            found = sha256_of(arrived)
            kept = folder / file.name if found == file.sha256 else rejected_name(folder / file.name)
            arrived.replace(kept)
    except DataError:
        raise
    except (RequestException, ValueError) as error:  # requests lets a bad address through as a ValueError
        raise DataError(f"cannot download {file.url}: {_reason(error, timeout)}; {_by_hand()}") from None
    except OSError as error:
        raise DataError(
            f"cannot write {file.name} into the cache folder {folder}: {error.strerror or error};"
            f" {_by_hand(file.url)}"
        ) from error
    if found != file.sha256:
        outcome = f"it is kept as {kept}; try again later, or {_by_hand()}"
        raise mismatch(file, f"what came from {file.url}", found, outcome)
    return kept


def _by_hand(what: str = "it") -> str:
    return f"get {what} by other means, put it into a folder and set PAC_WRAP_DATA to that folder"


def _require_pooch(file: RemoteFile) -> None:
    try:
        import pooch  # noqa: F401  (asked for first, so that its absence is one sentence)
        import tqdm  # noqa: F401  (the same)
    except ImportError as error:
        raise MissingExtraError(
            f"downloading {file.name} needs the package {error.name}, which is not installed;"
            f' run pip install "pac-wrap-ad[data]", or {_by_hand(file.url)}'
        ) from error


def _receive(file: RemoteFile, target: Path, progress: bool, timeout: float) -> None:
    from pooch import HTTPDownloader
    from tqdm import tqdm

    with ExitStack() as stack:
        shown = progress and sys.stderr.isatty()
        bar = stack.enter_context(tqdm(desc=file.name, unit="B", unit_scale=True, disable=not shown))

        def begun(response: "Response", **_: Any) -> None:
            # a broken transfer would leave its connection open
            stack.callback(response.close)
            if file.name.endswith(".gz"):
                # some servers call a .gz file an encoding of what is in it, and it would arrive unpacked
                response.raw.headers.pop("Content-Encoding", None)

        receive = HTTPDownloader(
            progressbar=_Meter(file, bar),
            chunk_size=_CHUNK,
            timeout=timeout,
            headers={"Accept-Encoding": "identity"},
            hooks={"response": begun},
        )
        receive(file.url, str(target), None)


class _Meter:
    """A progress bar for pooch that also stops a server which sends more than the file has."""

    def __init__(self, file: RemoteFile, bar: Any) -> None:
        self.total, self._file, self._bar, self._arrived = file.size, file, bar, 0

    def update(self, size: int) -> None:
        self._arrived += size
        # pooch counts whole chunks, the last one too
        if self._arrived > self._file.size + _CHUNK:
            raise DataError(
                f"{self._file.url} sends more than the {self._file.size:,} bytes of {self._file.name};"
                f" nothing was kept; {_by_hand()}"
            )
        self._bar.update(size)

    def reset(self) -> None:
        self._arrived = 0
        self._bar.reset(self._file.size)

    def close(self) -> None:
        self._bar.close()


def _reason(error: "RequestException | ValueError", timeout: float) -> str:
    from requests import ConnectionError, HTTPError, Timeout
    from requests.exceptions import ChunkedEncodingError

    if isinstance(error, HTTPError) and error.response is not None:
        return f"the server answered {error.response.status_code} {error.response.reason}"
    if isinstance(error, Timeout):
        return f"no answer within {timeout:g} seconds"
    if isinstance(error, ChunkedEncodingError):
        return "the connection broke off before the end"
    if isinstance(error, ConnectionError):
        return "the server cannot be reached, or stopped answering"
    return " ".join(str(error).split())
