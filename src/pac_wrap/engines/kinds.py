"""Kinds of points that an engine counts: each is calibrated as any frame is, so no engine has more to do."""

from collections.abc import Sequence
from dataclasses import dataclass

from pac_wrap.errors import InputError
from pac_wrap.method.certificate import Overlap
from pac_wrap.method.kinds.calibrate import KindRequest, Pair, asked_of_kinds
from pac_wrap.method.kinds.certificate import KindCertificate
from pac_wrap.method.promise import Guarantee
from pac_wrap.method.request import Request
from pac_wrap.tables.kinds import kinds_named

Counted = Sequence[tuple[int, str | None, int]]


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

    def certificate(self, counted: Counted, pair: Pair) -> KindCertificate:
        """Return the certificate of kinds whose rows were counted, by class and kind; None is no kind."""
        names = kinds_named(self.column, counted)
        made = KindRequest.of(self.guarantee, self.overlap, *names).certify(pair)
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
