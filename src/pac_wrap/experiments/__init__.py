"""The questions of the paper, one module each: rows in, rows out."""

from difflib import get_close_matches
from importlib import import_module
from typing import Final

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
}


def check_question(name: str) -> None:
    """Refuse the name of a question that there is not."""
    if name not in QUESTIONS:
        near = get_close_matches(name, QUESTIONS, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise InputError(f"there is no question {name!r}; there are {', '.join(QUESTIONS)}{hint}")


def reproduce(
    question: str,
    *,
    seed: int = 0,
    trials: int | None = None,
    quick: bool = False,
    progress: Progress = lambda share, text: None,
) -> Study:
    """Return the answer to one question; all data are at hand before any time is spent.

    `trials` are simulated calibrations, or splits in q2; by default as many as the paper took, and five
    splits. `quick` takes less data, for a first look.

    >>> reproduce("q4", trials=20, quick=True).title
    'Q4. Ceilings, deltas and ambiguity'
    """
    check_question(question)
    if trials is not None and check_count("trials", trials) == 0:
        raise InputError("trials must be at least 1, got 0; leave it out to take the paper's number")
    check_count("seed", seed)
    for name in QUESTIONS[question]:
        for file in ENTRIES[name].files:
            fetch(file)
    options = {} if trials is None else {"trials": trials}
    module = import_module(f"pac_wrap.experiments.{question}")
    study: Study = module.run(seed=seed, quick=quick, progress=progress, **options)
    return study
