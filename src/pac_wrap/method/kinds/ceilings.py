"""The ceilings of kinds that a guarantee may name: one for each kind, and one for all kinds as they come."""

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from pac_wrap.base.arguments import check_rate
from pac_wrap.base.foreign import LONGEST, is_unicode, quoted
from pac_wrap.errors import InputError

# a ceiling for each kind; None is all kinds as they come
Ceilings = Mapping[str, float | None] | Mapping[str | None, float | None]


class KindCeiling(NamedTuple):
    """A kind of points of a class, and its ceiling; None: nothing is promised of that kind by itself."""

    label: Literal["normal", "anomalous"]
    kind: str
    ceiling: float | None


def whole_of(ceilings: float | Ceilings | None) -> float | None:
    """Return the ceiling of all points of a class."""
    if not isinstance(ceilings, Mapping):
        return ceilings
    return next((ceiling for kind, ceiling in ceilings.items() if kind is None), None)


def kinds_of(
    label: Literal["normal", "anomalous"], ceilings: float | Ceilings | None
) -> Iterator[KindCeiling]:
    """Yield the kinds that a mapping names."""
    if not isinstance(ceilings, Mapping):
        return
    name = "max_fpr" if label == "normal" else "max_fnr"
    if not any(kind is not None for kind in ceilings):
        raise InputError(f"{name} names no kind; write {{'a kind': 0.05}}, or a number for all points")
    for kind, ceiling in ceilings.items():
        if kind is not None:
            of = f"{name} of {quoted(check_kind(kind))}"
            yield KindCeiling(label, kind, None if ceiling is None else check_rate(of, ceiling))


def check_kind(kind: object) -> str:
    """Return the name of a kind: a text that is not empty, and not longer than a certificate's texts are."""
    if not isinstance(kind, str) or not kind or len(kind) > LONGEST or not is_unicode(kind):
        raise InputError(
            f"a kind must be named by a text of 1 to {LONGEST} characters, got {quoted(kind)}; convert it"
        )
    return str(kind)
