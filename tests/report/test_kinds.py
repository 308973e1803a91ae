"""The page of kinds says what is promised of each kind, and nothing that is false of a class as a whole."""

import json
from pathlib import Path

import numpy as np
import pytest

from pac_wrap import Guarantee, InputError, calibrate
from pac_wrap.report.account import Account, Figure, account_of
from pac_wrap.report.numbers import sure
from pac_wrap.report.render import markdown, rendered
from support.reports import HOSTILE, table_of

# kinds with too few labels are what some of these are about
pytestmark = pytest.mark.filterwarnings("ignore::pac_wrap.VacuousWarning")

RNG = np.random.default_rng(3)
NORMAL = RNG.normal(0, 1, 800)
KINDS = {"stolen": RNG.normal(4, 1, 400), HOSTILE: RNG.normal(5, 1, 150)}
CEILINGS = {"stolen": 0.02, HOSTILE: 0.1}
CERTIFICATE = calibrate(NORMAL, KINDS, Guarantee(0.05, CEILINGS))


def figures(account: Account) -> list[Figure]:
    return [item for section in account.sections for item in section.items if isinstance(item, Figure)]


def test_every_kind_has_a_row_and_the_one_that_binds_says_so() -> None:
    content = account_of(CERTIFICATE, NORMAL, KINDS)
    rows = {row[0]: row for row in table_of(content, "kinds").rows}
    binding = CERTIFICATE.fnr
    assert binding.of.kind == "stolen"
    assert set(rows) == {"all points", "'stolen' (binds)", repr(HOSTILE)}
    own = rows["'stolen' (binds)"]
    assert own[1:5] == ("anomalous", "400", "2 %", f"{binding.errors}")
    missed = int(np.count_nonzero(CERTIFICATE.verdicts(KINDS["stolen"]) == 0))
    assert own[6].endswith(f"({missed} of 400)")
    assert content.status.words == "certified for every kind"
    listed = f"10 % of anomalies of kind {HOSTILE!r} and 2 % of kind 'stolen'"
    assert f", and at most {listed} are missed:" in content.headline
    assert content.headline.endswith(f"all of it together with {sure(CERTIFICATE.confidence)} confidence.")
    assert CERTIFICATE.confidence > 0.9025
    scores, multiples = figures(content)
    assert scores.kind == "scores"
    assert [one["name"] for one in multiples.data] == ["'stolen'", repr(HOSTILE[:24]) + "..."]
    # without scores there are no pictures, and nothing is counted
    bare = account_of(CERTIFICATE)
    assert figures(bare) == []
    assert {row[6] for row in table_of(bare, "kinds").rows} == {"not counted"}


def test_one_ceiling_for_all_kinds_and_many_ceilings_are_said_in_short() -> None:
    same = account_of(calibrate(NORMAL, KINDS, Guarantee(0.05, 0.1)))
    assert "at most 10 % of anomalies of each of 2 kinds are missed" in same.headline
    many = {f"k{i}": RNG.normal(5, 1, 200) for i in range(6)}
    asked = Guarantee(None, {name: 0.05 + 0.01 * i for i, name in enumerate(many)})
    listed = account_of(calibrate(NORMAL, many, asked))
    assert (
        "at most 5 % to 10 % of anomalies are missed, depending on their kind (see below)" in listed.headline
    )
    assert "Nothing is promised about false alarms" in listed.headline
    whole = account_of(calibrate(NORMAL, KINDS, Guarantee(0.05, CEILINGS | {None: 0.06})))
    assert "6 % of all kinds together" in whole.headline
    assert any(row[0].startswith("all kinds") for row in table_of(whole, "kinds").rows)
    of_normal = account_of(calibrate({"day": NORMAL}, KINDS["stolen"], Guarantee(0.05, 0.05)))
    assert of_normal.headline.startswith(
        "In the long run, at most 5 % of normal points raise a false alarm, and"
    )


def test_a_kind_with_too_few_labels_is_named_with_what_follows() -> None:
    few = calibrate(NORMAL, KINDS | {"new": [5.0]}, Guarantee(0.05, CEILINGS | {"new": 0.05}))
    content = account_of(few)
    assert (content.status.word, content.status.words) == (
        "partly",
        "partly certified: too few labels of 'new'",
    )
    assert content.warnings == (
        "Too few anomalous points of 'new' are labelled: 1, and 59 are needed."
        " So no point is ever called normal.",
    )
    assert "Label more anomalous points of 'new' (at hand 1, needed 59)." in content["next_steps"]
    assert any(row["meaning"] == "This verdict is never given." for row in content["verdicts"])
    nothing = account_of(calibrate([0.0], {"new": [5.0]}))
    assert (nothing.status.word, nothing.headline[:7]) == ("none", "Nothing")


def test_a_raised_ceiling_is_said() -> None:
    near = {"a": RNG.normal(1, 1, 300), "b": RNG.normal(1.5, 1, 300)}
    held = account_of(calibrate(NORMAL, near, overlap="hold_fnr"))
    assert (held.status.word, held.status.words) == ("raised", "certified with raised ceilings")


def test_scores_that_are_not_those_of_the_certificate_are_refused() -> None:
    with pytest.raises(InputError, match="of 'stolen' are not those the certificate was made from"):
        account_of(CERTIFICATE, NORMAL, KINDS | {"stolen": KINDS["stolen"] + 1})
    with pytest.raises(InputError, match="of 'stolen' are not those"):
        account_of(CERTIFICATE, NORMAL, {HOSTILE: KINDS[HOSTILE]})
    with pytest.raises(InputError, match="both classes, or of neither"):
        account_of(CERTIFICATE, NORMAL)


def test_it_is_written_in_every_format(tmp_path: Path) -> None:
    for ending in ("html", "md", "json"):
        path = tmp_path / f"page.{ending}"
        CERTIFICATE.report(path, NORMAL, KINDS, detector=HOSTILE)
        text = path.read_text(encoding="utf-8")
        assert text == rendered(account_of(CERTIFICATE, NORMAL, KINDS, detector=HOSTILE), path)
        if ending != "json":  # a certificate stands in Markdown as code
            assert HOSTILE not in text.split("```json")[0]
    data = json.loads((tmp_path / "page.json").read_text(encoding="utf-8"))
    assert data["certificate"] == json.loads(CERTIFICATE.to_json())
    assert data["kinds"][0]["Labels"] == "800"
    with pytest.raises(InputError, match=r"as \.html, \.md or \.json"):
        CERTIFICATE.report(tmp_path / "page.pdf")
    assert HOSTILE not in CERTIFICATE._repr_html_()


@pytest.mark.parametrize(("far", "advised"), [(2.5, True), (9.0, False)])
def test_fewer_undecided_points_are_a_matter_only_where_some_are(far: float, advised: bool) -> None:
    rng = np.random.default_rng(4)
    kinds = {"theft": rng.normal(far, 1, 400), "fraud": rng.normal(far + 1, 1, 400)}
    made = calibrate(rng.normal(0, 1, 400), kinds)
    text = markdown(account_of(made))
    assert made.rule.single is not advised
    assert ("For fewer undecided points, label more of 'theft'" in text) is advised
