"""A file from the network into the cache: whole and with the right hash, or not under its name."""

import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

from pac_wrap.datasets.checksum import mismatch, rejected_name, sha256_of
from pac_wrap.datasets.remote import RemoteFile
from pac_wrap.errors import DataError, MissingExtraError
from pac_wrap.scratch import scratch_folder

if TYPE_CHECKING:
    from requests import RequestException, Response

_CHUNK: Final = 1 << 16
# seconds that a whole download may take, and the bytes a second that a large one must come with
PATIENCE: Final = 900.0
_SLOWEST: Final = 50_000


def download(
    file: RemoteFile, folder: Path, progress: bool, timeout: float, patience: float = PATIENCE
) -> Path:
    """Return the path of the file in the folder, downloaded and checked; a DataError says what went wrong.

    `timeout` is for the server's next word, `patience` for the whole, besides a second for every 50 kB.
    """
    _require_pooch(file)
    from requests import RequestException

    try:
        folder.mkdir(parents=True, exist_ok=True)
        with scratch_folder(folder) as scratch:
            arrived = scratch / "arrived"
            _receive_in_time(file, arrived, progress, timeout, patience + file.size / _SLOWEST)
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


def _receive_in_time(file: RemoteFile, target: Path, progress: bool, timeout: float, longest: float) -> None:
    """Receive a file in a thread of its own: a server that drips never lets go of whom it drips on."""
    failures: list[BaseException] = []
    responses: list[Response] = []

    def work() -> None:
        try:
            _receive(file, target, progress, timeout, responses)
        except BaseException as error:
            failures.append(error)

    thread = Thread(target=work, daemon=True)
    thread.start()
    try:
        thread.join(longest)
        if thread.is_alive():
            raise DataError(
                f"cannot download {file.url}: it did not arrive whole within {longest:.3g} seconds;"
                f" {_by_hand()}"
            )
    finally:
        for response in responses if thread.is_alive() else ():
            # an older urllib3 cannot, or it is over just now; else the thread ends with the process
            with suppress(OSError, AttributeError, RuntimeError):
                response.raw.shutdown()
        thread.join(1.0)
    for failure in failures:
        raise failure


def _receive(
    file: RemoteFile, target: Path, progress: bool, timeout: float, responses: "list[Response]"
) -> None:
    from pooch import HTTPDownloader
    from tqdm import tqdm

    with ExitStack() as stack:
        shown = progress and sys.stderr.isatty()
        bar = stack.enter_context(tqdm(desc=file.name, unit="B", unit_scale=True, disable=not shown))

        def begun(response: "Response", **_: Any) -> None:
            # a broken transfer would leave its connection open
            stack.callback(response.close)
            responses.append(response)
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
