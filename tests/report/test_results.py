"""What programs read: every number is the library's own, and the names stay."""

import json
from functools import partial
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pac_wrap import Guarantee, calibrate, certify_curve, evaluate
from pac_wrap.method.comparison import compare_scores
from pac_wrap.method.planning.plan import needed, pilot_of
from pac_wrap.method.planning.sequential import stopping
from pac_wrap.method.strategies.looks import Looks
from pac_wrap.report.account import Account, only
from pac_wrap.report.render import as_json
from pac_wrap.tails import min_samples
from pac_wrap.tails.bounds import Budget, cdf, upper_bound
from support.shell import CERTIFICATE, GOLDEN, invoke, succeeded, write

COLUMNS = ["--score", "score", "--label", "label"]
LABELLED = [GOLDEN / "scores.csv", *COLUMNS]
TABLE = np.loadtxt(GOLDEN / "scores.csv", delimiter=",", skiprows=1)
SCORES, ANOMALOUS = TABLE[:, 0], TABLE[:, 1] == 1
JSON = ["--format", "json"]


def record(*arguments: object) -> Any:
    return json.loads(succeeded(*arguments, *JSON))


def test_what_json_has_no_number_for() -> None:
    found = as_json(Account(sections=only(a=inf, b=[-inf, nan], c=Budget(3, 0.5, 0.25, None, 0.0), d=None)))
    assert json.loads(found) == {
        "a": "inf",
        "b": ["-inf", None],
        "c": {"n": 3, "rate": 0.5, "delta": 0.25, "errors": None, "confidence": 0.0, "units": None},
        "d": None,
    }
    assert found.endswith("}\n")


def test_evaluate(tmp_path: Path) -> None:
    certificate = calibrate(SCORES[~ANOMALOUS][:50], SCORES[ANOMALOUS], Guarantee(0.1, 0.1, 0.1, 0.1))
    certificate.save(tmp_path / "c.json")
    metrics = evaluate(certificate.verdicts(SCORES), ANOMALOUS.astype(int))
    found = record("evaluate", tmp_path / "c.json", *LABELLED)
    assert list(found) == ["rates", "exceeded", "calibration_scores"]
    assert found["calibration_scores"] is False
    assert list(found["rates"]) == list(metrics.__dataclass_fields__)
    for name, rate in found["rates"].items():
        mine = getattr(metrics, name)
        expected = (mine.count, mine.n, mine.value, mine.low, mine.high)
        assert tuple(rate[key] for key in ("count", "n", "value", "low", "high")) == expected
    assert [found["rates"][name]["ceiling"] for name in ("fpr", "fnr")] == [0.1, 0.1]
    assert found["exceeded"] == []


def test_evaluate_says_that_the_calibration_scores_prove_nothing() -> None:
    assert record("evaluate", CERTIFICATE, *LABELLED)["calibration_scores"] is True
    assert "so this is no evidence" in succeeded("evaluate", CERTIFICATE, *LABELLED)


def test_evaluate_has_no_ceiling_where_nothing_is_promised_and_exits_as_ever(tmp_path: Path) -> None:
    calibrate(SCORES[~ANOMALOUS], []).save(tmp_path / "c.json")
    few = write(tmp_path / "few.csv", "score,label\n0.1,1\n")
    found = record("evaluate", tmp_path / "c.json", few, *COLUMNS)["rates"]
    assert (found["fnr"]["ceiling"], found["fpr"]["ceiling"]) == (None, 0.05)
    assert (found["fpr"]["n"], found["fpr"]["value"]) == (0, None)
    assert "no promise" in succeeded("evaluate", tmp_path / "c.json", few, *COLUMNS)
    bad = write(tmp_path / "bad.csv", "score,label\n" + "99,0\n" * 50)
    done = invoke("evaluate", tmp_path / "c.json", bad, *COLUMNS, *JSON)
    assert (done.code, json.loads(done.out)["exceeded"]) == (1, ["FPR"])


def test_verify(tmp_path: Path) -> None:
    assert record("verify", CERTIFICATE, *LABELLED) == {
        "verified": True,
        "differences": [],
        "digested": True,
    }
    fewer = write(tmp_path / "t.csv", "".join((GOLDEN / "scores.csv").read_text().splitlines(True)[:-1]))
    done = invoke("verify", CERTIFICATE, fewer, *COLUMNS, *JSON)
    found = json.loads(done.out)
    assert (done.code, found["verified"]) == (1, False)
    assert any("digest" in one for one in found["differences"])


def test_show_is_the_file_itself() -> None:
    assert succeeded("show", CERTIFICATE, *JSON) == CERTIFICATE.read_text()


def test_curve() -> None:
    curve = certify_curve(SCORES[~ANOMALOUS], SCORES[ANOMALOUS])
    assert record("curve", *LABELLED)["normal"] == json.loads(curve.to_json())["normal"]
    chosen = curve.choose(max_fpr=0.2)
    found = record("curve", *LABELLED, "--max-fpr", "0.2")
    assert found["rule"] == json.loads(chosen.to_json())["rule"]
    done = invoke("curve", *LABELLED, "--max-fpr", "0.0001", *JSON)
    found = json.loads(done.out)
    assert (done.code, found["kept"]) == (1, False)
    assert found["reason"].startswith("no threshold keeps --max-fpr = 0.0001; ")


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("ceilings", [(0.05, 0.2), (0.05, None), (None, 0.2)])
def test_compare(ceilings: tuple[float | None, float | None], tmp_path: Path) -> None:
    rows = "".join(f"{s},{-s},{int(y)}\n" for s, y in zip(SCORES, ANOMALOUS, strict=True))
    table = write(tmp_path / "t.csv", f"a,b,y\n{rows}")
    asked = Guarantee(*ceilings)
    with pytest.warns(UserWarning, match="upside down"):
        expected = compare_scores({"a": (SCORES, ANOMALOUS), "b": (-SCORES, ANOMALOUS)}, asked)
    words = ["none" if one is None else str(one) for one in ceilings]
    options = ["--score", "a", "--score", "b", "--label", "y", "--max-fpr", words[0], "--max-fnr", words[1]]
    done = invoke("compare", table, *options, *JSON)
    found = json.loads(done.out)
    assert [one["score"] for one in found["contenders"]] == [one.name for one in expected]
    assert found["asked"]["max_fpr"] == asked.max_fpr
    for one, mine in zip(found["contenders"], expected, strict=True):
        assert one["auc"] == mine.auc
        if asked.max_fpr is not None:
            assert one["fnr_at_max_fpr"] == mine.fnr_at(asked.max_fpr)
        if asked.max_fnr is not None:
            assert one["fpr_at_max_fnr"] == mine.fpr_at(asked.max_fnr)
        if None not in ceilings:
            assert (one["abstained"], one["common_ceiling"]) == (mine.abstained, mine.common_ceiling)
    assert 0.8 < found["confidence"] <= 0.9025


def test_plan_for_ceilings_and_for_labels() -> None:
    found = record("plan", "--max-fnr", "0.05", "--labels", "200")
    (needs,) = found["needed"]
    assert (needs["class"], needs["rate"], needs["ceiling"], needs["delta"]) == (
        "anomalous",
        "FNR",
        0.05,
        0.05,
    )
    assert all(one["labels"] == min_samples(0.05, 0.05, one["errors"]) for one in needs["needed"])
    promises = found["promises"]
    assert (promises["labels"], promises["delta"]) == (200, 0.05)
    assert all(one["rate"] == upper_bound(one["errors"], 200, 0.05) for one in promises["rates"])


def test_plan_for_both_classes() -> None:
    found = record("plan", "--normal", "6860", "--anomalous", "0", "--max-fpr", "0.03")["affordable"]
    assert (found["normal"]["labels"], found["normal"]["least"]) == (6860, upper_bound(0, 6860, 0.05))
    assert found["anomalous"]["least"] is None
    for one in found["normal"]["ceilings"]:
        budget = Budget.of(6860, one["ceiling"], 0.05)
        assert (one["errors"], one["missing"]) == (budget.errors, budget.missing)
    assert 0.03 in [one["ceiling"] for one in found["normal"]["ceilings"]]
    assert list(record("plan", "--anomalous", "140")["affordable"]) == ["delta", "anomalous"]


def test_plan_from_a_pilot() -> None:
    found = record("plan", "--pilot", *LABELLED, "--max-fpr", "0.1", "--max-fnr", "0.2")["pilot"]
    asked = Guarantee(0.1, 0.2)
    pilot = pilot_of(SCORES[~ANOMALOUS], SCORES[ANOMALOUS], asked)
    assert found["threshold"] == pilot.threshold
    for side, promise, counted in zip(
        found["sides"], asked.promises, (pilot.normal, pilot.anomalous), strict=True
    ):
        assert (side["errors"], side["n"]) == (counted.errors, counted.n)
        assert side["chance"] == counted.below(promise.ceiling)
        chances = [one["chance"] for one in side["needed"]]
        expected = needed(promise, chances, counted.within)
        assert [one["needed"] for one in side["needed"]] == [
            None if one is None else {"labels": one.labels, "errors": one.errors} for one in expected
        ]


def test_plan_for_labels_as_they_come() -> None:
    found = record("plan", "--sequential", "--max-fpr", "0.05", "--true-rate", "0.02")["sequential"]
    (promise,), looks = Guarantee(0.05, None).promises, Looks(20, 2000)
    (side,) = found["sides"]
    (run,) = side["runs"]
    mine = stopping(promise, looks, 0.02)
    assert (found["every"], found["up_to"], side["local_delta"]) == (20, 2000, looks.local(promise))
    assert run["true_rate"] == 0.02
    assert (run["median"], run["nine_in_ten"]) == (mine.quantile(0.5), mine.quantile(0.9))
    assert (run["expected"], run["success"]) == (mine.expected, mine.success)
    (once,) = needed(promise, [0.9], partial(cdf, p=0.02))
    assert once is not None
    assert run["all_at_once"] == {"labels": once.labels, "errors": once.errors}
    assert len(record("plan", "--sequential", "--max-fpr", "0.05")["sequential"]["sides"][0]["runs"]) > 1


def test_evaluate_by_kind(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    kinds = np.repeat(["", "worn", "torn"], 200)
    scores = rng.normal(0, 1, 600) + 5 * (kinds != "")
    rows = "".join(f"{s},{int(k != '')},{k}\n" for s, k in zip(scores, kinds, strict=True))
    table = write(tmp_path / "t.csv", f"score,label,kind\n{rows}")
    options = [table, *COLUMNS, "--kind", "kind"]
    succeeded("calibrate", *options, "-o", tmp_path / "c.json")
    found = record("evaluate", tmp_path / "c.json", *options)
    assert list(found) == ["kinds", "exceeded"]
    assert found["exceeded"] == []
    sizes = {one["kind"]: one["rate"]["n"] for one in found["kinds"]}
    assert sorted(sizes.values())[:3] == [200, 200, 200], sizes
    assert all(one["ceiling"] == 0.05 for one in found["kinds"] if "worn" in one["kind"]), found
    assert any("torn" in name for name in sizes)
