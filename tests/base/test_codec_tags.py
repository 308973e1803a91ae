"""Tagged dataclasses: a field that holds one of several kinds is written with a name and read by it."""

import json
from dataclasses import dataclass, field
from math import inf
from typing import Any, ClassVar, Literal

import pytest

from pac_wrap.base.codec import content_of, encode, flat, typed
from pac_wrap.errors import CertificateError, InputError
from support.resealed import sealed

HEADER = {"format": "shapes", "schema": 1}


@dataclass(frozen=True, slots=True)
class Dot:
    tag: ClassVar[str] = "dot"


@dataclass(frozen=True, slots=True)
class Circle:
    radius: float
    filled: Literal["yes", "no"] | None = None
    tag: ClassVar[str] = "circle"

    def __post_init__(self) -> None:
        if self.radius < 0.0:
            raise InputError("radius must not be negative")


@dataclass(frozen=True)
class Box:
    width: float
    label: str | None = field(default=None, metadata={"optional": True})
    area: float = field(init=False)
    tag: ClassVar[str] = "box"

    def __post_init__(self) -> None:
        object.__setattr__(self, "area", self.width**2)


Shape = Dot | Circle | Box


@dataclass(frozen=True, slots=True)
class Drawing:
    first: Shape
    second: Shape | None
    rest: tuple[Shape, ...]
    only: Dot


DRAWING = Drawing(Circle(inf, "no"), Box(2.0), (Dot(), Box(0.1, "small")), Dot())


def content(drawing: Drawing = DRAWING) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(encode(drawing, HEADER))
    return found


def read(changed: dict[str, Any]) -> Drawing:
    found: Drawing = typed(Drawing, content_of(sealed(changed), HEADER, "certificate"), "certificate")
    return found


def test_the_tag_is_written_first_as_the_name() -> None:
    written = content()
    assert list(written["first"].items()) == [("name", "circle"), ("radius", "inf"), ("filled", "no")]
    assert written["only"] == {"name": "dot"}


def test_fields_that_are_not_taken_or_optional_and_none_are_not_written() -> None:
    written = content()
    assert written["second"] == {"name": "box", "width": 2.0}
    assert written["rest"] == [{"name": "dot"}, {"name": "box", "width": 0.1, "label": "small"}]


def test_every_kind_comes_back_as_it_was() -> None:
    for drawing in (DRAWING, Drawing(Dot(), None, (), Dot()), Drawing(Box(3.0), Circle(1.0), (), Dot())):
        assert read(content(drawing)) == drawing
    found = read(content()).second
    assert isinstance(found, Box)
    assert found.area == 4.0


def test_flat_names_the_tag_like_any_other_leaf() -> None:
    assert flat(DRAWING)["first.name"] == "circle"
    assert flat(DRAWING)["only.name"] == "dot"


@pytest.mark.parametrize(
    ("place", "value", "reason"),
    [
        (
            "first",
            {"name": "line"},
            "certificate.first.name must be one of 'dot', 'circle', 'box', got 'line'",
        ),
        ("first", {"name": None}, "first.name must be one of 'dot', 'circle', 'box', got None"),
        ("first", {"name": ["dot"]}, "first.name must be one of"),
        ("first", {}, "certificate.first.name must be there, got 'nothing'"),
        ("first", "dot", "certificate.first must be an object, got 'dot'"),
        ("first", None, "certificate.first must be a value, got None"),
        ("first", {"name": "dot", "radius": 1.0}, "first.radius must be absent: it is unknown"),
        ("first", {"name": "circle"}, "first.radius must be there"),
        ("first", {"name": "circle", "radius": -1.0, "filled": None}, "radius must not be negative"),
        ("second", {"name": "box", "width": 2.0, "area": 4.0}, "second.area must be absent: it is unknown"),
        ("rest", [{"name": "dot"}, {"name": "d\x1bot"}], r"rest.name must be one of .*, got 'd.x1bot'"),
        ("only", {"name": "box", "width": 2.0}, "certificate.only.name must be 'dot', got 'box'"),
        ("only", {}, "certificate.only.name must be there"),
        ("only", [], "certificate.only must be an object"),
    ],
)
def test_what_names_no_kind_or_does_not_fit_it_is_refused(place: str, value: object, reason: str) -> None:
    with pytest.raises(CertificateError, match=reason):
        read(content() | {place: value})
