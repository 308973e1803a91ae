"""The questions of the paper, one module each; here they are run, and the way they were run is recorded."""

import platform
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, Final

from pac_wrap import InputError, __version__
from pac_wrap.base.arguments import check_count
from pac_wrap_paper.data.registry import ENTRIES
from pac_wrap_paper.data.store import fetch
from pac_wrap_paper.studies.study import Progress, Study

# the questions, and the data sets that each of them reads
QUESTIONS: Final[dict[str, tuple[str, ...]]] = {
    "q1": ("thyroid",),
    "q2": ("campaign", "celeba", "census"),
    "q3": ("usps", "mnist"),
    "q4": (),
    "shift": (),
    "nasa": ("nasa",),
    "smd": ("smd",),
    "watch": ("nasa", "smd", "thyroid", "celeba"),
    "groups": ("smd", "nasa", "census"),
    "units": ("smd", "nasa"),
    "adbench": ("adbench",),
}
# scikit-learn takes seeds below 2^32, and each split of q2 adds its number to the seed
_LARGEST_SEED: Final = 2**31
_MOST_TRIALS: Final = 10_000_000
_MODULES: Final = {"scikit-learn": "sklearn"}
_LIBRARIES: Final = ("numpy", "scipy", "scikit-learn", "matplotlib")
_MORE: Final = {"nasa": ("torch",), "smd": ("torch",), "adbench": ("pyod", "crepes", "mapie")}


def check_question(name: str) -> None:
    """Refuse an unknown question, and list the known ones."""
    if name not in QUESTIONS:
        near = get_close_matches(name.lower(), QUESTIONS, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise InputError(
            f"there is no question {name!r}; the questions are {', '.join(QUESTIONS)}, or all{hint}"
        )


def check_numbers(seed: int, trials: int | None) -> None:
    """Refuse an impossible seed or number of trials."""
    if not 0 <= check_count("seed", seed) < _LARGEST_SEED:
        raise InputError(f"seed must be less than 2^31, got {seed!r}; take a smaller one")
    if isinstance(trials, int) and trials < 1:
        raise InputError(f"trials must be at least 1, got {trials!r}; leave it out to take the usual number")
    if trials is not None and check_count("trials", trials) > _MOST_TRIALS:
        raise InputError(f"trials must be at most {_MOST_TRIALS:,}, got {trials:,}; fewer suffice")


def fetch_data(question: str) -> None:
    """Download the data files of a question that are not on this machine, and check them all."""
    for name in QUESTIONS[question]:
        for file in ENTRIES[name].files:
            fetch(file)


def module_of(question: str) -> Any:
    """Return the module of a question; the study of ADBench has a folder of its own."""
    return import_module(
        "pac_wrap_paper.adbench.study" if question == "adbench" else f"pac_wrap_paper.studies.{question}"
    )


def reproduce(
    question: str,
    *,
    seed: int = 0,
    trials: int | None = None,
    quick: bool = False,
    progress: Progress = lambda share, text: None,
    **options: Any,
) -> Study:
    """Return the answer to one question; all its data are fetched before any work begins.

    `trials` are simulated calibrations in q1, q3, q4 and shift, splits in q2, seeds in nasa and smd,
    orders in watch, and divisions in adbench, groups and units; by default 4,000 (100 in q4), 5, 3, 20, 50,
    20 and 100. `quick` takes less data and fewer trials, for a first look.
    """
    check_question(question)
    check_numbers(seed, trials)
    fetch_data(question)
    if trials is not None:
        options["trials"] = trials
    study: Study = module_of(question).run(seed=seed, quick=quick, progress=progress, **options)
    return study


def record(
    question: str, *, seed: int = 0, trials: int | None = None, quick: bool = False
) -> dict[str, object]:
    """Return how a study was made: command, seed, versions, hashes of the data files; no time."""
    command = f"pac-wrap reproduce {question} --seed {seed}"
    command += f" --trials {trials}" if trials is not None else ""
    command += " --quick" if quick else ""
    libraries = (*_LIBRARIES, *_MORE.get(question, ()))
    files = (file for name in QUESTIONS[question] for file in ENTRIES[name].files)
    return {
        "question": question,
        "command": command,
        "seed": seed,
        "versions": {
            "pac-wrap-ad": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in libraries if find_spec(_MODULES.get(name, name))},
        },
        "data": {file.name: file.sha256 for file in files},
    }
