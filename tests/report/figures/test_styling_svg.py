"""A figure as SVG text: the same bytes, nothing loaded, and small."""

import re
from xml.etree import ElementTree

import matplotlib
import numpy as np

from pac_wrap import calibrate
from pac_wrap.report.figures import plot_boxes, plot_scores, to_svg
from support.drawn import scores_figure


class TestSvg:
    def test_same_figure_gives_the_same_bytes(self) -> None:
        assert to_svg(scores_figure()) == to_svg(scores_figure())
        assert to_svg(scores_figure()) != to_svg(scores_figure(dark=True))

    def test_is_one_element_with_text_as_text_and_nothing_loaded(self) -> None:
        svg = to_svg(scores_figure(), alt='<scores> & "labels"')
        root = ElementTree.fromstring(svg)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert root.get("aria-label") == '<scores> & "labels"'
        written = {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")}
        assert "anomalous, n = 200" in written
        assert not re.search(r"<(style|script|image|metadata|!DOCTYPE|\?xml)", svg)
        assert set(re.findall(r"\w+://[\w.]+", svg)) == {"http://www.w3.org"}
        assert re.findall(r"\b20\d\d-\d\d", svg) == []

    def test_ids_are_unique_within_and_between_figures_and_every_reference_is_met(self) -> None:
        svgs = [
            to_svg(scores_figure()),
            to_svg(scores_figure(dark=True)),
            to_svg(scores_figure(), prefix="third-"),
        ]
        ids = [name for svg in svgs for name in re.findall(r'\sid="([^"]+)"', svg)]
        assert len(ids) == len(set(ids)) > 30
        for svg in svgs:
            own = set(re.findall(r'\sid="([^"]+)"', svg))
            used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', svg))
            assert used
            assert used <= own
        assert all(name.startswith("third-") for name in re.findall(r'\sid="([^"]+)"', svgs[2]))

    def test_hatches_are_not_washed_out_by_a_translucent_face(self) -> None:
        svg = to_svg(scores_figure())
        hatched = re.findall(r'style="fill: url\(#[^"]*"', svg)
        assert hatched
        assert not any("fill-opacity" in one for one in hatched)

    def test_settings_of_the_caller_change_nothing(self) -> None:
        plain = to_svg(scores_figure())
        with matplotlib.rc_context({"svg.fonttype": "path", "savefig.bbox": "tight"}):
            assert to_svg(scores_figure()) == plain

    def test_is_small(self) -> None:
        random = np.random.default_rng(0)
        normal, anomalous = random.standard_cauchy(100_000), random.standard_cauchy(100_000) + 9
        certificate = calibrate(normal, anomalous)
        for ax in (
            plot_scores(certificate, normal, anomalous),
            plot_boxes(certificate, certificate, normal, anomalous),
        ):
            assert len(to_svg(ax.figure.get_figure(root=True))) < 80_000
