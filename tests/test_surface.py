"""The public address: what it names, that each name is documented, and what importing it costs."""

import doctest
import inspect
import json
import subprocess
import sys

import pytest

import pac_wrap
from support.house import public_homes
from support.patience import LIMIT

SURFACE = [
    "Abstain",
    "Algorithm1",
    "Certificate",
    "CertificateError",
    "ChiSquared",
    "ClassCertificate",
    "Curve",
    "DataError",
    "Day",
    "DensityRatio",
    "DependenceWarning",
    "DetectorError",
    "Event",
    "GroupCertificate",
    "Guarantee",
    "Hold",
    "InputError",
    "KL",
    "LabelNoise",
    "LabelUntil",
    "LabelWarning",
    "MissingExtraError",
    "MissingScoreWarning",
    "Monitor",
    "OverlapWarning",
    "PACClassifier",
    "PACWrap",
    "PACWrapError",
    "PACWrapWarning",
    "PrecisionWarning",
    "Raise",
    "Regime",
    "ReviewQueue",
    "Reviews",
    "Rule",
    "TotalVariation",
    "UpsideDownWarning",
    "VacuousWarning",
    "Verdict",
    "VerdictStream",
    "__version__",
    "anomaly_scores",
    "calibrate",
    "calibrate_chunks",
    "calibrate_classes",
    "calibrate_labelled",
    "calibrate_traffic",
    "certify_curve",
    "certify_curve_chunks",
    "certify_curve_labelled",
    "estimate_weights",
    "evaluate",
    "plan",
    "recalibrate",
]
# the others are results, enumerations and errors, which a user meets but does not make
MADE_BY_USERS = [
    "Abstain",
    "Algorithm1",
    "ChiSquared",
    "DensityRatio",
    "Guarantee",
    "Hold",
    "KL",
    "LabelNoise",
    "Monitor",
    "PACClassifier",
    "PACWrap",
    "Rule",
    "TotalVariation",
    "VerdictStream",
]
OBJECTS = {name: getattr(pac_wrap, name) for name in SURFACE if name != "__version__"}


def test_the_public_names_are_these() -> None:
    assert pac_wrap.__all__ == SURFACE


def test_a_star_import_gives_all_of_them() -> None:
    names: dict[str, object] = {}
    exec("from pac_wrap import *", names)
    assert set(SURFACE) <= set(names)


@pytest.mark.parametrize("name", OBJECTS)
def test_every_name_is_documented_and_lives_in_this_package(name: str) -> None:
    thing = OBJECTS[name]
    assert thing.__name__ == name
    assert thing.__module__.startswith("pac_wrap.")
    # a dataclass without a docstring is given its signature for one
    assert thing.__doc__
    assert not thing.__doc__.startswith(f"{name}(")


@pytest.mark.parametrize("name", OBJECTS)
def test_every_public_method_is_documented(name: str) -> None:
    thing = OBJECTS[name]
    if inspect.isclass(thing):
        for attribute, value in vars(thing).items():
            if not attribute.startswith("_") and (inspect.isroutine(value) or isinstance(value, property)):
                assert inspect.getdoc(getattr(thing, attribute)), attribute


@pytest.mark.parametrize("name", [*MADE_BY_USERS, *(n for n, o in OBJECTS.items() if inspect.isfunction(o))])
def test_functions_and_what_users_make_have_a_runnable_example(name: str) -> None:
    found = doctest.DocTestFinder().find(OBJECTS[name], name)
    assert any(test.examples for test in found)


def test_what_type_checkers_see_is_what_loads() -> None:
    homes = public_homes()
    assert set(homes) == set(OBJECTS)
    for name, module in homes.items():
        assert OBJECTS[name].__module__ == f"pac_wrap.{module}"


def test_a_loaded_name_is_kept() -> None:
    assert pac_wrap.calibrate is pac_wrap.calibrate
    assert vars(pac_wrap)["calibrate"] is pac_wrap.calibrate


@pytest.mark.parametrize("name", ["Calibrate", "utils", "_private", ""])
def test_an_unknown_name_is_an_attribute_error(name: str) -> None:
    with pytest.raises(AttributeError, match=f"module 'pac_wrap' has no attribute '{name}'"):
        getattr(pac_wrap, name)
    assert not hasattr(pac_wrap, name)


def test_dir_lists_all_names_once_and_in_order() -> None:
    listed = dir(pac_wrap)
    assert set(SURFACE) <= set(listed)
    assert listed == sorted(set(listed))


def test_the_version_is_the_one_that_is_installed() -> None:
    from importlib.metadata import version

    assert pac_wrap.__version__ == version("pac-wrap-ad")


# one after the other, from the lightest on; what an import must not load, no import before it may either
STEPS = [
    ("import pac_wrap", {"scipy", "polars", "torch", "rich", "typer", "numpy"}),
    ("dir(pac_wrap)", {"scipy", "typer", "numpy"}),
    ("from pac_wrap import PACWrapError, OverlapWarning", {"scipy", "numpy"}),
    ("import pac_wrap.base.files", {"scipy.stats"}),
    ("import pac_wrap.method.metrics", {"scipy.stats"}),
    ("import pac_wrap.method.calibrate", {"scipy.stats", "typer"}),
    ("from pac_wrap import calibrate, Certificate", {"scipy.stats", "sklearn", "pandas", "matplotlib"}),
    ("from pac_wrap import PACWrap", {"polars", "matplotlib", "torch", "pyod", "typer"}),
]


def test_an_import_loads_nothing_heavy() -> None:
    told = "print(json.dumps(sorted(sys.modules)))"
    code = "\n".join(["import json, sys", *(f"{statement}; {told}" for statement, _ in STEPS)])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=LIMIT, check=True
    )
    for line, (statement, heavy) in zip(done.stdout.splitlines(), STEPS, strict=True):
        loaded = set(json.loads(line))
        assert "pac_wrap" in loaded
        assert not heavy & loaded, statement
    # heavy imports would be seen
    assert {"sklearn", "scipy", "numpy"} <= loaded
