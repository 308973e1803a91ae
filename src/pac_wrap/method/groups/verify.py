"""Whether certificates of groups belong to given scores: they are made again from them, and compared."""

import warnings
from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from pac_wrap.base.text import quoted
from pac_wrap.errors import InputError, UpsideDownWarning
from pac_wrap.method.certificates.verify import Verification, as_made, verify_against
from pac_wrap.method.groups.calibrate import GroupRequest, certify_labelled_groups
from pac_wrap.method.groups.certificate import GroupCertificate
from pac_wrap.method.groups.columns import permuted
from pac_wrap.method.groups.values import GroupColumn, shown
from pac_wrap.method.request import Request

# differences of so many groups are told
_TOLD: Final = 5


def verify_groups(
    certificate: GroupCertificate,
    scores: ArrayLike,
    labels: ArrayLike,
    groups: GroupColumn,
    *,
    anomaly_label: object = 1,
) -> Verification:
    """Recompute the certificates of all groups from the scores they were made of, and say what differs.

    Parameters
    ----------
    certificate : GroupCertificate
        What is to be verified.
    scores, labels, groups : array-like
        The calibration points, in any order.
    anomaly_label : object
        The label that marks an anomaly.

    Returns
    -------
    Verification
        True if nothing differs; printed, it says what does, for the first few groups.

    Raises
    ------
    InputError
        If the first argument is no certificate of groups, or the columns do not fit together.

    Examples
    --------
    >>> from pac_wrap import calibrate_labelled
    >>> scores, labels, groups = range(200), [0] * 100 + [1] * 100, ["a"] * 200
    >>> certificate = calibrate_labelled(scores, labels, by=groups)
    >>> bool(verify_groups(certificate, scores[::-1], labels[::-1], groups))
    True
    """
    if not isinstance(certificate, GroupCertificate):
        raise InputError(
            f"certificate must be a GroupCertificate, got {quoted(certificate)}; load a file with"
            " GroupCertificate.load"
        )
    kind = certificate.score_type
    made = as_made(kind, scores, "scores").astype(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UpsideDownWarning)
        again = certify_labelled_groups(request_of(certificate, anomaly_label), made, labels, groups)
    return verify_groups_against(certificate, again)


def request_of(certificate: GroupCertificate, anomaly_label: object = 1) -> GroupRequest:
    """Return what a certificate of groups was asked for."""
    request = Request(certificate.asked, certificate.overlap, anomaly_label)
    return GroupRequest(request, certificate.together, certificate.pool is not None)


def verify_groups_against(certificate: GroupCertificate, again: GroupCertificate) -> Verification:
    """Compare a certificate of groups with one that was made anew."""
    return Verification(tuple(_differences(certificate, again)))


def _differences(found: GroupCertificate, expected: GroupCertificate) -> Iterator[str]:
    missing = [group for group in found.groups if expected.lookup.place(group) is None]
    added = [group for group in expected.groups if found.lookup.place(group) is None]
    for groups, where in ((missing, "the certificate"), (added, "the scores")):
        if groups:
            yield f"{len(groups):,} groups are in {where} alone, such as {shown(groups[0])}"
    if missing or added:
        return
    if found.shares != expected.shares:
        yield f"the deltas of each group are {expected.shares}, not {found.shares}"
    order = [expected.lookup.place(group) for group in found.groups]
    again = permuted(expected.columns, np.array(order, dtype=np.intp))
    different = np.flatnonzero(~found.columns.same(again)).tolist()
    for place in different[:_TOLD]:
        one, two = (columns.at(place, found.request, found.score_type) for columns in (found.columns, again))
        told = verify_against(one, two).differences
        yield f"group {shown(found.groups[place])}: {'; '.join(told) or 'the errors at the rule differ'}"
    if len(different) > _TOLD:
        yield f"{len(different) - _TOLD:,} more groups differ"
    if found.pool is not None and expected.pool is not None:
        yield from (f"the pool: {text}" for text in verify_against(found.pool, expected.pool).differences)
