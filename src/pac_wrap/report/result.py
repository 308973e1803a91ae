"""What a report is made of: a certificate, the scores it was made from, and where they came from."""

from dataclasses import dataclass

from pac_wrap.certificate import Certificate
from pac_wrap.errors import InputError
from pac_wrap.inputs import Scores, as_scores
from pac_wrap.metrics import Metrics
from pac_wrap.order import digest
from pac_wrap.precision import rounded


@dataclass(frozen=True, slots=True)
class Source:
    """Where the calibration scores came from: the tables, the column of scores and that of labels."""

    tables: tuple[str, ...]
    score: str
    label: str


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """A certificate with the scores it was calibrated on; what every renderer takes.

    `metrics` are rates measured on held-out points. Scores that are not those of the certificate are refused,
    because everything that is said about calibration points would be untrue.

    >>> from pac_wrap import calibrate
    >>> Report(calibrate([0.1, 0.2], [0.8]), [0.1, 0.2], [0.9])
    Traceback (most recent call last):
    ...
    pac_wrap.errors.InputError: the anomalous scores are not those the certificate was made from (their \
digests differ); pass the calibration scores
    """

    certificate: Certificate
    normal: Scores
    anomalous: Scores
    source: Source | None = None
    metrics: Metrics | None = None
    detector: str | None = None

    def __post_init__(self) -> None:
        for name in ("normal", "anomalous"):
            scores = rounded(as_scores(getattr(self, name), name), self.certificate.score_type)
            evidence = getattr(self.certificate, name)
            if scores.size != evidence.n or digest(scores) != evidence.digest:
                raise InputError(
                    f"the {name} scores are not those the certificate was made from (their digests differ);"
                    " pass the calibration scores"
                )
            object.__setattr__(self, name, scores)
