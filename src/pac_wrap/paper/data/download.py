"""A file from the network into a folder, through pooch: no larger than it should be, and within its time."""

import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

from pac_wrap.errors import DataError, MissingExtraError
from pac_wrap.paper.data.registry import RemoteFile

if TYPE_CHECKING:
    from requests import RequestException, Response

# seconds that a whole download may take, and the bytes a second that a large one must come with
PATIENCE: Final = 900.0
_SLOWEST: Final = 50_000
_CHUNK: Final = 1 << 16
BY_HAND: Final = "download {} yourself, put it into a folder and set PAC_WRAP_DATA to that folder"


def download(file: RemoteFile, folder: Path, progress: bool, timeout: float, patience: float) -> Path:
    """Return the path of the file, downloaded into an empty folder; its hash is left to the caller to check.

    `timeout` is how many seconds to wait for the server's next bytes, `patience` how many for the whole file,
    plus one for every 50 kB. A DataError says what went wrong.
    """
    pooch = import_pooch(file)
    from requests import RequestException

    # pooch deletes a file with a wrong hash before anybody can look at it, so it is given none
    manager = pooch.create(folder, base_url="", registry={file.name: None}, urls={file.name: file.url})
    level = pooch.get_logger().level
    pooch.get_logger().setLevel("WARNING")  # it tells of every download
    try:
        _fetch_in_time(manager, file, progress, timeout, patience + file.size / _SLOWEST)
    except DataError:
        raise
    except (RequestException, ValueError) as error:  # requests lets a bad address through as a ValueError
        reason = _reason(error, timeout)
        raise DataError(f"cannot download {file.url}: {reason}; {BY_HAND.format('it')}") from None
    finally:
        pooch.get_logger().setLevel(level)
    return folder / file.name


def import_pooch(file: RemoteFile) -> Any:
    """Return the module pooch; one sentence says how to get it, or the file, where it is missing."""
    try:
        import pooch
        import tqdm  # noqa: F401  (asked for here, so that its absence is one sentence)
    except ImportError as error:
        raise MissingExtraError(
            f"downloading {file.name} needs the package {error.name}, which is not installed;"
            f' run pip install "pac-wrap-ad[data]", or {BY_HAND.format(file.url)}'
        ) from error
    return pooch


def _fetch_in_time(manager: Any, file: RemoteFile, progress: bool, timeout: float, longest: float) -> None:
    """Fetch a file in a thread of its own: a server that sends a byte now and then never times out."""
    failures: list[BaseException] = []
    responses: list[Response] = []

    def work() -> None:
        try:
            with ExitStack() as stack:
                manager.fetch(file.name, downloader=_downloader(file, progress, timeout, stack, responses))
        except BaseException as error:
            failures.append(error)

    thread = Thread(target=work, daemon=True)
    thread.start()
    try:
        thread.join(longest)
        if thread.is_alive():
            raise DataError(
                f"cannot download {file.url}: it did not arrive whole within {longest:.3g} seconds;"
                f" {BY_HAND.format('it')}"
            )
    finally:
        for response in responses if thread.is_alive() else ():
            # an older urllib3 cannot, or it is over just now; else the thread ends with the process
            with suppress(OSError, AttributeError, RuntimeError):
                response.raw.shutdown()
        thread.join(1.0)
    for failure in failures:
        raise failure


def _downloader(
    file: RemoteFile, progress: bool, timeout: float, stack: ExitStack, responses: "list[Response]"
) -> Any:
    """Return pooch's downloader with our bar and limits; the stack closes the bar and the connection."""
    from pooch import HTTPDownloader
    from tqdm import tqdm

    shown = progress and sys.stderr.isatty()
    bar = stack.enter_context(tqdm(desc=file.name, unit="B", unit_scale=True, disable=not shown))

    def begun(response: "Response", **_: Any) -> None:
        # a broken transfer would leave its connection open
        stack.callback(response.close)
        responses.append(response)
        if file.name.endswith(".gz"):
            # some servers call a .gz file an encoding of what is in it, and it would arrive unpacked
            response.raw.headers.pop("Content-Encoding", None)

    return HTTPDownloader(
        progressbar=_Meter(file, bar),
        chunk_size=_CHUNK,
        timeout=timeout,
        headers={"Accept-Encoding": "identity"},
        hooks={"response": begun},
    )


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
                f" nothing was kept; {BY_HAND.format('it')}"
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
