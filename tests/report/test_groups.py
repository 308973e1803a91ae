"""The page of groups: counts, the worst first, gaps and the pool; short however many groups there are."""

import json
from pathlib import Path
from time import process_time

import numpy as np
import pytest

from pac_wrap import Guarantee, InputError, calibrate_labelled
from pac_wrap.report.account import account_of
from pac_wrap.report.groups import LISTED
from support.reports import HOSTILE, table_of

pytestmark = pytest.mark.filterwarnings("ignore::pac_wrap.VacuousWarning")

RNG = np.random.default_rng(5)
LABELS = (RNG.random(3000) < 0.5).astype(int)
GROUPS = RNG.choice(["acme", HOSTILE, "tiny", "small"], 3000, p=[0.5, 0.46, 0.02, 0.02])
SCORES = RNG.normal(3.5 * LABELS + (GROUPS == "acme"), 1)
COLUMNS = SCORES, LABELS, GROUPS
CERTIFICATE = calibrate_labelled(SCORES, LABELS, by=GROUPS, pool=True)


def test_groups_are_counted_and_the_worst_stand_first() -> None:
    content = account_of(CERTIFICATE)
    assert (content.status.word, content.status.words) == (
        "partly",
        "2 of 4 groups certified; 2 have too few labels",
    )
    assert content.headline.startswith("In the long run, at most ")
    assert content.headline.endswith(" are missed: in each certified group by itself, with 90 % confidence.")
    names = [row[0] for row in table_of(content, "listing").rows]
    assert set(names[:2]) == {"'tiny'", "'small'"}
    assert names == [f"{group!r}" for group in CERTIFICATE.certificates]
    small = dict(zip(names, table_of(content, "listing").rows, strict=True))["'tiny'"]
    own = CERTIFICATE.certificates["tiny"]
    assert own.fpr.budget is not None
    assert f"{own.fpr.budget.missing} normal" in small[3]
    assert table_of(content, "groups").rows[0][:2] == ("certified", "2")
    # the pool stands under its own name where it is enough, and is called too small where it is not
    assert content["said"][0].startswith("The pool of small groups")
    assert [line[:3] for line in content["said"][1:]] == ["FPR", "FNR"]
    assert any("59 normal and 59 anomalous" in step for step in content["next_steps"])


def test_a_pool_that_is_enough_is_said_not_to_be_their_own() -> None:
    labels = np.tile([0, 1], 1000)
    groups = np.repeat(np.arange(50), 40)
    scores = RNG.normal(5 * labels, 1)
    pooled = account_of(calibrate_labelled(scores, labels, pool=True, by=groups))
    assert pooled.status.words == "0 of 50 groups certified; 50 have too few labels"
    assert "about none of them by itself" in pooled["said"][0]
    assert pooled.headline == "Nothing is promised about any group by itself."
    assert all(
        row[3].startswith("that of the pool, not its own; missing labels: 39 normal")
        for row in table_of(pooled, "listing").rows
    )
    assert table_of(pooled, "groups").rows[1][4] == "as the pool decides"
    alone = account_of(calibrate_labelled(scores, labels, by=groups))
    assert (alone.status.word, alone["said"]) == ("none", ())
    assert any("--pool" in step for step in alone["next_steps"])


def test_all_at_once_is_said_and_by_itself_is_counted() -> None:
    labels = np.tile([0, 1], 3000)
    groups = np.repeat(np.arange(20), 300)
    scores = RNG.normal(6 * labels, 1)
    alone = account_of(calibrate_labelled(scores, labels, by=groups))
    assert alone.status.words == "all 20 groups certified"
    assert "of 20 certified groups, up to 2 break theirs on average" in alone.warnings[0]
    together = account_of(calibrate_labelled(scores, labels, together=True, by=groups))
    assert together.warnings == ()
    assert together.headline.endswith(": in all certified groups together, with 90 % confidence.")
    one_sided = account_of(calibrate_labelled(scores, labels, Guarantee(0.05, None), by=groups))
    assert one_sided.headline.endswith(" confidence. Nothing is promised about missed anomalies.")
    single = account_of(calibrate_labelled(scores, labels, by=np.zeros(6000)))
    assert (single.status.words, single["said"]) == ("its one group is certified", ())


def test_a_promise_is_no_lower_than_the_highest_ceiling() -> None:
    labels = np.tile([0, 1], 600)
    certificate = calibrate_labelled(
        RNG.normal(labels, 1), labels, overlap="hold_fnr", by=np.repeat(["a", "b"], 600)
    )
    content = account_of(certificate)
    highest = np.nanmax(certificate.columns.ceilings[0])
    assert content.status.word == "raised"
    said = float(content.headline.split("at most ")[1].split(" %")[0]) / 100
    assert highest <= said < highest + 0.001


def test_the_drawn_scores_must_be_those_of_the_certificate() -> None:
    with pytest.raises(InputError, match="are not those the certificate was made from"):
        CERTIFICATE.report("page.html", SCORES + 1, LABELS, GROUPS)
    with pytest.raises(InputError, match="are not those"):
        CERTIFICATE.report("page.html", SCORES[1:], LABELS[1:], GROUPS[1:])
    with pytest.raises(InputError, match="are not those"):
        CERTIFICATE.report("page.html", SCORES, LABELS, np.where(GROUPS == "tiny", "other", GROUPS))
    with pytest.raises(InputError, match="all three or none"):
        CERTIFICATE.report("page.html", SCORES)


def test_it_is_written_in_every_format_and_names_are_inert(tmp_path: Path) -> None:
    for ending in ("html", "md", "json"):
        CERTIFICATE.report(tmp_path / f"page.{ending}", *COLUMNS)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert HOSTILE not in page
    assert page.count('<div class="multiples">') == 1
    assert page.count("<figure>") == 4
    # a certificate stands in Markdown as code
    assert HOSTILE not in (tmp_path / "page.md").read_text(encoding="utf-8").split("```json")[0]
    data = json.loads((tmp_path / "page.json").read_text(encoding="utf-8"))
    assert data["certificate"] == json.loads(CERTIFICATE.to_json())
    assert len(data["listing"]["rows"]) == 4
    assert HOSTILE not in CERTIFICATE._repr_html_()


def test_ten_thousand_groups_are_a_short_page(tmp_path: Path) -> None:
    count = 10_000
    labels = np.tile([0, 1], 6 * count)
    groups = np.repeat(np.arange(count), 12)
    certificate = calibrate_labelled(RNG.normal(4 * labels, 1), labels, by=groups)
    started = process_time()
    certificate.report(tmp_path / "page.html")
    assert process_time() - started < 30.0  # of the processor, and far less
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert len(text) < 300_000
    assert f"{count - LISTED:,} more are counted above and not listed" in text
    assert "too long for this page" in text
    certificate.report(tmp_path / "page.json")
    assert json.loads((tmp_path / "page.json").read_text(encoding="utf-8"))["certificate"] is None
    assert len(certificate._repr_html_()) < 5_000
