"""A study into a folder: its tables, its pictures, a page, and how it was made."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from pac_wrap.errors import InputError, OutputError
from pac_wrap.experiments.study import Picture, Study
from pac_wrap.files import whole_file, write_text
from pac_wrap.report.study.csvtext import csv_text
from pac_wrap.report.study.markdown import markdown


def write_study(study: Study, folder: str | os.PathLike[str], meta: Mapping[str, object]) -> list[Path]:
    """Write the files of a study and return their paths; on any failure the folder stays as it was.

    Each table becomes `<question>-<table>.csv` and each picture `<question>-<picture>.svg`; `<question>.md`
    shows them, and `<question>.json` holds `meta`. The same study gives the same bytes.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     written = write_study(Study("q1", "Is it kept?", (), (), ("It is.",), ()), folder, {"seed": 0})
    >>> [path.name for path in written]
    ['q1.md', 'q1.json']
    """
    texts = _texts(study, meta)
    paths = [Path(folder) / name for name in texts]
    with _folder(Path(folder)), ExitStack() as files:
        for path, text in zip(paths, texts.values(), strict=True):
            if path.is_dir():
                raise OutputError(f"cannot write {path}: it is a folder; nothing was written")
            write_text(files.enter_context(whole_file(path)), text)
    return paths


def _texts(study: Study, meta: Mapping[str, object]) -> dict[str, str]:
    """Return the content of every file by its name."""
    for kind, names in (
        ("tables", [table.name for table in study.tables]),
        ("pictures", [picture.name for picture in study.pictures]),
    ):
        if len(set(names)) < len(names):
            raise InputError(f"{kind} of a study need different names, got {', '.join(names)}")
    texts = {f"{study.question}-{table.name}.csv": csv_text(table) for table in study.tables}
    files = {picture.name: f"{study.question}-{picture.name}.svg" for picture in study.pictures}
    texts |= {files[picture.name]: _svg(picture) for picture in study.pictures}
    texts[f"{study.question}.md"] = markdown(study, files)
    texts[f"{study.question}.json"] = (
        json.dumps(meta, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    )
    return texts


def _svg(picture: Picture) -> str:
    from pac_wrap.report.figures import to_svg  # only pictures need matplotlib
    from pac_wrap.report.figures.study import draw

    figure = draw(picture)
    figure.set_facecolor("#FFFFFF")  # a file does not know the page it will stand on
    return to_svg(figure, alt=picture.title) + "\n"


@contextmanager
def _folder(folder: Path) -> Iterator[None]:
    """Make a folder and those above it, and take back on failure what was made."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise OutputError(f"cannot write into {folder}: it is not a folder; nothing was written") from error
    except OSError as error:
        reason = error.strerror or error
        raise OutputError(f"cannot create the folder {folder}: {reason}; nothing was written") from error
    try:
        yield
    except BaseException:
        for path in missing:
            with suppress(OSError):
                path.rmdir()
        raise
