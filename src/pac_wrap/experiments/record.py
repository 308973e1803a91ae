"""How a study was made: enough to make it again, and nothing that changes from run to run."""

import platform
from importlib.metadata import version
from importlib.util import find_spec
from typing import Final

from pac_wrap.datasets.registry import ENTRIES
from pac_wrap.experiments import QUESTIONS
from pac_wrap.version import __version__

_MODULES: Final = {"scikit-learn": "sklearn"}
_LIBRARIES: Final = ("numpy", "scipy", "scikit-learn", "matplotlib")


def record(
    question: str, *, seed: int = 0, trials: int | None = None, quick: bool = False
) -> dict[str, object]:
    """Return the command, the seed, the versions, and the hashes of the data files.

    >>> record("q4", quick=True)["command"]
    'pac-wrap reproduce q4 --seed 0 --quick'
    """
    command = f"pac-wrap reproduce {question} --seed {seed}"
    command += f" --trials {trials}" if trials is not None else ""
    command += " --quick" if quick else ""
    libraries = (*_LIBRARIES, "torch") if question in ("nasa", "smd") else _LIBRARIES
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
