"""The JSON Schema that is shipped says what the package writes, and nothing that it would refuse."""

import json
import sys
import warnings
from collections.abc import Iterator
from functools import cache, reduce
from importlib.resources import files
from math import isinf
from operator import getitem
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import pac_wrap
from pac_wrap import Certificate, CertificateError, Guarantee
from support.resealed import certificates, mutants

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "schema"))
from file_schema import FORMATS, build

RNG = np.random.default_rng(0)
NORMAL, ANOMALOUS = RNG.normal(0, 1, 600), RNG.normal(4, 1, 200)
SHIPPED = (files("pac_wrap.method") / "certificate.schema.json").read_text(encoding="utf-8")


@cache
def validator() -> Any:
    return jsonschema.Draft202012Validator(json.loads(SHIPPED))


def valid(text: str) -> bool:
    return bool(validator().is_valid(json.loads(text)))


def written() -> Iterator[tuple[str, str]]:
    """Yield a text of every format, with everything that may stand in it."""
    room = Guarantee(
        max_fpr=0.1,
        max_fnr=0.1,
        shift=pac_wrap.TotalVariation(0.01),
        label_noise=pac_wrap.LabelNoise(0.01, 0.01),
    )
    first = pac_wrap.calibrate(NORMAL, ANOMALOUS)
    scores, labels = np.r_[NORMAL, ANOMALOUS], np.repeat([0, 1], [600, 200])
    tenants = np.resize(["a", "b", "c"], scores.size)
    tenants[:3] = "few"
    curve = pac_wrap.certify_curve(NORMAL, ANOMALOUS)
    yield "room", pac_wrap.calibrate(NORMAL, ANOMALOUS, room).to_json()
    for shift in (pac_wrap.DensityRatio(1.5), pac_wrap.KL(0.001), pac_wrap.ChiSquared(0.001)):
        yield "shift", pac_wrap.calibrate(NORMAL, ANOMALOUS, Guarantee(0.1, 0.1, shift=shift)).to_json()
    yield "one side", pac_wrap.calibrate(NORMAL, [], Guarantee(max_fnr=None)).to_json()
    yield (
        "weights",
        pac_wrap.calibrate(NORMAL, ANOMALOUS, normal_weights=np.full(600, 0.9), weight_bound=1.0).to_json(),
    )
    until = pac_wrap.LabelUntil(Guarantee())
    until.add(scores, labels)
    assert until.certificate is not None
    yield "looks", until.certificate.to_json()
    yield "lineage", pac_wrap.recalibrate(first, np.tile(scores, 3), np.tile(labels, 3)).to_json()
    yield "curve", curve.to_json()
    yield "given", curve.at(2.0).to_json()
    yield "kinds", pac_wrap.calibrate(NORMAL, {"x": ANOMALOUS, "y": ANOMALOUS[:150]}).to_json()
    classes = RNG.integers(3, size=900)
    matrix = RNG.normal(0, 1, (900, 3)) + 4 * np.eye(3)[classes]
    yield "classes", pac_wrap.calibrate_classes(matrix, classes).to_json()
    yield (
        "severities",
        pac_wrap.calibrate_classes(matrix, classes, {0: 0.1, 1: 0.1}, severities=[0, 1, 2]).to_json(),
    )
    for options in ({}, {"together": True, "pool": True}, {"overlap": "raise"}):
        made = pac_wrap.calibrate_labelled(scores, labels, Guarantee(0.2, 0.2), **options, by=tenants)
        yield "groups", made.to_json()
    watched = pac_wrap.Monitor(made)
    watched.update(made.verdicts(scores, tenants), labels, groups=tenants, id="one")
    yield "group monitor", watched.to_json()
    monitor = pac_wrap.Monitor(first, curve=curve)
    monitor.update(first.verdicts(scores), labels, scores=scores, id="one")
    monitor.update(np.ones(500), np.zeros(500), scores=np.full(500, 2.0))
    assert monitor.alarms
    yield "monitor", monitor.to_json()
    wrap = pac_wrap.PACWrap(lambda X: X[:, 0]).calibrate(scores[:, None], labels)
    yield "provenance", wrap.certificate_.to_json()


@cache
def texts() -> list[tuple[str, str]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pac_wrap.PACWrapWarning)
        return list(written())


def test_the_schema_that_is_shipped_is_that_of_the_types() -> None:
    assert build() == SHIPPED, "run python docs/schema/file_schema.py"
    jsonschema.Draft202012Validator.check_schema(json.loads(SHIPPED))


def test_every_format_is_written_as_the_schema_says() -> None:
    found = texts()
    formats = {json.loads(text)["format"] for _, text in found}
    assert formats == {f"pac-wrap {name}" for name, _, _ in FORMATS}
    assert [name for name, text in found if not valid(text)] == []


def test_certificates_of_every_strategy_and_regime_are_as_the_schema_says() -> None:
    assert [one for one in certificates() if not valid(one.to_json())] == []


def leaves(node: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to everything in a JSON value but the items of a list after the first."""
    if above:
        yield above
    inner = node.items() if isinstance(node, dict) else enumerate(node[:1]) if isinstance(node, list) else ()
    for name, value in inner:
        yield from leaves(value, (*above, name))


@pytest.mark.slow
def test_what_is_missing_unknown_or_of_another_type_is_refused() -> None:
    tried = set()
    for name, text in texts():
        whole = json.loads(text)
        for path in leaves(whole):
            # a place stands in many texts, and means the same beside the same name of what holds it
            held = reduce(getitem, path[:-1], whole)
            tag = held.get("name") if isinstance(held, dict) else None
            place = whole["format"], tag, *(step for step in path if isinstance(step, str))
            if place in tried:
                continue
            tried.add(place)
            for change in ("drop", "retype", "add"):
                content = json.loads(text)
                node = content
                for step in path[:-1]:
                    node = node[step]
                at = path[-1]
                if (
                    change == "drop"
                    and isinstance(node, dict)
                    and at not in OPTIONAL
                    and not {"monitors", "provenance"} & set(path[:-1])
                ):
                    del node[at]
                elif change == "retype":
                    node[at] = [{"of": "another type"}]
                elif change == "add" and isinstance(node[at], dict) and at != "monitors":
                    node[at]["unknown"] = 1
                else:
                    continue
                assert not valid(json.dumps(content)), (name, change, path)


OPTIONAL = {
    "provenance",
    "severities",
    "between",
    "lineage",
    "curve",
    "weighting",
    "digests",
    "shift",
    "label_noise",
    "certified",
    "found_at",
    "kind",
}


def test_what_the_schema_refuses_is_never_believed() -> None:
    refused = 0
    for told, text in mutants(5, 100):
        if not valid(text) and not huge(json.loads(text)):
            refused += 1
            with pytest.raises(CertificateError):
                believed(text, told)
    assert refused > 25


def believed(text: str, told: str) -> None:
    Certificate.from_json(text)
    pytest.fail(f"believed: {told}")


def huge(node: Any) -> bool:
    """Return whether a number is an infinity once it is a double, which schemas do not know."""
    if isinstance(node, dict):
        return any(map(huge, node.values()))
    return isinstance(node, float) and isinf(node)
