"""Pages of kinds and groups in a real browser: hostile names, the policy, and no overflow at any width."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pac_wrap import Guarantee, calibrate, calibrate_labelled
from support.browser import CLASHES, CONTRAST, WIDE, complains, complaints, show
from support.reports import HOSTILE

refused = pytest.importorskip("selenium.common.exceptions", reason="selenium is not installed")

NAMES = ["acme", HOSTILE, "x" * 200, 'a" onload="alert(2)', "\u0645\u0631\u062d\u0628\u0627\u202eab", "tiny"]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a page of kinds and one of groups."""
    folder, rng = tmp_path_factory.mktemp("parts"), np.random.default_rng(2)
    labels = (rng.random(4000) < 0.4).astype(int)
    groups = rng.choice(NAMES, 4000, p=[0.3, 0.2, 0.2, 0.2, 0.09, 0.01])
    scores = rng.normal(3.5 * labels, 1)
    with pytest.warns(UserWarning, match="too few labels"):
        made = calibrate_labelled(scores, labels, by=groups)
    made.report(folder / "groups.html", scores, labels, groups, detector=HOSTILE)
    kinds = {name: rng.normal(4, 1, 200) for name in NAMES}
    normal = rng.normal(0, 1, 500)
    by_kind = calibrate(normal, kinds, Guarantee(0.05, dict.fromkeys(NAMES, 0.1)))
    by_kind.report(folder / "kinds.html", normal, kinds, detector=HOSTILE)
    return folder


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", ["kinds", "groups"])
def test_it_can_be_read_at_every_width_and_names_are_inert(
    browser: Any, pages: Path, name: str, width: int, scheme: str
) -> None:
    show(browser, pages / f"{name}.html", width, scheme)
    assert complaints(browser) == []
    with pytest.raises(refused.NoAlertPresentException):
        _ = browser.switch_to.alert
    assert browser.execute_script("return document.scrollingElement.scrollWidth") <= width
    assert browser.execute_script(WIDE) == []
    assert browser.execute_script(CLASHES) == []
    assert browser.execute_script(CONTRAST) >= 4.5
    assert browser.execute_script("return document.querySelectorAll('.multiples figure').length") == len(
        NAMES
    )
    assert browser.find_elements("css selector", "script, img, iframe, object, embed, link, base") == []
    assert browser.execute_script("return document.querySelector('main').textContent").count(HOSTILE) >= 2


def test_the_policy_lets_no_script_run(browser: Any, pages: Path) -> None:
    show(browser, pages / "groups.html")
    browser.execute_script(
        "const element = document.createElement('script'); element.textContent = 'window.ran = 1';"
        "document.body.append(element);"
    )
    assert browser.execute_script("return window.ran") is None
    complains(browser, "Content Security Policy")
