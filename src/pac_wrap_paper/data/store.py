"""Data files: in the user's folder, in the cache, or downloaded into it; none is used unchecked.

What takes long to compute from them is kept in the cache as well.
"""

import hashlib
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pac_wrap import DataError, MissingExtraError
from pac_wrap.base.files import check_folder, scratch_folder, whole_file
from pac_wrap_paper.data.registry import RemoteFile

if TYPE_CHECKING:
    from requests import RequestException, Response

VARIABLE: Final = "PAC_WRAP_DATA"
_NAME: Final = "pac-wrap"
_SHOWN: Final = 12  # digits of a hash
# seconds that a whole download may take, and the bytes a second that a large one must come with
_PATIENCE: Final = 900.0
_SLOWEST: Final = 50_000
_CHUNK: Final = 1 << 16
_BY_HAND: Final = "download {} yourself, put it into a folder and set PAC_WRAP_DATA to that folder"


def data_folder() -> Path | None:
    """Return the folder that PAC_WRAP_DATA names, or None if the variable is not set."""
    named = os.environ.get(VARIABLE)
    if not named:
        return None
    with suppress(RuntimeError):  # ~ of an unknown user
        folder = Path(named).expanduser()
        if folder.is_dir():
            return folder
    raise DataError(
        f"{VARIABLE} must name a folder, got {named!r}, which is not one;"
        " create the folder, correct the variable or unset it"
    )


def cache_folder() -> Path:
    """Return the folder that downloads go to; it need not exist yet.

    It is pooch.os_cache("pac-wrap"), found without pooch: files that are there can be read without it.
    """
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA") or _home() / "AppData" / "Local"
        return Path(local, _NAME, _NAME, "Cache")
    if sys.platform == "darwin":
        return _home() / "Library" / "Caches" / _NAME
    return Path(os.environ.get("XDG_CACHE_HOME", "").strip() or _home() / ".cache", _NAME)


def locate(file: RemoteFile) -> Path | None:
    """Return where the file lies, unchecked: in PAC_WRAP_DATA, else in the cache, else None."""
    for place in (data_folder, cache_folder):
        folder = place()  # one after the other: a user without a home may still have PAC_WRAP_DATA
        if folder is None:
            continue
        path = folder / file.name
        if path.is_file():
            return path
        if path.is_symlink() or path.exists():
            raise DataError(f"{path} must be a file, but it is something else or a broken link; remove it")
    return None


def fetch(
    file: RemoteFile, progress: bool = True, *, timeout: float = 30.0, patience: float = _PATIENCE
) -> Path:
    """Return the path of the file, downloaded if it is not here yet, after its hash was checked.

    `timeout` is how many seconds to wait for the server's next bytes, `patience` how many for the whole file,
    plus one for every 50 kB; a bar shows only on a terminal.
    """
    path = locate(file)
    if path is None and file.original:
        raise DataError(file.absence)
    if path is None:
        return _downloaded(file, cache_folder(), progress, timeout, patience)
    found = sha256_of(path)
    if found == file.sha256:
        return path
    if in_data_folder(path):
        outcome = f"it was left where it is; put {file.url} in its place, or remove it"
    else:
        outcome = _set_aside(path)
    raise _mismatch(file, str(path), found, outcome)


def in_data_folder(path: Path) -> bool:
    """Return whether a file lies in the folder that PAC_WRAP_DATA names."""
    return data_folder() in path.parents


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file in hexadecimal digits."""
    try:
        with path.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise DataError(
            f"cannot read {path}: {error.strerror or error}; make it readable, or remove it"
        ) from error


def _downloaded(file: RemoteFile, folder: Path, progress: bool, timeout: float, patience: float) -> Path:
    """Return the path of a file downloaded into the folder; with a wrong hash it is set aside and refused."""
    _import_pooch(file)  # without it the folder is not touched
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with scratch_folder(folder) as scratch:
            arrived = _download(file, scratch, progress, timeout, patience)
            found = sha256_of(arrived)
            kept = folder / file.name if found == file.sha256 else _rejected_name(folder / file.name)
            kept.parent.mkdir(exist_ok=True)  # a name may lead into a folder
            arrived.replace(kept)
    except DataError:
        raise
    except OSError as error:
        raise DataError(
            f"cannot write {file.name} into the cache folder {folder}: {error.strerror or error};"
            f" {_BY_HAND.format(file.url)}"
        ) from error
    if found != file.sha256:
        outcome = f"it is kept as {kept}; try again later, or {_BY_HAND.format('it')}"
        raise _mismatch(file, f"the file from {file.url}", found, outcome)
    return kept


def _mismatch(file: RemoteFile, what: str, found: str, outcome: str) -> DataError:
    """Return the refusal of a file whose hash is `found`; `outcome` says what became of it and what to do."""
    original = (
        "the public original"
        if file.published
        else "the copy that the published results were made with; no public hash is known"
    )
    return DataError(
        f"{what} differs from {original} (sha256 {found[:_SHOWN]}, expected {file.sha256[:_SHOWN]}),"
        f" so it is not used; {outcome}"
    )


def _set_aside(path: Path) -> str:
    try:
        path.replace(_rejected_name(path))
    except OSError as error:
        return f"it could not be moved aside ({error.strerror}); remove it"
    return f"it was moved to {_rejected_name(path)}; try again to download a new copy"


def _rejected_name(path: Path) -> Path:
    """Return the name under which a file with the wrong hash is kept; an older one is replaced."""
    return path.with_name(f"{path.name}.rejected")


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:
        raise DataError(
            "this user has no home folder, so there is no place for downloads; set HOME or XDG_CACHE_HOME"
        ) from None


def _download(file: RemoteFile, folder: Path, progress: bool, timeout: float, patience: float) -> Path:
    """Return the path of the file, downloaded into an empty folder; its hash is left to the caller."""
    pooch = _import_pooch(file)
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
        raise DataError(f"cannot download {file.url}: {reason}; {_BY_HAND.format('it')}") from None
    finally:
        pooch.get_logger().setLevel(level)
    return folder / file.name


def _import_pooch(file: RemoteFile) -> Any:
    """Return the module pooch; one sentence says how to get it, or the file, where it is missing."""
    try:
        import pooch
        import tqdm  # noqa: F401  (asked for here, so that its absence is one sentence)
    except ImportError as error:
        raise MissingExtraError(
            f"downloading {file.name} needs the package {error.name}, which is not installed;"
            f' run pip install "pac-wrap-ad[paper]", or {_BY_HAND.format(file.url)}'
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
                f" {_BY_HAND.format('it')}"
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
                f" nothing was kept; {_BY_HAND.format('it')}"
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


def result_file(folder: str, name: str, told: object, ending: str) -> Path:
    """Return where a result is kept: a name that changes with what the result depends on."""
    key = hashlib.sha256(repr(told).encode()).hexdigest()[:16]
    return cache_folder() / folder / f"{name}-{key}.{ending}"


def keep(file: Path, content: Any) -> None:
    """Write an array, or several by their names, to a file, whole or not at all."""
    check_folder(file.parent)
    with whole_file(file) as temporary, open(temporary, "wb") as stream:
        if isinstance(content, np.ndarray):
            np.save(stream, content, allow_pickle=False)
        else:
            np.savez(stream, **content)


def results_of(jobs: Sequence[Any], progress: Callable[[float, str], None], verb: str) -> list[Any]:
    """Return the result of every job, done on all cores where it is not in the cache.

    A job has `files`, that of its result and those it reads, and `result(*files)`, which reads or makes it.
    """
    missing = [job for job in jobs if not job.files[0].exists()]
    if missing:
        from joblib import Parallel, delayed

        check_folder(missing[0].files[0].parent)
        # a worker may have another environment, so it is told the files
        tasks = (delayed(_do)(job, job.files) for job in missing)
        progress(0.0, f"{verb}: {len(missing)} to do")
        done = Parallel(n_jobs=min(len(missing), os.cpu_count() or 1), return_as="generator")(tasks)
        for place, _ in enumerate(done, 1):
            progress(place / (len(missing) + 1), f"{verb}: {missing[place - 1]} is done")
    return [job.result() for job in jobs]


def _do(job: Any, files: tuple[Path, ...]) -> None:
    job.result(*files)
