"""The questions of the paper, one module each: rows in, rows out."""

from difflib import get_close_matches
from importlib import import_module
from typing import Any, Final

from pac_wrap.datasets.registry import ENTRIES
from pac_wrap.datasets.store import fetch
from pac_wrap.errors import InputError
from pac_wrap.experiments.study import Progress, Study
from pac_wrap.inputs import check_count

# the questions, and the data sets that each of them reads
QUESTIONS: Final[dict[str, tuple[str, ...]]] = {
    "q1": ("thyroid",),
    "q2": ("campaign", "celeba", "census"),
    "q3": ("usps", "mnist"),
    "q4": (),
    "shift": (),
    "nasa": ("nasa",),
    "smd": ("smd",),
}


# scikit-learn takes seeds below 2^32, and each split of q2 adds its number to the seed
_LARGEST_SEED: Final = 2**31
_MOST_TRIALS: Final = 10_000_000


def check_question(name: str) -> None:
    """Refuse the name of a question that there is not."""
    if name not in QUESTIONS:
        near = get_close_matches(name.lower(), QUESTIONS, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise InputError(f"there is no question {name!r}; there are {', '.join(QUESTIONS)}, and all{hint}")


def check_numbers(seed: int, trials: int | None) -> None:
    """Refuse a seed or a number of trials that cannot be."""
    if not 0 <= check_count("seed", seed) < _LARGEST_SEED:
        raise InputError(f"seed must be less than 2^31, got {seed!r}; take a smaller one")
    if isinstance(trials, int) and trials < 1:
        raise InputError(f"trials must be at least 1, got {trials!r}; leave it out to take the usual number")
    if trials is not None and check_count("trials", trials) > _MOST_TRIALS:
        raise InputError(f"trials must be at most {_MOST_TRIALS:,}, got {trials:,}; fewer say enough")


def fetch_data(question: str) -> None:
    """Put the data files of a question at hand, downloading those that are not."""
    for name in QUESTIONS[question]:
        for file in ENTRIES[name].files:
            fetch(file)


def reproduce(
    question: str,
    *,
    seed: int = 0,
    trials: int | None = None,
    quick: bool = False,
    progress: Progress = lambda share, text: None,
    **options: Any,
) -> Study:
    """Return the answer to one question; all data are at hand before any time is spent.

    `trials` are simulated calibrations in q1, q3, q4 and shift, splits in q2, and seeds in nasa and smd; by
    default 4,000 (100 in q4), 5 and 3. `quick` takes less data and fewer trials, for a first look.

    >>> reproduce("q4", trials=20, quick=True).title
    'Q4. Ceilings, deltas and ambiguity'
    """
    check_question(question)
    check_numbers(seed, trials)
    fetch_data(question)
    if trials is not None:
        options["trials"] = trials
    module = import_module(f"pac_wrap.experiments.{question}")
    study: Study = module.run(seed=seed, quick=quick, progress=progress, **options)
    return study
