"""Start again: a certificate from new points that knows which one it follows, and what is left of delta."""

from dataclasses import replace
from typing import Final

from numpy.typing import ArrayLike

from pac_wrap.base.arguments import (
    as_anomaly_mask,
    as_array,
    check_aligned,
    check_positive,
    check_same_length,
)
from pac_wrap.errors import InputError
from pac_wrap.method.calibrate import calibrate
from pac_wrap.method.certificate import Certificate, no_certificate
from pac_wrap.method.promise import Guarantee
from pac_wrap.method.provenance import MOST_ANCESTORS, Lineage

_AGAIN: Final = "calibrate the new points as the old ones were"


def recalibrate(
    certificate: Certificate,
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    last: int | None = None,
    ledger: bool = True,
    anomaly_label: object = 1,
) -> Certificate:
    """Return a certificate for the same ceilings from new points, which names the one that it follows.

    A threshold that was read off a curve stays, and its ceilings are what the new points bound there. After
    an alarm take points that came later: those that raised it were chosen by their errors. A window, or all
    points, is right if it was chosen without looking at scores.

    Parameters
    ----------
    certificate : Certificate
        The one that it follows.
    scores : array-like of float
        The scores of new points, by the detector as it is now.
    labels : array-like
        One label per point.
    last : int, optional
        Use only so many points, the last ones.
    ledger : bool
        Whether all certificates that follow each other share one delta, twice that of the first: its
        successors take a third of the first delta, a sixth, a tenth, and so on: eq. (92). Else each has its
        own, and the chances that one of them fails add up. It cannot change within a lineage.
    anomaly_label : object
        The label that marks an anomaly.

    Returns
    -------
    Certificate
        With its `lineage`.

    Raises
    ------
    InputError
        If an argument is none of its kind, the lineage has shared its delta otherwise so far, or the
        strategy certifies more than its share of delta, as `Algorithm1(relax_delta=True)` does.

    Examples
    --------
    >>> from pac_wrap import calibrate
    >>> first = calibrate(range(1000), range(2000, 3000))
    >>> scores, labels = [*range(2000), *range(3000, 5000)], [0] * 2000 + [1] * 2000
    >>> second = recalibrate(first, scores, labels)
    >>> round(first.guarantee.delta_fpr / second.guarantee.delta_fpr, 12), second.lineage.number
    (3.0, 1)
    """
    if not isinstance(certificate, Certificate):
        raise no_certificate(certificate, GroupCertificate=_AGAIN)
    if certificate.by_kind:
        raise InputError(f"certificate must be without kinds; {_AGAIN}")
    check_aligned("scores", scores, "labels", labels)
    values, mask = as_array(scores, "scores"), as_anomaly_mask(labels, anomaly_label)
    check_same_length("scores", values.size, "labels", mask.size)
    if last is not None:
        kept = check_positive("last", last)
        values, mask = values[-kept:], mask[-kept:]
    asked, place = successor(certificate, bool(ledger))
    made = calibrate(values[~mask], values[mask], asked, overlap=certificate.overlap)
    return replace(made, lineage=place)


def successor(certificate: Certificate, ledger: bool) -> tuple[Guarantee, Lineage]:
    """Return the guarantee that the certificate after this one is asked for, and its place."""
    overlap = certificate.overlap
    if not overlap.proved:
        raise InputError(
            f"the confidence of {overlap} is not guaranteed, so the deltas of certificates that follow each"
            " other do not add up; calibrate with a correction first"
        )
    if ledger and not overlap.keeps_delta:
        raise InputError(
            f"{overlap} may certify more than its share of delta, so certificates that follow each other"
            " cannot share one; give each its own, with ledger=False or --own-delta"
        )
    before, asked, digest = certificate.lineage, certificate.guarantee, certificate.checksum
    if before is None:
        place = Lineage(1, ledger, asked.delta_fpr, asked.delta_fnr, (digest,))
    elif before.ledger != ledger:
        so_far = "share one delta" if before.ledger else "each have their own delta"
        raise InputError(
            f"the certificates of this lineage {so_far}, which cannot change; pass ledger={before.ledger}, or"
            " start a new lineage with calibrate"
        )
    else:
        ancestors = (*before.ancestors, digest)[-MOST_ANCESTORS:]
        place = replace(before, number=before.number + 1, ancestors=ancestors)
    deltas = place.delta(place.delta_fpr), place.delta(place.delta_fnr)
    return replace(asked, delta_fpr=deltas[0], delta_fnr=deltas[1]), place
