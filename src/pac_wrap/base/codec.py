"""Frozen dataclasses to JSON and back: floats exact, infinities as text; nothing unknown or endless read.

A dataclass with a class attribute `tag: ClassVar[str]` is written with it as "name", so that a field can hold
one of several: `A | B` of tagged dataclasses is read by that name. A field that `__init__` does not take
(`init=False`) is neither written nor read; one with the metadata {"optional": True} is left out if None. A
dataclass with another one as its class attribute `form` is written by `to_form` and read by `from_form`. What
is `SavedAsJSON` is written whole or not at all, and refused if it contradicts itself.
"""

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import Field, fields, is_dataclass
from enum import Enum
from functools import partial
from math import inf, isinf
from types import NoneType, UnionType
from typing import Any, ClassVar, Final, Literal, Self, Union, cast, get_args, get_origin, get_type_hints

from pac_wrap.base.files import write_whole
from pac_wrap.base.floats import is_flushed
from pac_wrap.base.text import LONGEST, quoted
from pac_wrap.errors import CertificateError, InputError

_LARGEST = sys.float_info.max
_INFINITIES = {"inf": inf, "-inf": -inf}
_NAME: Final = "name"
# the limits of reading; a certificate has about 2,500 bytes, a dozen brackets and 60 commas, a curve some
# thousand commas: both have one limit, so that the format tells one from the other
MOST_BYTES: Final = 1_000_000
Signs = dict[str, int]
MOST_SIGNS: Final[Signs] = {"[": 100, "{": 100, ",": 10_000}
_MOST_DIGITS: Final = 50
_REMEDIES: Final = {"monitor": "go back to an older copy, or start again with a new file"}


def encode(value: Any, header: dict[str, Any]) -> str:
    """Return value as readable JSON text, with the header in front and a checksum behind."""
    content = header | plain(value)
    for name, leaf in flat(content).items():
        numbers = leaf if isinstance(leaf, list) else [leaf]
        if any(isinstance(one, float) and is_flushed(one) for one in numbers):
            raise CertificateError(
                f"{name} is a subnormal number, which this process would write as 0, since it flushes them;"
                " call torch.set_flush_denormal(False) before you save"
            )
    return json.dumps(content | {"checksum": checksum(content)}, indent=2, allow_nan=False) + "\n"


def content_of(
    text: str | bytes, header: dict[str, Any], noun: str, most: int = MOST_BYTES, signs: Signs = MOST_SIGNS
) -> dict[str, Any]:
    """Return the content of a JSON text without header and checksum, after checking size and checksum."""
    if not isinstance(text, (str, bytes)):
        raise CertificateError(
            f"a {noun} must be read from a text, got {type(text).__name__}; read a file with"
            f" {noun.capitalize()}.load"
        )
    _refuse_endless(text, noun, most, signs)
    try:
        content = json.loads(
            text,
            parse_constant=_refuse_constant,
            parse_int=partial(_short, int),
            parse_float=partial(_short, float),
            object_pairs_hook=_no_twins,
        )
        written = content.pop("checksum", None) if isinstance(content, dict) else None
        expected = checksum(content)
    except (ValueError, RecursionError) as error:
        raise CertificateError(f"this is no {noun}: not JSON ({error}); is it the right file?") from error
    if not isinstance(content, dict):
        raise CertificateError(f"this is no {noun}: not a JSON object; is it the right file?")
    for name, value in header.items():
        found = content.get(name)
        if type(found) is type(value) and found == value:
            continue
        said = f"the {noun} has {name} {quoted(found)}"
        if isinstance(value, int) and type(found) is int:
            remedy = "update pac-wrap-ad" if found > value else "calibrate again with this version"
            raise CertificateError(f"{said}, this version reads {value}; {remedy}")
        raise CertificateError(f"{said} where {value!r} is expected; is it the right file?")
    if expected != written:
        raise CertificateError(
            f"the {noun} was changed after it was written (its checksum differs);"
            f" {_REMEDIES.get(noun, 'calibrate again')}"
        )
    return {name: value for name, value in content.items() if name not in header}


def checksum_of(text: str) -> str:
    """Return the checksum that `encode` put at the end of a text."""
    return str(json.loads(text)["checksum"])


def flat(value: Any) -> dict[str, Any]:
    """Return the values of a dataclass by their dotted names, as in the JSON text."""

    def walk(name: str, node: Any) -> Iterator[tuple[str, Any]]:
        if isinstance(node, dict):
            for key, item in node.items():
                yield from walk(f"{name}.{key}" if name else key, item)
        else:
            yield name, node

    return dict(walk("", plain(value)))


def _refuse_endless(text: str | bytes, noun: str, largest: int, signs: Signs) -> None:
    """Refuse a text that would cost too much time or memory, before parsing it."""
    if text[:100].lstrip()[:1] in ("<", b"<"):
        raise CertificateError(f"this is no {noun}: it is a page; open it in a browser and save its {noun}")
    if len(text) > largest:
        raise CertificateError(f"this is no {noun}: it has over {largest:,} bytes; is it the right file?")
    for sign, most in signs.items():
        # brackets bound the nesting, commas the number of values
        if (text.count(sign) if isinstance(text, str) else text.count(sign.encode())) > most:
            raise CertificateError(
                f"this is no {noun}: it has more than {most:,} of the character {sign!r};"
                " is it the right file?"
            )


def _short(kind: Callable[[str], Any], text: str) -> Any:
    """Return a number, refusing one with too many digits."""
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"a number has more than {_MOST_DIGITS} digits")
    return kind(text)


def checksum(content: Any) -> str:
    """Return the checksum of the content of a JSON text, whatever its layout."""
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("a name appears twice in one object")
    return content


def plain(value: Any) -> Any:
    """Return a value in the form of JSON."""
    if isinstance(value, float):  # most are, so they come first
        return ("inf" if value > 0 else "-inf") if isinf(value) else value
    if form_of(type(value)) is not None:
        value = value.to_form()
    if is_dataclass(value):
        content = {}
        for field in _written(value):
            item = getattr(value, field.name)
            if item is not None or not field.metadata.get("optional"):
                content[field.name] = plain(item)
        return content if _tag(value) is None else {_NAME: _tag(value)} | content
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    return value.value if isinstance(value, Enum) else value


def form_of(kind: Any) -> Any:
    """Return the dataclass in whose form another one is written, None for one that is written as it is."""
    return getattr(kind, "form", None) if is_dataclass(kind) else None


def _written(kind: Any) -> list[Field[Any]]:
    """Return the fields of a dataclass that stand in its text."""
    return [field for field in fields(kind) if field.init]


def _tag(kind: Any) -> str | None:
    """Return the name that a dataclass has in a text, None if it has none."""
    tag = getattr(kind, "tag", None)
    return tag if isinstance(tag, str) else None


def typed(kind: Any, value: Any, where: str) -> Any:
    """Return the content of JSON as a type, or raise a CertificateError that names the place and the rule."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (UnionType, Union):
        if value is None:
            return _require(NoneType in arguments, None, where, "a value", value)
        options = [option for option in arguments if option is not NoneType]
        if len(options) > 1 and all(map(_tag, options)):
            return typed(_named(options, value, where), value, where)
        return typed(options[-1 if isinstance(value, list) else 0], value, where)
    if origin is Literal:
        return _require(value in arguments, value, where, f"one of {arguments}", value)
    if origin is tuple:
        items = _require(isinstance(value, list), value, where, "a list", value)
        return tuple(typed(arguments[0], item, where) for item in items)
    if (form := form_of(kind)) is not None:
        return kind.from_form(typed(form, value, where))
    if is_dataclass(kind):
        content = dict(_require(isinstance(value, dict), value, where, "an object", value))
        if _tag(kind) is not None:
            _named([kind], content, where)
            del content[_NAME]
        return _fill(kind, content, where)
    if isinstance(kind, type) and issubclass(kind, Enum):
        # by its type as well: true is not 1
        known = any(type(value) is type(member.value) and value == member.value for member in kind)
        return kind(_require(known, value, where, "one that is known", value))
    if kind is float:
        if type(value) is str:
            _require(value in _INFINITIES, value, where, "a number, 'inf' or '-inf'", value)
            return _INFINITIES[value]
        _require(type(value) in (int, float), value, where, "a number", value)
        return float(_require(abs(value) <= _LARGEST, value, where, "a number that fits a double", "more"))
    if type(value) is str:
        _require(len(value) <= LONGEST, value, where, f"at most {LONGEST} characters long", value)
    return _require(type(value) is kind, value, where, f"of type {kind.__name__}", value)


def _named(options: list[Any], value: Any, where: str) -> Any:
    """Return the tagged dataclass that an object names."""
    content = _require(isinstance(value, dict), value, where, "an object", value)
    _require(_NAME in content, None, f"{where}.{_NAME}", "there", "nothing")
    found = next((option for option in options if content[_NAME] == option.tag), None)
    known = ", ".join(repr(option.tag) for option in options)
    rule = known if len(options) == 1 else f"one of {known}"
    return _require(found is not None, found, f"{where}.{_NAME}", rule, content[_NAME])


def _fill(kind: Any, content: dict[str, Any], where: str) -> Any:
    hints = get_type_hints(kind)
    names = [field.name for field in _written(kind)]
    content = {field.name: None for field in _written(kind) if field.metadata.get("optional")} | content
    for name in names:
        _require(name in content, None, f"{where}.{name}", "there", "nothing")
    for name in content:
        _require(name in names, None, f"{where}.{name}", "absent: it is unknown", content[name])
    try:
        return kind(**{name: typed(hints[name], content[name], f"{where}.{name}") for name in names})
    except InputError as error:
        raise CertificateError(f"{where} is not possible: {error}") from error


def _require(condition: bool, result: Any, where: str, rule: str, found: Any) -> Any:
    if not condition:
        raise CertificateError(f"{where} must be {rule}, got {quoted(found)}")
    return result


class SavedAsJSON:
    """A dataclass that is saved as JSON with a header, and checked for contradictions when loaded."""

    __slots__ = ()

    _header: ClassVar[dict[str, Any]]
    _noun: ClassVar[str] = "certificate"
    _remedy: ClassVar[str] = "calibrate again"
    _most_bytes: ClassVar[int] = MOST_BYTES
    _most_signs: ClassVar[Signs] = MOST_SIGNS

    def to_json(self) -> str:
        """Return the JSON text from which `from_json` restores the object to the last digit."""
        return encode(self, self._header)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Return the object in a JSON text; a changed or impossible text raises a `CertificateError`."""
        try:
            found = cls._read(text)
            problem = next(found._problems(), None)
        except InputError as error:  # numbers that no calibration would take
            problem = str(error)
        if problem is not None:
            raise CertificateError(f"the {cls._noun} contradicts itself: {problem}; {cls._remedy}")
        return found

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a JSON file; it appears whole or not at all."""
        write_whole(path, self.to_json())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the object in a file that `save` wrote; loading never runs code and reads a limited size.

        The checksum and digests detect accidents, not forgery: anyone who can write the file can change them.
        """
        with open(path, "rb") as file:
            return cls.from_json(file.read(cls._most_bytes + 1))

    @classmethod
    def _read(cls, text: str | bytes) -> Self:
        """Return the object in a text that was not changed, before the check for contradictions."""
        content = content_of(text, cls._header, cls._noun, cls._most_bytes, cls._most_signs)
        return cast(Self, typed(cls, content, cls._noun))

    def _problems(self) -> Iterator[str]:
        """Yield the contradictions, each as a sentence."""
        raise NotImplementedError
