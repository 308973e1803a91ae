"""Labels that are not clean: how many may be wrong, and what that leaves of a ceiling."""

from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from typing import ClassVar, Final

from pac_wrap.base.arguments import as_float
from pac_wrap.base.floats import rounded_down
from pac_wrap.base.text import quoted
from pac_wrap.errors import InputError
from pac_wrap.method.robust.shift import DIGITS, Room, as_double

_ONE: Final = Decimal(1)
# what a comparison of new labels with eq. (76) rests on
NEW_LABELS: Final = (
    "this assumes that under each label no larger share of the new points is mislabelled than there is room"
    " for; that share changes with the prevalence, even if the labeller errs as before"
)


@dataclass(frozen=True, slots=True)
class LabelNoise(Room):
    """Room for wrong labels of one class, of which the scores may be anything.

    With h = contamination and q = lost, a ceiling e needs (1 - h) (e - q) / (1 - q) at calibration: eq. (75).

    Parameters
    ----------
    contamination : float
        At most this share of the points that carry the label of the class belong to the other one. It
        depends on the prevalence.
    lost : float
        At most this share of the points of the class carry another label, or none, in a way that may depend
        on their scores. Points lost at random cost nothing: leave 0.

    Raises
    ------
    InputError
        If a share is not at least 0 and below 1, or both are 0.

    Examples
    --------
    >>> from pac_wrap import Guarantee, plan
    >>> plan(Guarantee(max_fpr=0.05, max_fnr=None, label_noise=LabelNoise(0.05))).needed[0].labels[0]
    62
    """

    tag: ClassVar[str] = "labels"
    contamination: float = 0.0
    lost: float = 0.0

    def __post_init__(self) -> None:
        for name in ("contamination", "lost"):
            share = as_float(getattr(self, name))
            if not 0.0 <= share < 1.0:
                raise InputError(
                    f"{name} must be a share of at least 0 and below 1, got {quoted(getattr(self, name))};"
                    " write five percent as 0.05"
                )
            object.__setattr__(self, name, share)
        if not self.contamination and not self.lost:
            raise InputError(
                "LabelNoise needs a contamination or a lost share above 0; leave it out for none"
            )

    def _before(self, ceiling: Decimal) -> Decimal:
        h, q = Decimal(self.contamination), Decimal(self.lost)
        return (_ONE - h) * (ceiling - q) / (_ONE - q)

    def _after(self, rate: Decimal) -> Decimal:
        h, q = Decimal(self.contamination), Decimal(self.lost)
        return (_ONE - q) * min(_ONE, rate / (_ONE - h)) + q

    def counted(self, rate: float) -> float:
        """Return what a true rate may look like among points whose labels are as wrong: eq. (76).

        The share of wrong labels under a label changes with the prevalence, eq. (119): where anomalies are
        more frequent than at calibration, more of the points that are labelled normal are anomalies, though
        the labeller errs as before. Then a rate may look worse than this and still be kept.

        Parameters
        ----------
        rate : float
            The true rate.

        Returns
        -------
        float
            The largest share of errors among points labelled so; 1 at most.

        Examples
        --------
        >>> round(LabelNoise(0.05).counted(0.05), 6)
        0.0975
        """
        with localcontext(Context(prec=DIGITS)):
            h, q = Decimal(self.contamination), Decimal(self.lost)
            found = h + (_ONE - h) * min(_ONE, Decimal(rate) / (_ONE - q))
            return min(1.0, as_double(found, up=True))

    @property
    def text(self) -> str:
        """The shares as the command line has them."""
        return f"{self.contamination!r}:{self.lost!r}" if self.lost else repr(self.contamination)

    def __str__(self) -> str:
        parts = [f"{rounded_down(self.contamination, digits=4)} contaminated"] * (self.contamination > 0)
        parts += [f"{rounded_down(self.lost, digits=4)} lost"] * (self.lost > 0)
        return f"labels with up to {' and '.join(parts)}"
