"""Certificates of kinds from a table whose column names the kind of each row, and what they do there."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pac_wrap.base.arguments import Scores, as_scores
from pac_wrap.base.floats import ScoreType
from pac_wrap.base.text import quoted
from pac_wrap.errors import InputError
from pac_wrap.method.certificates.certificate import Certificate, Overlap
from pac_wrap.method.chunked import calibrate_passes
from pac_wrap.method.kinds.calibrate import KindRequest, Pair, Sizes, asked_of_kinds
from pac_wrap.method.kinds.certificate import MOST_KINDS, KindCertificate
from pac_wrap.method.kinds.part import Measured
from pac_wrap.method.promise import Guarantee, check_kind
from pac_wrap.method.request import Request
from pac_wrap.tables.calibrate import LabelledScores
from pac_wrap.tables.columns import refuse_as_third
from pac_wrap.tables.decide import refuse_undecidable, tally_of
from pac_wrap.tables.table import Table

Names = tuple[str, ...] | None


class KindScores:
    """The labelled scores of a table by kind: a class none of whose rows names one has no kinds."""

    def __init__(
        self,
        table: Table,
        columns: tuple[str, str, str],
        anomaly_label: str | None,
        score_type: ScoreType | None = None,
    ) -> None:
        score, label, kind = columns
        refuse_as_third(kind, (score, label), "kind")
        self._rows = LabelledScores(table, score, label, anomaly_label, score_type, kind)
        counted = self._rows.kinds()
        if any(mark > 1 for mark, _, _ in counted):
            self._rows.check_labels()
        self.normal, self.anomalous = kinds_named(kind, counted)
        self.sizes = kind_sizes(counted)
        if anomaly_label is not None and not any(mark == 1 for mark, _, _ in counted):
            self._rows.check_labels()

    def pair(self, normal: str | None, anomalous: str | None, request: Request) -> Certificate:
        """Return the certificate of a kind of each class by themselves."""
        return calibrate_passes(self._rows.of_kinds(normal, anomalous), request)

    def signed(self, certificate: KindCertificate) -> KindCertificate:
        """Return a certificate of these scores with where they came from."""
        return certificate.with_provenance(**self._rows.origin)

    def by_kind(self) -> tuple[dict[str | None, Scores], dict[str | None, Scores]]:
        """Return the scores of every kind of each class; None is a class without kinds."""
        found: tuple[dict[str | None, Scores], dict[str | None, Scores]] = ({}, {})
        for label, names in enumerate((self.normal or (None,), self.anomalous or (None,))):
            for name in names:
                # no kind has an empty name, so that none of the other class is read
                pair = (name, "") if label == 0 else ("", name)
                found[label][name] = as_scores(self._rows.of_kinds(*pair).by_class()[label])
        return found

    def tally(self, normal: str | None, anomalous: str | None, certificate: Certificate) -> Any:
        """Return how often each verdict falls on a kind of each class."""
        return self._rows.of_kinds(normal, anomalous)(partial(tally_of, certificate))


def calibrate_kinds_table(
    table: Table,
    guarantee: Guarantee,
    overlap: object,
    columns: tuple[str, str, str],
    anomaly_label: str | None = None,
) -> KindCertificate:
    """Return the certificate of an open table, from its columns of scores, labels and kinds.

    It is that of `calibrate` for the same scores by kind, byte for byte, in bounded memory: two to five
    passes for each kind.
    """
    scores = KindScores(table, columns, anomaly_label)
    request = KindRequest.of(guarantee, overlap, *scores.sizes)
    return scores.signed(request.certify(scores.pair))


def recalibrate_kinds_table(
    table: Table,
    certificate: KindCertificate,
    columns: tuple[str, str, str],
    anomaly_label: str | None = None,
) -> KindCertificate:
    """Return what a certificate's request makes of an open table."""
    scores = KindScores(table, columns, anomaly_label, certificate.score_type)
    names = (scores.normal or (None,), scores.anomalous or (None,))
    return KindRequest.again(certificate, *names).certify(scores.pair)


def evaluate_kinds_table(
    table: Table,
    certificate: KindCertificate,
    columns: tuple[str, str, str],
    anomaly_label: str | None = None,
) -> tuple[Measured, ...]:
    """Return how a certificate does on each kind of an open table; see `KindCertificate.evaluate`."""
    scores = KindScores(table, columns, anomaly_label)
    refuse_undecidable(table, certificate.binding, columns[0])
    sides: tuple[tuple[str | None, ...], ...] = (scores.normal or (None,), scores.anomalous or (None,))
    counts: tuple[dict[str | None, Any], dict[str | None, Any]] = ({}, {})
    for place in range(max(map(len, sides))):
        low, high = (side[min(place, len(side) - 1)] for side in sides)
        found = scores.tally(low, high, certificate.binding)
        counts[0][low], counts[1][high] = found
    return certificate.measured(*counts)


@dataclass(frozen=True, slots=True)
class KindsAsked:
    """What is asked of kinds, before they are known; `column` is what the user calls that of kinds."""

    guarantee: Guarantee
    overlap: Overlap
    anomaly_label: object
    column: str

    @classmethod
    def of(
        cls,
        guarantee: Guarantee | Request | None,
        overlap: str | Overlap | None,
        anomaly_label: object,
        column: str,
    ) -> "KindsAsked":
        """Return what the arguments of an entrance ask for; a whole request has a label of its own."""
        label = guarantee.anomaly_label if isinstance(guarantee, Request) else anomaly_label
        return cls(*asked_of_kinds(guarantee, overlap), label, column)

    def certificate(self, counted: Sequence[tuple[int, str | None, int]], pair: Pair) -> KindCertificate:
        """Return the certificate of kinds whose rows were counted, by class and kind; None is no kind."""
        kinds_named(self.column, counted)
        made = KindRequest.of(self.guarantee, self.overlap, *kind_sizes(counted)).certify(pair)
        for label, parts in enumerate((made.normal, made.anomalous)):
            for part in parts:
                rows = sum(
                    count for mark, name, count in counted if mark == label and part.name in (None, name)
                )
                if part.n != rows:
                    raise InputError(
                        "the frame has other rows each time it is computed; cache or persist it first"
                    )
        return made

    def refused(self, kind: object) -> InputError:
        """Return the refusal of a column of another type, such as numbers, which have several texts."""
        return InputError(
            f"column {self.column!r} must hold kinds: texts, whole numbers, dates or booleans, but its type"
            f" is {kind}; convert it to text"
        )


def kinds_named(column: str, counted: Sequence[tuple[int, str | None, int]]) -> tuple[Names, Names]:
    """Return the kinds of both classes, from the class, the kind and the number of rows of each kind."""
    normal, anomalous = (
        _names(label, column, [(name, count) for mark, name, count in counted if mark == wanted])
        for wanted, label in enumerate(("normal", "anomalous"))
    )
    return normal, anomalous


def kind_sizes(counted: Sequence[tuple[int, str | None, int]]) -> tuple[Sizes, Sizes]:
    """Return how many rows each kind of each class has; those of a class without kinds under None."""
    low, high = ({name: count for mark, name, count in counted if mark == wanted} for wanted in (0, 1))
    return low or {None: 0}, high or {None: 0}


def _names(label: str, column: str, counted: list[tuple[str | None, int]]) -> Names:
    """Return the kinds of a class; some rows with and some without one are refused."""
    missing = sum(count for name, count in counted if name is None)
    named = tuple(sorted(name for name, _ in counted if name is not None))
    if not named:
        return None
    if missing:
        raise InputError(
            f"column {quoted(column)} is empty in {missing:,} rows of {label} points, while others of them"
            " have a kind; name the kind of all of them, or of none"
        )
    if len(named) > MOST_KINDS:
        raise InputError(
            f"column {quoted(column)} names {len(named):,} kinds of {label} points; at most {MOST_KINDS} can"
            " have their own ceilings, so merge some"
        )
    return tuple(map(check_kind, named))
