"""What is said of several series that calibrate together: their steps, and which of them depend most."""

from collections.abc import Iterator

import numpy as np

from pac_wrap.base.floats import rounded_up
from pac_wrap.base.text import listed, quoted
from pac_wrap.method.certificates.certificate import Certificate
from pac_wrap.series.dependence import EffectiveSize
from pac_wrap.series.points import Several
from pac_wrap.series.splits import SeriesSplit

Line = tuple[str, str]
_CLASSES = ((False, "normal", "FPR"), (True, "anomalous", "FNR"))
# series whose points are worth less together than half of what they are worth one by one differ
_DIFFER = 0.5


def lines_of_several(
    several: Several, certificate: Certificate, time: str, split: SeriesSplit | None = None
) -> Iterator[Line]:
    """Yield what a certificate of several series says beside itself, as pairs of a heading and a text."""
    points, count = several.points, len(several.names)
    taken = "" if points.every == 1 else f", one in every {points.every:,}"
    yield "in time", f"{points.scores.size:,} steps of {count:,} series{taken}, ordered by {quoted(time)}"
    if several.warm_up:
        yield "", f"{several.warm_up:,} more have no score yet (warm-up) and are left out"
    among = None if split is None else split.calibration
    differ = []
    for anomalous, name, _ in _CLASSES:
        found = list(several.within(certificate.thresholds, anomalous, among)) if count > 1 else []
        if found:
            yield "", _within(name, found)
            together = points.effective_size(certificate.thresholds, anomalous, among).effective
            alone = sum(one.effective or 0.0 for _, one in found)
            if together is not None and together < _DIFFER * alone:
                differ.append(
                    f"{name} steps are worth about {together:,.0f} together, {alone:,.0f} one by one"
                )
    if differ:
        yield "", f"the series differ: {', and '.join(differ)}"
        yield "", "so no spacing helps, and what is promised of all may hold for none of them by itself"
    if split is not None:
        yield from _held_out(several, certificate, split)


def _within(name: str, found: list[tuple[str, EffectiveSize]]) -> str:
    worst, least = min(found, key=lambda pair: (pair[1].effective or 0.0) / pair[1].n)
    depend = sum(one.misleading for _, one in found)
    return (
        f"{name} steps depend on each other within {depend:,} of {len(found):,} series, most in"
        f" {quoted(worst)}: {least.n:,} are worth about {least.effective or 0.0:,.0f}"
    )


def _held_out(several: Several, certificate: Certificate, split: SeriesSplit) -> Iterator[Line]:
    """Yield how the rule does on series that did not calibrate: counts, and no test, since steps depend."""
    points, test = several.points, split.test
    names = [several.names[number] for number in np.unique(several.series[test])]
    yield "held out", f"{len(names):,} of {len(several.names):,} series: {listed(names)}"
    verdicts = certificate.verdicts(points.scores[test])
    asked = certificate.certified or certificate.guarantee
    for anomalous, name, rate in _CLASSES:
        mine = points.labels[test] == anomalous
        wrong = mine & (verdicts == (0 if anomalous else 1))
        ceiling = asked.max_fnr if anomalous else asked.max_fpr
        if not mine.any() or ceiling is None:
            continue
        of = np.bincount(several.series[test][mine], minlength=len(several.names))
        errors = np.bincount(several.series[test][wrong], minlength=len(several.names))
        above = np.count_nonzero(errors[of > 0] > ceiling * of[of > 0])
        yield (
            "",
            f"{rate} {np.count_nonzero(wrong) / np.count_nonzero(mine):.4f} of {np.count_nonzero(mine):,}"
            f" {name} steps; above {rounded_up(ceiling)} in {above:,} of {np.count_nonzero(of):,} series",
        )
